package policy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Derivation says how rows of a table are made from rows of another table, or of the same table (see the block
// derived).
type Derivation struct {
	Table *catalog.Relation
	// how a row is found from its sources; Origin.Products is the table with the rows that were made
	Origin           predicate.Origin
	DeleteWithSource bool // a row is deleted with any of its sources; false: the row remains, but is hidden
}

// Derivations returns how rows of the policy's tables are made from other rows, in the order of the files. If rows are
// made in several steps, through several tables, each step has a Derivation. [Policy.Cascades] says what is deleted
// with a source.
func (p *Policy) Derivations() []Derivation { return p.derivations }

// compileOrigin compiles how the sources of a row are found; the second result is false after an error.
func (c *ruleCompiler) compileOrigin(b derivedBlock, row *catalog.Relation) (predicate.Origin, bool) {
	var out predicate.Origin
	errorsBefore := len(c.errs)
	source := row
	for _, link := range b.from {
		target := c.followLink(link, source)
		if target == nil {
			return out, false
		}
		out.Steps = append(out.Steps, predicate.Step{
			Relation: target, Column: link.pairs[0].Column, FromColumn: link.pairs[0].FromColumn, MorePairs: link.otherPairs()})
		source = target
	}
	if len(b.from) == 0 {
		if !c.originByList(b, row, &out) {
			return out, false
		}
	}
	if len(b.unless) > 0 {
		out.ExceptIf = c.originException(b.unless, row)
	}
	return out, len(c.errs) == errorsBefore
}

// originException compiles the key unless: a row needs no source if its own columns meet a condition, or if a row to
// which it refers is visible.
func (c *ruleCompiler) originException(blocks []block, row *catalog.Relation) predicate.Node {
	var check func(blocks []block)
	check = func(blocks []block) {
		for _, b := range blocks {
			switch b := b.(type) {
			case allBlock:
				check(b.parts)
			case anyBlock:
				check(b.parts)
			case visibleBlock:
			default:
				c.checkOwnColumns("where", b)
			}
		}
	}
	check(blocks)
	return predicate.All(c.compileOtherRows(blocks, row))
}

// originByList compiles the origin of a row that lists the keys of its sources in a column.
func (c *ruleCompiler) originByList(b derivedBlock, row *catalog.Relation, out *predicate.Origin) bool {
	source := c.findTable(b.ofAt, b.sourceTable)
	list, elements, ok := c.findIDList(b.sourcesAt, row, b.sourcesColumn)
	if source == nil || !ok {
		return false
	}
	if len(source.PrimaryKey) != 1 {
		c.fail(b.ofAt, "let a link table say what rows are made from",
			"%s has no primary key of one column, which a list could hold", source.Name)
		return false
	}
	key, column := source.Column(source.PrimaryKey[0]), row.Column(b.sourcesColumn)
	json := list.Form == predicate.GrantJSON || list.Form == predicate.GrantJSONB
	switch {
	case typeFamily(key.Type) == "" || typeFamily(key.Type) == "date" || !json && typeFamily(key.Type) != elements:
		c.fail(b.sourcesAt, "a list holds the values of the primary key",
			"%s.%s is a %s and %s.%s a %s: they do not link", row.Name, column.Name, column.Type, source.Name, key.Name, key.Type)
		return false
	case typeFamily(key.Type) == "text" && key.Collation != column.Collation && column.Collation != "":
		c.fail(b.sourcesAt, "give both columns one collation",
			"%s.%s and %s.%s have different collations: PostgreSQL would not know by which to compare",
			row.Name, column.Name, source.Name, key.Name)
		return false
	}
	out.List, out.Source, out.Key = list, source, key.Name
	return true
}

// findDerivations collects the derived blocks of all rules, in the order of the files.
func (c *ruleCompiler) findDerivations() []Derivation {
	var out []Derivation
	for _, name := range c.tableOrder {
		t := c.tables[name]
		for _, b := range derivedBlocks(t.decl.rows) {
			if origin, ok := c.compileOrigin(b, t.relation); ok {
				out = append(out, Derivation{Table: t.relation, Origin: origin, DeleteWithSource: b.onErase == "erase"})
			}
		}
	}
	return out
}

// derivedBlocks returns the derived blocks of a rule, at any depth.
func derivedBlocks(b block) []derivedBlock {
	var out []derivedBlock
	switch b := b.(type) {
	case derivedBlock:
		out = append(out, b)
	case allBlock:
		for _, part := range b.parts {
			out = append(out, derivedBlocks(part)...)
		}
	case anyBlock:
		for _, part := range b.parts {
			out = append(out, derivedBlocks(part)...)
		}
	}
	return out
}
