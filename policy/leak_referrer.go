package policy

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// referrerLeaks finds what a change of a row would tell about the rows that refer to it by foreign keys.
type referrerLeaks struct {
	*resolver
	leaks   *writeLeaks
	graph   keyGraph
	indexes indexComparisons
}

// checkReferrers withholds a change of a row if hidden rows may depend on the row, because a failure would tell about
// them. keys are the columns that may change; nil means that the row is deleted. sees is false if the row itself
// follows a hidden row. The result is false if the change is withheld.
func (c *referrerLeaks) checkReferrers(decl *writeDecl, r *catalog.Relation, keys []string, sees bool, seen map[string]bool) bool {
	this := r.Name.String() + " " + strconv.FormatBool(keys == nil) + strconv.FormatBool(sees) +
		strings.Join(slices.Sorted(slices.Values(keys)), "\x00")
	if seen[this] {
		return true
	}
	seen[this] = true
	may := true
	for _, by := range c.graph.referringKeys(r, keys) {
		may = c.checkReferrer(decl, r, by, keys, sees, seen) && may
	}
	return may
}

// checkReferrer checks one foreign key by which rows may depend on the row.
func (c *referrerLeaks) checkReferrer(decl *writeDecl, r *catalog.Relation, by referringKey, keys []string, sees bool,
	seen map[string]bool) bool {
	from, key := by.table, by.key
	what, changed := c.graph.keyAction(key, keys)
	why, instead, anew := "", "let the foreign key cascade", false
	switch what {
	case catalog.Cascade:
		if keys == nil {
			if slices.ContainsFunc(c.graph.withParts(from), func(part *catalog.Relation) bool {
				return slices.ContainsFunc(part.Computations, func(computed catalog.Computation) bool { return computed.OnDelete })
			}) {
				why, instead, anew = "the condition of a trigger may fail as they go along",
					"let it ask for what fails for no row", true
			}
			break
		}
		why, anew = c.whyFollowingFails(from, key, changed, false)
		// the foreign key has ON UPDATE CASCADE already, so that cannot be the advice
		instead = "take the columns that others refer to out of write"
	case catalog.SetNull:
		if slices.ContainsFunc(changed, func(name string) bool { return from.Column(name) == nil || from.Column(name).NotNull }) {
			why = "their key may not be NULL"
			break
		}
		why, anew = c.whyFollowingFails(from, key, changed, true)
	default:
		why = "the key does not let it"
	}
	visible := c.areAllReferrersVisible(from, key)
	if why == "" || visible && sees && !(anew && c.hidesColumns(from)) && c.hiddenReferringColumn(c.tables[from.Name], key) == "" {
		sees = sees && c.areReferrersVisible(r, by)
		switch {
		case what == catalog.Cascade && keys == nil:
			return c.checkReferrers(decl, from, nil, sees, seen)
		case what == catalog.Cascade, what == catalog.SetNull:
			return c.checkReferrers(decl, from, changed, sees, seen)
		}
		return true
	}
	if visible && !sees {
		c.withhold(decl.place, instead+", or say accept: ["+acceptReferences+"]",
			"agents would learn that rows of %s that they do not see go or change along, by whether rows of %s "+
				"refer to them: %s", r.Name, from.Name, why)
		return false
	}
	say, tells := c.fail, "that hidden rows of %s refer to it"
	if anew || visible {
		say = c.withhold
	}
	if visible {
		tells = "what columns of %s hold that agents do not see"
	}
	say(decl.place, instead+", or say accept: ["+acceptReferences+"]",
		"whether a row of %s can be deleted, or its key changed, would tell "+tells+": %s", r.Name, from.Name, why)
	return !anew && !visible
}

// areAllReferrersVisible tells whether everybody who sees the target of a foreign key sees all rows that refer to it.
func (c *referrerLeaks) areAllReferrersVisible(from *catalog.Relation, key catalog.ForeignKey) bool {
	t := c.tables[from.Name]
	if t == nil {
		return false
	}
	switch rows := t.rows.(type) {
	case predicate.Open:
		return true
	case predicate.Visible:
		return rows.Relation.Name == key.Target && reflect.DeepEqual(rows.Rows, c.tables[key.Target].rows) &&
			len(rows.MorePairs) == 0 && slices.Equal(key.Columns, []string{rows.From}) &&
			slices.Equal(key.TargetColumns, []string{rows.Column})
	}
	return false
}

