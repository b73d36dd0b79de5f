package predicate

import "encoding/json"

// List is a column that holds a list of ids. A value that is no list, NULL or malformed, counts as a list of one
// unknown id, and an element that is NULL or no string as an unknown id: nobody can consent for it.
type List struct {
	Column string
	Form   GrantForm
	Cast   bool // the column is varchar[] or integer[], and is cast
}

// The functions that read a list of ids from JSON: NULL for a value that is no array, or in a text no array of scalars.
const (
	JSONIDs  = SignedSchema + ".json_ids"
	JSONBIDs = SignedSchema + ".jsonb_ids"
)

// arraySQL is the list as an array of the form's elements; NULL where the value is no list.
func (l List) arraySQL(row string) string {
	c := column(row, l.Column)
	switch l.Form {
	case GrantJSONB:
		return JSONBIDs + "(" + c + ")"
	case GrantJSON:
		return JSONIDs + "(" + c + "::pg_catalog.text)"
	}
	if l.Cast {
		return c + "::" + l.Form.element() + "[]"
	}
	return c
}

// Array is the list of a row as an array, NULL where it is none.
func (l List) Array(row string) string { return l.arraySQL(row) }

// elementsSQL is a FROM item of one column, with one NULL where the value is no list.
func (l List) elementsSQL(row, alias string) string {
	return "pg_catalog.unnest(COALESCE(" + l.arraySQL(row) + ", ARRAY[NULL]::" + l.Form.element() + "[])) AS " + alias + " (id)"
}

// ids are the elements of the list in a row; nil for an element that is not a text. false: the row has no list.
func (l List) ids(row Row) ([]*string, bool) {
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

// oneOfSQL is the condition that a value is an element of the list.
func (l List) oneOfSQL(value, row string) string {
	return value + " OPERATOR(pg_catalog.=) ANY (" + l.arraySQL(row) + ")"
}
