package policy

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// warnFollowers warns if ON DELETE or ON UPDATE deletes or changes visible rows along with a row that agents write,
// through hidden rows in between. From the visible rows, agents learn that the hidden rows exist, and to which rows
// they refer. keys are the columns of the written row that may change; nil means that the row is deleted.
func (c *referrerLeakChecker) warnFollowers(decl *writeDecl, t *policyTable, keys []string) {
	w := &cascadeWalk{referrerLeakChecker: c, decl: decl, table: t, keys: keys,
		seen: map[string]bool{}, warnedTables: map[catalog.Name]bool{}, warnedColumns: map[string]bool{}}
	w.queue = []cascadedTable{{t.relation, keys, nil}}
	for len(w.queue) > 0 {
		cascaded := w.queue[0]
		w.queue = w.queue[1:]
		for _, referrer := range c.graph.referringKeys(cascaded.relation, cascaded.keys) {
			w.visitFollower(cascaded, referrer)
		}
	}
}

// cascadedTable is a table whose rows PostgreSQL deletes or changes along with a written row.
type cascadedTable struct {
	relation *catalog.Relation
	keys     []string // the columns that change in its rows; nil: the rows are deleted
	// the first foreign key on the way from the written row whose referring rows may be hidden; nil: agents see all rows
	// on the way
	hiddenKey *referringKey
}

