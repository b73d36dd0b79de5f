package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Option says more about a compilation.
type Option func(*compiler)

// WithViews gives the judge of views, rewrite.Definition, which this package cannot import. Without it a policy that
// lists views does not compile.
func WithViews(define ViewRewriter) Option { return func(c *compiler) { c.views.rewriteView = define } }

// Compile checks the document against what the database contains. An error is of type [Errors].
func Compile(doc *Document, snap *catalog.Snapshot, options ...Option) (*Policy, error) {
	_, p, err := compile(doc, snap, options)
	return p, err
}

// compile returns the compiler besides, which knows what each part of the document means.
func compile(doc *Document, snap *catalog.Snapshot, options []Option) (*compiler, *Policy, error) {
	c := newCompiler(doc, snap)
	for _, option := range options {
		option(c)
	}
	p := &Policy{tableIndex: map[catalog.Name]*Table{}, functionIndex: map[catalog.Name]*Function{}}
	for _, a := range doc.attributes {
		p.attributes = append(p.attributes, a.Attribute)
	}
	slices.SortFunc(p.attributes, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
	c.attributes = p.attributes

	p.limits = c.limits()
	p.air = c.checkAIR()
	p.operators = c.operators(doc.operators)
	c.declareTables()
	for _, name := range c.order {
		rows := c.rules.tableRule(name)
		t := c.tables[name]
		p.tables = append(p.tables, &Table{Relation: t.relation, Rows: rows, Rule: t.rule,
			Columns: c.columns.visibleColumns(t.decl, t.relation), AuditKeys: c.auditsKeys(t.decl, t.relation), Approximate: t.decl.approximate})
	}
	for _, t := range p.tables { // when every table's rule is known
		t.Write = c.writes.write(c.tables[t.Relation.Name])
		t.Aggregate = c.aggregates.aggregate(c.tables[t.Relation.Name].decl.aggregate, t)
		t.Lifecycle = c.lifecycles.lifecycle(c.tables[t.Relation.Name].decl.lifecycle, t)
	}
	p.clearAffectsOtherRules()
	c.origins.checkOrigins(p.tables)
	for _, decl := range doc.functions {
		if f := c.functions.function(decl); f != nil {
			if p.functionIndex[f.Name] != nil {
				c.fail(decl.place, "", "function %s is there twice", f.Name)
			}
			c.functions.functionReads(decl, f)
			c.functions.tool(p, decl, f)
			p.functions = append(p.functions, f)
			p.functionIndex[f.Name] = f
		}
	}
	if len(c.errs) > 0 {
		return nil, nil, c.sorted()
	}
	slices.SortFunc(p.tables, func(a, b *Table) int { return compareNames(a.Relation.Name, b.Relation.Name) })
	slices.SortFunc(p.functions, func(a, b *Function) int { return compareNames(a.Name, b.Name) })
	for _, t := range p.tables {
		p.tableIndex[t.Relation.Name] = t
	}
	c.live.auditAttributes(p)
	c.contracts.contracts(p)
	c.openObserved(p)
	for _, t := range p.tables {
		p.tableIndex[t.Relation.Name] = t
	}
	if len(c.errs) > 0 {
		return nil, nil, c.sorted()
	}
	p.privacy = c.privacy.privacy(p)
	p.sources = c.sources(p)
	if len(c.errs) > 0 {
		return nil, nil, c.sorted()
	}
	p.children = c.children(p)
	p.derivations = c.rules.derivations()
	p.taken = c.lifecycles.findCascades(p)
	p.live, p.expressions = c.live.liveAttributes(), map[string]string{}
	for _, a := range doc.attributes {
		if a.sql != nil {
			p.expressions[a.Name] = a.sql.text
		}
	}
	for _, decl := range doc.views {
		c.views.view(p, decl)
	}
	if len(c.errs) > 0 {
		return nil, nil, c.sorted()
	}
	p.warnings, p.leftOut, p.tells = c.warnings, c.withheldWrites, c.disclosures
	p.version = p.hash()
	return c, p, nil
}

// compiler runs the phases of a compilation, each a type of its own.
type compiler struct {
	*resolver
	rules      *ruleCompiler
	columns    *columnCompiler
	writes     *writeCompiler
	origins    *originCompiler
	aggregates *aggregateCompiler
	lifecycles *lifecycleCompiler
	functions  *functionCompiler
	contracts  *contractCompiler
	live       *attributeCompiler
	privacy    *privacyCompiler
	views      *viewCompiler
}

func newCompiler(doc *Document, snap *catalog.Snapshot) *compiler {
	names := &resolver{diagnostics: &diagnostics{}, doc: doc, snap: snap, tables: map[catalog.Name]*policyTable{}}
	rules := &ruleCompiler{resolver: names, ownAttributes: map[string]bool{}}
	graph := keyGraph{snap}
	indexes := indexComparisons{snap, graph}
	columns := &columnCompiler{names, rules, graph}
	leaks := &writeLeaks{names, rules, graph, indexes}
	return &compiler{
		resolver: names, rules: rules, columns: columns,
		writes:     &writeCompiler{names, rules, graph, leaks, &referrerLeaks{names, leaks, graph, indexes}},
		origins:    &originCompiler{names, graph},
		aggregates: &aggregateCompiler{names, rules},
		lifecycles: &lifecycleCompiler{names, columns, rules},
		functions:  &functionCompiler{names},
		contracts:  &contractCompiler{names, rules},
		live:       &attributeCompiler{names, rules},
		privacy:    &privacyCompiler{names},
		views:      &viewCompiler{resolver: names},
	}
}
