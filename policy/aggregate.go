package policy

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Aggregate says which rows of a table count in aggregates although agents do not see them one by one. The dimensions
// divide them into cells: rows with the same value of each. A cell counts as a whole, or not at all: see package rls.
type Aggregate struct {
	Rows       predicate.Node // which rows count besides those that show
	Subject    string         // the column that says whom a row is about
	Minimum    int            // a cell of fewer subjects does not count
	Share      int            // in percent: nor does one of which a single subject has more; 0: no such bound
	Dimensions []Dimension    // sorted by column
	Measures   []Measure      // sorted by column
}

// Dimension is a column by which aggregates may group and choose.
type Dimension struct {
	Column string
	Type   string
	OID    uint32 // of the type
	Unit   string // of a time: the finest unit, in UTC; "" for other columns
	Closed bool   // rows of a period that is not over do not count
}

// Measure is a number that aggregates may add up. A value outside its bounds counts as the bound.
type Measure struct {
	Column    string
	Type      string
	Low, High string // numbers
}

// Dimension returns the dimension of that column, or nil.
func (a *Aggregate) Dimension(column string) *Dimension {
	for i := range a.Dimensions {
		if a.Dimensions[i].Column == column {
			return &a.Dimensions[i]
		}
	}
	return nil
}

// Measure returns the measure of that column, or nil.
func (a *Aggregate) Measure(column string) *Measure {
	for i := range a.Measures {
		if a.Measures[i].Column == column {
			return &a.Measures[i]
		}
	}
	return nil
}

// VisibilityRules is everything that decides whether agents see a row of the table, what of it they see, and whether they count
// it.
func (t *Table) VisibilityRules() predicate.Node {
	out := predicate.All{t.Rows}
	if t.Aggregate != nil {
		out = append(out, t.Aggregate.Rows)
	}
	if out = append(out, t.ColumnConditions()...); len(out) == 1 {
		return t.Rows
	}
	return out
}

// Units are the units that a dimension's values can be truncated to: its own, and those that are made of whole ones.
func (d *Dimension) Units() []string { return coarser[d.Unit] }

var coarser = map[string][]string{
	"hour":    {"hour", "day", "week", "month", "quarter", "year"},
	"day":     {"day", "week", "month", "quarter", "year"},
	"week":    {"week"},
	"month":   {"month", "quarter", "year"},
	"quarter": {"quarter", "year"},
	"year":    {"year"},
}

func (a *Aggregate) describe(r *catalog.Relation) string {
	out := fmt.Sprintf("%q %q %d %d", predicate.Policy(a.Rows, r), a.Subject, a.Minimum, a.Share)
	for _, d := range a.Dimensions {
		out += fmt.Sprintf(" %q %q %t", d.Column, d.Unit, d.Closed)
	}
	return out + fmt.Sprintf(" %q", a.Measures)
}

// defaultMinimum is how many subjects a cell has at least where the policy does not say.
const defaultMinimum = 5

type aggregateDecl struct {
	place
	subject        string
	subjectAt      place
	rows           block
	minimum, share int
	dimensions     []dimensionDecl
	measures       []measureDecl
	accept         []wordDecl
}

type dimensionDecl struct {
	place
	column, by string
	closed     bool
}

type measureDecl struct {
	place
	column, low, high string
}

func (d *decoder) aggregate(at place, n *node) *aggregateDecl {
	decl := &aggregateDecl{place: at, minimum: defaultMinimum}
	d.fields(n, "aggregate", map[string]func(*node){
		"subject": func(v *node) {
			decl.subjectAt = v.Place
			d.word(&decl.subject, "subject")(v)
		},
		"rows":       func(v *node) { decl.rows = d.rows(v) },
		"minimum":    func(v *node) { d.within(&decl.minimum, v, "minimum", 2, 1_000_000) },
		"share":      func(v *node) { d.within(&decl.share, v, "share, in percent,", 1, 99) },
		"dimensions": func(v *node) { d.dimensions(decl, v) },
		"measures":   func(v *node) { d.measures(decl, v) },
		"accept":     func(v *node) { decl.accept = d.words(v, "accept", acceptValues) },
	})
	d.need(n, "aggregate", "subject", "rows")
	return decl
}

func (d *decoder) within(into *int, n *node, what string, low, high int) {
	if !d.want(n, yamlfile.Scalar, what) {
		return
	}
	number, err := strconv.Atoi(n.Value)
	if n.Literal != yamlfile.Integer || err != nil || number < low || number > high {
		d.fail(n.Place, "", "%s must be a number from %d to %d", what, low, high)
		return
	}
	*into = number
}

