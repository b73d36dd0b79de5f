package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// writeCompiler compiles what agents may write.
type writeCompiler struct {
	*resolver
	rules     *ruleCompiler
	graph     keyGraph
	leaks     *writeLeakChecker
	referrers *referrerLeakChecker
}

// compile compiles what agents may write in a table, after the rules of all tables. The result is nil if they may write
// nothing.
func (c *writeCompiler) compile(t *policyTable) *Write {
	decl := t.decl.write
	if decl == nil || !c.isWritable(decl, t) {
		return nil
	}
	out := &Write{}
	for _, w := range decl.commands {
		out.Insert = out.Insert || w.text == "insert"
		out.Update = out.Update || w.text == "update"
		out.Delete = out.Delete || w.text == "delete"
	}
	if len(decl.commands) == 0 {
		c.fail(decl.place, "leave write out if agents write nothing", "no commands")
	}
	for _, command := range []string{"insert", "update", "delete"} {
		if own, ok := decl.commandRules[command]; ok && !out.Allows(strings.ToUpper(command)) {
			c.fail(own.place, "add "+command+" to commands, or leave this out", "%s is none of the commands", command)
		}
	}
	errorsBefore, withheld := len(c.errs), len(c.withheldWrites)
	out.Stamps = c.compileStamps(decl, t.relation)
	for _, s := range out.Stamps {
		if notice := s.Notice(t.relation); notice != "" {
			out.Notices = append(out.Notices, notice)
		}
	}
	out.Lists = c.compileListBounds(decl, t.relation)
	sendable := c.sendableColumns(decl, t)
	c.refuseCollisions(out, decl, t, sendable)
	c.refuseInsert(out, decl, t)
	if len(c.errs) > errorsBefore {
		return nil
	}
	if reason := c.leaks.whyOwnRuleTells(decl, t, "delete"); out.Delete && reason != "" && !decl.accepts(acceptValues) {
		c.withhold(decl.commandRules["delete"].place,
			"say accept: ["+acceptValues+"], or let the rule ask for what agents see",
			"agents cannot delete from %s: %s", t.relation.Name, reason)
		out.Delete = false
	}
	if reason := c.leaks.whyDeleteTells(t); out.Delete && reason != "" && !decl.accepts(acceptValues) {
		c.withhold(decl.place, "say accept: ["+acceptValues+"], or let the condition ask for what fails for no row",
			"agents cannot delete from %s: %s", t.relation.Name, reason)
		out.Delete = false
	}
	c.writableColumns(out, decl, t, sendable, withheld)
	c.compileChecks(out, decl, t)
	c.checkForeignKeys(out, decl, t, sendable)
	if len(c.withheldWrites) > withheld { // a command is withheld if all of its columns were withheld
		out.Insert = out.Insert && len(out.Insertable) > 0
		out.Update = out.Update && len(out.Updatable) > 0
	}
	if len(c.errs) == errorsBefore && !out.Insert && !out.Update && !out.Delete {
		return nil
	}
	c.refuseSequences(out, decl, t)
	c.warnMissingValues(out, decl, t.relation)
	return out
}

// isWritable tells whether agents can write a table at all, and reports an error if they can only read it.
func (c *writeCompiler) isWritable(decl *writeDecl, t *policyTable) bool {
	switch r := t.relation; {
	case lacksRowSecurity(r):
		c.fail(decl.place, "leave write out", "%s is a %s, which agents can only read", r.Name, relationKind(r.Kind))
	case slices.ContainsFunc(t.decl.columns, func(d columnDecl) bool { return d.byKey != nil }):
		c.fail(decl.place, "leave one of them out",
			"%s has columns that exist by key only: that agents write it is not in this version", r.Name)
	case r.IsPartition:
		c.fail(decl.place, "write through the partitioned table", "%s is a partition", r.Name)
	case r.HasRules:
		c.fail(decl.place, "replace the rules by triggers", "%s has rewrite rules, which write with their owner's rights", r.Name)
	default:
		return true
	}
	return false
}

