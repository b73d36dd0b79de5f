package policy

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// VisibleColumns says which columns of a table exist for agents, in the table's order, and how their values come out. A column
// that is not in it does not exist, one that the table gets later included.
type VisibleColumns struct {
	Columns []VisibleColumn
	ByKey   *ByKey // nil: no column besides these
}

// VisibleColumn is a column that exists for agents.
type VisibleColumn struct {
	Name string
	Type string // of the table's column; of a domain, the type under it
	Mask Mask

	Unit   string // of Truncate: year, month or day
	Amount int    // of Prefix, how many characters; of Step, the step
	Keys   []Key  // of Keys, sorted by name

	Condition      predicate.Node // of the row: else the value is NULL; nil: always
	GroupCondition predicate.Node // beside When: else it is NULL in rows that count in groups only
}

// Plain tells whether values come out as they are, in every row.
func (s VisibleColumn) Plain() bool { return s.Mask == Plain && s.Condition == nil }

// needs describes the conditions on a column's values.
func (s VisibleColumn) needs(r *catalog.Relation) string {
	if s.Condition == nil {
		return ""
	}
	return fmt.Sprintf(" %q %q", predicate.Check(s.Condition, r), predicate.Check(s.GroupCondition, r))
}

// ConditionalColumn returns the column if its values have a condition.
func (t *Table) ConditionalColumn(column string) (VisibleColumn, bool) {
	if t.Columns != nil {
		columns := t.Columns.Columns
		if t.Columns.ByKey != nil {
			columns = t.Columns.ByKey.AllColumns
		}
		for _, s := range columns {
			if s.Name == column && s.Condition != nil {
				return s, true
			}
		}
	}
	return VisibleColumn{}, false
}

// ColumnConditions are those on the values of columns.
func (t *Table) ColumnConditions() []predicate.Node {
	if t.Columns == nil {
		return nil
	}
	columns := t.Columns.Columns
	if t.Columns.ByKey != nil {
		columns = t.Columns.ByKey.AllColumns
	}
	var out []predicate.Node
	for _, s := range columns {
		if s.Condition != nil {
			out = append(out, s.Condition, s.GroupCondition)
		}
	}
	return out
}

// Key is a key of a JSON object that comes out where its value is of the type.
type Key struct {
	Name string
	Type string // string, number or boolean, as json_typeof says
}

// Mask is what becomes of a column's values.
type Mask int

// The masks.
const (
	Plain    Mask = iota // as they are
	Null                 // NULL
	Hash                 // a keyed hash: equal values have equal ones, and guesses cannot be checked without the key
	Truncate             // a date or timestamp, down to the unit in UTC
	Prefix               // the first characters
	Step                 // a number, down to a multiple of the step
	Keys                 // of a JSON object some keys
)

// Plain tells whether the column of the table is shown as it is, so that a predicate may stand over the row view.
func (n *VisibleColumns) Plain(column string) bool {
	for _, c := range n.Columns {
		if c.Name == column {
			return c.Plain()
		}
	}
	return false
}

// HasPlainColumns tells whether agents see columns of a table as they are, whatever the statement.
func (t *Table) HasPlainColumns() bool {
	return t.Columns == nil || slices.ContainsFunc(t.Columns.Columns, VisibleColumn.Plain)
}

// columnDecl is an entry of columns.
type columnDecl struct {
	place
	VisibleColumn
	general bool       // generalise: Unit or Amount is given, and the column's type decides what it means
	byKey   *byKeyDecl // nil: it is there for every statement

	category *categoryDecl // nil: it needs no consent of its own
}

func (d *decoder) columns(n *node) []columnDecl {
	if !d.want(n, yamlfile.Mapping, "columns") {
		return nil
	}
	if len(n.Keys) == 0 {
		d.fail(n.Place, "leave columns out if every column may show", "columns is empty")
	}
	out := []columnDecl{}
	for i, name := range n.Keys {
		out = append(out, d.shownColumn(n.KeyAt[i], name, n.Values[i]))
	}
	return out
}

