package sqltext

import (
	"math"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Span is a stretch of a text, in bytes.
type Span struct{ Start, End int32 }

// Clauses are those of a SELECT that say which rows it has.
type Clauses struct {
	From       Span   // behind the word
	Conditions []Span // of WHERE: those that AND joins, in their order
	End        int32  // of WHERE
}

// Clauses finds them in a text that is one SELECT with FROM and WHERE, without WITH and set operations. It goes by
// words and parentheses: what it says is to be proved (see [Prove]). False: there is none.
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
		case kind == kwFrom && from < 0 && s.Kind(i-1) != kwDistinct:
			from = i
		case kind == kwWhere && from >= 0 && where < 0:
			where = i
		case where >= 0 && slices.Contains([]TokenKind{
			kwGroup, kwHaving, kwWindow, kwOrder, kwLimit, kwOffset, kwFetch, kwFor, Semicolon}, kind):
			return out, s.clauses(&out, from, where, i)
		}
	}
	return out, s.clauses(&out, from, where, len(s.Tokens))
}

// Joined finds the conditions that AND joins in the WHERE of a query, wherever it stands in the text, by its tree. As
// with [Source.Clauses], what it says is to be proved.
func (s *Source) Joined(where *Node) ([]Span, bool) {
	first := s.At(leftmost(where.ProtoReflect()))
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
		if depth < 0 || depth == 0 && !s.isLabel(end) && slices.Contains(afterWhere, s.Tokens[end].Kind) {
			break
		}
	}
	if end == first {
		return nil, false
	}
	return s.joined(first, end), true
}

// afterWhere are the words that may follow a WHERE.
var afterWhere = []TokenKind{kwGroup, kwHaving, kwWindow, kwOrder, kwLimit, kwOffset, kwFetch, kwFor, kwUnion,
	kwIntersect, kwExcept, kwReturning, Semicolon}

// leftmost is where the first of the nodes of a tree stands that say where they do.
func leftmost(m protoreflect.Message) int32 {
	first := int32(math.MaxInt32)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList():
			if f.Message() != nil {
				for i := range v.List().Len() {
					first = min(first, leftmost(v.List().Get(i).Message()))
				}
			}
		case f.Message() != nil:
			first = min(first, leftmost(v.Message()))
		case f.Name() == "location" && v.Int() > 0:
			first = min(first, int32(v.Int()))
		}
		return true
	})
	return first
}

// isLabel tells whether a keyword is the name of a column.
func (s *Source) isLabel(i int) bool { return s.Kind(i-1) == Dot || s.Kind(i-1) == kwAs }

func (s *Source) clauses(out *Clauses, from, where, end int) bool {
	if from < 0 || where < from+2 || end < where+2 {
		return false
	}
	out.From = Span{s.Tokens[from+1].Start, s.Tokens[where-1].End}
	out.Conditions = s.joined(where+1, end)
	out.End = s.Tokens[end-1].End
	return true
}

// joined are the conditions that AND joins in a stretch of tokens, also those in parentheses around more than one.
func (s *Source) joined(first, end int) []Span {
	var ends []int // the tokens AND, and the end
	depth, cases, between := 0, 0, 0
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
			cases++
		case kind == kwEnd:
			cases--
		case cases > 0:
		case kind == kwBetween:
			between++
		case kind == kwOr:
			return []Span{{s.Tokens[first].Start, s.Tokens[end-1].End}}
		case kind == kwAnd && between > 0:
			between--
		case kind == kwAnd:
			ends = append(ends, i)
		}
	}
	var out []Span
	for _, e := range append(ends, end) {
		if e <= first {
			return nil
		}
		if s.Kind(first) == OpenParen && s.Closing(first) == e-1 {
			if inner := s.joined(first+1, e-1); len(inner) > 1 {
				out, first = append(out, inner...), e+1
				continue
			}
		}
		out = append(out, Span{s.Tokens[first].Start, s.Tokens[e-1].End})
		first = e + 1
	}
	return out
}
