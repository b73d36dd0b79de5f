package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// checkRule finds redundant blocks in every list of a rule.
func (l *linter) checkRule(b block, relation *catalog.Relation) {
	switch b := b.(type) {
	case allBlock:
		l.checkAll(flatten(b, false), relation)
	case anyBlock:
		l.checkAny(flatten(b, true), relation)
	case notBlock:
		l.checkNot(b, relation)
	case consentBlock:
		l.checkSubjects(b, relation)
	}
}

func (l *linter) checkAll(parts []block, relation *catalog.Relation) {
	meanings := l.meaningTexts(parts, relation)
	for i, part := range parts {
		l.checkRule(part, relation)
		if _, isOpen := part.(openBlock); isOpen && len(parts) > 1 {
			l.warn(part.At(), "leave it out", "open adds nothing here: the other blocks still have to hold")
			continue
		}
		if j := slices.Index(meanings, meanings[i]); j < i {
			l.warn(part.At(), "leave one out", "this block says what the one at %d:%d says", parts[j].At().Line,
				parts[j].At().Column)
			continue
		}
		if alternatives, ok := part.(anyBlock); ok {
			for _, alternative := range flatten(alternatives, true) {
				if j := slices.Index(meanings, l.meaningText(alternative, relation)); j >= 0 {
					l.warn(part.At(), "leave it out",
						"any adds nothing here: one of its blocks is asked for anyway, at %d:%d", parts[j].At().Line, parts[j].At().Column)
					break
				}
			}
		}
		l.checkCoveredNot(part, parts, relation)
	}
}

// checkCoveredNot warns of `not: { status: … }` in a list that also requires another status of the same column, which
// implies it.
func (l *linter) checkCoveredNot(part block, parts []block, relation *catalog.Relation) {
	n, ok := part.(notBlock)
	if !ok {
		return
	}
	excluded, ok := n.part.(statusBlock)
	if !ok {
		return
	}
	for _, other := range parts {
		if s, ok := other.(statusBlock); ok && s.column == excluded.column && s.requiredWord != excluded.requiredWord {
			l.warn(part.At(), "leave it out", "%s.%s is %q anyway, by the block at %d:%d", relation.Name, s.column,
				s.requiredWord, other.At().Line, other.At().Column)
		}
	}
}

func (l *linter) checkAny(parts []block, relation *catalog.Relation) {
	meanings := l.meaningTexts(parts, relation)
	possible := slices.ContainsFunc(parts, func(part block) bool { return l.whyNever(part, relation) == nil })
	for i, part := range parts {
		l.checkRule(part, relation)
		if _, isOpen := part.(openBlock); isOpen && len(parts) > 1 {
			l.warn(part.At(), `write "rows: open" if that is meant, else take open out of any`,
				"open within any shows every row, whatever its other blocks say")
			continue
		}
		if w := l.whyNever(part, relation); w != nil && possible {
			l.warn(part.At(), "", "this part of any shows nothing: %s", w.text)
			continue
		}
		if j := slices.Index(meanings, meanings[i]); j < i {
			l.warn(part.At(), "leave one out", "this block says what the one at %d:%d says", parts[j].At().Line,
				parts[j].At().Column)
			continue
		}
		if narrower, ok := part.(allBlock); ok {
			for _, condition := range flatten(narrower, false) {
				if j := slices.Index(meanings, l.meaningText(condition, relation)); j >= 0 && j != i {
					l.warn(part.At(), "leave it out, or take the other out if this one is meant",
						"all adds nothing here: every row of it shows by the block at %d:%d", parts[j].At().Line, parts[j].At().Column)
					break
				}
			}
		}
	}
}

// checkNot warns of a negation that every row meets. If a word in it is misspelt, the negation shows rows that it
// should hide.
func (l *linter) checkNot(b notBlock, relation *catalog.Relation) {
	if b.part == nil {
		return
	}
	if w := l.whyNever(b.part, relation); w != nil {
		l.warn(b.At(), "", "this not excludes no row: %s", w.text)
	}
	if parts := flatten(b.part, true); len(parts) > 1 {
		for _, part := range parts {
			if w := l.whyNever(part, relation); w != nil {
				l.warn(part.At(), "", "this part excludes no row: %s", w.text)
			}
		}
	}
}

// checkSubjects warns of a consent block whose consent no subject can give.
func (l *linter) checkSubjects(b consentBlock, relation *catalog.Relation) {
	if w := l.whyRecordNever(b); w != nil && !l.alwaysHasSubject(b, relation) {
		l.warn(w.place, "", "only rows without anybody to ask show: %s", w.text)
	}
	n, ok := l.recompileBlock(b, relation).(predicate.Consent)
	if !ok || n.FirstRequired || len(n.Steps) == 0 {
		return
	}
	if w := l.whyNeverWord(b.requiredWordAt, n.Steps[len(n.Steps)-1].Relation, n.StatusColumn, n.AgreedStatus); w != nil {
		l.warn(w.place, "", "only rows without anybody to ask show: %s", w.text)
	}
}

func (l *linter) meaningTexts(parts []block, relation *catalog.Relation) []string {
	out := make([]string, 0, len(parts))
	for _, part := range parts {
		out = append(out, l.meaningText(part, relation))
	}
	return out
}
