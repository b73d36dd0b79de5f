package sqltext

// The parser's output functions, written in C, call themselves for each level of the tree, without a depth limit. So a
// text with 24,000 operators crashes the process. maxTreeDepth bounds the depth of the tree from the tokens alone,
// before the parser runs.
//
// Nested constructs are counted, and lists are not. Each parenthesis, bracket or CASE opens a level. Inside a level,
// every operator and keyword since the last separator may add one to the depth. A chain such as 1+1+1 makes a tree as
// deep as the chain is long, with any closed level below it. A separator starts the count anew. Separators are commas,
// WHEN, THEN and ELSE of a CASE, and AND and OR, which are flat lists in the tree. The AND of BETWEEN is none, since
// NOT can nest after it. UNION, EXCEPT, INTERSECT and JOIN also start the count anew. But each of them adds a level to
// everything after it in the same parentheses, because they nest to the left.

// nestingLevel is one open parenthesis, bracket or CASE, or the statement itself.
type nestingLevel struct {
	isCase            bool
	leftNestedClauses int // set operations and joins, each of which adds a level to the rest
	currentDepth      int // operators and keywords since the last separator
	childDepth        int // the largest depth of a closed level since the last separator
	maxDepth          int // the largest depth between two separators so far
	openBetweens      int // number of BETWEEN whose AND has not come yet
}

func (l *nestingLevel) startStretch() {
	l.maxDepth = max(l.maxDepth, l.currentDepth+l.childDepth)
	l.currentDepth, l.childDepth = 0, 0
}

func (l *nestingLevel) depth() int {
	l.startStretch()
	return l.maxDepth + l.leftNestedClauses
}

// selectWeight is the number of levels that a SELECT counts as, since a subquery adds several levels to the tree.
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
		// A keyword after a dot or AS is a label, and no separator.
		if t.Keyword != 0 && (previous.Kind == Dot || previous.Kind == kwAs) && kind != kwSelect {
			kind = Ident
		}
		switch kind {
		case OpenParen, OpenBracket:
			levels = append(levels, nestingLevel{})
		case kwCase:
			levels = append(levels, nestingLevel{isCase: true})
		case CloseParen, CloseBracket:
			// a CASE without END is a syntax error, but its depth counts, since the parser reads it first
			for top.isCase && len(levels) > 1 {
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
			// names and constants add no depth
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

// isJoinClause tells whether a JOIN keyword after this token is part of a join, and not the name of a function.
func isJoinClause(previous Token) bool {
	switch previous.Kind {
	case Ident, unicodeIdent, CloseParen, kwInner, kwLeft, kwRight, kwFull, kwOuter, kwCross, kwNatural:
		return true
	}
	return false
}
