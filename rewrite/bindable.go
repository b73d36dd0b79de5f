package rewrite

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// The proxy may send a Query with parameters in place of some literals, so that it need not decide, and PostgreSQL need
// not parse, each text that differs from others in a literal only. The client must not notice it. So a parameter
// replaces only a literal that a condition compares with a table's column, or with another number, where the parameter
// has the same type and value. In a GROUP BY, an output or a LIMIT the literal itself matters.
//
// A value that is in many rows may need another plan than most. Integers and uuids that are compared for equality
// mostly identify one thing, and so does a string in a column that is unique by itself: PostgreSQL may keep one plan
// for all of them. For other literals it must plan the statement with its values: see [BindableLiteral.NeedsPlan]. It
// need not if the query finds one row at most, by a unique key of its only table.

// LiteralForm is the form of the literals that a parameter may replace in one place of a text. A literal of another
// form could make PostgreSQL report an error, with its position in the text, or could have another value.
type LiteralForm int

// The forms of literals.
const (
	AnyLiteral LiteralForm = iota
	UUIDLiteral
	TimeLiteral // a date, or a date and a time of day, as in 2024-12-31 23:59:59.5
)

var plainUUID = regexp.MustCompile(`^[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}$`)

// Fits reports whether the value of a literal has the form.
func (f LiteralForm) Fits(value string) bool {
	switch f {
	case UUIDLiteral:
		return len(value) == 36 && plainUUID.MatchString(value)
	case TimeLiteral:
		layout := time.DateTime
		if len(value) == len(time.DateOnly) {
			layout = time.DateOnly
		}
		at, err := time.Parse(layout, value) // also takes fractions of a second
		return err == nil && at.Year() > 0 && len(value) <= len("2024-12-31 23:59:59.999999") && !strings.Contains(value, ",")
	default:
		return true
	}
}

// BindableLiteral is a literal of a text in whose place a parameter may stand.
type BindableLiteral struct {
	Number    int         // the number of the literal, from 0, among those that [sqltext.TextShape] finds
	Form      LiteralForm // the form that other literals in place of this one must have as well
	NeedsPlan bool        // PostgreSQL must plan the statement for the value of the literal
}

// bindableLiterals finds the literals of a SELECT in whose place parameters may stand. It searches only the conditions
// of the outermost query.
func (w *walker) bindableLiterals(tree *sqltext.ParseResult) []BindableLiteral {
	_, literals := sqltext.TextShape(w.source.Text)
	if len(literals) == 0 || len(tree.Stmts) != 1 {
		return nil
	}
	s := tree.Stmts[0].GetStmt().GetSelectStmt()
	if s == nil || s.Op != sqltext.SETOP_NONE || s.IntoClause != nil || len(s.FromClause) == 0 ||
		!w.source.HasLiterals(literals) || slices.ContainsFunc(w.references, (*reference).isCatalog) {
		return nil
	}
	c := w.newHardenedAnalysis(w.referencesByRangeVar())
	defer c.pushCTEs(s, nil, func(*sqltext.CommonTableExpr) {})()
	search := &bindableSearch{hardenedAnalysis: c, level: c.levelOf(s, nil), literals: literals}
	search.visit(s.WhereClause, true)
	for _, item := range s.FromClause {
		search.visitJoin(item)
	}
	if search.findsOneRow() {
		for i := range search.bindable {
			search.bindable[i].NeedsPlan = false
		}
	}
	slices.SortFunc(search.bindable, func(a, b BindableLiteral) int { return a.Number - b.Number })
	return search.bindable
}

// bindableSearch searches the conditions of a query for bindable literals.
type bindableSearch struct {
	*hardenedAnalysis
	level    *queryLevel
	literals []sqltext.Literal
	bindable []BindableLiteral

	// the columns that every row of the result has equal to a bindable literal
	equalColumns []string
}

// findsOneRow reports whether the query reads one table and finds at most one row of it, by a unique key.
func (b *bindableSearch) findsOneRow() bool {
	if len(b.level.items) != 1 || b.level.items[0].table == nil {
		return false
	}
	return slices.ContainsFunc(b.level.items[0].table.BTrees, func(index catalog.BTree) bool {
		return index.IsUnique && len(index.Columns) > 0 && !slices.ContainsFunc(index.Columns, func(column string) bool {
			return !slices.Contains(b.equalColumns, column)
		})
	})
}

func (b *bindableSearch) visitJoin(n *sqltext.Node) {
	if j := n.GetJoinExpr(); j != nil {
		b.visit(j.Quals, false)
		b.visitJoin(j.Larg)
		b.visitJoin(j.Rarg)
	}
}

// comparisons are the operators between whose operands a parameter may stand.
var comparisons = []string{"=", "<>", "<", "<=", ">", ">="}

