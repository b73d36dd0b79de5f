package policy

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// columnCompiler compiles which columns exist for agents, and how agents see their values.
type columnCompiler struct {
	*resolver
	rules *ruleCompiler
	graph keyGraph
}

// compile checks the columns of a table. The result is nil if agents see all of them unchanged.
func (c *columnCompiler) compile(decl tableDecl, r *catalog.Relation) *VisibleColumns {
	if decl.columns == nil && lacksRowSecurity(r) {
		allColumns := &VisibleColumns{}
		for _, column := range r.Columns {
			c.refuseVirtual(decl.place, r, &column)
			allColumns.Columns = append(allColumns.Columns, VisibleColumn{Name: column.Name, Type: column.Type})
		}
		return allColumns
	}
	if decl.columns == nil {
		if decl.consent != nil {
			c.fail(decl.consent.At(), "write it under rows, or give columns a category",
				"consent of a table is for its columns, and the policy names none of %s", r.Name)
		}
		return nil
	}
	visibleColumns, byKey := map[string]VisibleColumn{}, map[string]bool{}
	consent := c.columnConsent(decl, r)
	for _, d := range decl.columns {
		if s, ok := c.visibleColumn(d, r); ok {
			if d.category != nil {
				s.Condition, s.GroupCondition = c.columnCondition(d, consent, decl.consent != nil, r)
				if anonymous := c.anonymousCondition(decl, d.Name, r); anonymous != nil && s.GroupCondition != nil {
					s.GroupCondition = predicate.Any{s.GroupCondition, anonymous}
				}
			}
			visibleColumns[s.Name], byKey[s.Name] = s, d.byKey != nil
		}
	}
	out := &VisibleColumns{}
	var allColumns, byKeyColumns []VisibleColumn
	for _, column := range r.Columns {
		s, ok := visibleColumns[column.Name]
		switch {
		case !ok:
			continue
		case byKey[column.Name]:
			byKeyColumns = append(byKeyColumns, s)
		default:
			out.Columns = append(out.Columns, s)
		}
		allColumns = append(allColumns, s)
	}
	out.ByKey = c.compileByKey(decl, r, out, allColumns, byKeyColumns)
	for _, d := range decl.columns {
		if s, ok := visibleColumns[d.Name]; ok {
			c.refuseVirtualOfHidden(d.place, r, s, visibleColumns, byKey)
		}
	}
	return out
}

// refuseVirtual refuses a virtual generated column of a relation without row security, because PostgreSQL would compute
// it also for rows that agents do not see.
func (c *columnCompiler) refuseVirtual(position place, r *catalog.Relation, column *catalog.Column) {
	if column.Virtual && lacksRowSecurity(r) {
		c.fail(position, "list the others under columns",
			"%s.%s is computed as it is read: it could raise an error on some row, and say what the row holds", r.Name, column.Name)
	}
}

// refuseVirtualOfHidden refuses a virtual generated column that PostgreSQL computes from a column which agents do not
// see unchanged. If the computation failed, the error could quote the hidden value. A stored generated column is
// allowed, since PostgreSQL computes it when a row is written.
func (c *columnCompiler) refuseVirtualOfHidden(position place, r *catalog.Relation, s VisibleColumn,
	visibleColumns map[string]VisibleColumn, byKey map[string]bool) {
	for _, partition := range c.graph.withParts(r) {
		column := partition.Column(s.Name)
		if column == nil || !column.Virtual {
			continue
		}
		for _, sourceColumn := range column.ComputedFrom {
			source, ok := visibleColumns[sourceColumn]
			if !ok || source.Mask != Plain || byKey[sourceColumn] && !byKey[s.Name] ||
				source.Condition != nil && !reflect.DeepEqual(source.Condition, s.Condition) {
				c.fail(position, "make it STORED, or allow "+sourceColumn+" as it is",
					"%s.%s is computed from %s as it is read: where that fails, the error would say what the "+
						"hidden or masked column holds", r.Name, s.Name, sourceColumn)
				return
			}
		}
	}
}

func (c *columnCompiler) visibleColumn(d columnDecl, r *catalog.Relation) (VisibleColumn, bool) {
	column := c.findColumn(d.place, r, d.Name)
	if column == nil {
		return VisibleColumn{}, false
	}
	c.refuseVirtual(d.place, r, column)
	s := d.VisibleColumn
	s.Type = column.Type
	if t := c.snap.TypeByOID(column.TypeOID); t != nil && t.Kind == 'd' && (s.Mask != Plain || d.category != nil) ||
		t != nil && t.Kind == 'd' && d.generalised {
		s.Type = t.BaseName // a domain might refuse masked values, so the view's column has the domain's base type
	}
	if d.generalised {
		switch kind := maskKind(s.Type, c.innermostType(column.TypeOID)); {
		case s.Unit != "" && kind == "time":
			s.Mask = Truncate
		case s.Amount > 0 && kind == "text":
			s.Mask = Prefix
		case s.Amount > 0 && kind == "number":
			s.Mask = Step
		default:
			c.fail(d.place,
				"year, month or day for dates and timestamps, leading characters for text, a step for numbers; or mask it with null",
				"%s.%s is a %s, which cannot be generalised so", r.Name, d.Name, column.Type)
			return VisibleColumn{}, false
		}
	}
	kind := maskKind(s.Type, c.innermostType(column.TypeOID))
	switch {
	case s.Mask == Hash && kind != "text" && kind != "uuid":
		c.fail(d.place, "text and uuid columns can be hashed; mask it with null", "%s.%s is a %s", r.Name, d.Name, column.Type)
	case s.Mask == Hash && shorterThanHash(s.Type):
		c.fail(d.place, "mask it with null", "%s.%s is a %s: a hash has 32 characters", r.Name, d.Name, column.Type)
	case s.Mask == Keys && kind != "json":
		c.fail(d.place, "", "%s.%s is a %s: only json and jsonb columns have keys", r.Name, d.Name, column.Type)
	default:
		slices.SortFunc(s.Keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
		return s, true
	}
	return VisibleColumn{}, false
}

// maskKind returns which masks fit a type; "": only the mask null fits it.
func maskKind(sqlType string, t *catalog.Type) string {
	if strings.HasSuffix(sqlType, "[]") {
		return ""
	}
	baseType, _, _ := strings.Cut(sqlType, "(")
	switch {
	case baseType == "timestamp" || strings.HasPrefix(sqlType, "timestamp "), sqlType == "date":
		return "time"
	case baseType == "text", baseType == "character varying", t != nil && t.Extension == "citext" &&
		t.Name.Name == "citext":
		return "text"
	case baseType == "smallint", baseType == "integer", baseType == "bigint", baseType == "numeric", baseType == "real",
		baseType == "double precision":
		return "number"
	case baseType == "json", baseType == "jsonb":
		return "json"
	case baseType == "uuid":
		return "uuid"
	}
	return ""
}

// shorterThanHash tells whether a varchar type is too short for a hash.
func shorterThanHash(sqlType string) bool {
	limit, ok := strings.CutPrefix(sqlType, "character varying(")
	if !ok {
		return false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(limit, ")"))
	return err != nil || n < 32
}
