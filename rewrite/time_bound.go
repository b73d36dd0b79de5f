package rewrite

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// Many queries select the last week by `created_at >= CURRENT_DATE - interval '7 days'`, which compares a timestamp
// with time zone with one without. PostgreSQL takes such operators for leaky, so that they use no index under row
// security. They convert the one without time zone (timestamp2timestamptz_opt_overflow and its like in timestamp.c and
// date.c), as a cast does. The only difference: the cast fails for values that the other type cannot hold, and the
// operator does not. The bounds here are not near those limits.

// timeBounds casts the operands of comparisons with indexed columns to the columns' types, where that means the same.
// It casts in conditions only, because an expression of GROUP BY must equal other expressions of the text.
func (w *walker) timeBounds(condition *sqltext.Node) {
	if b := condition.GetBoolExpr(); b != nil && b.Boolop != sqltext.NOT_EXPR {
		for _, arg := range b.Args {
			w.timeBounds(arg)
		}
	}
	x := condition.GetAExpr()
	column := x.GetLexpr().GetColumnRef()
	if w.refused != nil || w.repeated || column == nil || len(x.Name) != 1 {
		return
	}
	switch name := lastName(x.Name); {
	case x.Kind == sqltext.AEXPR_OP && slices.Contains([]string{"=", "<", "<=", ">", ">="}, name):
		at := w.source.At(x.Location)
		w.noteTimeWindow(condition, column, name, x.Rexpr)
		w.timeBound(column, x.Rexpr, at+1, func(n *sqltext.Node) { x.Rexpr = n })
	case x.Kind == sqltext.AEXPR_BETWEEN && len(x.Rexpr.GetList().GetItems()) == 2:
		items, at := x.Rexpr.GetList().Items, w.source.At(x.Location)
		w.noteTimeWindow(condition, column, "BETWEEN", items...)
		end := w.timeBound(column, items[0], at+1, func(n *sqltext.Node) { items[0] = n })
		if end > 0 {
			w.timeBound(column, items[1], end+1, func(n *sqltext.Node) { items[1] = n })
		}
	}
}

// timeBound casts one bound, whose text begins at a token, and returns the token after the bound; 0: the token begins
// no bound.
func (w *walker) timeBound(column *sqltext.ColumnRef, n *sqltext.Node, first int, put func(*sqltext.Node)) int {
	relation, stored := w.storedColumn(column)
	if stored == nil || !slices.ContainsFunc(relation.Indexes,
		func(i catalog.BTree) bool { return slices.Contains(i.Columns, stored.Name) }) {
		return 0
	}
	bound, ok := w.timeBoundOf(n)
	to := map[uint32]string{1184: "timestamptz", 1114: "timestamp"}[stored.TypeOID]
	if !ok || to == "" || stored.TypeOID == 1114 && bound.result() != "date" {
		return 0
	}
	open, last, ok := w.timeBoundTokens(bound, first)
	if !ok {
		return 0
	}
	before, behind := "", ")::pg_catalog."+to
	if open || bound.shift == "" {
		behind = behind[1:]
	} else {
		before = "("
	}
	cast := &sqltext.Node{Node: &sqltext.Node_TypeCast{
		TypeCast: &sqltext.TypeCast{Arg: n, TypeName: &sqltext.TypeName{
			Names: []*sqltext.Node{stringNode("pg_catalog"), stringNode(to)}, Typemod: -1}}}}
	if before != "" {
		start := w.source.Tokens[first].Start
		w.replace(start, start, before, func() {})
	}
	end := w.source.Tokens[last].End
	w.replace(end, end, behind, func() { put(cast) })
	return last + 1
}

// nearTime is a time in the middle of the calendar: today, or a written day or time, shifted by days or an interval.
type nearTime struct {
	from  string // "current_date", "date" or "timestamp"
	shift string // "", "days" or "span"
}

// result is its type.
func (b nearTime) result() string {
	switch {
	case b.shift == "span":
		return "timestamp"
	case b.from == "current_date":
		return "date"
	}
	return b.from
}

