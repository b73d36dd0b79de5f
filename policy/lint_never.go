package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// whyNever returns why no row can meet a block; nil: some row may.
func (l *linter) whyNever(b block, row *catalog.Relation) *neverReason {
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
		var first *neverReason
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
		return &neverReason{b.At(), "rows: none lets no row show"}
	case notBlock:
		if l.alwaysHolds(b.part, row) {
			return &neverReason{b.At(), "what stands under not holds for every row"}
		}
	case visibleBlock:
		if target, ok := l.recompileBlock(b, row).(predicate.Visible); ok && b.rows != nil {
			if w := l.whyNever(allBlock{place: b.place, parts: b.rows}, target.Relation); w != nil {
				return w
			}
		} else if ok {
			if w := l.whyTableHidden(target.Relation.Name); w != nil {
				return &neverReason{b.At(), fmt.Sprintf("no row of %s shows", target.Relation.Name)}
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
		if n, ok := l.recompileBlock(b, row).(predicate.Consent); ok && n.FirstRequired {
			if w := l.whyNeverWord(b.requiredWordAt, n.Steps[len(n.Steps)-1].Relation, n.StatusColumn,
				n.AgreedStatus); w != nil {
				return w
			}
		}
	}
	return l.whyFactsFail(b, row)
}

// alwaysHolds tells whether every row meets a block, unless a column in it is NULL.
func (l *linter) alwaysHolds(b block, row *catalog.Relation) bool {
	alwaysHolds := func(part block) bool { return l.alwaysHolds(part, row) }
	switch b := b.(type) {
	case openBlock:
		return true
	case allBlock:
		return !slices.ContainsFunc(b.parts, func(part block) bool { return !alwaysHolds(part) })
	case anyBlock:
		return slices.ContainsFunc(b.parts, alwaysHolds)
	case notBlock:
		return l.whyNever(b.part, row) != nil
	}
	return false
}

// columnFact says that a column is a certain word, is not that word, or is NULL.
type columnFact struct {
	place
	column, word      string
	isNegated, isNull bool
}

// factsOf returns what is certain about columns of rows that meet all of the conditions, as far as the linter
// understands them.
func (l *linter) factsOf(b block, row *catalog.Relation) []columnFact {
	switch b := b.(type) {
	case statusBlock:
		return []columnFact{{place: b.requiredWordAt, column: b.column, word: b.requiredWord}}
	case sharedBlock:
		if b.active != "" {
			return []columnFact{{place: b.activeAt, column: b.active, word: "true"}}
		}
	case notBlock:
		if s, ok := b.part.(statusBlock); ok {
			return []columnFact{{place: b.place, column: s.column, word: s.requiredWord, isNegated: true}}
		}
	case sqlBlock:
		if n, ok := l.recompileBlock(b, row).(predicate.SQL); ok {
			return expressionFacts(b.place, n.Expr)
		}
	}
	return nil
}

func expressionFacts(position place, e predicate.Expr) []columnFact {
	switch e := e.(type) {
	case predicate.And:
		var out []columnFact
		for _, part := range e {
			out = append(out, expressionFacts(position, part)...)
		}
		return out
	case predicate.Comparison:
		column, ok := e.Left.(predicate.Column)
		value, constant := e.Right.(predicate.Constant)
		if !ok || !constant {
			column, ok = e.Right.(predicate.Column)
			value, constant = e.Left.(predicate.Constant)
		}
		if ok && constant && column.Kind == predicate.Text && (e.Op == "=" || e.Op == "<>") {
			return []columnFact{{place: position, column: column.Name, word: value.Value, isNegated: e.Op == "<>"}}
		}
	case predicate.IsTest:
		if column, ok := e.Operand.(predicate.Column); ok && e.Keyword == "NULL" {
			return []columnFact{{place: position, column: column.Name, isNull: true}}
		}
	}
	return nil
}

// whyFactsFail returns why no row can have the column values that a block requires; nil: some row may.
func (l *linter) whyFactsFail(b block, row *catalog.Relation) *neverReason {
	facts := l.factsOf(b, row)
	for _, f := range facts {
		column := row.Column(f.column)
		switch {
		case column == nil || f.isNegated:
		case f.isNull && column.NotNull:
			return &neverReason{f.place, fmt.Sprintf("%s.%s is NOT NULL", row.Name, f.column)}
		case !f.isNull:
			if w := l.whyNeverWord(f.place, row, f.column, f.word); w != nil {
				return w
			}
		}
	}
	return contradictingFacts(facts, row)
}

// whyNeverWord returns why a column can never contain a word; nil: it can.
func (l *linter) whyNeverWord(position place, r *catalog.Relation, name, word string) *neverReason {
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
	return &neverReason{position, fmt.Sprintf("%s.%s is never %q: it holds %s only%s", r.Name, name, word,
		quotedList(values), hint)}
}

func quotedList(words []string) string {
	out := make([]string, 0, len(words))
	for _, w := range words {
		out = append(out, quoteName(w))
	}
	return strings.Join(out, ", ")
}

// whyContradiction finds two blocks of a list that no row can meet together.
func (l *linter) whyContradiction(parts []block, row *catalog.Relation) *neverReason {
	var facts []columnFact
	for i, part := range parts {
		facts = append(facts, l.factsOf(part, row)...)
		for _, other := range parts[:i] {
			if l.excludesEachOther(part, other, row) || l.excludesEachOther(other, part, row) {
				return &neverReason{part.At(), fmt.Sprintf("it is asked for and excluded, at %d:%d and here", other.At().Line,
					other.At().Column)}
			}
		}
	}
	return contradictingFacts(facts, row)
}

// excludesEachOther tells whether block a is the negation of block b.
func (l *linter) excludesEachOther(a, b block, row *catalog.Relation) bool {
	n, ok := a.(notBlock)
	return ok && n.part != nil && l.meaningText(n.part, row) == l.meaningText(b, row)
}

func contradictingFacts(facts []columnFact, row *catalog.Relation) *neverReason {
	for i, f := range facts {
		for _, g := range facts[:i] {
			if f.column != g.column {
				continue
			}
			name := row.Name.String() + "." + f.column
			switch {
			case f.isNull && g.isNull:
			case f.isNull || g.isNull:
				return &neverReason{f.place, fmt.Sprintf("%s cannot be NULL and be compared with a word as well", name)}
			case f.isNegated != g.isNegated && f.word == g.word:
				return &neverReason{f.place, fmt.Sprintf("%s is asked to be %q and not to be", name, f.word)}
			case !f.isNegated && !g.isNegated && f.word != g.word:
				return &neverReason{f.place, fmt.Sprintf("%s cannot be %q and %q at once", name, g.word, f.word)}
			}
		}
	}
	return nil
}
