package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// LintContext has facts besides the document and the catalog on which warnings depend. The zero value has no such
// facts.
type LintContext struct {
	// the attributes of each agent's credential, by the agent's name; nil: not known
	Agents          map[string]map[string]string
	TokenAttributes map[string][]string   // the attributes that an agent's tokens may give, by the agent's name
	Grants          []catalog.Grant       // the rights that agents have in the database
	FunctionUses    []catalog.FunctionUse // the relations that functions read and write, as far as they are known
	// tells whether pgconsent does not know an operator, so that it refuses statements with the operator's name; nil: this
	// is not known
	IsUnknownOperator func(*catalog.Operator) bool

	Triggers []catalog.Trigger        // triggers that run with the rights of the writing role
	Defaults []catalog.DefinerDefault // column defaults that call a SECURITY DEFINER function
}

// Lint returns warnings about a policy that compiles, in the order of the files. They are about rules that no row can
// meet, redundant blocks, missing indexes, and relations that the policy does not list. None of these mistakes shows
// rows to agents: if a policy contradicts itself, rows stay hidden. Its error is the error of [Compile].
func Lint(doc *Document, snap *catalog.Snapshot, context LintContext, options ...Option) ([]*Error, error) {
	c, p, err := compileDocument(doc, snap, options)
	if err != nil {
		return nil, err
	}
	l := newLinter(c, p, context)
	l.findings = append(l.findings, p.warnings...)
	for _, name := range c.tableOrder {
		t := c.tables[name]
		if w := l.whyTableHidden(name); w != nil && t.decl.noRows == nil {
			l.warn(w.place, "", "agents see no row of %s: %s", name, w.text)
		}
		l.checkRule(t.decl.rows, t.relation)
		l.checkAggregate(t)
		l.checkInherit(t)
		l.checkDeletes(t)
		l.checkParts(t)
	}
	l.checkAttributes()
	l.checkIndexes()
	l.checkUnlisted()
	l.checkFunctions()
	l.checkOperators()
	l.checkTriggers()
	l.checkAgents()
	return l.sorted(), nil
}

func newLinter(c *compiler, p *Policy, context LintContext) *linter {
	return &linter{resolver: c.resolver, rules: c.rules, policy: p, context: context,
		neverShows: map[catalog.Name]*neverReason{}, proposedIndexes: map[string]bool{}, reportedErrors: map[Error]bool{}}
}

// sorted returns the warnings in the order of their places.
func (l *linter) sorted() []*Error {
	slices.SortStableFunc(l.findings, func(a, b *Error) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return l.findings
}

// linter finds parts of a policy that are allowed but probably mistakes.
type linter struct {
	*resolver
	rules   *ruleCompiler
	policy  *Policy
	context LintContext
	// for each table, why agents never see a row of it; nil: they may see some
	neverShows      map[catalog.Name]*neverReason
	proposedIndexes map[string]bool // the CREATE INDEX statements that were proposed already
	findings        []*Error
	reportedErrors  map[Error]bool
}

// neverReason says why no row can meet a rule, and at which place of the policy.
type neverReason struct {
	place
	text string
}

// warn reports a warning, unless the same warning was reported before.
func (l *linter) warn(position place, suggestion, format string, args ...any) {
	w := position.Errorf(suggestion, format, args...)
	if !l.reportedErrors[*w] {
		l.reportedErrors[*w] = true
		l.findings = append(l.findings, w)
	}
}

// recompileBlock compiles a block again. The whole policy has compiled, so its errors and warnings were reported
// already.
func (l *linter) recompileBlock(b block, row *catalog.Relation) predicate.Node {
	errs, warnings := l.errs, l.warnings
	defer func() { l.errs, l.warnings = errs, warnings }()
	return l.rules.compileBlock(b, row)
}

// meaningText returns a text that is equal for two blocks with the same meaning.
func (l *linter) meaningText(b block, row *catalog.Relation) string {
	return predicate.CheckSQL(l.recompileBlock(b, row), row)
}

// whyTableHidden returns why agents never see a row of a table; nil: they may see some.
func (l *linter) whyTableHidden(name catalog.Name) *neverReason {
	if w, ok := l.neverShows[name]; ok {
		return w
	}
	l.neverShows[name] = nil // the entry ends the recursion; Compile refuses rules that depend on each other
	t := l.tables[name]
	l.neverShows[name] = l.whyNever(t.decl.rows, t.relation)
	return l.neverShows[name]
}
