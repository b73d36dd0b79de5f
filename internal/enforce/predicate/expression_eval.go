package predicate

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// evalValue is the value of an expression in the reference model. The zero value is NULL.
type evalValue struct {
	notNull bool // false: the value is NULL
	bool    bool
	text    string // the value of the kinds text, uuid and jsonb
	number  *big.Rat
	time    time.Time
	list    []evalValue
}

func boolValue(b bool) evalValue   { return evalValue{notNull: true, bool: b} }
func textValue(s string) evalValue { return evalValue{notNull: true, text: s} }
func numberValue(n int) evalValue  { return evalValue{notNull: true, number: big.NewRat(int64(n), 1)} }

func (v evalValue) truth() truth {
	if !v.notNull {
		return truthUnknown
	}
	return truthOf(v.bool)
}

func truthValue(t truth) evalValue {
	if t == truthUnknown {
		return evalValue{}
	}
	return boolValue(t == truthYes)
}

func (n SQL) evalCondition(row Row, w World) truth { return evalExpr(n.Expr, row, w).truth() }

func evalExpr(e Expr, row Row, w World) evalValue {
	switch e := e.(type) {
	case Column:
		text, ok := row[e.Name]
		if !ok {
			return evalValue{}
		}
		return parseValue(text, e.Kind)
	case Attribute:
		text, ok := w.Attributes[e.Name]
		if !ok {
			return evalValue{}
		}
		return parseValue(text, e.Kind)
	case Constant:
		return parseValue(e.Value, e.Kind)
	case ClockTime:
		return evalValue{notNull: true, time: e.timeAt(w.Now)}
	case Comparison:
		a, b := evalExpr(e.Left, row, w), evalExpr(e.Right, row, w)
		if !a.notNull || !b.notNull {
			return evalValue{}
		}
		return boolValue(comparisonHolds(e.Op, compareValues(a, b)))
	case AnyOf:
		return truthValue(evalAnyOf(evalExpr(e.Left, row, w), evalExpr(e.List, row, w)))
	case Array:
		out := evalValue{notNull: true}
		for _, part := range e {
			out.list = append(out.list, evalExpr(part, row, w))
		}
		return out
	case Overlap:
		a, b := evalExpr(e.Left, row, w), evalExpr(e.Right, row, w)
		if !a.notNull || !b.notNull {
			return evalValue{}
		}
		return boolValue(evalOverlap(e.Op, a.list, b.list))
	case Like:
		a := evalExpr(e.Left, row, w)
		if !a.notNull {
			return evalValue{}
		}
		return boolValue(matchesLike([]rune(a.text), []rune(e.Pattern)))
	case And:
		out := truthYes
		for _, part := range e {
			out = min(out, evalExpr(part, row, w).truth())
		}
		return truthValue(out)
	case Or:
		out := truthNo
		for _, part := range e {
			out = max(out, evalExpr(part, row, w).truth())
		}
		return truthValue(out)
	case Negation:
		return truthValue(truthYes - evalExpr(e.Expr, row, w).truth())
	case IsTest:
		a := evalExpr(e.Operand, row, w)
		switch e.Keyword {
		case "NULL":
			return boolValue(!a.notNull)
		case "TRUE":
			return boolValue(a.notNull && a.bool)
		case "FALSE":
			return boolValue(a.notNull && !a.bool)
		}
	case Case:
		for _, arm := range e.Branches {
			if evalExpr(arm.Condition, row, w).truth() == truthYes {
				return evalExpr(arm.Result, row, w)
			}
		}
		if e.ElseValue != nil {
			return evalExpr(e.ElseValue, row, w)
		}
	case Call:
		args := make([]evalValue, len(e.Args))
		for i, arg := range e.Args {
			if args[i] = evalExpr(arg, row, w); !args[i].notNull {
				return evalValue{}
			}
		}
		if f, ok := Functions[e.Name]; ok {
			return f.eval(args)
		}
	}
	return evalValue{}
}

// parseValue parses the text of a value. For a text that is no value of its kind it returns NULL: the model raises no
// error, as the SQL raises none.
func parseValue(text string, kind Kind) evalValue {
	if strings.HasSuffix(string(kind), "[]") {
		parsed, ok := ParseArray(text)
		if !ok {
			return evalValue{}
		}
		out := evalValue{notNull: true}
		for _, e := range parsed {
			if e == nil {
				out.list = append(out.list, evalValue{})
			} else {
				out.list = append(out.list, parseValue(*e, kind.Element()))
			}
		}
		return out
	}
	switch kind {
	case Bool:
		return boolValue(text == "true" || text == "t")
	case Number, Float:
		if n, ok := new(big.Rat).SetString(text); ok {
			return evalValue{notNull: true, number: n}
		}
	case Date, Timestamp, TimestampTZ:
		for _, layout := range []string{"2006-01-02 15:04:05.999999Z07:00", "2006-01-02 15:04:05.999999", "2006-01-02"} {
			if t, err := time.Parse(layout, text); err == nil {
				return evalValue{notNull: true, time: t.UTC()}
			}
		}
	default:
		return textValue(text)
	}
	return evalValue{}
}

func (c ClockTime) timeAt(now time.Time) time.Time {
	now = now.UTC()
	year, month, day := now.Date()
	first := time.Date(year, month+time.Month(c.Interval.Months), 1, 0, 0, 0, 0, time.UTC)
	if last := first.AddDate(0, 1, -1).Day(); day > last { // the day is at most the last day of the month
		day = last
	}
	clock := now.Sub(time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC))
	now = first.AddDate(0, 0, day-1+c.Interval.Days).Add(clock + time.Duration(c.Interval.Seconds)*time.Second)
	if c.Kind == Date {
		return now.Truncate(24 * time.Hour)
	}
	return now
}

