package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// mappedTable finds the table and the columns that a columnMapDecl names.
type mappedTable struct {
	names       *resolver
	policy      *Policy
	decl        *columnMapDecl
	relation    *catalog.Relation
	policyTable *Table
}

// findTable finds the table. If isWritten is true, callers use the table with their own rights, so the policy must list
// it.
func (x *mappedTable) findTable(decl *columnMapDecl, isWritten bool) *catalog.Relation {
	if decl == nil || decl.table.text == "" {
		return nil
	}
	x.decl, x.relation, x.policyTable = decl, x.names.findTable(decl.table.place, decl.table.text), nil
	if x.relation == nil {
		return nil
	}
	x.policyTable = x.policy.tableIndex[x.relation.Name]
	if x.policyTable == nil && isWritten {
		x.names.fail(decl.table.place, "list it under tables", "%s is not in the policy: nobody could use it", x.relation.Name)
		return nil
	}
	return x.relation
}

// findColumn returns the column that the policy names for one part of a record, and checks that callers see it
// unmasked. It returns "" if the policy names no column.
func (x *mappedTable) findColumn(name string) string {
	w, ok := x.decl.columns[name]
	if !ok || w.text == "" || x.names.findRuleColumn(w.place, x.relation, w.text) == nil {
		return ""
	}
	if x.policyTable != nil && x.policyTable.Columns != nil && !x.policyTable.Columns.IsPlain(w.text) {
		x.names.fail(w.place, "allow it under columns", "agents do not see %s.%s as it is", x.relation.Name, w.text)
		return ""
	}
	return w.text
}

// checkInsertable checks that callers may insert a row with values in these columns.
func (x *mappedTable) checkInsertable(columns ...string) {
	w := x.policyTable.Write
	if !w.Allows("INSERT") {
		x.names.fail(x.decl.table.place, "give it write: { commands: [insert], … }", "agents do not insert into %s", x.relation.Name)
		return
	}
	for _, column := range columns {
		if column != "" && !slices.Contains(w.Insertable, column) {
			x.names.fail(x.decl.table.place, "name it under columns of its write", "agents do not insert %s.%s", x.relation.Name, column)
		}
	}
}

func (x *mappedTable) textColumn(name string) string {
	column := x.findColumn(name)
	if column == "" {
		return ""
	}
	if t := x.relation.Column(column).Type; typeFamily(t) != "text" {
		x.names.fail(x.decl.columns[name].place, "name a text column", "%s.%s is a %s: %s is a text", x.relation.Name,
			column, t, name)
		return ""
	}
	return column
}

func (x *mappedTable) timeColumn(name string) string {
	column := x.findColumn(name)
	if column == "" {
		return ""
	}
	if oid := x.relation.Column(column).TypeOID; oid != 1184 && oid != 1114 {
		x.names.fail(x.decl.columns[name].place, "name a column of type timestamp, with or without time zone",
			"%s.%s is a %s: it does not say when", x.relation.Name, column, x.relation.Column(column).Type)
		return ""
	}
	return column
}

func (x *mappedTable) listColumn(name string) predicate.List {
	column := x.findColumn(name)
	if column == "" {
		return predicate.List{}
	}
	position := x.decl.columns[name].place
	list, elements, ok := x.names.findIDList(position, x.relation, column)
	if ok && elements != "text" {
		x.names.fail(position, "name a text[], or a JSON array in a jsonb, json or text column",
			"%s.%s is a %s: ids are texts here", x.relation.Name, column, x.relation.Column(column).Type)
	}
	return list
}

// keyColumn returns the column of a primary key that has only one column.
func (x *mappedTable) keyColumn() string {
	if len(x.relation.PrimaryKey) != 1 {
		x.names.fail(x.decl.table.place, "give it a primary key of one column", "no id names a row of %s", x.relation.Name)
		return ""
	}
	return x.relation.PrimaryKey[0]
}
