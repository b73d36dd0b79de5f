package rewrite

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

//go:embed leak_safe.txt
var leakSafeText string

// kind is what the leak checker knows about the type of an expression. Types that leak_safe.txt does not tell apart
// have the same kind.
type kind string

const (
	kindOpaque      kind = "opaque" // a statement may only return, count and NULL-test the expression
	kindString      kind = "string" // NULL, or a constant whose type PostgreSQL infers from the context
	kindParam       kind = "parameter"
	kindInt         kind = "int"
	kindNumeric     kind = "numeric"
	kindText        kind = "text"
	kindBool        kind = "bool"
	kindEnum        kind = "enum"
	kindCurrentTime kind = "now"
	kindRecent      kind = "recent"
	kindToday       kind = "today"
	kindInterval    kind = "span"
	kindUndeclared  kind = "undeclared" // a parameter whose type the client may not declare
	kindTSQuery     kind = "tsquery"
	kindTSVector    kind = "tsvector"

	kindConfiguration kind = "configuration" // the configuration of a text search, given as a constant, such as 'english'
)

// typeKinds has the kinds of types, by the types' OIDs. Types that are missing here have the kind opaque.
var typeKinds = map[uint32]kind{
	16: kindBool, 20: kindInt, 21: kindInt, 23: kindInt, 1700: kindNumeric,
	700: "float", 701: "float", 25: kindText, 1043: kindText, 2950: "uuid",
	1082: "date", 1114: "timestamp", 1184: "timestamptz", 3802: "jsonb",
	3614: kindTSVector, 3615: kindTSQuery, 1009: "text[]", 2951: "uuid[]",
	1005: kindInts, 1007: kindInts, 1016: kindInts, 1015: "text[]",
	3904: "int4range", 3906: "numrange", 3908: "tsrange", 3910: "tstzrange", 3912: "daterange", 3926: "int8range",
}

// kindInts is the kind of arrays of smallint, integer or bigint.
const kindInts kind = "int[]"

// extensionKinds are types of extensions for which the name of the type is also its kind.
var extensionKinds = []string{"citext", "hstore", "ltree"}

// kindOf returns the kind of a column. A domain has the kind of its base type, since PostgreSQL chooses that type's
// operators and functions. (An operator or function name that another role has also used is not leak-safe.) PostgreSQL
// checks a domain's constraints when it makes a value, not when it reads one. Texts with another collation than the
// database's are opaque: PostgreSQL cannot compare texts of two collations, and reports that only when it evaluates the
// comparison for a row.
func kindOf(c *catalog.Column, snap *catalog.Snapshot) kind {
	if c.Collation != "" && !slices.Contains(byteCollations, c.Collation) {
		return kindOpaque
	}
	oid := snap.BaseType(c.TypeOID)
	k := kindOfOID(oid)
	switch t := snap.TypeByOID(oid); {
	case k == kindInts && slices.ContainsFunc(snap.OperatorsNamed("", "&&"),
		func(o *catalog.Operator) bool { return o.Extension == "intarray" }):
		// the operators of intarray fail for arrays that contain NULL
		return kindOpaque
	case k != kindOpaque || t == nil:
	case t.Kind == 'e':
		return kindEnum
	case t.Kind == 'b' && t.Name.Name == t.Extension && slices.Contains(extensionKinds, t.Extension):
		return kind(t.Extension)
	}
	return k
}

// columnKind returns the kind of the columns to which a value of this kind can be compared.
func (k kind) columnKind() kind {
	switch k {
	case kindCurrentTime, kindRecent:
		return "timestamptz"
	case kindToday:
		return "date"
	}
	return k
}

func kindOfOID(oid uint32) kind {
	if k, ok := typeKinds[oid]; ok {
		return k
	}
	return kindOpaque
}

// leakSafeEntry is a line of leak_safe.txt.
type leakSafeEntry struct {
	operands [][]kind
	result   kind
	reason   string
}