// cascadeWalk follows foreign keys from a written row to the rows that are deleted or changed along with it, breadth
// first.
type cascadeWalk struct {
	*referrerLeakChecker
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

func (w *cascadeWalk) warn(hint, disclosure string) {
	action := "delete rows of"
	if w.keys != nil {
		action = "change keys of"
	}
	warning := w.decl.place.Errorf(hint, "agents %s %s, and %s", action, w.table.relation.Name, disclosure)
	w.warnings, w.disclosures = append(w.warnings, warning), append(w.disclosures, warning)
}

// visitFollower continues the walk with the rows that refer by one foreign key to a deleted or changed row.
func (w *cascadeWalk) visitFollower(cascaded cascadedTable, referrer referringKey) {
	action, changedColumns := w.graph.keyAction(referrer.key, cascaded.keys)
	switch {
	case action == catalog.NoAction, action == catalog.Restrict:
		return
	case action == catalog.Cascade && cascaded.keys == nil:
		changedColumns = nil
	}
	visibleTables := w.tablesShowing(referrer.table)
	isOpen := slices.ContainsFunc(visibleTables, func(t *policyTable) bool {
		_,
			isOpen := t.rows.(predicate.Open)
		return isOpen
	})
	hiddenKey := cascaded.hiddenKey
	if hiddenKey == nil {
		w.warnShownKeys(referrer, visibleTables, changedColumns)
		if len(visibleTables) > 0 {
			w.add(cascadedTable{referrer.table, changedColumns, nil})
		}
		if isOpen || w.areReferrersVisible(cascaded.relation, referrer) {
			return
		}
		hiddenKey = &referrer
	} else if name := referrer.table.Name; len(visibleTables) > 0 && !w.warnedTables[name] &&
		!w.isTargetVisible(cascaded.relation, referrer) {
		w.warnedTables[name] = true
		w.warn("let the foreign key of "+hiddenKey.table.Name.String()+
			" hold the columns that the rules of both tables go by, or SET NULL, or say accept: ["+acceptReferences+"]",
			"rows of "+hiddenKey.table.Name.String()+" that they do not see go or change along: that rows of "+
				name.String()+" which they see do so as well tells of these")
	}
	if !isOpen {
		w.add(cascadedTable{referrer.table, changedColumns, hiddenKey})
	}
}

// warnShownKeys warns of hidden columns of a foreign key whose referring rows agents see. When ON DELETE or ON UPDATE
// deletes or changes some of these rows, agents learn which values the hidden columns have.
func (w *cascadeWalk) warnShownKeys(referrer referringKey, visibleTables []*policyTable, changedColumns []string) {
	for _, t := range visibleTables {
		name := w.shownKeyColumn(t, referrer.key, changedColumns)
		if name == "" || w.warnedColumns[referrer.table.Name.String()+"."+name] {
			continue
		}
		w.warnedColumns[referrer.table.Name.String()+"."+name] = true
		advice := "show agents the column"
		// with SET NULL the row remains, and agents do not learn the column's value from its disappearance
		if changedColumns == nil {
			advice += ", or SET NULL"
		}
		w.warn(advice+", or say accept: ["+acceptReferences+"]",
			"rows of "+referrer.table.Name.String()+" go or change along: which do tells what they hold in "+t.whyHidden(name))
	}
}

// shownKeyColumn returns a hidden column of a foreign key whose value agents learn from what happens to the row; "":
// there is none. They learn it if the row is deleted, or if columns change that agents see or that decide whether they
// see the row. changedColumns are the columns that change; nil means that the row is deleted.
func (c *referrerLeakChecker) shownKeyColumn(t *policyTable, key catalog.ForeignKey, changedColumns []string) string {
	name := c.hiddenReferringColumn(t, key)
	if name == "" || changedColumns == nil {
		return name
	}
	decides, isKnown := predicate.RowColumns(t.rows)
	if !isKnown || haveCommonElement(decides, changedColumns) ||
		slices.ContainsFunc(changedColumns, t.decl.isVisibleColumn) {
		return name
	}
	return ""
}

// tablesShowing returns the tables of the policy through which agents see rows of a table: the table itself and its
// parents.
func (c *referrerLeakChecker) tablesShowing(r *catalog.Relation) []*policyTable {
	var out []*policyTable
	names := []catalog.Name{r.Name}
	for i := 0; i < len(names); i++ {
		if t := c.tables[names[i]]; t != nil {
			out = append(out, t)
		}
		if child, ok := c.snap.Relation(names[i]); ok {
			for _, name := range child.Parents {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return out
}

// areReferrersVisible tells whether an agent that sees a row always sees all rows that refer to it by a foreign key.
func (c *referrerLeakChecker) areReferrersVisible(target *catalog.Relation, referrer referringKey) bool {
	visibleTables := c.tablesShowing(referrer.table)
	return !slices.ContainsFunc(c.tablesShowing(target), func(t *policyTable) bool {
		return !slices.ContainsFunc(visibleTables, func(referringTable *policyTable) bool {
			return !slices.ContainsFunc(predicate.Conjuncts(referringTable.rows), func(part predicate.Node) bool {
				if n, ok := part.(predicate.Visible); ok && leadsTo(n, t, referrer.key, false) &&
					predicate.Implies(t.rows, n.Rows) {
					return false
				}
				_, isOpen := part.(predicate.Open)
				return !isOpen && !ruleHasPart(t, partThroughKey(part, referrer, t.relation))
			})
		})
	})
}

// isTargetVisible tells whether an agent that sees a row always sees the row to which its foreign key refers.
func (c *referrerLeakChecker) isTargetVisible(target *catalog.Relation, referrer referringKey) bool {
	targetTables := c.tablesShowing(target)
	return !slices.ContainsFunc(c.tablesShowing(referrer.table), func(referringTable *policyTable) bool {
		parts := predicate.Conjuncts(referringTable.rows)
		return !slices.ContainsFunc(targetTables, func(t *policyTable) bool {
			if slices.ContainsFunc(parts, func(part predicate.Node) bool {
				n, ok := part.(predicate.Visible)
				return ok && leadsTo(n, t, referrer.key, true) && predicate.Implies(n.Rows, t.rows)
			}) {
				return true
			}
			var told predicate.All
			for _, part := range parts {
				if condition := partThroughKey(part, referrer, t.relation); condition != nil {
					told = append(told, condition)
				}
			}
			return predicate.Implies(told, t.rows)
		})
	})
}

// ruleHasPart tells whether a condition is one of the conditions that must hold by a table's rule.
func ruleHasPart(t *policyTable, part predicate.Node) bool {
	return part != nil && slices.ContainsFunc(predicate.Conjuncts(t.rows),
		func(n predicate.Node) bool { return reflect.DeepEqual(n, part) })
}

// leadsTo tells whether a visible block requires the row to which a foreign key refers to be visible. If only is true,
// no other row may fulfil the block.
func leadsTo(n predicate.Visible, t *policyTable, key catalog.ForeignKey, only bool) bool {
	if n.Relation.Name != t.relation.Name {
		return false
	}
	pairs := append([]predicate.ColumnPair{{Column: n.Column, FromColumn: n.FromColumn}}, n.MorePairs...)
	for _, pair := range pairs {
		i := slices.Index(key.Columns, pair.FromColumn)
		if i < 0 || key.TargetColumns[i] != pair.Column {
			return false
		}
	}
	return !only || len(pairs) == len(key.Columns) ||
		predicate.Step{Relation: n.Relation, Column: n.Column, FromColumn: n.FromColumn,
			MorePairs: n.MorePairs}.LeadsToAtMostOne()
}

// partThroughKey converts a condition on a row to a condition on the row to which its foreign key refers. This is
// possible if the condition reads only columns of the key whose equal values are identical. Otherwise the result is
// nil.
func partThroughKey(part predicate.Node, referrer referringKey, target *catalog.Relation) predicate.Node {
	columns, isKnown := predicate.RowColumns(part)
	if !isKnown || len(columns) == 0 || !readsOnlyNamedColumns(part, nil) {
		return nil
	}
	targetOf, isAlike := map[string]string{}, true
	for _, name := range columns {
		i := slices.Index(referrer.key.Columns, name)
		if i < 0 {
			return nil
		}
		a, b := referrer.table.Column(name), target.Column(referrer.key.TargetColumns[i])
		if !hasExactEquality(a) || !hasExactEquality(b) || a.Type != b.Type {
			return nil
		}
		targetOf[name], isAlike = b.Name, isAlike && b.Name == name
	}
	switch n := part.(type) {
	case predicate.Own:
		n.Column = targetOf[n.Column]
		return n
	case predicate.Tenant:
		n.Column = targetOf[n.Column]
		return n
	case predicate.Status:
		n.Column = targetOf[n.Column]
		return n
	case predicate.Visible:
		n.FromColumn, n.MorePairs = targetOf[n.FromColumn], slices.Clone(n.MorePairs)
		for i, pair := range n.MorePairs {
			n.MorePairs[i].FromColumn = targetOf[pair.FromColumn]
		}
		return n
	}
	if isAlike {
		return part
	}
	return nil
}
