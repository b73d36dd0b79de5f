package predicate

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// GrantForm says how a column holds the ids of those to whom the row is granted.
type GrantForm int

// The forms. An array has elements of the same type as the attributes; in JSON the ids are the strings of an array.
const (
	GrantText    GrantForm = iota // the type text[]
	GrantUUID                     // the type uuid[]
	GrantInteger                  // the type bigint[]
	GrantJSONB                    // the type jsonb, with an array
	GrantJSON                     // the type json, or JSON in a text, with an array of scalars
)

// Grant shows a row whose column contains one of the session's ids, or the word for everybody. An id must match as a
// whole. A value that is NULL or no well-formed list grants nothing and raises no error.
type Grant struct {
	Column        string
	Form          GrantForm
	NeedsCast     bool // the column is varchar[] or integer[], which SQL must cast
	Grantees      []Grantee
	EverybodyWord string // the word in the column that means everybody; "": there is none
}

// Grantee is an attribute whose value is an id of the session, or a list of such ids.
type Grantee struct {
	Attribute string
	IsList    bool
	Optional  bool // the session may lack the attribute, which then counts as no id
}

func (Grant) node() {}

// JSONGrants is the name of the SQL function that tests the ids in a JSON text. It returns NULL for a value that is no
// array of scalars, otherwise true or false.
const JSONGrants = SignedSchema + ".json_grants"

// elementType returns the SQL type of the elements of a list of grants.
func (f GrantForm) elementType() string {
	switch f {
	case GrantUUID:
		return "pg_catalog.uuid"
	case GrantInteger:
		return "pg_catalog.int8"
	default:
		return "pg_catalog.text"
	}
}

// idArraySQL returns the SQL expression of the session's ids as an array. PostgreSQL computes it once for a statement.
func (n Grant) idArraySQL() string {
	element := n.Form.elementType()
	var scalars, parts []string
	for _, to := range n.Grantees {
		if !to.IsList {
			scalars = append(scalars, attrText(to.Attribute)+"::"+element)
		}
	}
	if n.EverybodyWord != "" {
		scalars = append(scalars, catalog.QuoteLiteral(n.EverybodyWord)+"::"+element)
	}
	if len(scalars) > 0 {
		parts = append(parts, "ARRAY["+strings.Join(scalars, ", ")+"]")
	}
	for _, to := range n.Grantees {
		if to.IsList {
			parts = append(parts, attrText(to.Attribute)+"::"+element+"[]")
		}
	}
	return "(SELECT " + strings.Join(parts, " OPERATOR(pg_catalog.||) ") + ")"
}

// conditionSQL returns the SQL condition of the grant, which is NULL for a value that is no list. If negated is false,
// it contains no CASE, so that PostgreSQL can use an index.
func (n Grant) conditionSQL(row string, negated bool) string {
	if len(n.Grantees) == 0 && n.EverybodyWord == "" {
		return "NULL::pg_catalog.bool"
	}
	c := columnSQL(row, n.Column)
	switch n.Form {
	case GrantText, GrantUUID, GrantInteger:
		if n.NeedsCast {
			c += "::" + n.Form.elementType() + "[]"
		}
		return c + " OPERATOR(pg_catalog.&&) " + n.idArraySQL()
	case GrantJSONB:
		isArray := equalSQL("pg_catalog.jsonb_typeof("+c+")", "'array'::pg_catalog.text")
		found := c + " OPERATOR(pg_catalog.?|) " + n.idArraySQL()
		if negated {
			return "CASE WHEN " + isArray + " THEN " + found + " END"
		}
		return "(" + found + " AND " + isArray + ")"
	case GrantJSON:
		return JSONGrants + "(" + c + "::pg_catalog.text, " + n.idArraySQL() + ")"
	default:
		return "NULL::pg_catalog.bool"
	}
}

func (n Grant) evalGrant(row Row, w World) truth {
	value, ok := row[n.Column]
	if !ok || len(n.Grantees) == 0 && n.EverybodyWord == "" {
		return truthUnknown
	}
	var granteeIDs []string
	missing := false
	if n.EverybodyWord != "" {
		granteeIDs = append(granteeIDs, n.EverybodyWord)
	}
	for _, to := range n.Grantees {
		id, ok := w.Attributes[to.Attribute]
		switch {
		case !ok && to.Optional:
			missing = true
		case !ok:
			return truthUnknown
		case to.IsList:
			granteeIDs = append(granteeIDs, nonNullElements(id)...)
		default:
			granteeIDs = append(granteeIDs, id)
		}
	}
	var granted []string
	switch n.Form {
	case GrantJSONB, GrantJSON:
		var ok bool
		if granted, ok = jsonStrings(value, n.Form == GrantJSON); !ok {
			return truthUnknown
		}
	default:
		granted = nonNullElements(value)
	}
	granted = slices.DeleteFunc(granted, func(id string) bool { return !slices.Contains(granteeIDs, id) })
	if missing && len(granted) == 0 {
		return truthUnknown
	}
	return truthOf(len(granted) > 0)
}

// jsonStrings returns the strings of a JSON array. ok is false if the text is no array, or if scalars is true and an
// element is no scalar.
func jsonStrings(text string, scalars bool) ([]string, bool) {
	if !utf8.ValidString(text) || scalars && len(text) > 1<<20 {
		return nil, false
	}
	var raw []json.RawMessage
	if json.Unmarshal([]byte(text), &raw) != nil || raw == nil {
		return nil, false
	}
	out := []string{}
	for _, r := range raw {
		var s string
		switch {
		case r[0] == '"' && isDecodable(string(r)) && json.Unmarshal(r, &s) == nil:
			out = append(out, s)
		case r[0] == '"', scalars && !jsonScalar.Match(r):
			return nil, false
		}
	}
	return out, true
}

// jsonScalar matches a JSON scalar that is no string. Numbers are limited to a size that jsonb can always hold.
var jsonScalar = regexp.MustCompile(`^(true|false|null|-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?)$`)

// jsonEscape matches an escape in a JSON string: a pair of surrogates, another \u escape, or a backslash with another
// character.
var jsonEscape = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.`)

// isDecodable reports whether jsonb can hold a string: the string has no NUL, and surrogates only in pairs.
func isDecodable(quoted string) bool {
	for _, escape := range jsonEscape.FindAllString(quoted, -1) {
		e := strings.ToLower(escape)
		if len(e) == 6 && (e == `\u0000` || e >= `\ud800` && e <= `\udfff`) {
			return false
		}
	}
	return true
}
