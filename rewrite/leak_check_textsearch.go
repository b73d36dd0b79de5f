package rewrite

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A text search may parse its query by a function in FROM: `FROM documents, to_tsquery($1) AS q WHERE found @@ q`. If
// the rewriter makes such a search find its rows by key, the subquery of keys calls the function in its own FROM as
// well. A function of constants and parameters returns the same row there.

// textSearchFunctions returns the functions in FROM that parse the query of a text search, in the order of the text. It
// leaves out functions on the side of an outer join that may be missing from a row.
func textSearchFunctions(from []*sqltext.Node) (out []*sqltext.RangeFunction) {
	var visit func(n *sqltext.Node, missing bool)
	visit = func(n *sqltext.Node, missing bool) {
		switch n := n.GetNode().(type) {
		case *sqltext.Node_RangeFunction:
			if !missing {
				out = append(out, n.RangeFunction)
			}
		case *sqltext.Node_JoinExpr:
			j := n.JoinExpr
			visit(j.Larg, missing || j.Jointype != sqltext.JOIN_INNER && j.Jointype != sqltext.JOIN_LEFT)
			visit(j.Rarg, missing || j.Jointype != sqltext.JOIN_INNER && j.Jointype != sqltext.JOIN_RIGHT)
		}
	}
	for _, n := range from {
		visit(n, false)
	}
	return out
}

// rangeFunctionName returns the name of a FROM item with a single function: its alias, or the function's name.
func rangeFunctionName(f *sqltext.RangeFunction) string {
	if a := f.GetAlias(); a != nil {
		return a.Aliasname
	}
	return lastNamePart(f.Functions[0].GetList().GetItems()[0].GetFuncCall().GetFuncname())
}

// namedFunctions returns the indexes of the functions in all that an expression may name, by their alias or by their
// column.
func namedFunctions(n *sqltext.Node, all []*sqltext.RangeFunction) (out []int) {
	var visit func(*sqltext.Node)
	visit = func(n *sqltext.Node) {
		if fields := n.GetColumnRef().GetFields(); len(fields) > 0 {
			for i, f := range all {
				name := fields[0].GetString_().GetSval()
				column := len(fields) == 1 &&
					slices.ContainsFunc(f.GetAlias().GetColnames(),
						func(n *sqltext.Node) bool { return n.GetString_().GetSval() == name })
				if (rangeFunctionName(f) == name || column) && !slices.Contains(out, i) {
					out = append(out, i)
				}
			}
		}
		sqltext.EachChild(n, visit)
	}
	visit(n)
	return out
}

// fromClauseOf returns the FROM items (for DELETE, the USING items) of a query, without the table to which it writes.
func fromClauseOf(m proto.Message) []*sqltext.Node {
	switch x := m.(type) {
	case *sqltext.SelectStmt:
		return x.FromClause
	case *sqltext.UpdateStmt:
		return x.FromClause
	case *sqltext.DeleteStmt:
		return x.UsingClause
	}
	return nil
}

// rangeFunctionText returns the text of a function in FROM, for the FROM clause of the subquery of keys.
func rangeFunctionText(source *sqltext.Source, f *sqltext.RangeFunction) (string, bool) {
	call := f.Functions[0].GetList().GetItems()[0].GetFuncCall()
	first := source.TokenAt(call.GetLocation())
	openParen := first
	for openParen >= 0 && openParen < len(source.Tokens) && source.KindAt(openParen) != sqltext.OpenParen {
		openParen++
	}
	last := source.ClosingParen(openParen)
	if first < 0 || last < 0 || last >= len(source.Tokens) {
		return "", false
	}
	text := source.Text[source.Tokens[first].Start:source.Tokens[last].End]
	if a := f.GetAlias(); a != nil {
		text += " AS " + catalog.QuoteIdent(a.Aliasname)
		for _, n := range a.Colnames { // the alias has at most one column name
			text += " (" + catalog.QuoteIdent(n.GetString_().GetSval()) + ")"
		}
	}
	return text, true
}
