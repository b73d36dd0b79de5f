package rewrite

import (
	"regexp"
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// The proxy may send a Query with parameters in place of some literals, so that PostgreSQL can cache its plan. The
// client must not notice it. So a parameter replaces only a literal that a condition compares with a table's column for
// equality, where the parameter has the same type and value. In a GROUP BY, an output or a LIMIT the literal itself
// matters.
//
// PostgreSQL plans such a statement for any value. A value that is in many rows may need another plan than most. So a
// string is replaced only if the column is unique by itself or holds uuids. Integers and uuids are always replaced,
// because they mostly identify one thing.

var plainUUID = regexp.MustCompile(`^[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}$`)

// IsPlainUUID tells whether a string is a uuid as PostgreSQL writes one, with small or capital letters.
func IsPlainUUID(s string) bool { return len(s) == 36 && plainUUID.MatchString(s) }

// BindableLiteral is a literal of a text in whose place a parameter may stand.
type BindableLiteral struct {
	Number int  // the number of the literal, from 0, among those that [sqltext.TextShape] finds
	IsUUID bool // other literals in place of this one must be uuids as well: see [IsPlainUUID]
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
	search.visit(s.WhereClause)
	for _, item := range s.FromClause {
		search.visitJoin(item)
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
}

func (b *bindableSearch) visitJoin(n *sqltext.Node) {
	if j := n.GetJoinExpr(); j != nil {
		b.visit(j.Quals)
		b.visitJoin(j.Larg)
		b.visitJoin(j.Rarg)
	}
}

// visit follows AND, OR and NOT down to comparisons.
func (b *bindableSearch) visit(n *sqltext.Node) {
	for _, arg := range n.GetBoolExpr().GetArgs() {
		b.visit(arg)
	}
	x := n.GetAExpr()
	if x == nil || len(x.Name) != 1 || x.Name[0].GetString_().GetSval() != "=" {
		return
	}
	switch x.Kind {
	case sqltext.AEXPR_OP:
		if column := x.Lexpr.GetColumnRef(); column != nil {
			b.compare(column, x.Rexpr)
		} else if column := x.Rexpr.GetColumnRef(); column != nil {
			b.compare(column, x.Lexpr)
		}
	case sqltext.AEXPR_IN:
		if column := x.Lexpr.GetColumnRef(); column != nil {
			b.compare(column, x.Rexpr.GetList().GetItems()...)
		}
	}
}

// compare notes the literals with which a condition compares a column: either all of them are bindable, or none.
func (b *bindableSearch) compare(column *sqltext.ColumnRef, values ...*sqltext.Node) {
	isNumber, isUUID, ok := b.kindOf(column)
	if !ok {
		return
	}
	countBefore := len(b.bindable)
	for _, value := range values {
		number := b.literalAt(value.GetAConst())
		if number < 0 || b.literals[number].IsString(b.source.Text) == isNumber ||
			isUUID && !IsPlainUUID(b.literals[number].Value(b.source.Text)) {
			b.bindable = b.bindable[:countBefore]
			return
		}
		b.bindable = append(b.bindable, BindableLiteral{Number: number, IsUUID: isUUID})
	}
}

// literalAt returns the number of the literal that a constant is, or -1.
func (b *bindableSearch) literalAt(c *sqltext.A_Const) int {
	if c == nil || c.Isnull || c.GetIval() == nil && c.GetSval() == nil {
		return -1
	}
	return slices.IndexFunc(b.literals, func(l sqltext.Literal) bool { return l.Start == int(c.Location) })
}

// kindOf tells which parameters can be compared with a column: numbers, or strings, which may have to be uuids.
// PostgreSQL gives the parameter the column's type, and a number of nine digits is in the range of each such type.
func (b *bindableSearch) kindOf(column *sqltext.ColumnRef) (isNumber, isUUID, ok bool) {
	resolved := b.resolveColumn(column, b.level)
	if !resolved.known || !resolved.ofTable || resolved.computed || resolved.outer {
		return false, false, false
	}
	switch resolved.rawOID {
	case 20, 23:
		return true, false, true
	case 2950:
		return false, true, true
	case 25, 1043:
		return false, false, b.isUnique(column)
	}
	return false, false, false
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
