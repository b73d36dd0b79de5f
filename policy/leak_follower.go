package policy

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// warnFollowers warns of rows that are deleted or changed along with a row that agents write, through rows that agents
// do not see. From the rows that change, agents learn that hidden rows exist between, and to which rows these refer.
// keys are the columns of the written row that may change; nil means that the row is deleted.
func (c *referrerLeaks) warnFollowers(decl *writeDecl, t *policyTable, keys []string) {
	w := &cascadeWalk{referrerLeaks: c, decl: decl, table: t, keys: keys,
		seen: map[string]bool{}, warnedTables: map[catalog.Name]bool{}, warnedColumns: map[string]bool{}}
	w.queue = []cascadedTable{{t.relation, keys, nil}}
	for len(w.queue) > 0 {
		at := w.queue[0]
		w.queue = w.queue[1:]
		for _, by := range c.graph.referringKeys(at.relation, at.keys) {
			w.visitFollower(at, by)
		}
	}
}

// cascadedTable is a table whose rows are deleted or changed along with a written row.
type cascadedTable struct {
	relation *catalog.Relation
	keys     []string // the columns that change in its rows; nil: the rows are deleted
	// the first foreign key on the way whose rows agents do not see; nil: they see all rows on the way
	hiddenKey *referringKey
}

// cascadeWalk walks from a written row along foreign keys to the rows that follow it, breadth first.
type cascadeWalk struct {
	*referrerLeaks
	decl          *writeDecl
	table         *policyTable
	keys          []string
	queue         []cascadedTable
	seen          map[string]bool
	warnedTables  map[catalog.Name]bool
	warnedColumns map[string]bool
}

func (w *cascadeWalk) add(f cascadedTable) {
	id := f.relation.Name.String() + " " + strconv.FormatBool(f.keys == nil) +
		strconv.FormatBool(f.hiddenKey == nil) + strings.Join(slices.Sorted(slices.Values(f.keys)), "\x00")
	if !w.seen[id] {
		w.seen[id] = true
		w.queue = append(w.queue, f)
	}
}

func (w *cascadeWalk) warn(hint, tells string) {
	does := "delete rows of"
	if w.keys != nil {
		does = "change keys of"
	}
	warning := w.decl.place.Errorf(hint, "agents %s %s, and %s", does, w.table.relation.Name, tells)
	w.warnings, w.disclosures = append(w.warnings, warning), append(w.disclosures, warning)
}

// visitFollower visits the rows that refer by one foreign key to a row that is deleted or changed.
func (w *cascadeWalk) visitFollower(at cascadedTable, by referringKey) {
	action, changed := w.graph.keyAction(by.key, at.keys)
	switch {
	case action == catalog.NoAction, action == catalog.Restrict:
		return
	case action == catalog.Cascade && at.keys == nil:
		changed = nil
	}
	shows := w.tablesShowing(by.table)
	open := slices.ContainsFunc(shows, func(t *policyTable) bool { _, open := t.rows.(predicate.Open); return open })
	hidden := at.hiddenKey
	if hidden == nil {
		w.warnShownKeys(by, shows, changed)
		if len(shows) > 0 {
			w.add(cascadedTable{by.table, changed, nil})
		}
		if open || w.areReferrersVisible(at.relation, by) {
			return
		}
		hidden = &by
	} else if name := by.table.Name; len(shows) > 0 && !w.warnedTables[name] && !w.isTargetVisible(at.relation, by) {
		w.warnedTables[name] = true
		w.warn("let the foreign key of "+hidden.table.Name.String()+
			" hold the columns that the rules of both tables go by, or SET NULL, or say accept: ["+acceptReferences+"]",
			"rows of "+hidden.table.Name.String()+" that they do not see go or change along: that rows of "+
				name.String()+" which they see do so as well tells of these")
	}
	if !open {
		w.add(cascadedTable{by.table, changed, hidden})
	}
}

// warnShownKeys warns of hidden columns of a foreign key whose referring rows agents see. ON DELETE and ON UPDATE
// delete or change those rows, and agents see from that what the hidden columns hold.
func (w *cascadeWalk) warnShownKeys(by referringKey, shows []*policyTable, changed []string) {
	for _, t := range shows {
		name := w.shownKeyColumn(t, by.key, changed)
		if name == "" || w.warnedColumns[by.table.Name.String()+"."+name] {
			continue
		}
		w.warnedColumns[by.table.Name.String()+"."+name] = true
		instead := "show agents the column"
		if changed == nil { // in a row that is not deleted, the column shows otherwise: by its change
			instead += ", or SET NULL"
		}
		w.warn(instead+", or say accept: ["+acceptReferences+"]",
			"rows of "+by.table.Name.String()+" go or change along: which do tells what they hold in "+t.whyHidden(name))
	}
}

// shownKeyColumn returns a hidden column of a foreign key whose value agents can tell from what happens to the row. The
// row is deleted, or columns change that agents see or that decide whether the row is visible. changed are the columns
// that are set; nil means that the row is deleted. "": agents see nothing.
func (c *referrerLeaks) shownKeyColumn(t *policyTable, key catalog.ForeignKey, changed []string) string {
	name := c.hiddenReferringColumn(t, key)
	if name == "" || changed == nil {
		return name
	}
	decides, known := predicate.RowColumns(t.rows)
	if !known || haveCommonElement(decides, changed) || slices.ContainsFunc(changed, t.decl.isVisibleColumn) {
		return name
	}
	return ""
}

