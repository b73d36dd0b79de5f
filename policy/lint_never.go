package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// whyNever returns why a block holds for no row; nil: it may hold for some.
func (l *linter) whyNever(b block, row *catalog.Relation) *reason {
	switch b := b.(type) {
	case allBlock:
		parts := flatten(b, false)
		for _, part := range parts {
			if w := l.whyNever(part, row); w != nil {
				return w
			}
		}
		return l.whyContradiction(parts, row)
	case anyBlock:
		var first *reason
		for _, part := range b.parts {
			w := l.whyNever(part, row)
			if w == nil {
				return nil
			}
			if first == nil {
				first = w
			}
		}
		return first
	case noneBlock:
		return &reason{b.At(), "rows: none lets no row show"}
	case notBlock:
		if l.alwaysHolds(b.part, row) {
			return &reason{b.At(), "what stands under not holds for every row"}
		}
	case visibleBlock:
		if target, ok := l.meaningOf(b, row).(predicate.Visible); ok && b.rows != nil {
			if w := l.whyNever(allBlock{place: b.place, parts: b.rows}, target.Relation); w != nil {
				return w
			}
		} else if ok {
			if w := l.whyTableHidden(target.Relation.Name); w != nil {
				return &reason{b.At(), fmt.Sprintf("no row of %s shows", target.Relation.Name)}
			}
		}
	case sharedBlock:
		if w := l.whySharedNever(b, row); w != nil {
			return w
		}
	case consentBlock:
		if w := l.whyRecordNever(b); w != nil && l.alwaysHasSubject(b, row) {
			return w
		}
		if n, ok := l.meaningOf(b, row).(predicate.Consent); ok && n.FirstRequired {
			if w := l.whyNeverWord(b.isAt, n.Steps[len(n.Steps)-1].Relation, n.Status, n.Is); w != nil {
				return w
			}
		}
	}
	return l.whyFactsFail(b, row)
}

// alwaysHolds tells whether a block holds for every row, if its columns are not NULL.
func (l *linter) alwaysHolds(b block, row *catalog.Relation) bool {
	holds := func(part block) bool { return l.alwaysHolds(part, row) }
	switch b := b.(type) {
	case openBlock:
		return true
	case allBlock:
		return !slices.ContainsFunc(b.parts, func(part block) bool { return !holds(part) })
	case anyBlock:
		return slices.ContainsFunc(b.parts, holds)
	case notBlock:
		return l.whyNever(b.part, row) != nil
	}
	return false
}

// fact says about a column that it is a word, is not a word, or is NULL.
type fact struct {
	place
	column, word string
	not, null    bool
}

// factsOf returns the facts that a conjunction of conditions states, as far as the linter understands them.
func (l *linter) factsOf(b block, row *catalog.Relation) []fact {
	switch b := b.(type) {
	case statusBlock:
		return []fact{{place: b.isAt, column: b.column, word: b.is}}
	case sharedBlock:
		if b.active != "" {
			return []fact{{place: b.activeAt, column: b.active, word: "true"}}
		}
	case notBlock:
		if s, ok := b.part.(statusBlock); ok {
			return []fact{{place: b.place, column: s.column, word: s.is, not: true}}
		}
	case sqlBlock:
		if n, ok := l.meaningOf(b, row).(predicate.SQL); ok {
			return expressionFacts(b.place, n.Expr)
		}
	}
	return nil
}

func expressionFacts(at place, e predicate.Expr) []fact {
	switch e := e.(type) {
	case predicate.And:
		var out []fact
		for _, part := range e {
			out = append(out, expressionFacts(at, part)...)
		}
		return out
	case predicate.Compare:
		column, ok := e.A.(predicate.Column)
		value, constant := e.B.(predicate.Const)
		if !ok || !constant {
			column, ok = e.B.(predicate.Column)
			value, constant = e.A.(predicate.Const)
		}
		if ok && constant && column.Kind == predicate.Text && (e.Op == "=" || e.Op == "<>") {
			return []fact{{place: at, column: column.Name, word: value.Value, not: e.Op == "<>"}}
		}
	case predicate.Test:
		if column, ok := e.A.(predicate.Column); ok && e.Is == "NULL" {
			return []fact{{place: at, column: column.Name, null: true}}
		}
	}
	return nil
}

// whyFactsFail returns why the facts that a block states cannot hold.
func (l *linter) whyFactsFail(b block, row *catalog.Relation) *reason {
	facts := l.factsOf(b, row)
	for _, f := range facts {
		column := row.Column(f.column)
		switch {
		case column == nil || f.not:
		case f.null && column.NotNull:
			return &reason{f.place, fmt.Sprintf("%s.%s is NOT NULL", row.Name, f.column)}
		case !f.null:
			if w := l.whyNeverWord(f.place, row, f.column, f.word); w != nil {
				return w
			}
		}
	}
	return contradictingFacts(facts, row)
}

// whyNeverWord returns why a column never holds a word.
func (l *linter) whyNeverWord(at place, r *catalog.Relation, name, word string) *reason {
	column := r.Column(name)
	if column == nil {
		return nil
	}
	values := column.AllowedValues
	if t := l.snap.TypeByOID(column.TypeOID); t != nil && t.Kind == 'e' {
		values = t.Labels
	}
	if len(values) == 0 || slices.Contains(values, word) {
		return nil
	}
	hint := ""
	if near := closest(word, values); near != "" {
		hint = " (" + near + ")"
	}
	return &reason{at, fmt.Sprintf("%s.%s is never %q: it holds %s only%s", r.Name, name, word, quotedList(values), hint)}
}

func quotedList(words []string) string {
	out := make([]string, 0, len(words))
	for _, w := range words {
		out = append(out, quote(w))
	}
	return strings.Join(out, ", ")
}

// whyContradiction looks for two blocks of a list that exclude each other.
func (l *linter) whyContradiction(parts []block, row *catalog.Relation) *reason {
	var facts []fact
	for i, part := range parts {
		facts = append(facts, l.factsOf(part, row)...)
		for _, other := range parts[:i] {
			if l.negates(part, other, row) || l.negates(other, part, row) {
				return &reason{part.At(), fmt.Sprintf("it is asked for and excluded, at %d:%d and here", other.At().Line,
					other.At().Column)}
			}
		}
	}
	return contradictingFacts(facts, row)
}

// negates tells whether block a is the negation of block b.
func (l *linter) negates(a, b block, row *catalog.Relation) bool {
	n, ok := a.(notBlock)
	return ok && n.part != nil && l.meaningText(n.part, row) == l.meaningText(b, row)
}

func contradictingFacts(facts []fact, row *catalog.Relation) *reason {
	for i, f := range facts {
		for _, g := range facts[:i] {
			if f.column != g.column {
				continue
			}
			name := row.Name.String() + "." + f.column
			switch {
			case f.null && g.null:
			case f.null || g.null:
				return &reason{f.place, fmt.Sprintf("%s cannot be NULL and be compared with a word as well", name)}
			case f.not != g.not && f.word == g.word:
				return &reason{f.place, fmt.Sprintf("%s is asked to be %q and not to be", name, f.word)}
			case !f.not && !g.not && f.word != g.word:
				return &reason{f.place, fmt.Sprintf("%s cannot be %q and %q at once", name, g.word, f.word)}
			}
		}
	}
	return nil
}
