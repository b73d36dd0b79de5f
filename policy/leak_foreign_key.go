package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// whyUncheckable says why pgconsent cannot restrict new values of a foreign key to visible rows; "": it can.
func (c *writeLeakChecker) whyUncheckable(key catalog.ForeignKey, source *catalog.Relation) string {
	target := c.tables[key.Target]
	if target == nil {
		return "it refers to " + key.Target.String() +
			", which the policy does not list, and a failure would tell which rows exist"
	}
	if _, isOpen := target.rows.(predicate.Open); isOpen {
		return "" // the rule of the target table hides no row, so agents can see each row anyway
	}
	for i, name := range key.Columns {
		a, b := source.Column(name), target.relation.Column(key.TargetColumns[i])
		if a == nil || b == nil || c.linkClass(a) == "" || c.linkClass(a) != c.linkClass(b) {
			return "it refers to " + key.Target.String() + " by a column of which a visible row cannot be looked up"
		}
	}
	return ""
}

// whyGuessable says why agents could guess a hidden value by a foreign key. The key refers to a column that agents do
// not see, so a refused row tells them that no row has the value. "": they could not.
func (c *writeLeakChecker) whyGuessable(key catalog.ForeignKey) string {
	target := c.tables[key.Target]
	constants := constantColumns(target.rows)
	i := slices.IndexFunc(key.TargetColumns, func(name string) bool {
		return !c.isColumnShown(target, name) && !slices.Contains(constants, name)
	})
	if i < 0 {
		return ""
	}
	return "it refers to " + key.Target.String() + " by " + target.whyHidden(key.TargetColumns[i]) +
		", and whether there is such a row would tell what that is"
}