// whyFollowingFails says what may fail when the foreign key of a row changes along with the row to which it refers. The
// key's columns become NULL, or get the new key. "": nothing can fail. anew is true for what any UPDATE of the row may
// cause.
func (c *referrerLeaks) whyFollowingFails(from *catalog.Relation, key catalog.ForeignKey, changed []string,
	null bool) (why string, anew bool) {
	if null && key.MatchFull && slices.ContainsFunc(key.Columns,
		func(name string) bool { return !slices.Contains(changed, name) }) {
		return "its key is MATCH FULL", false
	}
	if trials := c.indexes.fallibleIndexKeys(from); len(trials) > 0 {
		return "the index " + trials[0].index + " compares rows anew, and " + trials[0].comparedBy() + " fails for some", true
	}
	for _, part := range c.graph.withParts(from) {
		if why, anew := whyRecheckFails(part, changed); why != "" {
			return why, anew
		}
		if why := c.whyValueFails(part, key, changed, null); why != "" {
			return why, false
		}
		if why := whyKeyFails(part, key, changed, null); why != "" {
			return why, false
		}
	}
	return "", false
}

// whyRecheckFails looks for checks that read changed columns, or that any UPDATE evaluates again.
func whyRecheckFails(part *catalog.Relation, changed []string) (why string, anew bool) {
	switch {
	case haveCommonElement(part.CheckedColumns, changed):
		return "a check reads what changes", false
	case haveCommonElement(part.PartitionBy, changed):
		return "what changes says to which partition a row goes", false
	case len(withComputed(part, changed)) > len(changed):
		return "a column is computed from what changes", false
	case len(part.RecheckedColumns) > 0:
		return "a constraint is NOT VALID or goes by more than the row, and is asked anew", true
	}
	for _, computed := range part.Computations {
		if haveCommonElement(computed.Columns, changed) {
			return computedBy[computed.By] + " reads what changes", false
		}
		if computed.OnUnchanged {
			return computedBy[computed.By] + " may be computed anew", true
		}
	}
	return "", false
}

// whyValueFails looks for a column of the foreign key whose type may refuse the new value.
func (c *referrerLeaks) whyValueFails(part *catalog.Relation, key catalog.ForeignKey, changed []string, null bool) string {
	target, _ := c.snap.Relation(key.Target)
	for i, name := range key.Columns {
		column := part.Column(name)
		if column == nil || !slices.Contains(changed, name) {
			continue
		}
		t := c.snap.TypeByOID(column.TypeOID)
		if null && t != nil && t.Kind == 'd' {
			return "the domain of " + name + " may allow no NULL"
		}
		if to := target.Column(key.TargetColumns[i]); !null && (to == nil || to.Type != column.Type) {
			return name + " is of another type than what it refers to"
		}
	}
	return ""
}

// whyKeyFails looks for another key of the row that contains a changed column.
func whyKeyFails(part *catalog.Relation, key catalog.ForeignKey, changed []string, null bool) string {
	for _, k := range part.Unique {
		switch {
		case !haveCommonElement(k.Columns, changed):
		case null && haveCommonElement(k.NullsDistinctColumns, changed):
		case !null && len(k.EqualColumns) > 0 &&
			!slices.ContainsFunc(key.Columns, func(name string) bool { return !slices.Contains(k.EqualColumns, name) }):
			// This is a foreign key: rows that are equal in it refer to the same row, as they did before.
		default:
			return "what changes is part of the key " + k.Name
		}
	}
	for _, k := range part.ForeignKeys {
		if sameForeignKey(k, key) || !haveCommonElement(k.Columns, changed) {
			continue
		}
		if !null || k.MatchFull {
			return "what changes is part of another foreign key"
		}
	}
	return ""
}

// hidesColumns tells whether there is a column of a table that agents do not see unchanged.
func (c *referrerLeaks) hidesColumns(r *catalog.Relation) bool {
	t := c.tables[r.Name]
	return t == nil || slices.ContainsFunc(r.Columns,
		func(column catalog.Column) bool { return !c.leaks.isColumnShown(t, column.Name) })
}

// hiddenReferringColumn returns a column of a foreign key that agents do not see and whose value is not their own
// attribute; "": there is none.
func (c *referrerLeaks) hiddenReferringColumn(t *policyTable, key catalog.ForeignKey) string {
	known := attributeColumns(t.rows)
	i := slices.IndexFunc(key.Columns, func(name string) bool {
		return !c.leaks.isColumnShown(t, name) &&
			!slices.Contains(known, name)
	})
	if i < 0 {
		return ""
	}
	return key.Columns[i]
}
