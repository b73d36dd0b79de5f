package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// Suggestions for people who know YAML, SQL or another program better than policies.

// typeSlips are names of other languages for the types of attributes.
var typeSlips = map[string]string{
	"int": "integer", "int4": "integer", "smallint": "integer", "number": "bigint", "int8": "bigint",
	"serial": "integer", "bigserial": "bigint", "string": "text", "str": "text", "varchar": "text",
	"char": "text", "enum": "text", "boolean": "text", "bool": "text", "list": "text[]", "array": "text[]",
	"strings": "text[]", "string[]": "text[]", "varchar[]": "text[]", "int[]": "integer[]", "guid": "uuid",
}

// ruleSlip corrects a column's rule.
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

// openSlip tells whether a word may have meant that every row shows.
func openSlip(n *node) bool {
	return n.Literal == yamlfile.Bool || slices.Contains(
		[]string{"all", "any", "everything", "everybody", "public", "*", "yes", "on", "allow"}, n.Value)
}

// listSlips are suggestions for a list in the place of a mapping.
var listSlips = map[string]string{
	"columns": "write { name: allow, … }", "functions": "write { name: {}, … }", "views": "write { name: {}, … }",
	"write": "write { commands: [ … ] }", "tables": "write name: { rows: … }, without dashes and square brackets",
	"attributes": "write { name: { type: …, source: … }, … }", "a block": "put all: or any: before it, of which a list is",
}

// comparisonSlip corrects { user_id: user } to { column: user_id, is: user }.
func comparisonSlip(n *node, what string) string {
	second := map[string]string{"own": "is", "tenant": "is", "status": "is", "grant": "to"}[what]
	if second == "" || len(n.Keys) != 1 || n.Values[0].Kind != yamlfile.Scalar ||
		slices.Contains([]string{"column", second}, n.Keys[0]) {
		return ""
	}
	return "write { column: " + n.Keys[0] + ", " + second + ": " + n.Values[0].Value + " }"
}

// typographic maps characters of text editors to those of SQL.
var typographic = map[rune]string{
	'“': `"`, '”': `"`, '„': `"`, '‘': "'", '’': "'", '‚': "'", '–': "-", '—': "-", '−': "-", '≠': "<>", '≤': "<=",
	'≥': ">=", '\u00a0': " ", '\u202f': " ",
}

// typographicSlip corrects the first of these characters in a text; "": there is none.
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

// scalarSlips are suggestions for a single value in the place of a mapping.
var scalarSlips = map[string]string{
	"own": "write { column: …, is: … }", "tenant": "write { column: …, is: … }",
	"status": "write { column: …, is: … }", "granted": "write { column: …, is: … }",
	"stamp": "write { attribute: name } or { value: word }", "grant": "write { column: …, to: … }",
	"write":   "write { commands: [ … ], columns: [ … ] }",
	"columns": "left out, all columns show; else write { name: allow, … }",
}
