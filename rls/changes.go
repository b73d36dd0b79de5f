package rls

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// trackedTable is a table whose changes can hide rows that agents saw before. Triggers record such changes.
type trackedTable struct {
	relation      *catalog.Relation
	columns       map[string]bool // the columns whose values decide who sees a row
	anyColumn     bool            // every column may decide who sees a row
	insertCanHide bool            // a new row may hide other rows
	isLookupTable bool            // rules of other tables read the table
}

// trackedTables returns the tables whose changes can hide rows, sorted by name: the tables that the policy lists, and
// other tables that its predicates read. After such a change the proxy refuses to use older snapshots.
func trackedTables(p *policy.Policy) []*trackedTable {
	byName := map[catalog.Name]*trackedTable{}
	tableOf := func(r *catalog.Relation) *trackedTable {
		if byName[r.Name] == nil {
			byName[r.Name] = &trackedTable{relation: r, columns: map[string]bool{}}
		}
		return byName[r.Name]
	}
	var allRules predicate.All
	for _, t := range p.Tables() {
		allRules = append(allRules, t.VisibilityRules())
		w := tableOf(t.Relation)
		columns, columnsKnown := predicate.RowColumns(t.VisibilityRules())
		if t.Aggregate != nil {
			columns = append(columns, t.Aggregate.Subject)
		}
		w.anyColumn = w.anyColumn || !columnsKnown
		for _, c := range columns {
			w.columns[c] = true
		}
	}
	allRules = append(allRules, liveNodes(p)...)
	for _, h := range predicate.LookupTables(allRules) {
		w := tableOf(h.Relation)
		w.isLookupTable = true
		for _, c := range h.Columns {
			w.columns[c] = true
		}
	}
	for _, r := range predicate.TablesWhereInsertHides(allRules) {
		w := tableOf(r)
		w.insertCanHide, w.isLookupTable = true, true
	}
	for _, l := range p.LiveAttributes() {
		if !l.IsFromOneRow() { // with a second row the attribute's value would be ambiguous, and so be lost
			tableOf(l.Table).insertCanHide = true
		}
	}
	out := slices.Collect(maps.Values(byName))
	slices.SortFunc(out, func(a, b *trackedTable) int {
		return strings.Compare(a.relation.Name.String(), b.relation.Name.String())
	})
	return out
}

// UntrackedAttributeTable returns the name of a table from which the database computes attributes and whose changes no
// trigger records, or "". If there is one, any snapshot that outlives its statement could show rows whose consent was
// withdrawn. [Plan.UntrackedRelations] is about the tables that rules read.
func (p *Plan) UntrackedAttributeTable() string {
	return firstUntrackedTable(liveNodes(p.facts.policy))
}

// rowConditions returns all conditions that the policy sets on rows of a table, for reading and writing.
func rowConditions(t *policy.Table) predicate.All {
	out := predicate.All{t.VisibilityRules()}
	if t.Write != nil {
		out = append(append(out, t.Write.Conditions()...), triggerConditions(t.Write)...)
	}
	return out
}

// RuleTables returns the tables that the rules of t read to decide which of its rows agents see and what they may
// write.
func RuleTables(t *policy.Table) []*catalog.Relation {
	var out []*catalog.Relation
	for _, h := range predicate.LookupTables(rowConditions(t)) {
		out = append(out, h.Relation)
	}
	return append(out, predicate.TablesWhereInsertHides(rowConditions(t))...)
}

// firstUntrackedTable returns the name of a table that the conditions read and whose changes no trigger records, or "".
func firstUntrackedTable(conditions predicate.Node) string {
	for _, h := range predicate.LookupTables(conditions) {
		if isUntracked(h.Relation) {
			return h.Relation.Name.String()
		}
	}
	for _, r := range predicate.TablesWhereInsertHides(conditions) {
		if isUntracked(r) {
			return r.Name.String()
		}
	}
	return ""
}

// LookupTables returns the names of the tables that rules of other tables read, or from which attributes are computed.
func (p *Plan) LookupTables() []catalog.Name {
	var out []catalog.Name
	for _, w := range trackedTables(p.facts.policy) {
		if w.isLookupTable {
			out = append(out, w.relation.Name)
		}
	}
	return out
}

func isUntracked(r *catalog.Relation) bool {
	return r.Kind != catalog.PartitionedTable && (r.Kind != catalog.Table || r.HasChildren)
}

// UntrackedRelations returns the relations whose visible rows may change without a trigger that records it. These are
// materialised views, foreign tables, tables with inheritance children, and tables whose rules read one of these.
// Children and views of such relations are included. Agents may read them in single statements, but not by a snapshot
// that lasts for several statements.
func (p *Plan) UntrackedRelations() map[catalog.Name]bool { return untrackedRelations(p.facts.policy) }

