package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// computedBy names, for messages, what PostgreSQL computes when a row is written, by [catalog.Computation] Source.
var computedBy = map[string]string{"index": "an index", "trigger": "a trigger's condition",
	"column": "a generated column", "partition": "what says to which partition a row goes"}

// whyUpdateTells says why an UPDATE of a column would tell agents about columns of the row that they do not see; "": it
// would not. Something reads the column together with hidden columns, such as a check, an index, a trigger's condition,
// a partition key or the policy's own check. Whether the UPDATE fails then depends on hidden values, and the error may
// quote them.
//
// isReadTogether is true if the reason is a fixed one, such as a check that reads both columns. It is false for reasons
// that apply to any UPDATE, and for computations of indexes and triggers. Later versions of pgconsent may find more of
// these, and the policy must still compile then.
//
// Computed text search vectors do not count: only the size of a text makes them fail.
func (c *writeLeakChecker) whyUpdateTells(decl *writeDecl, t *policyTable, column string) (reason string,
	isReadTogether bool) {
	if decl.accepts(acceptValues) {
		return "", false
	}
	if reason := c.whyHashed(t.relation, column, true); reason != "" && t.decl.isPlainColumn(column) {
		return reason, false
	}
	u := updateLeak{table: t, column: column, known: attributeColumns(t.rows),
		isShown: func(name string) bool { return c.isColumnShown(t, name) }}
	if !slices.ContainsFunc(t.relation.Columns, func(column catalog.Column) bool { return !u.isShown(column.Name) }) {
		return "", false
	}
	if decl.check != nil {
		columns, _ := predicate.RowColumns(c.rules.compileBlock(decl.check, t.relation))
		if name := u.otherHiddenColumn(columns, u.known); name != "" {
			return u.readTogether("the policy's own check", name, "it holds"), true
		}
	}
	if reason := c.whyOwnRuleTells(decl, t, "update"); reason != "" {
		return reason, false
	}
	for _, partition := range c.graph.withParts(t.relation) {
		if reason, isReadTogether := u.whyTogether(partition); reason != "" {
			return reason, isReadTogether
		}
		if reason := u.whyAnyUpdate(partition); reason != "" {
			return reason, false
		}
	}
	for _, trial := range c.indexes.fallibleIndexKeys(t.relation) {
		if name := u.hiddenColumn(trial.columns, u.known); name != "" {
			return "each update may compare " + t.whyHidden(name) + ", with other rows by the index " + trial.index +
				", and " + trial.comparedBy() + " fails for some values: whether it does would tell what that is", false
		}
	}
	return "", false
}

// updateLeak examines an UPDATE of one column of a table.
type updateLeak struct {
	table   *policyTable
	column  string
	known   []string               // columns that hold the agent's own attributes
	isShown func(name string) bool // agents see the column as it is
}

// hiddenColumn returns a column that agents do not see and whose value they do not know; "": there is none.
func (u updateLeak) hiddenColumn(columns, allowedWords []string) string {
	i := slices.IndexFunc(columns, func(name string) bool {
		return !u.isShown(name) &&
			!slices.Contains(allowedWords, name)
	})
	if i < 0 {
		return ""
	}
	return columns[i]
}

// otherHiddenColumn does the same as hiddenColumn if the updated column is among the columns, so that it is read
// together with the hidden one. Otherwise it returns "".
func (u updateLeak) otherHiddenColumn(columns, allowedWords []string) string {
	if !slices.Contains(columns, u.column) {
		return ""
	}
	return u.hiddenColumn(columns, allowedWords)
}

// readTogether returns the reason for a refusal: what reads the updated column together with a hidden column.
func (u updateLeak) readTogether(label, name, failure string) string {
	return label + " reads it together with " + u.table.whyHidden(name) + ", and whether " + failure +
		" would tell what that is"
}