// visit follows AND, OR and NOT down to comparisons. mustHold says that the condition is true for each row of the
// result.
func (b *bindableSearch) visit(n *sqltext.Node, mustHold bool) {
	mustHoldInside := mustHold && n.GetBoolExpr().GetBoolop() == sqltext.AND_EXPR
	for _, arg := range n.GetBoolExpr().GetArgs() {
		b.visit(arg, mustHoldInside)
	}
	x := n.GetAExpr()
	if x == nil || len(x.Name) != 1 {
		return
	}
	operator := x.Name[0].GetString_().GetSval()
	switch x.Kind {
	case sqltext.AEXPR_OP:
		if !slices.Contains(comparisons, operator) {
			return
		}
		column, value := x.Lexpr.GetColumnRef(), x.Rexpr
		if column == nil {
			column, value = x.Rexpr.GetColumnRef(), x.Lexpr
		}
		if column != nil {
			if b.compare(column, operator, value) && operator == "=" && mustHold {
				b.equalColumns = append(b.equalColumns, lastNamePart(column.Fields))
			}
		} else if x.Rexpr.GetAConst().GetIval() != nil {
			b.compareNumbers(x.Lexpr.GetAConst())
		}
	case sqltext.AEXPR_IN, sqltext.AEXPR_BETWEEN, sqltext.AEXPR_NOT_BETWEEN:
		if column := x.Lexpr.GetColumnRef(); column != nil {
			b.compare(column, operator, x.Rexpr.GetList().GetItems()...)
		}
	}
}

// compare notes the literals with which a condition compares a column: either all of them are bindable, or none. It
// reports whether they are.
func (b *bindableSearch) compare(column *sqltext.ColumnRef, operator string, values ...*sqltext.Node) bool {
	kind, ok := b.kindOf(column)
	if !ok {
		return false
	}
	countBefore := len(b.bindable)
	for _, value := range values {
		number := b.literalAt(value.GetAConst())
		if number < 0 || b.literals[number].IsString(b.source.Text) == kind.isNumber ||
			!kind.form.Fits(b.literals[number].Value(b.source.Text)) {
			b.bindable = b.bindable[:countBefore]
			return false
		}
		b.bindable = append(b.bindable, BindableLiteral{Number: number, Form: kind.form,
			NeedsPlan: operator != "=" || !kind.identifies})
	}
	return true
}

// compareNumbers notes the first of two numbers that a condition compares. The second stays: between two parameters
// PostgreSQL would compare texts.
func (b *bindableSearch) compareNumbers(first *sqltext.A_Const) {
	if number := b.literalAt(first); number >= 0 && first.GetIval() != nil {
		b.bindable = append(b.bindable, BindableLiteral{Number: number, NeedsPlan: true})
	}
}

// literalAt returns the number of the literal that a constant is, or -1.
func (b *bindableSearch) literalAt(c *sqltext.A_Const) int {
	if c == nil || c.Isnull || c.GetIval() == nil && c.GetSval() == nil {
		return -1
	}
	return slices.IndexFunc(b.literals, func(l sqltext.Literal) bool { return l.Start == int(c.Location) })
}

// comparedKind says which literals can be compared with a column.
type comparedKind struct {
	isNumber   bool // numbers; otherwise strings of the form
	form       LiteralForm
	identifies bool // a value mostly is in one row or in few
}

// kindOf tells which literals can be compared with a column, so that a parameter of the column's type has the same
// value. A number that [sqltext.TextShape] finds is in the range of each such type. With real and smallint PostgreSQL
// compares literals by another type.
func (b *bindableSearch) kindOf(column *sqltext.ColumnRef) (kind comparedKind, ok bool) {
	resolved := b.resolveColumn(column, b.level)
	if !resolved.known || !resolved.ofTable || resolved.computed || resolved.outer {
		return comparedKind{}, false
	}
	switch resolved.rawOID {
	case 20, 23: // bigint, integer
		return comparedKind{isNumber: true, identifies: true}, true
	case 701, 1700: // double precision, numeric
		return comparedKind{isNumber: true}, true
	case 2950: // uuid
		return comparedKind{form: UUIDLiteral, identifies: true}, true
	case 1082, 1114, 1184: // date, timestamp, timestamptz
		return comparedKind{form: TimeLiteral}, true
	case 25, 1043: // text, varchar
		return comparedKind{identifies: b.isUnique(column)}, true
	}
	return comparedKind{}, false
}

// isUnique tells whether the column is unique in each table that its name may mean.
func (b *bindableSearch) isUnique(column *sqltext.ColumnRef) bool {
	name, unique := lastNamePart(column.Fields), false
	for _, item := range b.level.items {
		if item.table == nil || item.table.Column(name) == nil ||
			len(column.Fields) == 2 && item.alias != column.Fields[0].GetString_().GetSval() {
			continue
		}
		unique = slices.ContainsFunc(item.table.BTrees,
			func(index catalog.BTree) bool { return index.IsUnique && slices.Equal(index.Columns, []string{name}) })
		if !unique {
			return false
		}
	}
	return unique
}