// refuseCollisions refuses inserts of rows that may collide in a key although agents choose none of the key's columns.
// The collision would tell agents about a hidden row, or about a hidden column of a visible row.
func (c *writeCompiler) refuseCollisions(out *Write, decl *writeDecl, t *policyTable, sendable []string) {
	r := t.relation
	for _, key := range c.graph.uniqueKeys(r) {
		if out.Insert && !decl.accepts(acceptConflicts) && mayCollideUnsent(decl, key, r, sendable) &&
			!decl.collidesWithVisibleRow(key, t.rows, r) {
			c.fail(decl.place, "say accept: ["+acceptConflicts+"], or stamp other columns",
				"%s stamps all of the key %s, or leaves it to defaults: a collision would tell that a hidden "+
					"row exists", r.Name, key.Name)
		}
		if !out.Insert || decl.accepts(acceptValues) {
			continue
		}
		if name := c.leaks.hiddenPartialColumn(t, key); name != "" && mayCollideUnsent(decl, key, r, sendable) {
			c.withhold(decl.place, "say accept: ["+acceptValues+"], or let the key hold for all rows",
				"agents cannot insert into %s, which stamps all of the key %s, or leaves it to defaults: a "+
					"collision would tell of %s", r.Name, key.Name, t.whyHidden(name))
			out.Insert = false
		} else if name := c.leaks.hiddenKeyColumn(decl, t, key, sendable); name != "" {
			c.withhold(decl.place, "say accept: ["+acceptValues+"], or let the key do without it",
				"agents cannot insert into %s: the key %s holds %s, and whether a new row collides with one that "+
					"shows would tell what that is there", r.Name, key.Name, t.whyHidden(name))
			out.Insert = false
		}
	}
}

// refuseInsert withholds INSERT if values that agents do not choose would tell them about hidden rows or columns.
func (c *writeCompiler) refuseInsert(out *Write, decl *writeDecl, t *policyTable) {
	if reason := c.leaks.whyStampHashed(decl, t); out.Insert && reason != "" && !decl.accepts(acceptValues) {
		c.withhold(decl.place, "say accept: ["+acceptValues+"], or mask it with null",
			"agents cannot insert into %s: %s", t.relation.Name, reason)
		out.Insert = false
	}
	if reason := c.leaks.whyPresetCompared(decl, t); out.Insert && reason != "" && !decl.accepts(acceptConflicts) {
		c.withhold(decl.place, "say accept: ["+acceptConflicts+"], or let another index do",
			"agents cannot insert into %s: %s", t.relation.Name, reason)
		out.Insert = false
	}
}

// warnMissingValues warns of columns that agents cannot set and without which every INSERT fails.
func (c *writeCompiler) warnMissingValues(out *Write, decl *writeDecl, r *catalog.Relation) {
	for _, column := range r.Columns {
		if out.Insert && column.NotNull && column.Default == "" && column.Identity == "" && !column.Generated &&
			!slices.Contains(out.Insertable, column.Name) {
			c.warn(decl.place, "agents cannot insert into %s unless a trigger sets %s: it is NOT NULL, has no default and is "+
				"not theirs to write", r.Name, column.Name)
		}
	}
	if !out.Insert || !decl.allColumns {
		return
	}
	for _, key := range r.UniqueKeys { // a row without the columns of its natural key is of little use
		for _, name := range key.Columns {
			column := r.Column(name)
			if column != nil && !column.NotNull && column.Default == "" && column.Identity == "" && !column.Generated &&
				!slices.Contains(out.Insertable, name) {
				c.warn(decl.place, "agents insert rows into %s without %s, which is part of the key %s: a collision would tell that a "+
					"hidden row exists. Say accept: [%s] and name it under columns, or let the key begin with the columns that say "+
					"whose row it is", r.Name, name, key.Name, acceptConflicts)
			}
		}
	}
}