// whyTogether finds an object of a table or partition that reads the updated column together with a hidden column.
func (u updateLeak) whyTogether(partition *catalog.Relation) (reason string, isReadTogether bool) {
	for _, columns := range partition.CheckedTogether {
		if name := u.otherHiddenColumn(withSources(partition, columns), nil); name != "" {
			return u.readTogether("a check", name, "the check holds"), true
		}
	}
	for _, computed := range partition.Columns {
		if name := u.otherHiddenColumn(computed.ComputedFrom, nil); name != "" && computed.Type != "tsvector" {
			return computed.Name + " is computed from it and from " + u.table.whyHidden(name) +
				", and whether that fails would tell what that is", true
		}
	}
	for _, computed := range partition.Computations {
		if name := u.otherHiddenColumn(withSources(partition, computed.Columns), u.known); name != "" {
			return u.readTogether(computedBy[computed.Source], name, "that fails"), false
		}
	}
	if name := u.otherHiddenColumn(partition.PartitionBy, u.known); name != "" {
		return u.readTogether("what says to which partition a row goes", name, "there is one"), true
	}
	return "", false
}

// whyAnyUpdate finds an object that reads a hidden column in any UPDATE, whichever columns the UPDATE sets.
func (u updateLeak) whyAnyUpdate(partition *catalog.Relation) string {
	for _, checked := range partition.RecheckedColumns {
		if name := u.hiddenColumn(withSources(partition, checked), u.known); name != "" {
			return "each update asks anew what a constraint says of " + u.table.whyHidden(name) +
				", since that is NOT VALID or goes by more than the row: whether it holds would tell what that is"
		}
	}
	for _, computed := range partition.Computations {
		if name := u.hiddenColumn(withSources(partition, computed.Columns), u.known); name != "" && computed.MayFailUnchanged {
			return "each update may compute anew what " + computedBy[computed.Source] + " makes of " + u.table.whyHidden(name) +
				": whether that fails would tell what that is"
		}
	}
	return ""
}

// whyDeleteTells says why a DELETE would tell agents about columns that they do not see: the condition of a trigger
// reads such columns and may fail. "": it would not.
func (c *writeLeakChecker) whyDeleteTells(t *policyTable) string {
	allowedWords := attributeColumns(t.rows)
	for _, partition := range c.graph.withParts(t.relation) {
		for _, computed := range partition.Computations {
			for _, name := range withSources(partition, computed.Columns) {
				if computed.MayFailOnDelete && !c.isColumnShown(t, name) && !slices.Contains(allowedWords, name) {
					return "as a row goes, " + computedBy[computed.Source] + " reads " + t.whyHidden(name) +
						", and whether that fails would tell what that is"
				}
			}
		}
	}
	return ""
}

// whyOwnRuleTells says what the policy's rule for a single command would tell agents about columns that they do not
// see; "": nothing. The rule reads such columns, and decides which of the visible rows the command changes.
func (c *writeLeakChecker) whyOwnRuleTells(decl *writeDecl, t *policyTable, command string) string {
	b, allowedWords := decl.rowsOfCommand(command), attributeColumns(t.rows)
	if b == nil {
		return ""
	}
	columns, isComplete := predicate.RowColumns(c.rules.compileBlock(b, t.relation))
	if !isComplete { // the rule may read any column
		columns = nil
		for _, column := range t.relation.Columns {
			columns = append(columns, column.Name)
		}
	}
	for _, name := range withSources(t.relation, columns) {
		if !c.isColumnShown(t, name) && !slices.Contains(allowedWords, name) {
			return "the rule of " + command + " reads " + t.whyHidden(name) +
				", and which rows it lets agents touch would tell what that is"
		}
	}
	return ""
}

// keySharedWithHidden returns a key or foreign key that contains a column together with a hidden column. Whether rows
// collide in the key, or whether the foreign key finds a row, tells agents about the hidden column. They can only test
// values that they know from elsewhere.
func (c *writeLeakChecker) keySharedWithHidden(t *policyTable, column string) string {
	allowedWords := attributeColumns(t.rows)
	unseen := func(columns []string) bool {
		return slices.Contains(columns, column) && slices.ContainsFunc(columns, func(name string) bool {
			return !slices.Contains(allowedWords, name) && !c.isColumnShown(t, name)
		})
	}
	for _, key := range t.relation.UniqueKeys {
		if unseen(key.EqualColumns) || unseen(key.Columns) && key.Where == "" {
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