func untrackedRelations(p *policy.Policy) map[catalog.Name]bool {
	out := map[catalog.Name]bool{}
	for _, t := range p.Tables() {
		if isUntracked(t.Relation) || firstUntrackedTable(rowConditions(t)) != "" {
			out[t.Relation.Name] = true
		}
	}
	for changed := true; changed; { // repeated, since children may have children
		changed = false
		for _, c := range p.Children() {
			if _, isListed := p.Table(c.Relation.Name); isListed || out[c.Relation.Name] {
				continue
			}
			if slices.ContainsFunc(c.Relation.Parents, func(n catalog.Name) bool { return out[n] }) {
				out[c.Relation.Name], changed = true, true
			}
		}
	}
	var views []catalog.Name
	for _, v := range p.Views() {
		if slices.ContainsFunc(v.Tables, func(n catalog.Name) bool { return out[n] }) {
			views = append(views, v.Relation.Name)
		}
	}
	for _, name := range views {
		out[name] = true
	}
	return out
}

// TimeCanHide reports whether a row can become hidden by the passing of time alone, as when a consent expires.
func (p *Plan) TimeCanHide() bool {
	for _, t := range p.facts.policy.Tables() {
		if predicate.TimeCanHide(t.VisibilityRules()) {
			return true
		}
	}
	return p.TimeCanChangeAttributes()
}

// TimeCanChangeAttributes reports whether an attribute that the database computes can change by the passing of time
// alone.
func (p *Plan) TimeCanChangeAttributes() bool {
	return predicate.TimeCanHide(liveNodes(p.facts.policy))
}

// changeTriggerPrefix begins the names of the change triggers. PostgreSQL fires triggers in the order of their names,
// so these fire last.
const changeTriggerPrefix = "zz_pgconsent_change_"

// changeTriggers makes the triggers that record changes which can hide rows.
type changeTriggers struct{ *planFacts }

func (f changeTriggers) objects() []Object {
	var out []Object
	for _, w := range trackedTables(f.policy) {
		out = append(out, w.triggers()...)
	}
	return out
}

func (w *trackedTable) triggers() []Object {
	var out []Object
	add := func(event, rest string) { out = append(out, w.trigger(event, rest)) }
	switch w.relation.Kind {
	case catalog.Table, catalog.PartitionedTable:
	default:
		return nil
	}
	if w.relation.Name == predicate.CurrentConsents {
		// The consent registry records its other changes itself. A new record hides no row unless it is a refusal, so records
		// that give or request consent fire no trigger.
		if w.insertCanHide {
			add("INSERT",
				"FOR EACH ROW WHEN (NEW.state OPERATOR(pg_catalog.<>) ALL ('{given,requested}'::pg_catalog.text[]))")
		}
		return out
	}
	// These are row triggers: statement triggers would not fire for rows that a subscription applies, or that are written
	// to a partition by its own name.
	const forEachRow = "FOR EACH ROW"
	add("DELETE", forEachRow)
	if when := w.updateCondition(); when != "" {
		add("UPDATE", forEachRow+when)
	}
	if w.insertCanHide {
		add("INSERT", forEachRow)
	}
	add("TRUNCATE", "FOR EACH STATEMENT")
	return out
}

func (w *trackedTable) trigger(event, rest string) Object {
	table, name := w.relation.Name.SQL(), triggerName(w.relation, changeTriggerPrefix+strings.ToLower(event))
	o := newObject("trigger "+name+" on "+w.relation.Name.String(),
		"A change of what decides who sees a row ends cursors and REPEATABLE READ transactions that are "+
			"older. Other changes are not noted.", w.relation)
	o.create(fmt.Sprintf("CREATE TRIGGER %s AFTER %s ON %s %s EXECUTE FUNCTION pgconsent.changed()", name, event, table,
		rest))
	o.create(fmt.Sprintf("ALTER TABLE %s ENABLE ALWAYS TRIGGER %s", table, name))
	o.drop("Take the triggers away.", fmt.Sprintf("DROP TRIGGER IF EXISTS %s ON %s", name, table))
	return o.Object
}

// updateCondition returns the WHEN clause of the trigger for UPDATE, or "" if no UPDATE of the table can hide rows.
func (w *trackedTable) updateCondition() string {
	if w.anyColumn {
		return " WHEN (true)"
	}
	if len(w.columns) == 0 {
		return ""
	}
	var columns []string
	for _, name := range slices.Sorted(maps.Keys(w.columns)) {
		if w.relation.Column(name) == nil {
			return " WHEN (true)"
		}
		columns = append(columns, name)
	}
	return " WHEN (" + rowDiffersCondition(columns) + ")"
}

// rowDiffersCondition returns the condition that some of the columns differ between OLD and NEW in their binary form.
// The = operator may call different values equal, as with some collations. A comparison of texts would depend on the
// session's settings.
func rowDiffersCondition(columns []string) string {
	var before, after []string
	for _, c := range columns {
		before, after = append(before, "OLD."+catalog.QuoteIdent(c)), append(after, "NEW."+catalog.QuoteIdent(c))
	}
	return "pg_catalog.record_image_ne(ROW(" + strings.Join(before, ", ") + "), ROW(" + strings.Join(after, ", ") + "))"
}
