package verdict

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// PostgreSQL compiles a regular expression when it reaches the first row. It raises an error if the expression cannot
// be parsed or becomes too large. SafeRegularExpression accepts a subset of the grammar (re_syntax) for which
// PostgreSQL never raises one. The subset has no back references and no lookaround, which would also need a stack for
// each row. It has no options and no names of characters. Its size after compilation is bounded.
const (
	maxExpressionBytes = 200 // length of an expression
	maxCopies          = 40  // number of copies that braces make, counted over all braces
	maxRepeats         = 12  // number of quantifiers
	maxGroups          = 12
	maxNestedGroups    = 4
)

// classNames are the names of character classes that PostgreSQL allows in brackets, as in [[:alpha:]].
var classNames = []string{"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
	"upper", "xdigit"}

// SafeRegularExpression reports whether PostgreSQL certainly raises no error for this regular expression.
func SafeRegularExpression(text string) bool {
	if len(text) > maxExpressionBytes || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return false
	}
	x := regexpParser{rest: text}
	return x.branches(0) && x.rest == ""
}

// regexpParser parses a regular expression; rest is the part that is not parsed yet.
type regexpParser struct {
	rest                    string
	copies, repeats, groups int
}

// branches parses alternatives separated by |, none of which may be empty, up to the end or a closing parenthesis.
func (x *regexpParser) branches(nested int) bool {
	for {
		if !x.branch(nested) {
			return false
		}
		if !x.skipPrefix("|") {
			return true
		}
	}
}

// branch parses one alternative of an expression.
func (x *regexpParser) branch(nested int) bool {
	hasAtom := x.skipPrefix("^")
	for x.rest != "" && x.rest[0] != '|' && x.rest[0] != ')' {
		hasAtom = true
		if x.skipPrefix("$") {
			return x.rest == "" || x.rest[0] == '|' || x.rest[0] == ')'
		}
		if x.boundary() {
			continue
		}
		group := x.rest[0] == '('
		before := x.repeats
		if !x.atom(nested) {
			return false
		}
		if !x.quantifier(group, x.repeats > before) {
			return false
		}
	}
	return hasAtom
}

// boundary parses an escape for the beginning or the end of a word.
func (x *regexpParser) boundary() bool {
	return x.skipPrefix(`\m`) || x.skipPrefix(`\M`) || x.skipPrefix(`\y`) || x.skipPrefix(`\Y`)
}

// atom parses one part of an alternative: a character, a class or a group.
func (x *regexpParser) atom(nested int) bool {
	switch c := x.rest[0]; c {
	case '(':
		x.groups++
		x.rest = x.rest[1:]
		x.skipPrefix("?:")
		return x.groups <= maxGroups && nested < maxNestedGroups && x.branches(nested+1) && x.skipPrefix(")")
	case '[':
		return x.bracket()
	case '\\':
		return x.escape()
	case '*', '+', '?', '{', '}', ']', '^':
		return false
	default:
		_, size := utf8.DecodeRuneInString(x.rest)
		x.rest = x.rest[size:]
		return c >= ' '
	}
}

// escape parses an escape: a class of characters, or a character that has another meaning without the backslash.
func (x *regexpParser) escape() bool {
	if len(x.rest) < 2 {
		return false
	}
	c := x.rest[1]
	x.rest = x.rest[2:]
	return strings.IndexByte("dswDSW", c) >= 0 || isPunctuation(c)
}

func isPunctuation(c byte) bool {
	return c > ' ' && c < 0x7f && !isLetter(c) && (c < '0' || c > '9')
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// quantifier parses the quantifier of an atom, if there is one. A group that contains a quantifier may only have ?.
func (x *regexpParser) quantifier(group, repeats bool) bool {
	switch {
	case x.skipPrefix("?"):
	case x.skipPrefix("*"), x.skipPrefix("+"):
		if repeats {
			return false
		}
	case x.rest != "" && x.rest[0] == '{':
		if group || !x.repetition() {
			return false
		}
	default:
		return true
	}
	x.repeats++
	x.skipPrefix("?") // A question mark after a quantifier makes it non-greedy.
	return x.repeats <= maxRepeats
}

// repetition parses {3}, {3,} and {3,5}.
func (x *regexpParser) repetition() bool {
	inside, rest, closed := strings.Cut(x.rest[1:], "}")
	low, high, two := strings.Cut(inside, ",")
	minimum, ok := parseSmallNumber(low)
	limit := minimum
	if two && high != "" {
		var is bool
		limit, is = parseSmallNumber(high)
		ok = ok && is
	}
	x.rest = rest
	x.copies += max(minimum, limit)
	return closed && ok && minimum <= limit && limit > 0 && x.copies <= maxCopies
}

func parseSmallNumber(s string) (int, bool) {
	if len(s) == 0 || len(s) > 2 {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// bracket parses a list of characters in brackets: single characters, ranges of digits or of letters of one case, and
// classes.
func (x *regexpParser) bracket() bool {
	x.rest = x.rest[1:]
	x.skipPrefix("^")
	for hasCharacter := false; x.rest != ""; hasCharacter = true {
		switch c := x.rest[0]; {
		case c == ']':
			x.rest = x.rest[1:]
			return hasCharacter
		case strings.HasPrefix(x.rest, "[:"):
			name, rest, closed := strings.Cut(x.rest[2:], ":]")
			if !closed || !slices.Contains(classNames, name) {
				return false
			}
			x.rest = rest
		case c == '\\':
			if len(x.rest) < 2 || strings.IndexByte("DSW", x.rest[1]) >= 0 || !x.escape() {
				return false
			}
		case c == '-': // A dash at the end of the list means the character itself.
			if !strings.HasPrefix(x.rest, "-]") {
				return false
			}
			x.rest = x.rest[1:]
		case strings.IndexByte("[^", c) >= 0 || c < ' ':
			return false
		case len(x.rest) > 2 && x.rest[1] == '-' && x.rest[2] != ']':
			if !isRange(c, x.rest[2]) {
				return false
			}
			if x.rest = x.rest[3:]; strings.HasPrefix(x.rest, "-") && !strings.HasPrefix(x.rest, "-]") {
				return false
			}
		default:
			_, size := utf8.DecodeRuneInString(x.rest)
			x.rest = x.rest[size:]
			// A range must not begin with a character of more than one byte.
			if strings.HasPrefix(x.rest, "-") && !strings.HasPrefix(x.rest, "-]") {
				return false
			}
		}
	}
	return false
}

func isRange(from, to byte) bool {
	within := func(low, high byte) bool { return low <= from && from <= to && to <= high }
	return within('a', 'z') || within('A', 'Z') || within('0', '9')
}

// skipPrefix consumes prefix if the rest begins with it, and reports whether it did.
func (x *regexpParser) skipPrefix(prefix string) bool {
	rest, ok := strings.CutPrefix(x.rest, prefix)
	x.rest = rest
	return ok
}
