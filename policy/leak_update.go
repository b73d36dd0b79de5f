package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// computedBy are what computes something of a row as it is written.
var computedBy = map[string]string{"index": "an index", "trigger": "a trigger's condition",
	"column": "a generated column", "partition": "what says to which partition a row goes"}

// whyUpdateTells tells why an UPDATE of a column would tell what columns of the row hold that agents do not see: a check, an
// index, a trigger's condition, a partition's bounds, the policy's own check, or what is computed, reads both, so that
// it goes by them whether the update fails, and they may stand in what the error says. What is made for text search
// fails by size alone. What may fail though the row is as it was is asked whatever is updated, and not together with
// the column; what is computed for indexes and triggers counts as that, since it is by and by that more is found to
// fail.
func (c *writeLeaks) whyUpdateTells(decl *writeDecl, t *policyTable, column string) (why string, together bool) {
	if decl.accepts(acceptValues) {
		return "", false
	}
	if why := c.whyHashed(t.relation, column, true); why != "" && t.decl.showsPlain(column) {
		return why, false
	}
	seen := func(name string) bool { return c.columnShows(t, name) }
	if !slices.ContainsFunc(t.relation.Columns, func(column catalog.Column) bool { return !seen(column.Name) }) {
		return "", false
	}
	hidden := func(columns []string, but []string) string {
		i := slices.IndexFunc(columns, func(name string) bool { return !seen(name) && !slices.Contains(but, name) })
		if i < 0 {
			return ""
		}
		return columns[i]
	}
	unseen := func(together []string, but []string) string {
		if !slices.Contains(together, column) {
			return ""
		}
		return hidden(together, but)
	}
	told := func(what, name, fails string) string {
		return what + " reads it together with " + t.whyHidden(name) + ", and whether " + fails + " would tell what that is"
	}
	known := attributeColumns(t.rows) // the agent's own, as it knows
	if decl.check != nil {
		if columns, _ := predicate.RowColumns(c.rules.compileBlock(decl.check, t.relation)); slices.Contains(columns, column) {
			if name := unseen(columns, known); name != "" {
				return told("the policy's own check", name, "it holds"), true
			}
		}
	}
	for _, part := range c.graph.withParts(t.relation) {
		for _, together := range part.CheckedTogether {
			if name := unseen(withSources(part, together), nil); name != "" {
				return told("a check", name, "the check holds"), true
			}
		}
		for _, computed := range part.Columns {
			if name := unseen(computed.ComputedFrom, nil); name != "" && computed.Type != "tsvector" {
				return computed.Name + " is computed from it and from " + t.whyHidden(name) +
					", and whether that fails would tell what that is", true
			}
		}
		for _, computed := range part.Computed {
			if name := unseen(withSources(part, computed.Columns), known); name != "" {
				return told(computedBy[computed.By], name, "that fails"), false
			}
		}
		if name := unseen(part.PartitionBy, known); name != "" {
			return told("what says to which partition a row goes", name, "there is one"), true
		}
		for _, checked := range part.Rechecked {
			if name := hidden(withSources(part, checked), known); name != "" {
				return "each update asks anew what a constraint says of " + t.whyHidden(name) +
					", since that is NOT VALID or goes by more than the row: whether it holds would tell what that is", false
			}
		}
		for _, computed := range part.Computed {
			if name := hidden(withSources(part, computed.Columns), known); name != "" && computed.OnUnchanged {
				return "each update may compute anew what " + computedBy[computed.By] + " makes of " + t.whyHidden(name) +
					": whether that fails would tell what that is", false
			}
		}
	}
	for _, trial := range c.indexes.fallibleIndexKeys(t.relation) {
		if name := hidden(trial.columns, known); name != "" {
			return "each update may compare " + t.whyHidden(name) + ", with other rows by the index " + trial.index +
				", and " + trial.comparedBy() + " fails for some values: whether it does would tell what that is", false
		}
	}
	return "", false
}

// whyDeleteTells tells why a DELETE would tell what columns of a row hold that agents do not see: the condition of a trigger
// reads them, and may fail as the row goes.
func (c *writeLeaks) whyDeleteTells(t *policyTable) string {
	known := attributeColumns(t.rows)
	for _, part := range c.graph.withParts(t.relation) {
		for _, computed := range part.Computed {
			for _, name := range withSources(part, computed.Columns) {
				if computed.OnDelete && !c.columnShows(t, name) && !slices.Contains(known, name) {
					return "as a row goes, " + computedBy[computed.By] + " reads " + t.whyHidden(name) +
						", and whether that fails would tell what that is"
				}
			}
		}
	}
	return ""
}

// keySharedWithHidden names a key, or a foreign key, that holds a column together with one that agents do not see: whether rows
// collide, or lead to a row, tells of it what other values that are seen tell.
func (c *writeLeaks) keySharedWithHidden(t *policyTable, column string) string {
	known := attributeColumns(t.rows)
	unseen := func(columns []string) bool {
		return slices.Contains(columns, column) && slices.ContainsFunc(columns, func(name string) bool {
			return !slices.Contains(known, name) && !c.columnShows(t, name)
		})
	}
	for _, key := range t.relation.Unique {
		if unseen(key.Equal) || unseen(key.Columns) && key.Where == "" {
			return "the key " + key.Name
		}
	}
	for _, key := range t.relation.ForeignKeys {
		if unseen(key.Columns) {
			return "the foreign key to " + key.Target.String()
		}
	}
	return ""
}
