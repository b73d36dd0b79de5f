package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// LintContext are what a policy meets besides the catalog. The zero value knows nothing of them.
type LintContext struct {
	Agents          map[string]map[string]string // the attributes of the database's agents, by name; nil: not known
	TokenAttributes map[string][]string          // the attributes that an agent's tokens may give besides
	Grants          []catalog.Grant              // what agents may do in the database past a policy
	FunctionUses    []catalog.Use                // what functions read, as far as it is known
	UnknownOperator func(*catalog.Operator) bool // tells of an operator whether it closes its name; nil: not known

	Triggers []catalog.Trigger // those that run with the rights of whoever writes
	Defaults []catalog.Default // those that run with somebody else's
}

// Lint returns what is allowed and unwise in a policy that compiles, in the order of the files: rules that never hold,
// that say more than they need to or less than they seem to, indexes that are missing, relations that were forgotten.
// None of it opens anything: where a policy contradicts itself, the rows stay hidden. An error is that of [Compile].
func Lint(doc *Document, snap *catalog.Snapshot, around LintContext, options ...Option) ([]*Error, error) {
	c, p, err := compile(doc, snap, options)
	if err != nil {
		return nil, err
	}
	l := newLinter(c, p, around)
	l.findings = append(l.findings, p.warnings...)
	for _, name := range c.order {
		t := c.tables[name]
		if w := l.whyTableHidden(name); w != nil {
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

func newLinter(c *compiler, p *Policy, around LintContext) *linter {
	return &linter{resolver: c.resolver, rules: c.rules, policy: p, context: around, neverShows: map[catalog.Name]*reason{}, proposed: map[string]bool{},
		reported: map[Error]bool{}}
}

func (l *linter) sorted() []*Error {
	slices.SortStableFunc(l.findings, func(a, b *Error) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return l.findings
}

type linter struct {
	*resolver
	rules      *ruleCompiler
	policy     *Policy
	context    LintContext
	neverShows map[catalog.Name]*reason // of the tables that were asked about
	proposed   map[string]bool          // statements that were proposed
	findings   []*Error
	reported   map[Error]bool
}

// reason is the reason that a rule never holds.
type reason struct {
	place
	text string
}

// warn says a thing once.
func (l *linter) warn(at place, suggestion, format string, args ...any) {
	w := at.Errorf(suggestion, format, args...)
	if !l.reported[*w] {
		l.reported[*w] = true
		l.findings = append(l.findings, w)
	}
}

// meaningOf is what a block means. The policy compiles, so that nothing new can go wrong.
func (l *linter) meaningOf(b block, row *catalog.Relation) predicate.Node {
	errs, warnings := l.errs, l.warnings
	defer func() { l.errs, l.warnings = errs, warnings }()
	return l.rules.compileBlock(b, row)
}

// meaningText is equal for blocks that mean the same.
func (l *linter) meaningText(b block, row *catalog.Relation) string {
	return predicate.Check(l.meaningOf(b, row), row)
}

// whyTableHidden returns why no row of a table can ever show; nil if some may.
func (l *linter) whyTableHidden(name catalog.Name) *reason {
	if w, ok := l.neverShows[name]; ok {
		return w
	}
	l.neverShows[name] = nil // circles are refused before
	t := l.tables[name]
	l.neverShows[name] = l.whyNever(t.decl.rows, t.relation)
	return l.neverShows[name]
}
