package verdict

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// PostgreSQL compiles a regular expression at the first row, and raises an error for one that it cannot parse or that
// becomes too large. This is a subset of its grammar (re_syntax) that never fails. It has no back references and no
// lookaround, which would also need a stack for each row. It has no options and no names of characters. What becomes
// large when it is compiled is bounded. Other expressions are not accepted.
const (
	maxExpressionBytes = 200 // length of an expression
	maxCopies          = 40  // number of copies of parts that braces repeat, counted over all braces
	maxRepeats         = 12  // the number of quantifiers
	maxGroups          = 12
	maxNestedGroups    = 4
)

// classNames are the names of character classes that PostgreSQL allows in brackets, as in [[:alpha:]].
var classNames = []string{"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
	"upper", "xdigit"}

// SafeRegularExpression reports whether a text is in the safe subset of regular expressions above.
func SafeRegularExpression(text string) bool {
	if len(text) > maxExpressionBytes || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return false
	}
	x := regexpParser{rest: text}
	return x.branches(0) && x.rest == ""
}

// regexpParser parses the rest of a text.
type regexpParser struct {
	rest                    string
	copies, repeats, groups int
}

// branches reads the alternatives that | divides, none of which may be empty, up to the end or a closing parenthesis.
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

// branch reads one alternative of an expression.
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

// boundary reads a sign for the beginning or the end of a word.
func (x *regexpParser) boundary() bool {
	return x.skipPrefix(`\m`) || x.skipPrefix(`\M`) || x.skipPrefix(`\y`) || x.skipPrefix(`\Y`)
}

// atom reads one part of a branch, such as a character, a class or a group.
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

// escape reads a class of characters, or a character that would mean something else without the backslash.
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

// quantifier reads how often an atom may repeat. A group that contains a quantifier may only have ?.
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
	x.skipPrefix("?") // A question mark here asks for as few copies as possible.
	return x.repeats <= maxRepeats
}

// repetition reads {3}, {3,} and {3,5}.
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

// bracket reads a list of characters in brackets: single ones, ranges among digits or letters of one case, and classes.
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

// skipPrefix reads a prefix of the rest, and reports whether it was there.
func (x *regexpParser) skipPrefix(prefix string) bool {
	rest, ok := strings.CutPrefix(x.rest, prefix)
	x.rest = rest
	return ok
}
