package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// These are suggestions for people who know YAML, SQL or another program better than policies.

// typeSlips maps names of types in other languages to the policy's names of attribute types.
var typeSlips = map[string]string{
	"int": "integer", "int4": "integer", "smallint": "integer", "number": "bigint", "int8": "bigint",
	"serial": "integer", "bigserial": "bigint", "string": "text", "str": "text", "varchar": "text",
	"char": "text", "enum": "text", "boolean": "text", "bool": "text", "list": "text[]", "array": "text[]",
	"strings": "text[]", "string[]": "text[]", "varchar[]": "text[]", "int[]": "integer[]", "guid": "uuid",
}

// suggestColumnRule suggests a correction of a column's rule.
func suggestColumnRule(value string) string {
	switch value {
	case "true", "yes", "on", "show", "visible", "read", "public":
		return "write allow"
	case "mask", "masked", "null", "redact", "hash", "hashed":
		mask := "null"
		if strings.HasPrefix(value, "hash") {
			mask = "hash"
		}
		return "write { mask: " + mask + " }"
	case "generalise", "generalize", "year", "month", "day":
		return "write { mask: { generalise: year } }"
	case "deny", "hide", "hidden", "none", "no", "false", "off", "drop", "remove":
		return "leave the column out: what is not listed does not exist"
	}
	return closest(value, []string{"allow", "by_key"})
}

// isLikelyOpen tells whether somebody probably wrote a word to mean open, the rule that shows every row.
func isLikelyOpen(n *node) bool {
	return n.ScalarType == yamlfile.BoolScalar || slices.Contains(
		[]string{"all", "any", "everything", "everybody", "public", "*", "yes", "on", "allow"}, n.Value)
}

// listSlips has suggestions for keys whose value must be a mapping but is a list.
var listSlips = map[string]string{
	"columns": "write { name: allow, … }", "functions": "write { name: {}, … }", "views": "write { name: {}, … }",
	"write": "write { commands: [ … ] }", "tables": "write name: { rows: … }, without dashes and square brackets",
	"attributes": "write { name: { type: …, source: … }, … }", "a block": "put all: or any: before it, of which a list is",
}

// suggestComparison suggests { column: user_id, is: user } for { user_id: user }.
func suggestComparison(n *node, label string) string {
	second := map[string]string{"own": "is", "tenant": "is", "status": "is", "grant": "to"}[label]
	if second == "" || len(n.Keys) != 1 || n.Values[0].Kind != yamlfile.ScalarNode ||
		slices.Contains([]string{"column", second}, n.Keys[0]) {
		return ""
	}
	return "write { column: " + n.Keys[0] + ", " + second + ": " + n.Values[0].Value + " }"
}

// sqlCharacters maps the quotes and dashes that text editors insert to the characters of SQL.
var sqlCharacters = map[rune]string{
	'“': `"`, '”': `"`, '„': `"`, '‘': "'", '’': "'", '‚': "'", '–': "-", '—': "-", '−': "-", '≠': "<>", '≤': "<=",
	'≥': ">=", '\u00a0': " ", '\u202f': " ",
}

// suggestPlainCharacter suggests the SQL character for the first typographic character in a text; "": the text has
// none.
func suggestPlainCharacter(text string) string {
	for _, r := range text {
		baseType, ok := sqlCharacters[r]
		switch {
		case !ok:
		case baseType == " ":
			return "a space of another kind stands in it: write a plain one"
		default:
			return "a text editor has put " + string(r) + " there: write " + baseType
		}
	}
	return ""
}

// scalarSlips has suggestions for keys whose value must be a mapping but is a single word.
var scalarSlips = map[string]string{
	"own": "write { column: …, is: … }", "tenant": "write { column: …, is: … }",
	"status": "write { column: …, is: … }", "granted": "write { column: …, is: … }",
	"stamp": "write { attribute: name } or { value: word }", "grant": "write { column: …, to: … }",
	"write":   "write { commands: [ … ], columns: [ … ] }",
	"columns": "left out, all columns show; else write { name: allow, … }",
}