func (d *decoder) shownColumn(at place, name string, n *node) columnDecl {
	decl := columnDecl{place: at, VisibleColumn: VisibleColumn{Name: name}}
	what := "column " + name
	if n.Kind == yamlfile.Scalar {
		switch n.Value {
		case "allow":
		case "by_key":
			decl.byKey = &byKeyDecl{place: n.Place}
		default:
			d.fail(n.Place, ruleSlip(n.Value),
				"unknown rule %q of %s: write allow, by_key, { mask: ... } or { keys: ... }", n.Value, what)
		}
		return decl
	}
	rules := 0
	for _, key := range n.Keys {
		if key != "category" && key != "until" {
			rules++
		}
	}
	category := &categoryDecl{place: n.Place}
	d.fields(n, what, map[string]func(*node){
		"mask":   func(v *node) { d.mask(&decl, v) },
		"keys":   func(v *node) { d.jsonKeys(&decl, v) },
		"by_key": func(v *node) { decl.byKey = d.byKey(n.KeyAt[slices.Index(n.Keys, "by_key")], what, v) },
		"category": func(v *node) {
			category.place, decl.category = v.Place, category
			category.words = d.registryWords(v, "category")
		},
		"until": func(v *node) { d.until(category, v) },
	}, "age", "decay")
	if n.Kind == yamlfile.Mapping && (rules > 1 || len(n.Keys) == 0) {
		d.fail(n.Place, "", "%s needs one of mask, keys and by_key", what)
	}
	if n.Kind == yamlfile.Mapping && slices.Contains(n.Keys, "until") && decl.category == nil {
		d.fail(category.untilAt, "write category: … beside it", "until is for columns with a category")
	}
	return decl
}

func (d *decoder) mask(decl *columnDecl, n *node) {
	switch {
	case n.Kind == yamlfile.Null, n.Kind == yamlfile.Scalar && n.Value == "null":
		decl.Mask = Null
	case n.Kind == yamlfile.Scalar && n.Value == "hash":
		decl.Mask = Hash
	case n.Kind == yamlfile.Scalar:
		d.fail(n.Place, among(n.Value, []string{"null", "hash", "generalise"}), "unknown mask %q", n.Value)
	default:
		d.fields(n, "mask", map[string]func(*node){"generalise": func(v *node) { d.generalise(decl, v) }})
		d.need(n, "mask", "generalise")
	}
}

func (d *decoder) generalise(decl *columnDecl, n *node) {
	decl.general = true
	if !d.want(n, yamlfile.Scalar, "generalise") {
		return
	}
	if n.Literal == yamlfile.Integer {
		amount, err := strconv.Atoi(n.Value)
		if err != nil || amount < 1 || amount > 1_000_000_000 {
			d.fail(n.Place, "", "generalise must be from 1 to 1000000000")
		}
		decl.Amount = amount
		return
	}
	units := []string{"year", "month", "day"}
	for _, u := range units {
		if n.Value == u {
			decl.Unit = u
			return
		}
	}
	d.fail(n.Place, closest(n.Value, units),
		"generalise takes year, month or day for dates, a number of leading characters for text, a step for numbers")
}

func (d *decoder) jsonKeys(decl *columnDecl, n *node) {
	decl.Mask = Keys
	if !d.want(n, yamlfile.Mapping, "keys") {
		return
	}
	types := []string{"string", "number", "boolean"}
	for i, key := range n.Keys {
		v := n.Values[i]
		if !d.want(v, yamlfile.Scalar, "the type of key "+key) {
			continue
		}
		if v.Value != "string" && v.Value != "number" && v.Value != "boolean" {
			d.fail(v.Place, closest(v.Value, types), "unknown type %q of key %q: string, number and boolean are known", v.Value, key)
		}
		decl.Keys = append(decl.Keys, Key{key, v.Value})
	}
	if len(n.Keys) == 0 {
		d.fail(n.Place, "to hide it, leave the column out or mask it with null", "keys is empty")
	}
}