func (d *decoder) dimensions(decl *aggregateDecl, n *node) {
	const shape = "write { column: allow }, or { column: { by: month } } for a time"
	if n.Kind != yamlfile.Mapping {
		d.fail(n.Place, shape, "dimensions must be a mapping, not %s", n.Kind)
		return
	}
	for i, name := range n.Keys {
		v, dim := n.Values[i], dimensionDecl{place: n.KeyAt[i], column: name}
		if v.Kind == yamlfile.Scalar {
			if v.Value != "allow" {
				d.fail(v.Place, shape, "unknown rule %q of dimension %s", v.Value, name)
			}
			decl.dimensions = append(decl.dimensions, dim)
			continue
		}
		d.fields(v, "dimension "+name, map[string]func(*node){
			"by": func(v *node) {
				d.word(&dim.by, "by")(v)
				if coarser[dim.by] == nil && dim.by != "" {
					d.fail(v.Place, closest(dim.by, keys(coarser)), "by takes hour, day, week, month, quarter or year, not %q", dim.by)
				}
			},
			"closed": func(v *node) {
				if v.Kind != yamlfile.Scalar || v.Literal != yamlfile.Bool {
					d.fail(v.Place, "", "closed takes true or false")
					return
				}
				dim.closed = v.Value == "true"
			},
		})
		d.need(v, "dimension "+name, "by")
		decl.dimensions = append(decl.dimensions, dim)
	}
}

func (d *decoder) measures(decl *aggregateDecl, n *node) {
	if !d.want(n, yamlfile.Mapping, "measures") {
		return
	}
	for i, name := range n.Keys {
		v, m := n.Values[i], measureDecl{place: n.KeyAt[i], column: name}
		d.fields(v, "measure "+name, map[string]func(*node){
			"between": func(v *node) {
				if v.Kind != yamlfile.List || len(v.Items) != 2 || !number(v.Items[0]) || !number(v.Items[1]) {
					d.fail(v.Place, "write between: [0, 1000]", "between takes two numbers")
					return
				}
				m.low, m.high = v.Items[0].Value, v.Items[1].Value
				low, _ := new(big.Rat).SetString(m.low)
				high, _ := new(big.Rat).SetString(m.high)
				if low.Cmp(high) >= 0 {
					d.fail(v.Place, "the lower bound comes first", "between holds no number")
				}
			},
		})
		if v.Kind != yamlfile.Mapping || !slices.Contains(v.Keys, "between") {
			d.fail(n.KeyAt[i],
				"what lies outside counts as the bound: without one, a single large value shows in any sum",
				"measure %s needs between: [lowest, highest]", name)
		}
		decl.measures = append(decl.measures, m)
	}
}

// number tells whether a scalar is a decimal number that is no longer than any column's.
func number(n *node) bool {
	if n.Kind != yamlfile.Scalar || n.Literal != yamlfile.Integer && n.Literal != yamlfile.Float || len(n.Value) > 30 ||
		strings.Trim(n.Value, "-0123456789.") != "" {
		return false
	}
	_, ok := new(big.Rat).SetString(n.Value)
	return ok
}

// aggregate compiles what a table says under aggregate; nil if nothing, or after an error.
func (c *compiler) aggregate(decl *aggregateDecl, t *Table) *Aggregate {
	if decl == nil {
		return nil
	}
	r := t.Relation
	switch {
	case t.LacksRowSecurity():
		c.fail(decl.place, "", "%s is a %s, which has no row security: aggregate is for tables", r.Name, kindName(r.Kind))
		return nil
	case r.IsPartition:
		c.fail(decl.place, "say it of the table that it is a part of", "%s is a partition", r.Name)
		return nil
	}
	out := &Aggregate{Subject: decl.subject, Minimum: decl.minimum, Share: decl.share}
	failed := len(c.errs)
	c.path = append(c.path, r.Name)
	c.grouped = true
	out.Rows = c.block(decl.rows, r)
	c.grouped = false
	c.path = c.path[:len(c.path)-1]
	if _, open := out.Rows.(predicate.Open); open {
		c.warn(decl.place, "every row of %s counts in aggregates, whoever it is about", r.Name)
	}
	c.subject(decl, r)
	for _, d := range decl.dimensions {
		out.Dimensions = append(out.Dimensions, c.dimension(d, decl, r))
	}
	for _, m := range decl.measures {
		out.Measures = append(out.Measures, c.measure(m, decl, r))
	}
	for _, m := range decl.measures {
		if out.Dimension(m.column) != nil {
			c.fail(m.place, "let it be one of them", "%s is a dimension and a measure", m.column)
		}
	}
	c.singles(decl, r)
	slices.SortFunc(out.Dimensions, func(a, b Dimension) int { return strings.Compare(a.Column, b.Column) })
	slices.SortFunc(out.Measures, func(a, b Measure) int { return strings.Compare(a.Column, b.Column) })
	if len(c.errs) > failed {
		return nil
	}
	return out
}

func (c *compiler) subject(decl *aggregateDecl, r *catalog.Relation) {
	column := c.column(decl.subjectAt, r, decl.subject)
	if column == nil {
		return
	}
	if f := family(column.Type); f == "" || f == "date" || column.Nondeterministic {
		c.fail(decl.subjectAt, "a subject is a uuid, an integer or a text whose collation tells all texts apart",
			"%s.%s is a %s, which cannot say whom a row is about", r.Name, decl.subject, column.Type)
	}
}

