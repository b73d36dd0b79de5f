package rewrite

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// Many queries select the rows of the last week by `created_at >= CURRENT_DATE - interval '7 days'`. This compares a
// timestamp with time zone with one without. PostgreSQL does not consider such operators leak-proof, so under row
// security it uses no index for them. The operators convert the value without time zone
// (timestamp2timestamptz_opt_overflow and similar functions in timestamp.c and date.c), as a cast does. The only
// difference is that the cast fails for values that the other type cannot hold. The rewriter adds the cast only to
// values that are far from those limits.

// castTimeBounds adds casts to operands that a condition compares with indexed columns, if the meaning stays the same.
// The cast is to the type of the column. Only conditions are changed, because an expression of GROUP BY must equal
// other expressions of the text.
func (w *walker) castTimeBounds(condition *sqltext.Node) {
	if b := condition.GetBoolExpr(); b != nil && b.Boolop != sqltext.NOT_EXPR {
		for _, arg := range b.Args {
			w.castTimeBounds(arg)
		}
	}
	x := condition.GetAExpr()
	column := x.GetLexpr().GetColumnRef()
	if w.refused != nil || w.repeated || column == nil || len(x.Name) != 1 {
		return
	}
	switch name := lastNamePart(x.Name); {
	case x.Kind == sqltext.AEXPR_OP && slices.Contains([]string{"=", "<", "<=", ">", ">="}, name):
		tokenIndex := w.source.TokenAt(x.Location)
		w.noteTimeWindow(condition, column, name, x.Rexpr)
		w.castTimeBound(column, x.Rexpr, tokenIndex+1, func(n *sqltext.Node) { x.Rexpr = n })
	case x.Kind == sqltext.AEXPR_BETWEEN && len(x.Rexpr.GetList().GetItems()) == 2:
		items, tokenIndex := x.Rexpr.GetList().Items, w.source.TokenAt(x.Location)
		w.noteTimeWindow(condition, column, "BETWEEN", items...)
		end := w.castTimeBound(column, items[0], tokenIndex+1, func(n *sqltext.Node) { items[0] = n })
		if end > 0 {
			w.castTimeBound(column, items[1], end+1, func(n *sqltext.Node) { items[1] = n })
		}
	}
}

// castTimeBound adds the cast to one bound, whose text begins at the token first. It returns the index of the token
// after the bound, or 0 if no such bound begins there.
func (w *walker) castTimeBound(column *sqltext.ColumnRef, n *sqltext.Node, first int, put func(*sqltext.Node)) int {
	relation, stored := w.storedColumn(column)
	if stored == nil || !slices.ContainsFunc(relation.BTrees,
		func(i catalog.BTree) bool { return slices.Contains(i.Columns, stored.Name) }) {
		return 0
	}
	bound, ok := w.timeBoundOf(n)
	to := map[uint32]string{1184: "timestamptz", 1114: "timestamp"}[stored.TypeOID]
	if !ok || to == "" || stored.TypeOID == 1114 && bound.typeName() != "date" {
		return 0
	}
	isParenthesized, last, ok := w.timeBoundTokens(bound, first)
	if !ok {
		return 0
	}
	before, after := "", ")::pg_catalog."+to
	if isParenthesized || bound.shift == "" {
		after = after[1:]
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
	w.replace(end, end, after, func() { put(cast) })
	return last + 1
}

// nearTime is a time that is far from both ends of PostgreSQL's range. It is the current date, or a day or time written
// as a constant, plus or minus days or an interval.
type nearTime struct {
	base  string // what the time begins with: "current_date", "date" or "timestamp"
	shift string // what the expression adds or subtracts: "", "days" or "span" (an interval)
}

// typeName returns the type that the expression has.
func (b nearTime) typeName() string {
	switch {
	case b.shift == "span":
		return "timestamp"
	case b.base == "current_date":
		return "date"
	}
	return b.base
}

var (
	datePattern      = regexp.MustCompile(`^(19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}$`)
	timestampPattern = regexp.MustCompile(`^(19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?$`)
)

// timeBoundOf returns the nearTime that an expression is. ok is false for other expressions.
func (w *walker) timeBoundOf(n *sqltext.Node) (b nearTime, ok bool) {
	if x := n.GetAExpr(); x != nil {
		name := lastNamePart(x.Name)
		if x.Kind != sqltext.AEXPR_OP || len(x.Name) != 1 || name != "+" && name != "-" || x.Lexpr == nil {
			return b, false
		}
		if b, ok = w.timeBoundOf(x.Lexpr); !ok || b.shift != "" {
			return b, false
		}
		if days := x.Rexpr.GetAConst().GetIval(); days != nil {
			b.shift = "days"
			return b, b.base != "timestamp" && 0 <= days.Ival && days.Ival <= maxDays
		}
		b.shift = "span"
		length, isOfKind := w.castConstant(x.Rexpr, "interval")
		return b, isOfKind && intervalPattern.MatchString(length)
	}
	if v := n.GetSqlvalueFunction(); v != nil {
		b.base = "current_date"
		return b, v.Op == sqltext.SVFOP_CURRENT_DATE
	}
	if text, isOfKind := w.castConstant(n, "date"); isOfKind {
		b.base = "date"
		return b, datePattern.MatchString(text)
	}
	text, isOfKind := w.castConstant(n, "timestamp")
	b.base = "timestamp"
	return b, isOfKind && timestampPattern.MatchString(text)
}

// castConstant returns the text of a string literal with a cast to the type of pg_catalog that of names.
func (w *walker) castConstant(n *sqltext.Node, of string) (string, bool) {
	c := n.GetTypeCast()
	if c.GetArg().GetAConst().GetSval() == nil || !w.isCatalogType(c.TypeName, of) {
		return "", false
	}
	return c.Arg.GetAConst().GetSval().Sval, true
}

// isCatalogType tells whether a type name means the type of pg_catalog with this name, without modifiers.
func (w *walker) isCatalogType(t *sqltext.TypeName, name string) bool {
	schema, nameText, ok := qualifiedName(t.GetNames())
	return ok && nameText == name && len(t.Typmods) == 0 && len(t.ArrayBounds) == 0 && !t.Setof && !t.PctType &&
		(schema == "pg_catalog" || schema == "" && len(w.snap.TypesNamed("", name)) == 1)
}

// timeBoundTokens returns the index of the last token of a bound that begins at the token first. isParenthesized: the
// bound is in parentheses. ok is false if the text writes the bound in another way than this function knows.
func (w *walker) timeBoundTokens(b nearTime, first int) (isParenthesized bool, last int, ok bool) {
	i, depth := first, 0
	word := func(k int) string {
		if k < 0 || k >= len(w.source.Tokens) {
			return ""
		}
		return strings.ToLower(w.source.Text[w.source.Tokens[k].Start:w.source.Tokens[k].End])
	}
	constant := func(of string) bool { // the constant is DATE '…' or '…'::date
		switch {
		case word(i) == of && w.source.KindAt(i+1) == sqltext.Sconst:
			i += 2
		case w.source.KindAt(i) == sqltext.Sconst && word(i+1) == "::" && word(i+2) == of:
			i += 3
		default:
			return false
		}
		return true
	}
	for ; w.source.KindAt(i) == sqltext.OpenParen; i++ {
		depth++
	}
	if b.base == "current_date" {
		if word(i) != "current_date" {
			return false, 0, false
		}
		i++
	} else if !constant(b.base) {
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
		if w.source.KindAt(i) != sqltext.CloseParen {
			return false, 0, false
		}
		i++
	}
	return depth > 0, i - 1, true
}
