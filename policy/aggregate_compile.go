package policy

import (
	"math/big"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// aggregateCompiler compiles the section aggregate of tables.
type aggregateCompiler struct {
	*resolver
	rules *ruleCompiler
}

// compile compiles the aggregate of a table. The result is nil if the table has none, or after an error.
func (c *aggregateCompiler) compile(decl *aggregateDecl, t *Table) *Aggregate {
	r := t.Relation
	c.checkNoRows(c.tables[r.Name].decl)
	if decl == nil {
		return nil
	}
	switch {
	case t.LacksRowSecurity():
		c.fail(decl.place, "", "%s is a %s, which has no row security: aggregate is for tables", r.Name, relationKind(r.Kind))
		return nil
	case r.IsPartition:
		c.fail(decl.place, "say it of the table that it is a part of", "%s is a partition", r.Name)
		return nil
	}
	out := &Aggregate{NoSingleRows: c.tables[r.Name].decl.noRows != nil, Subject: decl.subject, MinSubjects: decl.minimum,
		MaxSharePercent: decl.share}
	errorsBefore := len(c.errs)
	c.rules.tablePath = append(c.rules.tablePath, r.Name)
	c.rules.inGroupRule = true
	out.Rows = c.rules.compileBlock(decl.rows, r)
	c.rules.inGroupRule = false
	c.rules.tablePath = c.rules.tablePath[:len(c.rules.tablePath)-1]
	if _, isOpen := out.Rows.(predicate.Open); isOpen {
		c.warn(decl.place, "every row of %s counts in aggregates, whoever it is about", r.Name)
	}
	c.compileSubject(decl, r)
	for _, d := range decl.dimensions {
		out.Dimensions = append(out.Dimensions, c.compileDimension(d, decl, r))
	}
	for _, m := range decl.measures {
		out.Measures = append(out.Measures, c.compileMeasure(m, decl, r))
	}
	for _, m := range decl.measures {
		if out.Dimension(m.column) != nil {
			c.fail(m.place, "let it be one of them", "%s is a dimension and a measure", m.column)
		}
	}
	c.checkSingleRows(decl, r)
	slices.SortFunc(out.Dimensions, func(a, b Dimension) int { return strings.Compare(a.Column, b.Column) })
	slices.SortFunc(out.Measures, func(a, b Measure) int { return strings.Compare(a.Column, b.Column) })
	if len(c.errs) > errorsBefore {
		return nil
	}
	return out
}

// checkNoRows refuses `rows: none` for a table without the section aggregate, and for a table with the section write.
func (c *aggregateCompiler) checkNoRows(decl tableDecl) {
	switch {
	case decl.noRows == nil:
	case decl.aggregate == nil:
		c.fail(*decl.noRows, "leave the table out: what is not listed is refused",
			"rows: none goes with aggregate, and %s has none", decl.name)
	case decl.write != nil:
		c.fail(decl.write.place, "leave write out, or say under rows which rows show",
			"%s has rows: none: agents read it in groups and write none of it", decl.name)
	}
}

// compileSubject checks the column that names the subject of a row.
func (c *aggregateCompiler) compileSubject(decl *aggregateDecl, r *catalog.Relation) {
	column := c.findRuleColumn(decl.subjectAt, r, decl.subject)
	if column == nil {
		return
	}
	if f := typeFamily(column.Type); f == "" || f == "date" || column.Nondeterministic {
		c.fail(decl.subjectAt, "a subject is a uuid, an integer or a text whose collation tells all texts apart",
			"%s.%s is a %s, which cannot say whom a row is about", r.Name, decl.subject, column.Type)
	}
}

// checkSingleRows refuses dimensions and measures by which agents would learn more about a single visible row than its
// columns show them. Visible rows count with their unmasked values, also in a group of one: sum(pay) FILTER (WHERE dept
// = 'ceo') would be one person's pay.
func (c *aggregateCompiler) checkSingleRows(decl *aggregateDecl, r *catalog.Relation) {
	columns := c.tables[r.Name].decl.columns
	if columns == nil || len(decl.accept) > 0 {
		return
	}
	check := func(position place, name, by string) {
		if r.Column(name) == nil {
			return
		}
		i := slices.IndexFunc(columns, func(d columnDecl) bool { return d.Name == name })
		label, advice := "is hidden", "say allow under columns"
		switch {
		case i < 0:
		case columns[i].byKey != nil:
			label = "exists by key only"
		case by != "" && slices.Contains(truncationUnits[columns[i].Unit], by), columns[i].Mask == Plain && !columns[i].generalised:
			return
		case by != "" && columns[i].Unit != "":
			label, advice = "shows by the "+columns[i].Unit, "write { by: "+columns[i].Unit+" }"
		default:
			label = "is masked"
		}
		c.fail(position, advice+", leave it out, or say accept: ["+acceptValues+"]",
			"%s.%s %s, and an aggregate that chooses a single row which shows would tell more of it", r.Name, name, label)
	}
	for _, d := range decl.dimensions {
		check(d.place, d.column, d.unit)
	}
	for _, m := range decl.measures {
		check(m.place, m.column, "")
	}
}

// compileDimension compiles a dimension. Equal values of its column must be identical. Otherwise an expression could
// distinguish two equal values in a cell, and so divide the cell.
func (c *aggregateCompiler) compileDimension(d dimensionDecl, decl *aggregateDecl, r *catalog.Relation) Dimension {
	out := Dimension{Column: d.column, Unit: d.unit, OnlyPastPeriods: d.onlyPastPeriods}
	column := c.findRuleColumn(d.place, r, d.column)
	if column == nil {
		return out
	}
	out.Type, out.OID = column.Type, column.TypeOID
	time := column.TypeOID == 1082 || column.TypeOID == 1114 || column.TypeOID == 1184
	enum := c.snap.TypeByOID(column.TypeOID) != nil && c.snap.TypeByOID(column.TypeOID).Kind == 'e'
	switch {
	case d.column == decl.subject:
		c.fail(d.place, "leave it out", "%s is the subject: a group of one subject is never returned", d.column)
	case time && d.unit == "":
		c.fail(d.place, "write { by: month }", "%s.%s is a %s: say by which unit it may group", r.Name, d.column, column.Type)
	case !time && d.unit != "":
		c.fail(d.place, "by is for dates and timestamps; write allow", "%s.%s is a %s", r.Name, d.column, column.Type)
	case column.TypeOID == 1082 && d.unit == "hour":
		c.fail(d.place, "write { by: day }", "%s.%s is a date, which has no hours", r.Name, d.column)
	case !time && !enum && typeFamily(column.Type) == "" && column.Type != "boolean", column.Nondeterministic:
		c.fail(d.place, "dimensions are uuid, integer, text, boolean, enum and time columns, of collations that "+
			"tell all texts apart",
			"%s.%s is a %s, whose equal values may differ", r.Name, d.column, column.Type)
	case !time && slices.ContainsFunc(r.UniqueKeys, func(k catalog.Key) bool {
		return slices.Equal(k.EqualColumns,
			[]string{d.column})
	}),
		!time && slices.Equal(r.PrimaryKey, []string{d.column}):
		c.fail(d.place, "leave it out", "%s.%s is unique: every group would be a single row", r.Name, d.column)
	}
	return out
}

// compileMeasure compiles a measure, whose column must be a number.
func (c *aggregateCompiler) compileMeasure(m measureDecl, decl *aggregateDecl, r *catalog.Relation) Measure {
	out := Measure{Column: m.column, Low: m.low, High: m.high}
	column := c.findRuleColumn(m.place, r, m.column)
	if column == nil || m.low == "" {
		return out
	}
	out.Type = column.Type
	limit := map[string]string{"smallint": "32767", "integer": "2147483647", "bigint": "9223372036854775807"}[column.Type]
	baseType, _, _ := strings.Cut(column.Type, "(")
	switch {
	case m.column == decl.subject:
		c.fail(m.place, "leave it out", "%s is the subject", m.column)
	case limit != "":
		for _, bound := range []string{m.low, m.high} {
			value, _ := new(big.Rat).SetString(bound)
			maximum, _ := new(big.Rat).SetString(limit)
			if !value.IsInt() || new(big.Rat).Abs(value).Cmp(maximum) > 0 {
				c.fail(m.place, "", "%s is no value of %s.%s, which is a %s", bound, r.Name, m.column, column.Type)
			}
		}
	case baseType != "numeric" && column.Type != "real" && column.Type != "double precision":
		c.fail(m.place, "measures are numbers", "%s.%s is a %s", r.Name, m.column, column.Type)
	}
	return out
}
