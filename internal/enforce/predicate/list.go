package predicate

import "encoding/json"

// List is a column that holds a list of ids. A value that is NULL or no well-formed list counts as a list of one
// unknown id. An element that is NULL or no string also counts as an unknown id. Nobody can consent for an unknown id.
type List struct {
	Column    string
	Form      GrantForm
	NeedsCast bool // the column is varchar[] or integer[], which SQL must cast
}

// The names of the SQL functions that read a list of ids from JSON. They return NULL for a value that is no array;
// JSONIDs also does for an array with elements that are no scalars.
const (
	JSONIDs  = SignedSchema + ".json_ids"
	JSONBIDs = SignedSchema + ".jsonb_ids"
)

// arraySQL returns the SQL expression of the list as an array of the form's element type. It is NULL if the value is no
// list.
func (l List) arraySQL(row string) string {
	c := columnSQL(row, l.Column)
	switch l.Form {
	case GrantJSONB:
		return JSONBIDs + "(" + c + ")"
	case GrantJSON:
		return JSONIDs + "(" + c + "::pg_catalog.text)"
	}
	if l.NeedsCast {
		return c + "::" + l.Form.elementType() + "[]"
	}
	return c
}

// ArraySQL returns the SQL expression of the list in a row as an array. It is NULL if the value is no list.
func (l List) ArraySQL(row string) string { return l.arraySQL(row) }

// elementsSQL returns a FROM item with one column, the list's elements. If the value is no list, it returns one NULL.
func (l List) elementsSQL(row, alias string) string {
	return "pg_catalog.unnest(COALESCE(" + l.arraySQL(row) + ", ARRAY[NULL]::" + l.Form.elementType() + "[])) AS " +
		alias + " (id)"
}

// idsOf returns the elements of the list in a row in memory. A nil element is NULL or no string. ok is false if the row
// has no list.
func (l List) idsOf(row Row) ([]*string, bool) {
	value, ok := row[l.Column]
	if !ok {
		return nil, false
	}
	if l.Form != GrantJSONB && l.Form != GrantJSON {
		return ParseArray(value)
	}
	if _, ok := jsonStrings(value, l.Form == GrantJSON); !ok {
		return nil, false
	}
	var raw []json.RawMessage
	if json.Unmarshal([]byte(value), &raw) != nil {
		return nil, false
	}
	out := []*string{}
	for _, r := range raw {
		var s string
		if r[0] == '"' && json.Unmarshal(r, &s) == nil {
			out = append(out, &s)
		} else {
			out = append(out, nil)
		}
	}
	return out, true
}

// oneOfSQL returns the SQL condition that a value is an element of the list.
func (l List) oneOfSQL(value, row string) string {
	return value + " OPERATOR(pg_catalog.=) ANY (" + l.arraySQL(row) + ")"
}