// writableColumns sets which columns each command may write. withheld is the number of writes that were withheld before
// this table.
func (c *writeCompiler) writableColumns(out *Write, decl *writeDecl, t *policyTable, sendable []string, withheld int) {
	stamped := func(name string) bool {
		return slices.ContainsFunc(out.Stamps, func(s Stamp) bool { return s.Column == name })
	}
	ruleColumns, isKnown := c.judgedColumns(decl, t)
	lastWhy := "" // why some column cannot be updated, for a message
	for _, column := range t.relation.Columns {
		name := column.Name
		isSendable := slices.Contains(sendable, name)
		if out.Insert && (stamped(name) && t.decl.isPlainColumn(name) || isSendable) {
			out.Insertable = append(out.Insertable, name)
		}
		updatable, reason := c.isUpdatable(out, decl, t, name, isSendable)
		if reason != "" {
			lastWhy = reason
		}
		if !updatable || !decl.namesColumn(name) && (!isKnown || slices.Contains(ruleColumns, name)) {
			continue
		}
		out.Updatable = append(out.Updatable, name)
		if key := c.leaks.keySharedWithHidden(t, name); key != "" && !decl.accepts(acceptValues) {
			c.warn(decl.place, "agents update %s.%s, which %s holds together with a column that they do not see: what "+
				"they set tells whether two of their rows agree in that", t.relation.Name, name, key)
		}
	}
	switch isNone := out.Update && len(out.Updatable) == 0; {
	case isNone && lastWhy != "" && decl.allColumns:
		c.withhold(decl.place, "say accept: ["+acceptValues+"]", "no column of %s is left for agents to update: %s",
			t.relation.Name, lastWhy)
	case isNone && len(c.withheldWrites) == withheld:
		c.fail(decl.place, "name them under columns", "no column of %s is left for agents to update", t.relation.Name)
	}
}

// judgedColumns returns the columns that the table's rule and check read, and the columns from which these are
// computed. isKnown is false if the rule or the check depends on more than these columns.
func (c *writeCompiler) judgedColumns(decl *writeDecl, t *policyTable) (ruleColumns []string, isKnown bool) {
	ruleColumns, isKnown = predicate.RowColumns(t.rows)
	for _, b := range []block{decl.check, decl.rowsOfCommand("update")} {
		if b != nil {
			more, isComplete := predicate.RowColumns(c.rules.compileBlock(b, t.relation))
			ruleColumns, isKnown = append(ruleColumns, more...), isKnown && isComplete
		}
	}
	return withSources(t.relation, ruleColumns), isKnown
}

// isUpdatable tells whether an UPDATE may set a column, judging by this column alone. reason says what the UPDATE would
// tell agents about columns that they do not see.
func (c *writeCompiler) isUpdatable(out *Write, decl *writeDecl, t *policyTable, name string,
	sendable bool) (updatable bool, reason string) {
	isNamed := decl.namesColumn(name)
	immutable := slices.ContainsFunc(decl.immutable, func(w wordDecl) bool { return w.text == name })
	// an UPDATE that moves a row to another partition inserts it there, so that stamps apply again
	moves := len(out.Stamps) > 0 && slices.Contains(t.relation.PartitionBy, name)
	if out.Update && moves && isNamed && !immutable {
		c.fail(decl.place, "list it under immutable",
			"agents cannot update %s.%s: the row would go to another partition, and be stamped anew", t.relation.Name, name)
	}
	reason, isReadTogether := c.leaks.whyUpdateTells(decl, t, name)
	if !sendable || immutable || moves {
		return false, ""
	}
	if out.Update && isNamed && reason != "" {
		say := c.fail
		if !isReadTogether {
			say = c.withhold
		}
		say(decl.place, "list it under immutable, or say accept: ["+acceptValues+"]",
			"agents cannot update %s.%s: %s", t.relation.Name, name, reason)
	}
	return out.Update && reason == "", reason
}

