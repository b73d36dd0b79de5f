package rls

import (
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// signedTable is a protected table that has a signed view: statements whose text the proxy has signed read the view in
// its place.
type signedTable struct {
	table *policy.Table
	rows  string // the condition that a visible row meets
}

// signedAlias is the alias of the table inside its signed view.
const signedAlias = "pgconsent_row"

func signedTables(p *policy.Policy) []signedTable {
	var out []signedTable
	for _, t := range p.Tables() {
		if rows, ok := predicate.SignedViewCondition(t.Rows, t.Relation, signedAlias); ok && t.HasPlainColumns() &&
			predicate.HasSignedView(t.Rows, t.Relation) {
			out = append(out, signedTable{t, rows})
		}
	}
	return out
}

// signedViews makes the views that signed statements read in place of protected tables. The rule is in the view, so
// that no mistake of the rewriter can leave it out. The views are no security barriers, so that PostgreSQL can use
// indexes for the agent's conditions. Therefore only texts that the proxy has signed can read them.
type signedViews struct{ *planFacts }

func signedIdentity(name catalog.Name) string { return "view " + predicate.SignedView(name).String() }

func (f signedViews) objects() []Object {
	var out []Object
	for _, s := range f.signedTables {
		r := s.table.Relation
		if !f.isLookupTable(r) {
			out = append(out, f.readerAccess(r))
		}
		o := newObject(signedIdentity(r.Name), "", r)
		o.NeededObjects = f.objectsRead(s.table.Rows)
		f.signedView(o, s.table, s.rows)
		o.drop("Take the signed views away.", "DROP VIEW IF EXISTS "+predicate.SignedView(r.Name).SQL())
		out = append(out, o.Object)
	}
	return out
}

func (f *planFacts) signedView(o *objectBuilder, t *policy.Table, rows string) {
	r := t.Relation
	view := predicate.SignedView(r.Name).SQL()
	o.why = "Signed statements read the visible rows here; for any other it raises."
	o.create(fmt.Sprintf("CREATE VIEW %s AS\nSELECT %s FROM %s AS %s\nWHERE %s AND (SELECT pgconsent_signed.text_is_signed()) AND %s "+
		"AND (%s)", view, f.signedColumns(t), r.Name.SQL(), signedAlias, catalogIsCurrent,
		predicate.EstimateRowsCondition(r.Name, signedAlias), rows))
	o.create(fmt.Sprintf("GRANT SELECT ON %s TO %s", view, f.agent))
	o.create(fmt.Sprintf("ALTER VIEW %s OWNER TO %s", view, f.reader))
}

// signedColumns returns the columns of a table's signed view, which the hash of the plan does not depend on. If the
// owner drops a column, and the signed view with it, the proxy serves agents without the view.
func (f *planFacts) signedColumns(t *policy.Table) string {
	if f.knownTables == nil {
		return signedAlias + ".*"
	}
	var columns []string
	for _, c := range t.Relation.Columns {
		// masked columns are left out, since masks are not leak-proof expressions
		if t.Columns == nil || t.Columns.IsPlain(c.Name) {
			columns = append(columns, signedAlias+"."+catalog.QuoteIdent(c.Name))
		}
	}
	return strings.Join(columns, ", ")
}
