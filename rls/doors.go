package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// door is the view that vetted statements read in place of a protected table.
type door struct {
	table *policy.Table
	rows  string // the condition
}

const doorAlias = "pgconsent_row"

func doors(p *policy.Policy) []door {
	var out []door
	for _, t := range p.Tables() {
		rows, ok := predicate.Flat(t.Rows, doorAlias)
		if ok && t.HasPlainColumns() && predicate.HasSignedView(t.Rows, t.Relation) {
			out = append(out, door{t, rows})
		}
	}
	return out
}

// doorViews makes the views. The predicate is in the view, where no mistake of the proxy can leave it out; the planner
// takes the view apart, which is the point of it, and the reason why only vetted statements may read it.
func (p *Plan) doorViews() []Statement {
	var out []Statement
	for _, d := range p.doors {
		r := d.table.Relation
		if !p.helps(r) {
			out = append(out, p.readable(r)...)
		}
		out = append(out, p.doorView(d.table, d.rows)...)
	}
	return out
}

func (p *Plan) doorView(t *policy.Table, rows string) []Statement {
	const why = "Vetted statements read the visible rows here; for any other it raises."
	r := t.Relation
	view := predicate.SignedView(r.Name).SQL()
	return []Statement{
		{
			SQL: fmt.Sprintf(
				"CREATE VIEW %s AS\nSELECT %s FROM %s AS %s\nWHERE %s AND (SELECT pgconsent_gate.vetted()) AND %s "+
					"AND (%s)", view, p.doorColumns(t), r.Name.SQL(), doorAlias, isFresh,
				predicate.EstimateRows(r.Name, doorAlias), rows),
			Why: why,
		},
		{SQL: fmt.Sprintf("GRANT SELECT ON %s TO %s", view, p.agent), Why: why},
		{SQL: fmt.Sprintf("ALTER VIEW %s OWNER TO %s", view, p.reader), Why: why},
	}
}

// doorColumns are those of a table's signed view. The hash of the plan goes by none of them: a table may lose one, and
// its signed view with it, and agents are served without.
func (p *Plan) doorColumns(t *policy.Table) string {
	if p.known == nil {
		return doorAlias + ".*"
	}
	var columns []string
	for _, c := range t.Relation.Columns {
		if t.Columns == nil || t.Columns.Plain(c.Name) { // a mask is an expression, which vetted statements must not bring
			columns = append(columns, doorAlias+"."+catalog.QuoteIdent(c.Name))
		}
	}
	return strings.Join(columns, ", ")
}

// helps tells whether predicates read a table.
func (p *Plan) helps(r *catalog.Relation) bool {
	return slices.ContainsFunc(p.helpers, func(h predicate.Helper) bool { return h.Relation.Name == r.Name })
}

func (p *Plan) dropDoors() []Statement {
	const why = "Take the views of the gate door away."
	var out []Statement
	for _, d := range p.doors {
		out = append(out, Statement{SQL: "DROP VIEW IF EXISTS " + predicate.SignedView(d.table.Relation.Name).SQL(), Why: why})
		if !p.helps(d.table.Relation) {
			out = append(out, Statement{SQL: fmt.Sprintf("DROP POLICY IF EXISTS %s ON %s", readerPolicy,
				d.table.Relation.Name.SQL()), Why: why})
		}
	}
	return out
}
