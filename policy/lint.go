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
	l.found = append(l.found, p.warnings...)
	for _, name := range c.order {
		t := c.tables[name]
		if w := l.table(name); w != nil {
			l.warn(w.place, "", "agents see no row of %s: %s", name, w.text)
		}
		l.rule(t.decl.rows, t.relation)
		l.taken(t)
		l.uninherited(t)
		l.deletes(t)
		l.parts(t)
	}
	l.origins()
	l.allIndexes()
	l.unlisted()
	l.functions()
	l.operators()
	l.triggers()
	l.agents()
	return l.sorted(), nil
}

func newLinter(c *compiler, p *Policy, around LintContext) *linter {
	return &linter{compiler: c, policy: p, around: around, never: map[catalog.Name]*why{}, indexed: map[string]bool{},
		said: map[Error]bool{}}
}

func (l *linter) sorted() []*Error {
	slices.SortStableFunc(l.found, func(a, b *Error) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return l.found
}

type linter struct {
	*compiler
	policy  *Policy
	around  LintContext
	never   map[catalog.Name]*why // of the tables that were asked about
	indexed map[string]bool       // statements that were proposed
	found   []*Error
	said    map[Error]bool
}

// why is the reason that a rule never holds.
type why struct {
	place
	text string
}

// warn says a thing once.
func (l *linter) warn(at place, suggestion, format string, args ...any) {
	w := at.Errorf(suggestion, format, args...)
	if !l.said[*w] {
		l.said[*w] = true
		l.found = append(l.found, w)
	}
}

// node is what a block means. The policy compiles, so that nothing new can go wrong.
func (l *linter) node(b block, row *catalog.Relation) predicate.Node {
	errs, warnings := l.errs, l.warnings
	defer func() { l.errs, l.warnings = errs, warnings }()
	return l.block(b, row)
}

// meaning is equal for blocks that mean the same.
func (l *linter) meaning(b block, row *catalog.Relation) string {
	return predicate.Check(l.node(b, row), row)
}

// flat are the parts of nested lists of all, or of any.
func flat(b block, any bool) []block {
	var parts []block
	switch b := b.(type) {
	case allBlock:
		if any {
			return []block{b}
		}
		parts = b.parts
	case anyBlock:
		if !any {
			return []block{b}
		}
		parts = b.parts
	default:
		return []block{b}
	}
	var out []block
	for _, part := range parts {
		out = append(out, flat(part, any)...)
	}
	return out
}

// table returns why no row of a table can ever show; nil if some may.
func (l *linter) table(name catalog.Name) *why {
	if w, ok := l.never[name]; ok {
		return w
	}
	l.never[name] = nil // circles are refused before
	t := l.tables[name]
	l.never[name] = l.impossible(t.decl.rows, t.relation)
	return l.never[name]
}
