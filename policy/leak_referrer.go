package policy

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// referrerLeakChecker finds what a change of a row would tell about the rows that refer to it by foreign keys.
type referrerLeakChecker struct {
	*resolver
	leaks   *writeLeakChecker
	graph   keyGraph
	indexes indexComparisons
}

// checkReferrers withholds a change of a row if hidden rows may refer to it, because a failure would tell that they
// exist. keys are the columns that may change; nil means that the row is deleted. isVisible is false if the row itself
// changes only because a hidden row does. The result is false if the change is withheld.
func (c *referrerLeakChecker) checkReferrers(decl *writeDecl, r *catalog.Relation, keys []string, isVisible bool,
	seen map[string]bool) bool {
	this := r.Name.String() + " " + strconv.FormatBool(keys == nil) + strconv.FormatBool(isVisible) +
		strings.Join(slices.Sorted(slices.Values(keys)), "\x00")
	if seen[this] {
		return true
	}
	seen[this] = true
	isComparable := true
	for _, referrer := range c.graph.referringKeys(r, keys) {
		isComparable = c.checkReferrer(decl, r, referrer, keys, isVisible, seen) && isComparable
	}
	return isComparable
}

// checkReferrer does what checkReferrers does, for a single foreign key that refers to the row.
func (c *referrerLeakChecker) checkReferrer(decl *writeDecl, r *catalog.Relation, referrer referringKey, keys []string,
	isVisible bool,
	seen map[string]bool) bool {
	source, key := referrer.table, referrer.key
	action, changedColumns := c.graph.keyAction(key, keys)
	reason, advice, isRecheck := "", "let the foreign key cascade", false
	switch action {
	case catalog.Cascade:
		if keys == nil {
			if slices.ContainsFunc(c.graph.withParts(source), func(partition *catalog.Relation) bool {
				return slices.ContainsFunc(partition.Computations,
					func(computed catalog.Computation) bool { return computed.MayFailOnDelete })
			}) {
				reason, advice, isRecheck = "the condition of a trigger may fail as they go along",
					"let it ask for what fails for no row", true
			}
			break
		}
		reason, isRecheck = c.whyFollowingFails(source, key, changedColumns, false)
		// the foreign key already has ON UPDATE CASCADE, so the advice must be another
		advice = "take the columns that others refer to out of write"
	case catalog.SetNull:
		if slices.ContainsFunc(changedColumns, func(name string) bool {
			return source.Column(name) == nil ||
				source.Column(name).NotNull
		}) {
			reason = "their key may not be NULL"
			break
		}
		reason, isRecheck = c.whyFollowingFails(source, key, changedColumns, true)
	default:
		reason = "the key does not let it"
	}
	visible := c.areAllReferrersVisible(source, key)
	if reason == "" || visible && isVisible && !(isRecheck && c.hidesColumns(source)) &&
		c.hiddenReferringColumn(c.tables[source.Name], key) == "" {
		isVisible = isVisible && c.areReferrersVisible(r, referrer)
		switch {
		case action == catalog.Cascade && keys == nil:
			return c.checkReferrers(decl, source, nil, isVisible, seen)
		case action == catalog.Cascade, action == catalog.SetNull:
			return c.checkReferrers(decl, source, changedColumns, isVisible, seen)
		}
		return true
	}
	if visible && !isVisible {
		c.withhold(decl.place, advice+", or say accept: ["+acceptReferences+"]",
			"agents would learn that rows of %s that they do not see go or change along, by whether rows of %s "+
				"refer to them: %s", r.Name, source.Name, reason)
		return false
	}
	say, disclosure := c.fail, "that hidden rows of %s refer to it"
	if isRecheck || visible {
		say = c.withhold
	}
	if visible {
		disclosure = "what columns of %s hold that agents do not see"
	}
	say(decl.place, advice+", or say accept: ["+acceptReferences+"]",
		"whether a row of %s can be deleted, or its key changed, would tell "+disclosure+": %s", r.Name, source.Name, reason)
	return !isRecheck && !visible
}

// areAllReferrersVisible tells whether an agent that sees the target of a foreign key always sees all rows that refer
// to it.
func (c *referrerLeakChecker) areAllReferrersVisible(source *catalog.Relation, key catalog.ForeignKey) bool {
	t := c.tables[source.Name]
	if t == nil {
		return false
	}
	switch rows := t.rows.(type) {
	case predicate.Open:
		return true
	case predicate.Visible:
		return rows.Relation.Name == key.Target && reflect.DeepEqual(rows.Rows, c.tables[key.Target].rows) &&
			len(rows.MorePairs) == 0 && slices.Equal(key.Columns, []string{rows.FromColumn}) &&
			slices.Equal(key.TargetColumns, []string{rows.Column})
	}
	return false
}