// leakSafeList holds the lines of leak_safe.txt, by keys such as "operator =".
var leakSafeList = func() map[string][]leakSafeEntry {
	list := map[string][]leakSafeEntry{}
	for line := range dataLines(leakSafeText) {
		parts := strings.Split(line, " : ")
		if len(parts) != 5 {
			panic(fmt.Sprintf("rewrite: leak_safe.txt: %q", line))
		}
		e := leakSafeEntry{result: kind(strings.TrimSpace(parts[3])), reason: strings.TrimSpace(parts[4])}
		for alternative := range strings.SplitSeq(parts[2], ",") {
			var operands []kind
			for _, operand := range strings.Fields(alternative) {
				if operand != "none" {
					operands = append(operands, kind(operand))
				}
			}
			e.operands = append(e.operands, operands)
		}
		for _, name := range strings.Fields(parts[1]) {
			key := strings.TrimSpace(parts[0]) + " " + name
			list[key] = append(list[key], e)
		}
	}
	return list
}()

// isSortable tells whether a text on the signed path may group, sort and compare values of a kind.
func isSortable(k kind) bool {
	return k != kindOpaque && k != kindTSQuery && k != kindInterval && k != kindTSVector && k != "hstore"
}

// timeFields are the fields that EXTRACT can take from every timestamp.
var timeFields = []string{"year", "month", "day", "hour", "minute", "dow", "doy", "quarter", "epoch"}

// dateFields are the fields that EXTRACT can take from every date. truncUnits are the units for which date_trunc fails
// for no timestamp.
var (
	dateFields = []string{"year", "month", "day", "dow", "doy", "quarter", "epoch"}
	truncUnits = []string{"year", "quarter", "month", "week", "day", "hour", "minute", "second"}
)

// value is what the leak checker knows about an expression.
type value struct {
	kind     kind
	constant bool
	text     string // the value of a string constant, with or without a cast to text
	isNull   bool
	number   int32 // the value of an integer constant
	param    int32 // the number of the parameter, if the value is one
	// the expression is not on the leak-safe list, but checkOutput has allowed it by its parts: see leak_check_output.go
	notOnList bool
	oid       uint32 // the OID of the type of a table's column
}

// fits tells whether an operand can stand where a line of leak_safe.txt requires the kind wanted.
func (v value) fits(wanted kind) bool {
	switch wanted {
	case "any":
		return v.kind != kindInterval
	case "pattern":
		return v.kind == kindParam ||
			v.isStringLiteral() && !strings.Contains(v.text, `\`) && strings.Count(v.text, "%") <= maxWildcards
	case "expression":
		return v.kind == kindParam || v.isStringLiteral() && verdict.SafeRegularExpression(v.text)
	case "query":
		return v.kind == kindParam || v.isStringLiteral() && verdict.SafeTextQuery(v.text)
	case "string":
		return v.isStringLiteral() || v.kind == kindConfiguration
	case "short":
		return v.kind == kindParam ||
			v.isStringLiteral() && verdict.SearchWords.Matches([]byte(v.text)) && len(v.text) <= maxShortText
	case "brief":
		return v.isStringLiteral() && len(v.text) <= maxShortText
	case "shallow":
		return v.kind == kindParam || v.constant && (v.kind == kindString || v.kind == "jsonb") &&
			verdict.ShallowJSON.Matches([]byte(v.text))
	case "field":
		return v.kind == kindString && slices.Contains(timeFields, v.text)
	case "datefield":
		return v.kind == kindString && slices.Contains(dateFields, v.text)
	case "unit":
		return v.kind == kindString && slices.Contains(truncUnits, v.text)
	case "days":
		return v.constant && v.kind == kindInt && 0 <= v.number && v.number <= maxDays
	case "label":
		return v.kind == kindEnum && v.constant
	case "integer":
		return v.constant && v.kind == kindInt
	case "natural":
		return v.constant && v.kind == kindInt && v.number >= 0
	case kindTSQuery, kindTSVector, kindInterval, kindCurrentTime, kindRecent, kindToday, kindEnum:
		return v.kind == wanted
	case "float":
		return v.kind == wanted || v.kind == kindNumeric && v.constant || v.isUntyped()
	}
	return v.kind.columnKind() == wanted || v.isUntyped()
}

const (
	maxShortText = 500 // the longest text, in bytes, that PostgreSQL may parse recursively
	maxWildcards = 200 // the largest number of wildcards in a pattern, which PostgreSQL matches recursively
	maxDays      = 100_000
)

// isStringLiteral tells whether a value is a string literal, with or without a cast to text.
func (v value) isStringLiteral() bool {
	return v.constant && !v.isNull && (v.kind == kindString || v.kind == kindText)
}

// isUntyped tells whether PostgreSQL gives a value the type of the operand beside it.
func (v value) isUntyped() bool { return v.kind == kindString || v.kind == kindParam }
