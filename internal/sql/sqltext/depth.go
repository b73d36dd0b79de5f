package sqltext

// The parser's output functions recurse once per level of the tree, in C, without a guard: 24,000 operators end the
// process. deepest bounds that depth from the tokens alone, before anything recurses.
//
// Nesting is counted, lists are not. Each parenthesis, bracket or CASE is a level. Inside it, every operator and
// keyword since the last separator may nest once: a chain such as 1+1+1 is a tree as deep as it is long, and a level
// that was closed before it lies below it. A separator begins a new stretch: a comma, AND and OR (flat lists in the
// tree; but not the AND of BETWEEN, behind which NOT can nest), WHEN, THEN and ELSE of a CASE. UNION, EXCEPT, INTERSECT
// and JOIN begin one too. Each of these also adds a level to all that follows in the same parentheses, because they
// nest to the left.

// level is one open parenthesis, bracket or CASE, or the statement itself.
type level struct {
	isCase  bool
	chain   int // set operations and joins: nest for the whole level
	stretch int // operators and keywords since the last separator
	child   int // the deepest closed level in this stretch
	deepest int // the deepest stretch so far
	between int // BETWEEN without its AND
}

func (l *level) separate() {
	l.deepest = max(l.deepest, l.stretch+l.child)
	l.stretch, l.child = 0, 0
}

func (l *level) depth() int {
	l.separate()
	return l.deepest + l.chain
}

// selectWeight is what a SELECT counts for: a sub-select takes several levels of the tree.
const selectWeight = 3

// deepest returns an upper bound of the depth of the tree, in expression nodes.
func deepest(tokens []Token) int {
	levels := make([]level, 1, 32)
	result, atomic := 0, false
	closeLevel := func() {
		depth := levels[len(levels)-1].depth()
		levels = levels[:len(levels)-1]
		top := &levels[len(levels)-1]
		top.child = max(top.child, depth+1)
	}
	var previous Token
	for i, t := range tokens {
		top := &levels[len(levels)-1]
		kind := t.Kind
		// A keyword after a dot or AS is a label: it separates nothing.
		if t.Keyword != 0 && (previous.Kind == Dot || previous.Kind == kwAs) && kind != kwSelect {
			kind = Ident
		}
		switch kind {
		case OpenParen, OpenBracket:
			levels = append(levels, level{})
		case kwCase:
			levels = append(levels, level{isCase: true})
		case CloseParen, CloseBracket:
			for top.isCase && len(levels) > 1 { // an unclosed CASE is a syntax error; count it all the same
				closeLevel()
				top = &levels[len(levels)-1]
			}
			if len(levels) > 1 {
				closeLevel()
			}
		case kwEnd:
			if top.isCase {
				closeLevel()
			} else {
				top.stretch++
			}
		case Comma:
			top.separate()
			top.between = 0
		case Semicolon:
			if len(levels) == 1 && !atomic {
				result = max(result, top.depth())
				levels[0] = level{}
			} else {
				top.separate()
			}
		case kwAtomic: // BEGIN ATOMIC nests statements without parentheses
			atomic = true
			top.chain++
		case kwBetween:
			top.between++
			top.stretch++
		case kwAnd:
			if top.between > 0 {
				top.between--
				top.stretch++
			} else {
				top.separate()
			}
		case kwOr:
			top.separate()
		case kwWhen, kwThen, kwElse:
			if top.isCase {
				top.separate()
			}
			top.stretch++
		case kwUnion, kwExcept, kwIntersect:
			top.chain++
			top.separate()
		case kwJoin:
			top.chain++
			if joins(previous) {
				top.separate()
			}
		case kwSelect:
			top.stretch += selectWeight
		case Ident, uident, Dot, fconst, Sconst, usconst, bconst, xconst, iconst, param:
			// names and constants nest nothing
		default:
			top.stretch++
		}
		previous = tokens[i]
	}
	for len(levels) > 1 {
		closeLevel()
	}
	return max(result, levels[0].depth())
}

// joins tells whether a JOIN after this token is the clause and not a function of that name.
func joins(previous Token) bool {
	switch previous.Kind {
	case Ident, uident, CloseParen, kwInner, kwLeft, kwRight, kwFull, kwOuter, kwCross, kwNatural:
		return true
	}
	return false
}