// whyFollowingFails says what may fail when ON UPDATE or ON DELETE changes the foreign key of a referring row: to NULL
// if null is true, and otherwise to the new key; "": nothing can fail. isRecheck is true if any UPDATE of the referring
// row could fail for this reason.
func (c *referrerLeakChecker) whyFollowingFails(source *catalog.Relation, key catalog.ForeignKey, changedColumns []string,
	null bool) (reason string, isRecheck bool) {
	if null && key.MatchFull && slices.ContainsFunc(key.Columns,
		func(name string) bool { return !slices.Contains(changedColumns, name) }) {
		return "its key is MATCH FULL", false
	}
	if trials := c.indexes.fallibleIndexKeys(source); len(trials) > 0 {
		return "the index " + trials[0].index + " compares rows anew, and " + trials[0].comparedBy() + " fails for some", true
	}
	for _, partition := range c.graph.withParts(source) {
		if reason, isRecheck := whyRecheckFails(partition, changedColumns); reason != "" {
			return reason, isRecheck
		}
		if reason := c.whyValueFails(partition, key, changedColumns, null); reason != "" {
			return reason, false
		}
		if reason := whyKeyFails(partition, key, changedColumns, null); reason != "" {
			return reason, false
		}
	}
	return "", false
}

// whyRecheckFails finds checks and computations that read changed columns, or that PostgreSQL may evaluate in any
// UPDATE.
func whyRecheckFails(partition *catalog.Relation, changedColumns []string) (reason string, isRecheck bool) {
	switch {
	case haveCommonElement(partition.CheckedColumns, changedColumns):
		return "a check reads what changes", false
	case haveCommonElement(partition.PartitionBy, changedColumns):
		return "what changes says to which partition a row goes", false
	case len(withComputed(partition, changedColumns)) > len(changedColumns):
		return "a column is computed from what changes", false
	case len(partition.RecheckedColumns) > 0:
		return "a constraint is NOT VALID or goes by more than the row, and is asked anew", true
	}
	for _, computed := range partition.Computations {
		if haveCommonElement(computed.Columns, changedColumns) {
			return computedBy[computed.Source] + " reads what changes", false
		}
		if computed.MayFailUnchanged {
			return computedBy[computed.Source] + " may be computed anew", true
		}
	}
	return "", false
}

// whyValueFails finds a column of the foreign key whose type may refuse the new value.
func (c *referrerLeakChecker) whyValueFails(partition *catalog.Relation, key catalog.ForeignKey, changedColumns []string,
	null bool) string {
	target, _ := c.snap.Relation(key.Target)
	for i, name := range key.Columns {
		column := partition.Column(name)
		if column == nil || !slices.Contains(changedColumns, name) {
			continue
		}
		t := c.snap.TypeByOID(column.TypeOID)
		if null && t != nil && t.Kind == 'd' {
			return "the domain of " + name + " may allow no NULL"
		}
		if targetColumn := target.Column(key.TargetColumns[i]); !null &&
			(targetColumn == nil || targetColumn.Type != column.Type) {
			return name + " is of another type than what it refers to"
		}
	}
	return ""
}

// whyKeyFails finds another key of the row that contains a changed column.
func whyKeyFails(partition *catalog.Relation, key catalog.ForeignKey, changedColumns []string, null bool) string {
	for _, k := range partition.UniqueKeys {
		switch {
		case !haveCommonElement(k.Columns, changedColumns):
		case null && haveCommonElement(k.NullsDistinctColumns, changedColumns):
		case !null && len(k.EqualColumns) > 0 &&
			!slices.ContainsFunc(key.Columns, func(name string) bool { return !slices.Contains(k.EqualColumns, name) }):
			// The key contains the foreign key. Rows with equal foreign keys referred to the same row before the change, and
			// still do.
		default:
			return "what changes is part of the key " + k.Name
		}
	}
	for _, k := range partition.ForeignKeys {
		if sameForeignKey(k, key) || !haveCommonElement(k.Columns, changedColumns) {
			continue
		}
		if !null || k.MatchFull {
			return "what changes is part of another foreign key"
		}
	}
	return ""
}

// hidesColumns tells whether a table has a column that agents do not see unchanged.
func (c *referrerLeakChecker) hidesColumns(r *catalog.Relation) bool {
	t := c.tables[r.Name]
	return t == nil || slices.ContainsFunc(r.Columns,
		func(column catalog.Column) bool { return !c.leaks.isColumnShown(t, column.Name) })
}

// hiddenReferringColumn returns a column of a foreign key that agents do not see and that does not equal an attribute
// of their session; "": there is none.
func (c *referrerLeakChecker) hiddenReferringColumn(t *policyTable, key catalog.ForeignKey) string {
	allowedWords := attributeColumns(t.rows)
	i := slices.IndexFunc(key.Columns, func(name string) bool {
		return !c.leaks.isColumnShown(t, name) &&
			!slices.Contains(allowedWords, name)
	})
	if i < 0 {
		return ""
	}
	return key.Columns[i]
}
