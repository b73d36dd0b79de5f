package policy

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// ruleCompiler compiles blocks of row rules into predicates.
type ruleCompiler struct {
	*resolver
	ownAttributes   map[string]bool // the attributes with which own blocks compare
	tablePath       []catalog.Name  // the tables whose rules are being compiled, outermost first
	currentRule     *Rule           // the block that is being compiled
	outermostRule   *Rule           // the outermost block, set once it is compiled
	inListCondition bool            // true while the compiled blocks are conditions on the elements of a list
	inGroupRule     bool            // true while the compiled blocks decide which rows count in groups
}

// tableRule returns the predicate of a table, which it compiles at the first call.
func (c *ruleCompiler) tableRule(name catalog.Name) predicate.Node {
	t := c.tables[name]
	if t.isCompiled {
		return t.rows
	}
	c.tablePath = append(c.tablePath, name)
	outer := c.currentRule
	c.currentRule, c.outermostRule = nil, nil
	t.rows = c.compileBlock(t.decl.rows, t.relation)
	t.rule, c.currentRule = c.outermostRule, outer
	c.tablePath = c.tablePath[:len(c.tablePath)-1]
	t.isCompiled = true
	return t.rows
}

func (c *ruleCompiler) compileBlock(b block, row *catalog.Relation) (node predicate.Node) {
	leave := c.beginRule(b)
	defer func() { leave(&node) }()
	switch b := b.(type) {
	case openBlock:
		return predicate.Open{}
	case noneBlock:
		return predicate.Any{}
	case allBlock:
		return predicate.All(c.compileBlocks(b.parts, row))
	case anyBlock:
		return predicate.Any(c.compileBlocks(b.parts, row))
	case ownBlock:
		return c.compileOwn(b, row)
	case statusBlock:
		family := c.checkStatusColumn(b.columnAt.OrElse(b.place), b.requiredWordAt.OrElse(b.place), row, b.column,
			b.requiredWord)
		return predicate.Status{Column: b.column, Value: b.requiredWord, ColumnType: family}
	case consentBlock:
		if b.records != nil && b.records.registry != nil {
			return c.compileRegistryConsent(b, row)
		}
		if b.records != nil {
			return c.compileRecordConsent(b, row)
		}
		return c.compileStatusConsent(b, row)
	case visibleBlock:
		return c.compileVisible(b, row)
	case derivedBlock:
		return c.derivedNode(b, row)
	case sharedBlock:
		return c.sharedNode(b, row)
	case tenantBlock:
		return c.tenantNode(b, row)
	case grantBlock:
		return c.compileGrant(b, row)
	case notBlock:
		return c.notNode(b, row)
	case sqlBlock:
		return c.compileSQL(b, row)
	default:
		return predicate.Any{}
	}
}

func (c *ruleCompiler) compileBlocks(blocks []block, row *catalog.Relation) []predicate.Node {
	out := make([]predicate.Node, 0, len(blocks))
	for _, b := range blocks {
		out = append(out, c.compileBlock(b, row))
	}
	return out
}

// beginRule makes a Rule for a block that is about to be compiled. The returned function stores the block's node in the
// Rule, and returns to the enclosing Rule.
func (c *ruleCompiler) beginRule(b block) (leave func(*predicate.Node)) {
	if b == nil {
		return func(*predicate.Node) {}
	}
	position := b.At()
	r := &Rule{File: position.File, Line: position.Line, Column: position.Column, Block: c.doc.blockNames[position]}
	if r.Block == "" {
		r.Block = "all"
	}
	outer := c.currentRule
	c.currentRule = r
	return func(node *predicate.Node) {
		r.Node = *node
		c.currentRule = outer
		switch {
		case outer == nil:
			c.outermostRule = r
		case outer.Block == "all" || outer.Block == "any" || outer.Block == "not":
			outer.Parts = append(outer.Parts, r)
		}
	}
}

// compileCondition compiles a block that is not part of the table's rule.
func (c *ruleCompiler) compileCondition(b block, r *catalog.Relation) predicate.Node {
	defer func(r *Rule) { c.currentRule = r }(c.currentRule)
	c.currentRule = &Rule{}
	return c.compileBlock(b, r)
}

// compileOtherRows compiles blocks about rows of another table. These do not become parts of the table's rule.
func (c *ruleCompiler) compileOtherRows(blocks []block, r *catalog.Relation) predicate.All {
	defer func(r *Rule) { c.currentRule = r }(c.currentRule)
	c.currentRule = &Rule{}
	return c.compileBlocks(blocks, r)
}

// compileWhere compiles the blocks of a key where, which may read only columns of the table that the key is about; nil:
// there are none.
func (c *ruleCompiler) compileWhere(blocks []block, r *catalog.Relation) predicate.Node {
	return c.compileWhereOfKey("where", blocks, r)
}

// compileWhereOfKey does the same as compileWhere for blocks under a key with another name.
func (c *ruleCompiler) compileWhereOfKey(key string, blocks []block, r *catalog.Relation) predicate.Node {
	if len(blocks) == 0 {
		return nil
	}
	for _, b := range blocks {
		c.checkOwnColumns(key, b)
	}
	defer func(r *Rule) { c.currentRule = r }(c.currentRule)
	c.currentRule = &Rule{} // the blocks are not parts of the row's rule, so their Rule is discarded
	return predicate.All(c.compileBlocks(blocks, r))
}

// checkOwnColumns refuses blocks that read another table.
func (c *ruleCompiler) checkOwnColumns(key string, b block) {
	switch b := b.(type) {
	case allBlock:
		for _, part := range b.parts {
			c.checkOwnColumns(key, part)
		}
	case anyBlock:
		for _, part := range b.parts {
			c.checkOwnColumns(key, part)
		}
	case notBlock:
		c.checkOwnColumns(key, b.part)
	case ownBlock, tenantBlock, grantBlock, statusBlock, sqlBlock, openBlock, nil:
	default:
		c.fail(b.At(), "", "%s speaks of the table's own columns only", key)
	}
}

// impliedCondition makes a block from the text of an expression that pgconsent adds to the policy.
func (c *ruleCompiler) impliedCondition(position place, text string) block {
	return sqlBlock{place: position, text: text, placeAt: func(int) place { return position }}
}

func quoteIdentifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
