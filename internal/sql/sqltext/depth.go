package sqltext

// The parser's output functions recurse once per level of the tree, in C, without a guard. So 24,000 operators end the
// process. maxTreeDepth bounds that depth from the tokens alone, before anything recurses.
//
// Nesting is counted, lists are not. Each parenthesis, bracket or CASE is a level. Inside it, every operator and
// keyword since the last separator may nest once. A chain such as 1+1+1 is a tree as deep as it is long, and a level
// that was closed before it lies below it. A separator begins a new stretch: a comma, AND and OR (flat lists in the
// tree; but not the AND of BETWEEN, behind which NOT can nest), WHEN, THEN and ELSE of a CASE. UNION, EXCEPT, INTERSECT
// and JOIN begin one too. Each of these also adds a level to all that follows in the same parentheses, because they
// nest to the left.

// nestingLevel is one open parenthesis, bracket or CASE, or the statement itself.
type nestingLevel struct {
	isCase            bool
	leftNestedClauses int // set operations and joins: nest for the whole level
	currentDepth      int // operators and keywords since the last separator
	childDepth        int // the deepest closed level in this stretch
	maxDepth          int // the deepest stretch so far
	openBetweens      int // BETWEEN without its AND
}

func (l *nestingLevel) startStretch() {
	l.maxDepth = max(l.maxDepth, l.currentDepth+l.childDepth)
	l.currentDepth, l.childDepth = 0, 0
}

func (l *nestingLevel) depth() int {
	l.startStretch()
	return l.maxDepth + l.leftNestedClauses
}

// selectWeight is how many levels a SELECT counts as: a subquery adds several levels to the tree.
const selectWeight = 3

// maxTreeDepth returns an upper bound of the depth of the tree, in expression nodes.
func maxTreeDepth(tokens []Token) int {
	levels := make([]nestingLevel, 1, 32)
	result, atomic := 0, false
	closeLevel := func() {
		depth := levels[len(levels)-1].depth()
		levels = levels[:len(levels)-1]
		top := &levels[len(levels)-1]
		top.childDepth = max(top.childDepth, depth+1)
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
			levels = append(levels, nestingLevel{})
		case kwCase:
			levels = append(levels, nestingLevel{isCase: true})
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
				top.currentDepth++
			}
		case Comma:
			top.startStretch()
			top.openBetweens = 0
		case Semicolon:
			if len(levels) == 1 && !atomic {
				result = max(result, top.depth())
				levels[0] = nestingLevel{}
			} else {
				top.startStretch()
			}
		case kwAtomic: // BEGIN ATOMIC nests statements without parentheses
			atomic = true
			top.leftNestedClauses++
		case kwBetween:
			top.openBetweens++
			top.currentDepth++
		case kwAnd:
			if top.openBetweens > 0 {
				top.openBetweens--
				top.currentDepth++
			} else {
				top.startStretch()
			}
		case kwOr:
			top.startStretch()
		case kwWhen, kwThen, kwElse:
			if top.isCase {
				top.startStretch()
			}
			top.currentDepth++
		case kwUnion, kwExcept, kwIntersect:
			top.leftNestedClauses++
			top.startStretch()
		case kwJoin:
			top.leftNestedClauses++
			if isJoinClause(previous) {
				top.startStretch()
			}
		case kwSelect:
			top.currentDepth += selectWeight
		case Ident, unicodeIdent, Dot, floatConst, Sconst, unicodeStringConst, bitConst, hexConst, integerConst, paramToken:
			// names and constants nest nothing
		default:
			top.currentDepth++
		}
		previous = tokens[i]
	}
	for len(levels) > 1 {
		closeLevel()
	}
	return max(result, levels[0].depth())
}

// isJoinClause tells whether a JOIN after this token is the clause and not a function of that name.
func isJoinClause(previous Token) bool {
	switch previous.Kind {
	case Ident, unicodeIdent, CloseParen, kwInner, kwLeft, kwRight, kwFull, kwOuter, kwCross, kwNatural:
		return true
	}
	return false
}
