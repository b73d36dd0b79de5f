package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// writeCompiler compiles what agents may change.
type writeCompiler struct {
	*resolver
	rules     *ruleCompiler
	graph     keyGraph
	leaks     *writeLeaks
	referrers *referrerLeaks
}

// write compiles what agents may change of a table, whose own rule and those of all others are compiled already.
func (c *writeCompiler) write(t *policyTable) *Write {
	decl, r := t.decl.write, t.relation
	if decl == nil {
		return nil
	}
	switch {
	case lacksRowSecurity(r):
		c.fail(decl.place, "leave write out", "%s is a %s, which agents can only read", r.Name, relationKind(r.Kind))
		return nil
	case slices.ContainsFunc(t.decl.columns, func(d columnDecl) bool { return d.byKey != nil }):
		c.fail(decl.place, "leave one of them out",
			"%s has columns that exist by key only: that agents write it is not in this version", r.Name)
		return nil
	case r.IsPartition:
		c.fail(decl.place, "write through the partitioned table", "%s is a partition", r.Name)
		return nil
	case r.HasRules:
		c.fail(decl.place, "replace the rules by triggers", "%s has rewrite rules, which write with their owner's rights", r.Name)
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
	failed, withheld := len(c.errs), len(c.withheldWrites)
	out.Stamps = c.compileStamps(decl, r)
	out.Lists = c.listBounds(decl, r)
	sendable := c.sendableColumns(decl, t)
	for _, key := range c.graph.uniqueKeys(r) {
		if out.Insert && !decl.accepts(acceptConflicts) && collidesUnsent(decl, key, r, sendable) &&
			!decl.collidesInSight(key, t.rows, t.relation) {
			c.fail(decl.place, "say accept: ["+acceptConflicts+"], or stamp other columns",
				"%s stamps all of the key %s, or leaves it to defaults: a collision would tell that a hidden "+
					"row exists", r.Name, key.Name)
		}
		if !out.Insert || decl.accepts(acceptValues) {
			continue
		}
		if name := c.leaks.hiddenPartialColumn(t, key); name != "" && collidesUnsent(decl, key, r, sendable) {
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
	if why := c.leaks.whyStampHashed(decl, t); out.Insert && why != "" && !decl.accepts(acceptValues) {
		c.withhold(decl.place, "say accept: ["+acceptValues+"], or mask it with null",
			"agents cannot insert into %s: %s", r.Name, why)
		out.Insert = false
	}
	if why := c.leaks.whyPresetCompared(decl, t); out.Insert && why != "" && !decl.accepts(acceptConflicts) {
		c.withhold(decl.place, "say accept: ["+acceptConflicts+"], or let another index do",
			"agents cannot insert into %s: %s", r.Name, why)
		out.Insert = false
	}
	if len(c.errs) > failed {
		return nil
	}
	if why := c.leaks.whyDeleteTells(t); out.Delete && why != "" && !decl.accepts(acceptValues) {
		c.withhold(decl.place, "say accept: ["+acceptValues+"], or let the condition ask for what fails for no row",
			"agents cannot delete from %s: %s", r.Name, why)
		out.Delete = false
	}
	c.writableColumns(out, decl, t, sendable, withheld)
	c.checkForeignKeys(out, decl, t, sendable)
	if len(c.withheldWrites) > withheld { // with all of its columns the command goes
		out.Insert = out.Insert && len(out.Insertable) > 0
		out.Update = out.Update && len(out.Updatable) > 0
	}
	if len(c.errs) == failed && !out.Insert && !out.Update && !out.Delete {
		return nil
	}
	c.refuseSequences(out, decl, t)
	for _, column := range r.Columns {
		if out.Insert && column.NotNull && column.Default == "" && column.Identity == "" && !column.Generated &&
			!slices.Contains(out.Insertable, column.Name) {
			c.warn(decl.place, "agents cannot insert into %s unless a trigger sets %s: it is NOT NULL, has no default and is "+
				"not theirs to write", r.Name, column.Name)
		}
	}
	return out
}

// writableColumns works out the columns of each command, and what the new row must be. withheld is how much was left out before
// this table.
func (c *writeCompiler) writableColumns(out *Write, decl *writeDecl, t *policyTable, sendable []string, withheld int) {
	var stamped []string
	var stamps predicate.All
	var overruled []string // columns of which the stamp decides, whatever rows say
	for _, s := range out.Stamps {
		stamped = append(stamped, s.Column)
		var is predicate.Node = predicate.Status{Column: s.Column, Is: s.Value}
		if s.Attribute != "" {
			is = predicate.Own{Column: s.Column, Attribute: s.Attribute, Type: s.Type}
		}
		if s.Unless != nil {
			is = predicate.Any{is, s.Unless}
		} else {
			overruled = append(overruled, s.Column)
		}
		stamps = append(stamps, is)
	}
	judged, known := predicate.RowColumns(t.rows)
	if decl.check != nil {
		more, all := predicate.RowColumns(c.rules.compileBlock(decl.check, t.relation))
		judged, known = append(judged, more...), known && all
	}
	judged = withSources(t.relation, judged)
	probed := ""
	for _, column := range t.relation.Columns {
		name := column.Name
		isStamped, isSendable := slices.Contains(stamped, name), slices.Contains(sendable, name)
		if out.Insert && (isStamped && t.decl.showsPlain(name) || isSendable) {
			out.Insertable = append(out.Insertable, name)
			if column.Identity == "" {
				out.CopyColumns = append(out.CopyColumns, name)
			}
		}
		named := slices.ContainsFunc(decl.columns, func(w wordDecl) bool { return w.text == name })
		immutable := slices.ContainsFunc(decl.immutable, func(w wordDecl) bool { return w.text == name })
		// a row that goes to another partition is stamped anew
		moves := len(stamped) > 0 && slices.Contains(t.relation.PartitionBy, name)
		if out.Update && moves && named && !immutable {
			c.fail(decl.place, "list it under immutable",
				"agents cannot update %s.%s: the row would go to another partition, and be stamped anew", t.relation.Name, name)
		}
		why, together := c.leaks.whyUpdateTells(decl, t, name)
		if why != "" && isSendable && !immutable && !moves {
			probed = why
		}
		switch {
		case !(out.Update && isSendable && !immutable && !moves && named && why != ""):
		case !together:
			c.withhold(decl.place, "list it under immutable, or say accept: ["+acceptValues+"]",
				"agents cannot update %s.%s: %s", t.relation.Name, name, why)
		default:
			c.fail(decl.place, "list it under immutable, or say accept: ["+acceptValues+"]",
				"agents cannot update %s.%s: %s", t.relation.Name, name, why)
		}
		if out.Update && isSendable && !immutable && !moves && why == "" && (named || known && !slices.Contains(judged, name)) {
			out.Updatable = append(out.Updatable, name)
			if key := c.leaks.keySharedWithHidden(t, name); key != "" && !decl.accepts(acceptValues) {
				c.warn(decl.place, "agents update %s.%s, which %s holds together with a column that they do not see: what "+
					"they set tells whether two of their rows agree in that", t.relation.Name, name, key)
			}
		}
	}
	switch none := out.Update && len(out.Updatable) == 0; {
	case none && probed != "" && decl.allColumns:
		c.withhold(decl.place, "say accept: ["+acceptValues+"]", "no column of %s is left for agents to update: %s",
			t.relation.Name, probed)
	case none && len(c.withheldWrites) == withheld:
		c.fail(decl.place, "name them under columns", "no column of %s is left for agents to update", t.relation.Name)
	}

	// A stamp overrules what the table's rule says of its column: a person that an agent creates is pending, although only
	// those who have granted show. Only a condition that must hold by itself is overruled, not one of several ways to be
	// visible.
	var insert predicate.All
	for _, part := range predicate.Conjuncts(t.rows) {
		if columns, all := predicate.RowColumns(part); all && len(columns) == 1 &&
			slices.Contains(overruled, columns[0]) && isColumnTest(part) {
			out.InsertsHidden = out.InsertsHidden || contradicts(part, stamps)
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
		_, own := predicate.RowColumns(check)
		out.AffectsOtherRules = !own || len(predicate.Attributes(check)) > 0
	}
	out.InsertCheck, out.UpdateCheck = insert, update
}

// isColumnTest tells whether a condition looks at one column of the row and at nothing else.
func isColumnTest(n predicate.Node) bool {
	switch n.(type) {
	case predicate.Own, predicate.Status, predicate.Tenant:
		return true
	}
	return false
}

// contradicts tells whether a row with these stamps cannot meet the condition.
func contradicts(n predicate.Node, stamps predicate.All) bool {
	status, ok := n.(predicate.Status)
	return ok && slices.ContainsFunc(stamps, func(s predicate.Node) bool {
		stamp, fixed := s.(predicate.Status) // one that holds unless something else does is an Any
		return fixed && stamp.Column == status.Column && stamp.Is != status.Is
	})
}

// requireVisibleSources replaces what is asked of the sources of a new row by the whole rule of their table: an agent makes rows from
// rows that it sees, and a source that is hidden fails as one does that is not there.
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
		if source := c.tables[n.Table().Name]; source != nil {
			rows = predicate.All{source.rows, n.Rows}
		}
		return predicate.Derived{Origin: n.Origin, Rows: rows}
	}
	return n
}
