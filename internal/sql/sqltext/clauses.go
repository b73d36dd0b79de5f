package sqltext

import (
	"math"
	"slices"

	"google.golang.org/protobuf/proto"
)

// Span is a part of a text, from the byte Start up to the byte End.
type Span struct{ Start, End int32 }

// Clauses are the places of FROM and WHERE in a text.
type Clauses struct {
	From            Span   // the items after FROM
	WhereConditions []Span // the conditions of WHERE that AND joins, in the order of the text
	WhereEnd        int32  // the end of the WHERE clause
}

// Clauses finds FROM and WHERE in a text that is a single SELECT without WITH and set operations. The second result is
// false if one of the clauses is missing. The search uses only words and parentheses, so the caller must check edits at
// these places with [ProveSameTree].
func (s *Source) Clauses() (Clauses, bool) {
	var out Clauses
	from, where, depth := -1, -1, 0
	for i := range s.Tokens {
		switch s.Tokens[i].Kind {
		case OpenParen, OpenBracket:
			depth++
		case CloseParen, CloseBracket:
			depth--
		}
		if depth != 0 || s.isLabel(i) {
			continue
		}
		switch kind := s.Tokens[i].Kind; {
		case kind == kwFrom && from < 0 && s.KindAt(i-1) != kwDistinct:
			from = i
		case kind == kwWhere && from >= 0 && where < 0:
			where = i
		case where >= 0 && slices.Contains([]TokenKind{
			kwGroup, kwHaving, kwWindow, kwOrder, kwLimit, kwOffset, kwFetch, kwFor, Semicolon}, kind):
			return out, s.findClauses(&out, from, where, i)
		}
	}
	return out, s.findClauses(&out, from, where, len(s.Tokens))
}

// WhereConditions finds the conditions that AND joins in the WHERE of a query, which may be a subquery. where is the
// tree of the WHERE condition. As for [Source.Clauses], the caller must check edits at these places with
// [ProveSameTree].
func (s *Source) WhereConditions(where *Node) ([]Span, bool) {
	first := s.TokenAt(firstLocation(where))
	for first >= 0 && (s.Tokens[first].Kind != kwWhere || s.isLabel(first)) {
		first--
	}
	if first < 0 {
		return nil, false
	}
	first++
	end, depth := first, 0
	for ; end < len(s.Tokens); end++ {
		switch s.Tokens[end].Kind {
		case OpenParen, OpenBracket:
			depth++
		case CloseParen, CloseBracket:
			depth--
		}
		if depth < 0 || depth == 0 && !s.isLabel(end) && slices.Contains(keywordsAfterWhere, s.Tokens[end].Kind) {
			break
		}
	}
	if end == first {
		return nil, false
	}
	return s.conjunctSpans(first, end), true
}

// keywordsAfterWhere are the keywords that may follow a WHERE.
var keywordsAfterWhere = []TokenKind{kwGroup, kwHaving, kwWindow, kwOrder, kwLimit, kwOffset, kwFetch, kwFor, kwUnion,
	kwIntersect, kwExcept, kwReturning, Semicolon}

// firstLocation returns the smallest location of the nodes of a tree.
func firstLocation(m proto.Message) int32 {
	first := int32(math.MaxInt32)
	Walk(m, func(m proto.Message) bool {
		r := m.ProtoReflect()
		if field := r.Descriptor().Fields().ByName("location"); field != nil && r.Get(field).Int() > 0 {
			first = min(first, int32(r.Get(field).Int()))
		}
		return true
	})
	return first
}

// isLabel tells whether a keyword is used as the name of a column.
func (s *Source) isLabel(i int) bool { return s.KindAt(i-1) == Dot || s.KindAt(i-1) == kwAs }

func (s *Source) findClauses(out *Clauses, from, where, end int) bool {
	if from < 0 || where < from+2 || end < where+2 {
		return false
	}
	out.From = Span{s.Tokens[from+1].Start, s.Tokens[where-1].End}
	out.WhereConditions = s.conjunctSpans(where+1, end)
	out.WhereEnd = s.Tokens[end-1].End
	return true
}

// conjunctSpans returns the conditions that AND joins between the tokens first and end. Parentheses around several
// conditions are not part of the results.
func (s *Source) conjunctSpans(first, end int) []Span {
	var ends []int // the indexes of the tokens AND, and the end
	depth, openCases, openBetweens := 0, 0, 0
	for i := first; i < end; i++ {
		switch s.Tokens[i].Kind {
		case OpenParen, OpenBracket:
			depth++
		case CloseParen, CloseBracket:
			depth--
		}
		if depth != 0 || s.isLabel(i) {
			continue
		}
		switch kind := s.Tokens[i].Kind; {
		case kind == kwCase:
			openCases++
		case kind == kwEnd:
			openCases--
		case openCases > 0:
		case kind == kwBetween:
			openBetweens++
		case kind == kwOr:
			return []Span{{s.Tokens[first].Start, s.Tokens[end-1].End}}
		case kind == kwAnd && openBetweens > 0:
			openBetweens--
		case kind == kwAnd:
			ends = append(ends, i)
		}
	}
	var out []Span
	for _, e := range append(ends, end) {
		if e <= first {
			return nil
		}
		if s.KindAt(first) == OpenParen && s.ClosingParen(first) == e-1 {
			if innerSpans := s.conjunctSpans(first+1, e-1); len(innerSpans) > 1 {
				out, first = append(out, innerSpans...), e+1
				continue
			}
		}
		out = append(out, Span{s.Tokens[first].Start, s.Tokens[e-1].End})
		first = e + 1
	}
	return out
}