var (
	datePattern      = regexp.MustCompile(`^(19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}$`)
	timestampPattern = regexp.MustCompile(`^(19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?$`)
)

// timeBoundOf tells whether an expression is such a time.
func (w *walker) timeBoundOf(n *sqltext.Node) (b nearTime, ok bool) {
	if x := n.GetAExpr(); x != nil {
		name := lastName(x.Name)
		if x.Kind != sqltext.AEXPR_OP || len(x.Name) != 1 || name != "+" && name != "-" || x.Lexpr == nil {
			return b, false
		}
		if b, ok = w.timeBoundOf(x.Lexpr); !ok || b.shift != "" {
			return b, false
		}
		if days := x.Rexpr.GetAConst().GetIval(); days != nil {
			b.shift = "days"
			return b, b.from != "timestamp" && 0 <= days.Ival && days.Ival <= maxDays
		}
		b.shift = "span"
		length, is := w.castConstant(x.Rexpr, "interval")
		return b, is && intervalPattern.MatchString(length)
	}
	if v := n.GetSqlvalueFunction(); v != nil {
		b.from = "current_date"
		return b, v.Op == sqltext.SVFOP_CURRENT_DATE
	}
	if text, is := w.castConstant(n, "date"); is {
		b.from = "date"
		return b, datePattern.MatchString(text)
	}
	text, is := w.castConstant(n, "timestamp")
	b.from = "timestamp"
	return b, is && timestampPattern.MatchString(text)
}

// castConstant is the text of a constant that is cast to a type of PostgreSQL.
func (w *walker) castConstant(n *sqltext.Node, of string) (string, bool) {
	c := n.GetTypeCast()
	if c.GetArg().GetAConst().GetSval() == nil || !w.isOwnType(c.TypeName, of) {
		return "", false
	}
	return c.Arg.GetAConst().GetSval().Sval, true
}

// isOwnType tells whether a type is the one of that name of PostgreSQL, without modifiers.
func (w *walker) isOwnType(t *sqltext.TypeName, name string) bool {
	schema, written, ok := qualifiedName(t.GetNames())
	return ok && written == name && len(t.Typmods) == 0 && len(t.ArrayBounds) == 0 && !t.Setof && !t.PctType &&
		(schema == "pg_catalog" || schema == "" && len(w.snap.TypesNamed("", name)) == 1)
}

// timeBoundTokens finds the tokens of a bound, the first of which is given. open tells that parentheses stand around
// it. It does not find bounds that are written in another way.
func (w *walker) timeBoundTokens(b nearTime, first int) (open bool, last int, ok bool) {
	i, depth := first, 0
	word := func(k int) string {
		if k < 0 || k >= len(w.source.Tokens) {
			return ""
		}
		return strings.ToLower(w.source.Text[w.source.Tokens[k].Start:w.source.Tokens[k].End])
	}
	constant := func(of string) bool { // DATE '…' and '…'::date
		switch {
		case word(i) == of && w.source.Kind(i+1) == sqltext.Sconst:
			i += 2
		case w.source.Kind(i) == sqltext.Sconst && word(i+1) == "::" && word(i+2) == of:
			i += 3
		default:
			return false
		}
		return true
	}
	for ; w.source.Kind(i) == sqltext.OpenParen; i++ {
		depth++
	}
	if b.from == "current_date" {
		if word(i) != "current_date" {
			return false, 0, false
		}
		i++
	} else if !constant(b.from) {
		return false, 0, false
	}
	if b.shift != "" {
		if word(i) != "+" && word(i) != "-" {
			return false, 0, false
		}
		if i++; b.shift == "days" {
			i++
		} else if !constant("interval") {
			return false, 0, false
		}
	}
	for k := depth; k > 0; k-- {
		if w.source.Kind(i) != sqltext.CloseParen {
			return false, 0, false
		}
		i++
	}
	return depth > 0, i - 1, true
}