// singles refuses dimensions and measures that tell more of a row than its columns do. Rows that show count as they
// are, in a group of one too: sum(pay) FILTER (WHERE dept = 'ceo') is the pay of somebody.
func (c *compiler) singles(decl *aggregateDecl, r *catalog.Relation) {
	columns := c.tables[r.Name].decl.columns
	if columns == nil || len(decl.accept) > 0 {
		return
	}
	check := func(at place, name, by string) {
		if r.Column(name) == nil {
			return
		}
		i := slices.IndexFunc(columns, func(d columnDecl) bool { return d.Name == name })
		what, instead := "is hidden", "say allow under columns"
		switch {
		case i < 0:
		case columns[i].byKey != nil:
			what = "exists by key only"
		case by != "" && slices.Contains(coarser[columns[i].Unit], by), columns[i].Mask == Plain && !columns[i].general:
			return
		case by != "" && columns[i].Unit != "":
			what, instead = "shows by the "+columns[i].Unit, "write { by: "+columns[i].Unit+" }"
		default:
			what = "is masked"
		}
		c.fail(at, instead+", leave it out, or say accept: ["+acceptValues+"]",
			"%s.%s %s, and an aggregate that chooses a single row which shows would tell more of it", r.Name, name, what)
	}
	for _, d := range decl.dimensions {
		check(d.place, d.column, d.by)
	}
	for _, m := range decl.measures {
		check(m.place, m.column, "")
	}
}

// dimension checks a dimension. Two of its values that are equal must be the same in every respect: what an expression
// could tell apart within a cell, it could use to divide it.
func (c *compiler) dimension(d dimensionDecl, decl *aggregateDecl, r *catalog.Relation) Dimension {
	out := Dimension{Column: d.column, Unit: d.by, Closed: d.closed}
	column := c.column(d.place, r, d.column)
	if column == nil {
		return out
	}
	out.Type, out.OID = column.Type, column.TypeOID
	time := column.TypeOID == 1082 || column.TypeOID == 1114 || column.TypeOID == 1184
	enum := c.snap.TypeByOID(column.TypeOID) != nil && c.snap.TypeByOID(column.TypeOID).Kind == 'e'
	switch {
	case d.column == decl.subject:
		c.fail(d.place, "leave it out", "%s is the subject: a group of one subject is never returned", d.column)
	case time && d.by == "":
		c.fail(d.place, "write { by: month }", "%s.%s is a %s: say by which unit it may group", r.Name, d.column, column.Type)
	case !time && d.by != "":
		c.fail(d.place, "by is for dates and timestamps; write allow", "%s.%s is a %s", r.Name, d.column, column.Type)
	case column.TypeOID == 1082 && d.by == "hour":
		c.fail(d.place, "write { by: day }", "%s.%s is a date, which has no hours", r.Name, d.column)
	case !time && !enum && family(column.Type) == "" && column.Type != "boolean", column.Nondeterministic:
		c.fail(d.place, "dimensions are uuid, integer, text, boolean, enum and time columns, of collations that "+
			"tell all texts apart",
			"%s.%s is a %s, whose equal values may differ", r.Name, d.column, column.Type)
	case !time && slices.ContainsFunc(r.Unique, func(k catalog.Key) bool { return slices.Equal(k.Equal, []string{d.column}) }),
		!time && slices.Equal(r.PrimaryKey, []string{d.column}):
		c.fail(d.place, "leave it out", "%s.%s is unique: every group would be a single row", r.Name, d.column)
	}
	return out
}

func (c *compiler) measure(m measureDecl, decl *aggregateDecl, r *catalog.Relation) Measure {
	out := Measure{Column: m.column, Low: m.low, High: m.high}
	column := c.column(m.place, r, m.column)
	if column == nil || m.low == "" {
		return out
	}
	out.Type = column.Type
	limit := map[string]string{"smallint": "32767", "integer": "2147483647", "bigint": "9223372036854775807"}[column.Type]
	plain, _, _ := strings.Cut(column.Type, "(")
	switch {
	case m.column == decl.subject:
		c.fail(m.place, "leave it out", "%s is the subject", m.column)
	case limit != "":
		for _, bound := range []string{m.low, m.high} {
			value, _ := new(big.Rat).SetString(bound)
			most, _ := new(big.Rat).SetString(limit)
			if !value.IsInt() || new(big.Rat).Abs(value).Cmp(most) > 0 {
				c.fail(m.place, "", "%s is no value of %s.%s, which is a %s", bound, r.Name, m.column, column.Type)
			}
		}
	case plain != "numeric" && column.Type != "real" && column.Type != "double precision":
		c.fail(m.place, "measures are numbers", "%s.%s is a %s", r.Name, m.column, column.Type)
	}
	return out
}