func compareValues(a, b evalValue) int {
	switch {
	case a.number != nil && b.number != nil:
		return a.number.Cmp(b.number)
	case !a.time.IsZero() || !b.time.IsZero():
		return a.time.Compare(b.time)
	case a.text != "" || b.text != "":
		return strings.Compare(a.text, b.text)
	case a.bool == b.bool:
		return 0
	case b.bool:
		return -1
	default:
		return 1
	}
}

func comparisonHolds(op string, c int) bool {
	switch op {
	case "=":
		return c == 0
	case "<>":
		return c != 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	default:
		return op == ">=" && c >= 0
	}
}

func evalAnyOf(a, list evalValue) truth {
	if !list.notNull {
		return truthUnknown
	}
	out := truthNo
	for _, e := range list.list {
		switch {
		case !a.notNull || !e.notNull:
			out = max(out, truthUnknown)
		case compareValues(a, e) == 0:
			out = truthYes
		}
	}
	return out
}

// evalOverlap compares lists as sets; a NULL equals no element.
func evalOverlap(op string, a, b []evalValue) bool {
	containsIn := func(list []evalValue) func(evalValue) bool {
		return func(v evalValue) bool {
			return v.notNull && slices.ContainsFunc(list, func(e evalValue) bool {
				return e.notNull && compareValues(v,
					e) == 0
			})
		}
	}
	all := func(elements, list []evalValue) bool {
		return !slices.ContainsFunc(elements, func(v evalValue) bool { return !containsIn(list)(v) })
	}
	switch op {
	case "&&":
		return slices.ContainsFunc(a, containsIn(b))
	case "@>":
		return all(b, a)
	default:
		return op == "<@" && all(a, b)
	}
}

func matchesLike(text, pattern []rune) bool {
	if len(pattern) == 0 {
		return len(text) == 0
	}
	switch pattern[0] {
	case '%':
		for i := 0; i <= len(text); i++ {
			if matchesLike(text[i:], pattern[1:]) {
				return true
			}
		}
		return false
	case '_':
		return len(text) > 0 && matchesLike(text[1:], pattern[1:])
	case '\\':
		pattern = pattern[1:]
	}
	return len(text) > 0 && len(pattern) > 0 && text[0] == pattern[0] && matchesLike(text[1:], pattern[1:])
}

func textFunction(f func(string) string) func([]evalValue) evalValue {
	return func(args []evalValue) evalValue { return textValue(f(args[0].text)) }
}

func lowerFunction(s string) string { return strings.ToLower(s) }
func upperFunction(s string) string { return strings.ToUpper(s) }

func trimFunction(front, back bool) func([]evalValue) evalValue {
	return func(args []evalValue) evalValue {
		s, cut := args[0].text, " "
		if len(args) == 2 {
			cut = args[1].text
		}
		if front {
			s = strings.TrimLeft(s, cut)
		}
		if back {
			s = strings.TrimRight(s, cut)
		}
		return textValue(s)
	}
}

// prefixLength returns how many characters of a text of this length left(text, n) returns: n, or for a negative n all
// but the last -n.
func prefixLength(length int, n evalValue) int {
	count := int(n.number.Num().Int64())
	if count < 0 {
		count += length
	}
	return max(0, min(count, length))
}

func leftFunction(args []evalValue) evalValue {
	runes := []rune(args[0].text)
	return textValue(string(runes[:prefixLength(len(runes), args[1])]))
}

func rightFunction(args []evalValue) evalValue {
	runes := []rune(args[0].text)
	return textValue(string(runes[len(runes)-prefixLength(len(runes), args[1]):]))
}

func lengthFunction(args []evalValue) evalValue {
	return numberValue(utf8.RuneCountInString(args[0].text))
}
func octetLength(args []evalValue) evalValue { return numberValue(len(args[0].text)) }
func cardinality(args []evalValue) evalValue { return numberValue(len(args[0].list)) }
func startsWith(args []evalValue) evalValue {
	return boolValue(strings.HasPrefix(args[0].text, args[1].text))
}

func jsonType(args []evalValue) evalValue {
	switch text := strings.TrimSpace(args[0].text); text[0] {
	case '{':
		return textValue("object")
	case '[':
		return textValue("array")
	case '"':
		return textValue("string")
	case 't', 'f':
		return textValue("boolean")
	case 'n':
		return textValue("null")
	default:
		return textValue("number")
	}
}

func jsonField(args []evalValue) evalValue {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(args[0].text), &object) != nil {
		return evalValue{}
	}
	if field, ok := object[args[1].text]; ok {
		return textValue(string(bytes.TrimSpace(field)))
	}
	return evalValue{}
}

func jsonText(args []evalValue) evalValue {
	field := jsonField(args)
	var s string
	switch {
	case !field.notNull || field.text == "null":
		return evalValue{}
	case json.Unmarshal([]byte(field.text), &s) == nil:
		return textValue(s)
	default:
		return field // a number, boolean or nested value is returned as it is written
	}
}

func jsonHas(args []evalValue) evalValue {
	var s string
	if json.Unmarshal([]byte(args[0].text), &s) == nil && strings.HasPrefix(args[0].text, `"`) {
		return boolValue(s == args[1].text)
	}
	if strings.HasPrefix(args[0].text, "[") {
		granted, _ := jsonStrings(args[0].text, false)
		return boolValue(slices.Contains(granted, args[1].text))
	}
	return boolValue(jsonField(args).notNull)
}
