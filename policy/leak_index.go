package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// whyComparedWithHidden tells why agents do not set a column that an index compares with those of hidden rows by what may fail. The
// other columns of such an index lead it to what it compares.
func (c *writeLeaks) whyComparedWithHidden(t *policyTable, column string) string {
	if _, open := t.rows.(predicate.Open); open {
		return "" // all rows show; of columns that do not, see probes
	}
	for _, trial := range c.indexes.fallibleIndexKeys(t.relation) {
		if slices.Contains(trial.columns, column) {
			return "the index " + trial.index + " compares it with hidden rows, and " + trial.comparedBy() +
				" fails for some values: whether it does would tell of them"
		}
	}
	return ""
}

// whyPresetCompared tells which index compares, by what may fail, what a new row has though agents send none of it: a stamp, a
// default, an expression.
func (c *writeLeaks) whyPresetCompared(decl *writeDecl, t *policyTable) string {
	if _, open := t.rows.(predicate.Open); open {
		return ""
	}
	for _, trial := range c.indexes.fallibleIndexKeys(t.relation) {
		set := func(name string) bool {
			column := t.relation.Column(name)
			return column == nil || column.Default != "" || column.Identity != "" ||
				slices.ContainsFunc(decl.stamps, func(s stampDecl) bool { return s.column == name })
		}
		if trial.key.Expression || slices.ContainsFunc(withSources(t.relation, trial.key.Columns), set) {
			return "the index " + trial.index + " compares what each new row has of " +
				strings.Join(trial.key.Columns, ", ") + " with hidden rows, and " + trial.comparedBy() +
				" fails for some values: whether it does would tell of them"
		}
	}
	return ""
}
