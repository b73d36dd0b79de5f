package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// whyComparedWithHidden says why agents may not set a column: an index compares its value with hidden rows, and the
// comparison can fail. All columns of the index count, because they decide with which rows it compares. "": they may.
func (c *writeLeakChecker) whyComparedWithHidden(t *policyTable, column string) string {
	if _, isOpen := t.rows.(predicate.Open); isOpen {
		return "" // agents see all rows; whyUpdateTells handles hidden columns
	}
	for _, trial := range c.indexes.fallibleIndexKeys(t.relation) {
		if slices.Contains(trial.columns, column) {
			return "the index " + trial.index + " compares it with hidden rows, and " + trial.comparedBy() +
				" fails for some values: whether it does would tell of them"
		}
	}
	return ""
}

// whyPresetCompared says why agents may not insert rows: an index compares a value that agents do not send, such as a
// stamp or a default, with hidden rows, and the comparison can fail. "": they may.
func (c *writeLeakChecker) whyPresetCompared(decl *writeDecl, t *policyTable) string {
	if _, isOpen := t.rows.(predicate.Open); isOpen {
		return ""
	}
	for _, trial := range c.indexes.fallibleIndexKeys(t.relation) {
		isPreset := func(name string) bool {
			column := t.relation.Column(name)
			return column == nil || column.Default != "" || column.Identity != "" ||
				slices.ContainsFunc(decl.stamps, func(s stampDecl) bool { return s.column == name })
		}
		if trial.key.IsExpression || slices.ContainsFunc(withSources(t.relation, trial.key.Columns), isPreset) {
			return "the index " + trial.index + " compares what each new row has of " +
				strings.Join(trial.key.Columns, ", ") + " with hidden rows, and " + trial.comparedBy() +
				" fails for some values: whether it does would tell of them"
		}
	}
	return ""
}