// tablesShowing returns the tables of the policy through which agents see rows of a table: the table itself and its
// parents.
func (c *referrerLeaks) tablesShowing(r *catalog.Relation) []*policyTable {
	var out []*policyTable
	all := []catalog.Name{r.Name}
	for i := 0; i < len(all); i++ {
		if t := c.tables[all[i]]; t != nil {
			out = append(out, t)
		}
		if of, ok := c.snap.Relation(all[i]); ok {
			for _, name := range of.Parents {
				if !slices.Contains(all, name) {
					all = append(all, name)
				}
			}
		}
	}
	return out
}

// areReferrersVisible tells whether everybody who sees a row also sees the rows that refer to it by a foreign key.
func (c *referrerLeaks) areReferrersVisible(target *catalog.Relation, by referringKey) bool {
	shows := c.tablesShowing(by.table)
	return !slices.ContainsFunc(c.tablesShowing(target), func(t *policyTable) bool {
		return !slices.ContainsFunc(shows, func(from *policyTable) bool {
			return !slices.ContainsFunc(predicate.Conjuncts(from.rows), func(part predicate.Node) bool {
				if n, ok := part.(predicate.Visible); ok && leadsTo(n, t, by.key, false) && predicate.Implies(t.rows, n.Rows) {
					return false
				}
				_, open := part.(predicate.Open)
				return !open && !ruleHasPart(t, partThroughKey(part, by, t.relation))
			})
		})
	})
}

// isTargetVisible tells whether everybody who sees a row also sees the row to which its foreign key refers.
func (c *referrerLeaks) isTargetVisible(target *catalog.Relation, by referringKey) bool {
	to := c.tablesShowing(target)
	return !slices.ContainsFunc(c.tablesShowing(by.table), func(from *policyTable) bool {
		parts := predicate.Conjuncts(from.rows)
		return !slices.ContainsFunc(to, func(t *policyTable) bool {
			if slices.ContainsFunc(parts, func(part predicate.Node) bool {
				n, ok := part.(predicate.Visible)
				return ok && leadsTo(n, t, by.key, true) && predicate.Implies(n.Rows, t.rows)
			}) {
				return true
			}
			var told predicate.All
			for _, part := range parts {
				if is := partThroughKey(part, by, t.relation); is != nil {
					told = append(told, is)
				}
			}
			return predicate.Implies(told, t.rows)
		})
	})
}

// ruleHasPart tells whether a condition is part of a table's rule.
func ruleHasPart(t *policyTable, part predicate.Node) bool {
	return part != nil && slices.ContainsFunc(predicate.Conjuncts(t.rows),
		func(n predicate.Node) bool { return reflect.DeepEqual(n, part) })
}

// leadsTo tells whether a visible block requires the row to which a foreign key refers. With only, the block must not
// accept another row.
func leadsTo(n predicate.Visible, t *policyTable, key catalog.ForeignKey, only bool) bool {
	if n.Relation.Name != t.relation.Name {
		return false
	}
	pairs := append([]predicate.ColumnPair{{Column: n.Column, From: n.From}}, n.MorePairs...)
	for _, pair := range pairs {
		i := slices.Index(key.Columns, pair.From)
		if i < 0 || key.TargetColumns[i] != pair.Column {
			return false
		}
	}
	return !only || len(pairs) == len(key.Columns) ||
		predicate.Step{Relation: n.Relation, Column: n.Column, From: n.From, MorePairs: n.MorePairs}.LeadsToAtMostOne()
}

// partThroughKey translates a part of the rule of a row into a condition on the row to which a foreign key refers. This
// is possible if the part reads only columns of the key, and equal values of them are identical. Otherwise the result
// is nil.
func partThroughKey(part predicate.Node, by referringKey, target *catalog.Relation) predicate.Node {
	columns, known := predicate.RowColumns(part)
	if !known || len(columns) == 0 || !readsOnlyNamedColumns(part, nil) {
		return nil
	}
	to, alike := map[string]string{}, true
	for _, name := range columns {
		i := slices.Index(by.key.Columns, name)
		if i < 0 {
			return nil
		}
		a, b := by.table.Column(name), target.Column(by.key.TargetColumns[i])
		if !hasExactEquality(a) || !hasExactEquality(b) || a.Type != b.Type {
			return nil
		}
		to[name], alike = b.Name, alike && b.Name == name
	}
	switch n := part.(type) {
	case predicate.Own:
		n.Column = to[n.Column]
		return n
	case predicate.Tenant:
		n.Column = to[n.Column]
		return n
	case predicate.Status:
		n.Column = to[n.Column]
		return n
	case predicate.Visible:
		n.From, n.MorePairs = to[n.From], slices.Clone(n.MorePairs)
		for i, pair := range n.MorePairs {
			n.MorePairs[i].From = to[pair.From]
		}
		return n
	}
	if alike {
		return part
	}
	return nil
}
