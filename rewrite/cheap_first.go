package rewrite

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// In a hardened plan all operators cost nothing, so that row policies come first. PostgreSQL then computes the
// conditions of a WHERE in their order in the text, but equalities last (equivclass.c). So `productid = 5 AND price /
// amount > 29` would divide for the rows of all products, and fail where an ordinary plan does not. The rewriter
// repeats the cheap conditions in front, in a form that PostgreSQL does not move:
//
//	COALESCE(productid = 5, false) AND productid = 5 AND price / amount > 29

// cheapConditions are conditions of one WHERE clause that the rewriter repeats at the beginning of the clause.
type cheapConditions struct {
	at    int32 // the byte where the WHERE's first condition begins
	sql   string
	nodes []*sqltext.Node
	where *sqltext.Node
}

// noteCheapConditions notes the cheap conditions of a WHERE clause that also has conditions which may fail for a row.
// Each item of FROM gets a repetition of its own, because PostgreSQL would evaluate a condition on two items later.
func (w *walker) noteCheapConditions(where *sqltext.Node) {
	all := where.GetBoolExpr()
	if all.GetBoolop() != sqltext.AND_EXPR || len(all.GetArgs()) < 2 || w.refused != nil || w.repeated || w.scope == nil {
		return
	}
	var flat []*sqltext.Node
	var flatten func(nodes []*sqltext.Node)
	flatten = func(nodes []*sqltext.Node) {
		for _, n := range nodes {
			if b := n.GetBoolExpr(); b != nil && b.Boolop == sqltext.AND_EXPR {
				flatten(b.Args)
			} else {
				flat = append(flat, n)
			}
		}
	}
	flatten(all.Args)
	if !slices.ContainsFunc(flat, mayFailForARow) {
		return
	}
	spans, found := w.source.WhereConditions(where)
	if !found || len(spans) != len(flat) {
		return
	}
	var items []*fromItem
	texts := map[*fromItem][]string{}
	for i, n := range flat {
		item := w.cheapConditionOf(n)
		if item == nil {
			continue
		}
		if texts[item] == nil {
			items = append(items, item)
		}
		texts[item] = append(texts[item], w.source.Text[spans[i].Start:spans[i].End])
	}
	cheap := cheapConditions{at: spans[0].Start, where: where}
	for _, item := range items {
		sql := "COALESCE(" + strings.Join(texts[item], " AND ") + ", false)"
		node := parseExpression(sql)
		if node == nil {
			return
		}
		cheap.sql += sql + " AND "
		cheap.nodes = append(cheap.nodes, node)
	}
	if len(items) > 0 {
		w.cheapConditions = append(w.cheapConditions, cheap)
	}
}

// addCheapConditions writes the noted conditions into the text.
func (w *walker) addCheapConditions() {
	for _, c := range w.cheapConditions {
		w.replace(c.at, c.at, c.sql, func() {
			c.where.Node = &sqltext.Node_BoolExpr{BoolExpr: &sqltext.BoolExpr{Boolop: sqltext.AND_EXPR,
				Args: append(slices.Clone(c.nodes), &sqltext.Node{Node: c.where.Node})}}
		})
	}
}

// cheapConditionOf returns the table whose column a condition compares with constants or parameters, by operators and
// types of PostgreSQL. The result is nil for any other condition.
func (w *walker) cheapConditionOf(n *sqltext.Node) *fromItem {
	column := n.GetNullTest().GetArg().GetColumnRef()
	if x := n.GetAExpr(); x != nil {
		if x.Kind != sqltext.AEXPR_OP && x.Kind != sqltext.AEXPR_IN && x.Kind != sqltext.AEXPR_BETWEEN || len(x.Name) != 1 ||
			x.Kind != sqltext.AEXPR_BETWEEN && !slices.Contains(comparisonOperators, lastNamePart(x.Name)) {
			return nil
		}
		operands := []*sqltext.Node{x.Rexpr}
		if list := x.Rexpr.GetList(); list != nil {
			operands = list.Items
		}
		if slices.ContainsFunc(operands, func(n *sqltext.Node) bool { return n.GetAConst() == nil && n.GetParamRef() == nil }) {
			return nil
		}
		column = x.Lexpr.GetColumnRef()
	}
	if column == nil {
		return nil
	}
	item, stored := w.storedColumnOf(column)
	if stored == nil || !slices.Contains(cheapTypes, stored.TypeOID) {
		return nil
	}
	return item
}

// cheapTypes are bool, bigint, smallint, integer, text, real, double precision, character, varchar, date, timestamp,
// timestamptz, numeric and uuid.
var cheapTypes = []uint32{16, 20, 21, 23, 25, 700, 701, 1042, 1043, 1082, 1114, 1184, 1700, 2950}

// mayFailForARow tells whether a condition divides or casts columns, or calls a function of columns. Such a condition
// may fail for some row, and takes longer than a comparison.
func mayFailForARow(n *sqltext.Node) bool {
	hasName, fallible := false, false
	sqltext.Walk(n, func(m proto.Message) bool {
		switch x := m.(type) {
		case *sqltext.SelectStmt:
			return false
		case *sqltext.ColumnRef:
			hasName = true
		case *sqltext.FuncCall:
			fallible = fallible || leakSafeList["function "+lastNamePart(x.Funcname)] == nil
		case *sqltext.TypeCast:
			fallible = fallible || x.Arg.GetAConst() == nil && x.Arg.GetParamRef() == nil
		case *sqltext.A_Expr:
			fallible = fallible || x.Kind == sqltext.AEXPR_OP && slices.Contains([]string{"/", "%"}, lastNamePart(x.Name))
		}
		return true
	})
	return hasName && fallible
}
