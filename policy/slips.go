package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// What people write who know YAML, SQL or another program better than policies, and what to write instead.

// typeSlips are what types of attributes are called elsewhere.
var typeSlips = map[string]string{
	"int": "integer", "int4": "integer", "smallint": "integer", "number": "bigint", "int8": "bigint",
	"serial": "integer", "bigserial": "bigint", "string": "text", "str": "text", "varchar": "text",
	"char": "text", "enum": "text", "boolean": "text", "bool": "text", "list": "text[]", "array": "text[]",
	"strings": "text[]", "string[]": "text[]", "varchar[]": "text[]", "int[]": "integer[]", "guid": "uuid",
}

// ruleSlip is what a column's rule is taken for.
func ruleSlip(value string) string {
	switch value {
	case "true", "yes", "on", "show", "visible", "read", "public":
		return "write allow"
	case "mask", "masked", "null", "redact", "hash", "hashed":
		as := "null"
		if strings.HasPrefix(value, "hash") {
			as = "hash"
		}
		return "write { mask: " + as + " }"
	case "generalise", "generalize", "year", "month", "day":
		return "write { mask: { generalise: year } }"
	case "deny", "hide", "hidden", "none", "no", "false", "off", "drop", "remove":
		return "leave the column out: what is not listed does not exist"
	}
	return closest(value, []string{"allow", "by_key"})
}

// openSlip tells whether somebody may have meant that every row shows.
func openSlip(n *node) bool {
	return n.Literal == yamlfile.Bool || slices.Contains(
		[]string{"all", "any", "everything", "everybody", "public", "*", "yes", "on", "allow"}, n.Value)
}

// listSlips are what to write where a mapping is meant and a list stands.
var listSlips = map[string]string{
	"columns": "write { name: allow, … }", "functions": "write { name: {}, … }", "views": "write { name: {}, … }",
	"write": "write { commands: [ … ] }", "tables": "write name: { rows: … }, without dashes and square brackets",
	"attributes": "write { name: { type: …, source: … }, … }", "a block": "put all: or any: before it, of which a list is",
}

// comparisonSlip is for { user_id: user } in place of { column: user_id, is: user }.
func comparisonSlip(n *node, what string) string {
	second := map[string]string{"own": "is", "tenant": "is", "status": "is", "grant": "to"}[what]
	if second == "" || len(n.Keys) != 1 || n.Values[0].Kind != yamlfile.Scalar ||
		slices.Contains([]string{"column", second}, n.Keys[0]) {
		return ""
	}
	return "write { column: " + n.Keys[0] + ", " + second + ": " + n.Values[0].Value + " }"
}

// typographic are characters that programs for texts put in place of those that SQL knows.
var typographic = map[rune]string{
	'“': `"`, '”': `"`, '„': `"`, '‘': "'", '’': "'", '‚': "'", '–': "-", '—': "-", '−': "-", '≠': "<>", '≤': "<=",
	'≥': ">=", '\u00a0': " ", '\u202f': " ",
}

// typographicSlip names the first of these in a text; "" if there is none.
func typographicSlip(text string) string {
	for _, r := range text {
		plain, ok := typographic[r]
		switch {
		case !ok:
		case plain == " ":
			return "a space of another kind stands in it: write a plain one"
		default:
			return "a text editor has put " + string(r) + " there: write " + plain
		}
	}
	return ""
}
