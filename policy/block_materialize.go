package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// materializeConsent compiles the key materialize: triggers store the answer of a consent block beside each row, and
// update it when a consent changes.
func (c *ruleCompiler) materializeConsent(b consentBlock, row *catalog.Relation, out *predicate.Consent) {
	if !b.materialize {
		return
	}
	if reason := c.whyNotMaterialized(row, out); reason != "" {
		c.fail(b.materializeAt, "leave materialize out: the subjects are then looked at each time",
			"the answer cannot be materialized: %s", reason)
		return
	}
	out.Materialized = &predicate.Materialized{Relation: row}
}

// whyNotMaterialized says why the answer of a consent block cannot be stored beside the rows of a table; "": it can.
func (c *ruleCompiler) whyNotMaterialized(row *catalog.Relation, out *predicate.Consent) (reason string) {
	for _, r := range append([]*catalog.Relation{row}, stepRelations(out.Steps)...) {
		if r.Kind != catalog.Table || r.HasChildren || r.IsPartition || len(r.Parents) > 0 {
			reason = r.Name.String() + " is no plain table"
		}
	}
	t := c.tables[row.Name]
	switch {
	case reason != "":
	case len(row.PrimaryKey) == 0:
		reason = row.Name.String() + " has no primary key"
	case slices.ContainsFunc(row.PrimaryKey, func(name string) bool {
		return typeFamily(row.Column(name).Type) == "" || row.Column(name).Nondeterministic
	}):
		reason = "the primary key of " + row.Name.String() +
			" has columns of other types than uuid, integer, text and date, or of a collation that takes different texts for equal"
	case c.ambiguousLinkColumn(row, out.Steps) != "":
		reason = c.ambiguousLinkColumn(row, out.Steps) +
			" is of another type than uuid, integer and text, or of a collation that takes different texts for " +
			"equal: writers wait for each other by how values are written"
	case t == nil:
		reason = "the policy does not list " + row.Name.String()
	case t.decl.write != nil:
		reason = "agents write " + row.Name.String() + ", and materialized answers are settled when a transaction commits"
	}
	return reason
}

// ambiguousLinkColumn returns the first column of the links in which equal values may have different texts; "": there
// is none. Such a column has another type than uuid, integer or text, or a collation that treats different texts as
// equal. Triggers write values as text, and concurrent writers wait for each other by locks on these texts.
func (c *ruleCompiler) ambiguousLinkColumn(row *catalog.Relation, steps []predicate.Step) string {
	previous := row
	for _, s := range steps {
		for _, p := range s.Pairs() {
			for _, end := range []struct {
				relation *catalog.Relation
				column   string
			}{{previous, p.FromColumn}, {s.Relation, p.Column}} {
				column := end.relation.Column(end.column)
				if family := typeFamily(column.Type); family == "" || family == "date" || column.Nondeterministic {
					return end.relation.Name.String() + "." + column.Name
				}
			}
		}
		previous = s.Relation
	}
	return ""
}

func stepRelations(steps []predicate.Step) []*catalog.Relation {
	var out []*catalog.Relation
	for _, s := range steps {
		out = append(out, s.Relation)
	}
	return out
}