// compileChecks compiles the conditions that new rows and changed rows must meet.
//
// A stamp takes precedence over the rule's condition on the stamped column. For example, a stamp may make new persons
// pending although the rule shows only persons who have granted. The stamp replaces only a condition that must hold by
// itself, not one of several alternatives.
func (c *writeCompiler) compileChecks(out *Write, decl *writeDecl, t *policyTable) {
	stamps, overruled := stampConditions(out.Stamps)
	var insert predicate.All
	for _, part := range predicate.Conjuncts(t.rows) {
		if columns, isComplete := predicate.RowColumns(part); isComplete && len(columns) == 1 &&
			slices.Contains(overruled, columns[0]) && isColumnTest(part) {
			out.InsertsAreHidden = out.InsertsAreHidden || contradictsStamps(part, stamps)
			continue
		}
		insert = append(insert, part)
	}
	for i, part := range insert {
		insert[i] = c.requireVisibleSources(part)
	}
	update := predicate.All{t.rows}
	insert = append(insert, stamps...)
	if decl.check != nil {
		check := c.rules.compileBlock(decl.check, t.relation)
		insert, update = append(insert, check), append(update, check)
		out.AffectsOtherRules = dependsOnMoreThanRow(check)
	}
	if b := decl.rowsOfCommand("insert"); b != nil {
		insert = append(insert, c.rules.compileBlock(b, t.relation))
	}
	if b := decl.rowsOfCommand("update"); b != nil {
		out.UpdatableRows = c.rules.compileBlock(b, t.relation)
		update = append(update, out.UpdatableRows)
		out.AffectsOtherRules = out.AffectsOtherRules || dependsOnMoreThanRow(out.UpdatableRows)
	}
	if b := decl.rowsOfCommand("delete"); b != nil {
		out.DeletableRows = c.rules.compileBlock(b, t.relation)
	}
	out.InsertCheck, out.UpdateCheck = insert, update
}

// dependsOnMoreThanRow tells whether a condition on a row may also depend on the session or on other tables.
func dependsOnMoreThanRow(n predicate.Node) bool {
	_, hasColumns := predicate.RowColumns(n)
	return !hasColumns || len(predicate.AttributesOf(n)) > 0
}

// stampConditions returns the conditions that stamped columns meet. overruled are the columns that always have the
// value of their stamp.
func stampConditions(list []Stamp) (stamps predicate.All, overruled []string) {
	for _, s := range list {
		var condition predicate.Node = predicate.Status{Column: s.Column, Value: s.Value}
		if s.Attribute != "" {
			condition = predicate.Own{Column: s.Column, Attribute: s.Attribute, Type: s.Type}
		}
		if s.Unless != nil {
			condition = predicate.Any{condition, s.Unless}
		} else {
			overruled = append(overruled, s.Column)
		}
		stamps = append(stamps, condition)
	}
	return stamps, overruled
}

// isColumnTest tells whether a condition depends on a single column of the row and the session's attributes.
func isColumnTest(n predicate.Node) bool {
	switch n.(type) {
	case predicate.Own, predicate.Status, predicate.Tenant:
		return true
	}
	return false
}

// contradictsStamps tells whether no row with these stamps can meet a condition.
func contradictsStamps(n predicate.Node, stamps predicate.All) bool {
	status, ok := n.(predicate.Status)
	return ok && slices.ContainsFunc(stamps, func(s predicate.Node) bool {
		stamp, fixed := s.(predicate.Status) // the condition of a stamp with the key unless is an Any, not a Status
		return fixed && stamp.Column == status.Column && stamp.Value != status.Value
	})
}

// requireVisibleSources replaces the condition on a new row's sources by the whole rule of the sources' table. So
// agents can make rows only from rows that they see. A hidden source causes the same error as a missing one.
func (c *writeCompiler) requireVisibleSources(n predicate.Node) predicate.Node {
	switch n := n.(type) {
	case predicate.All:
		out := make(predicate.All, len(n))
		for i, part := range n {
			out[i] = c.requireVisibleSources(part)
		}
		return out
	case predicate.Any:
		out := make(predicate.Any, len(n))
		for i, part := range n {
			out[i] = c.requireVisibleSources(part)
		}
		return out
	case predicate.Derived:
		rows := predicate.Node(predicate.Any{})
		if source := c.tables[n.SourceTable().Name]; source != nil {
			rows = predicate.All{source.rows, n.Rows}
		}
		return predicate.Derived{Origin: n.Origin, Rows: rows}
	}
	return n
}
