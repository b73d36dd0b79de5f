package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Option changes what [Compile] does.
type Option func(*compiler)

// WithViews passes to [Compile] the function that rewrites the queries of views: rewrite.RewriteViewQuery, which this
// package cannot import. Without it, policies with views do not compile.
func WithViews(define ViewRewriter) Option { return func(c *compiler) { c.views.rewriteView = define } }

// Compile checks a document against the catalog of a database and returns the policy. Its error has the type [Errors].
func Compile(doc *Document, snap *catalog.Snapshot, options ...Option) (*Policy, error) {
	_, p, err := compileDocument(doc, snap, options)
	return p, err
}

// compileDocument does the same as [Compile]. It also returns the compiler, which knows what each part of the document
// means.
func compileDocument(doc *Document, snap *catalog.Snapshot, options []Option) (*compiler, *Policy, error) {
	c := newCompiler(doc, snap)
	for _, option := range options {
		option(c)
	}
	p := &Policy{tableIndex: map[catalog.Name]*Table{}, functionIndex: map[catalog.Name]*Function{}}
	for _, phase := range []func(*Policy){c.compileTables, c.compileContracts, c.compileServices, c.compileViews} {
		if phase(p); len(c.errs) > 0 {
			return c, nil, c.sortedErrors()
		}
	}
	p.warnings, p.withheldWrites, p.disclosures = c.warnings, c.withheldWrites, c.disclosures
	p.version = p.meaningHash()
	return c, p, nil
}

// compileTables compiles attributes, limits, tables and functions.
func (c *compiler) compileTables(p *Policy) {
	for _, a := range c.doc.attributes {
		p.attributes = append(p.attributes, a.Attribute)
	}
	slices.SortFunc(p.attributes, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
	c.attributes = p.attributes

	p.limits = c.compileLimits()
	p.reminder = c.checkReminder()
	p.operatorExtensions = c.compileOperators(c.doc.operatorExtensions)
	p.channels = c.compileChannels(c.doc.channels)
	c.declareTables()
	for _, name := range c.tableOrder {
		rows := c.rules.tableRule(name)
		t := c.tables[name]
		p.tables = append(p.tables, &Table{Relation: t.relation, Rows: rows, Rule: t.rule,
			Columns: c.columns.compile(t.decl, t.relation), AuditKeys: c.auditsKeys(t.decl, t.relation),
			Approximate: t.decl.approximate})
	}
	for _, t := range p.tables { // columns and writes need the compiled rules of all tables
		decl := c.tables[t.Relation.Name].decl
		t.Write = c.writes.compile(c.tables[t.Relation.Name])
		t.Aggregate = c.aggregates.compile(decl.aggregate, t)
		t.Lifecycle = c.lifecycles.compile(decl.lifecycle, t)
	}
	p.clearAffectsOtherRules()
	c.origins.checkWrites(p.tables)
	for _, decl := range c.doc.functions {
		f := c.functions.compile(decl)
		if f == nil {
			continue
		}
		if p.functionIndex[f.Name] != nil {
			c.fail(decl.place, "", "function %s is there twice", f.Name)
		}
		c.functions.compileReads(decl, f)
		c.functions.compileTool(p, decl, f)
		p.functions = append(p.functions, f)
		p.functionIndex[f.Name] = f
	}
}

// compileContracts compiles the contracts, which add conditions to the rules of tables. Afterwards it removes the rules
// of tables with `observe: true`.
func (c *compiler) compileContracts(p *Policy) {
	slices.SortFunc(p.tables, func(a, b *Table) int { return compareNames(a.Relation.Name, b.Relation.Name) })
	slices.SortFunc(p.functions, func(a, b *Function) int { return compareNames(a.Name, b.Name) })
	p.indexTables()
	c.live.findAuditAttributes(p)
	c.contracts.compile(p)
	c.openObserved(p)
	p.indexTables()
}

// compileServices compiles what agents reach by the HTTP API and MCP besides SQL.
func (c *compiler) compileServices(p *Policy) {
	p.privacy = c.privacy.compile(p)
	p.sources = c.compileSources(p)
}

// compileViews compiles what needs all tables to be compiled: partitions, lifecycles, live attributes and views.
func (c *compiler) compileViews(p *Policy) {
	p.children = c.findChildren(p)
	p.derivations = c.rules.findDerivations()
	p.cascades = c.lifecycles.findCascades(p)
	p.live, p.attributeExpressions = c.live.compile(), map[string]string{}
	for _, a := range c.doc.attributes {
		if a.sql != nil {
			p.attributeExpressions[a.Name] = a.sql.text
		}
	}
	for _, decl := range c.doc.views {
		c.views.compile(p, decl)
	}
}

func (p *Policy) indexTables() {
	for _, t := range p.tables {
		p.tableIndex[t.Relation.Name] = t
	}
}

// compiler runs the phases of a compilation. Each phase has a type of its own.
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
	leaks := &writeLeakChecker{names, rules, graph, indexes}
	return &compiler{
		resolver: names, rules: rules, columns: columns,
		writes:     &writeCompiler{names, rules, graph, leaks, &referrerLeakChecker{names, leaks, graph, indexes}},
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
