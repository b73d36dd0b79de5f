package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/builtin"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// An expression is followed down to what may raise an error; whatever names a column of a table beside it is put off by
// row security.

// inside calls f for a node and, where it wants them, for those inside.
func (c *cautious) inside(n *sqltext.Node, f func(*sqltext.Node) bool) {
	if n == nil || !f(n) {
		return
	}
	if c.visits++; c.visits > maxVisits { // from each part of a long expression
		c.because("it is too long to be followed")
		return
	}
	sqltext.Children(n, func(child *sqltext.Node) { c.inside(child, f) })
}

// quiet kinds of nodes raise nothing themselves.
var quiet = []string{
	"A_Const", "A_Star", "Boolean", "BoolExpr", "BooleanTest", "CaseWhen", "ColumnRef", "Float", "Integer", "List",
	"NamedArgExpr", "NullTest",
	"ParamRef", "ResTarget", "RowExpr", "SQLValueFunction", "SortBy", "String", "GroupingSet", "GroupingFunc", "WindowDef",
}

// expr visits an expression, and tells whether it names a column of a table of its own query, sub-selects left out.
func (c *cautious) expr(n *sqltext.Node, at stand) (own bool) {
	if n.GetNode() == nil || c.reason != "" || slices.Contains(c.vetted, n) {
		return false
	}
	switch x := n.GetNode().(type) {
	case *sqltext.Node_SubLink:
		c.operators(x.SubLink.OperName)
		if !at.output && !c.alikeTested(x.SubLink, at) {
			c.because("it compares with what may have to be converted first")
		}
		c.expr(x.SubLink.Testexpr, at)
		c.sublink(x.SubLink, at)
		return false
	case *sqltext.Node_ColumnRef:
		m := c.column(x.ColumnRef, at.level)
		if own = m.own; m.calls {
			c.because("it calls a function that is not PostgreSQL's own")
		}
		c.lost = c.lost || (!m.known || m.vague) && !at.output
		if m.asks && !at.output {
			c.because("it asks for a sub-select of a query in FROM, or for a virtual column")
		}
		if at.strict && m.computed && m.stored {
			c.because("a sub-select reads a column that is computed as it is read")
		}
		c.outputs = c.outputs || at.feeds && (m.computed && m.stored ||
			isStar(n) && (at.merged || slices.ContainsFunc(at.items,
				func(i *source) bool { return i.table != nil && c.computesColumns(i) })))
		if !m.known && at.parent != nil || m.outer && m.computed {
			c.sublinks, c.outputs = true, c.outputs || m.stored
		}
	case *sqltext.Node_FuncCall:
		if !c.plain(x.FuncCall) {
			c.because("it calls a function that is not PostgreSQL's own")
			return false
		}
		if name := lastName(x.FuncCall.Funcname); !at.output && len(x.FuncCall.Args) > 1 && name != "starts_with" &&
			builtin.MayBeLeakproof(name) {
			c.because("it calls a function that is leak-proof, the arguments of which may have to be converted first")
		}
	case *sqltext.Node_A_Expr:
		c.operators(x.AExpr.Name)
		if !at.output && !c.alike(x.AExpr, at) {
			c.because("it compares with what may have to be converted first")
		}
	case *sqltext.Node_SortBy:
		c.operators(x.SortBy.UseOp)
	case *sqltext.Node_A_Indices:
		c.subscripts(x.AIndices, at)
	case *sqltext.Node_TypeCast:
		if !c.known(x.TypeCast.GetTypeName()) {
			c.because("it casts to a type that is not PostgreSQL's own")
			return false
		}
	}
	sqltext.Children(n, func(child *sqltext.Node) { own = c.expr(child, at) || own })
	kind := sqltext.Kind(n)
	passes := own && (n.GetColumnRef() != nil || c.strict(n, at.level)) || c.hasFirm(n, at)
	own = own && c.stays(n, at)
	if !at.output {
		c.leaks(n, at)
	}
	if !slices.Contains(quiet, kind) && !c.harmless(n, at) {
		switch {
		case kind == "A_Indices": // see subscripts
		case kind == "A_ArrayExpr" && !at.output:
			// which PostgreSQL takes for leak-proof, whatever it is made of (contain_leaked_vars)
			c.because("it may make an array of arrays")
		case at.strict:
			c.because("a sub-select computes what may fail: " + kind)
		case at.output:
		case !own:
			c.because("what may fail names no column of a table beside it: " + kind)
		default:
			c.outputs = c.outputs || at.feeds
		}
	}
	return passes
}

// operators wants operators of a name to be PostgreSQL's own, or of extensions that are known. Behind words stand those
// of comparisons.
func (c *cautious) operators(name []*sqltext.Node) {
	names := []string{lastName(name)}
	if len(name) > 0 && strings.Trim(names[0], "ABCDEFGHIJKLMNOPQRSTUVWXYZ ") == "" {
		names = comparisons
	}
	for _, n := range names {
		if slices.ContainsFunc(c.snap.OperatorsNamed("", n),
			func(o *catalog.Operator) bool { return !knownExtension(o.Extension) }) {
			c.because("it uses an operator that is not PostgreSQL's own")
		}
	}
}

func lastName(names []*sqltext.Node) string {
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1].GetString_().GetSval()
}

// plain tells whether a call is of a function that only pg_catalog has by its name, or only for types of extensions,
// which nobody has replaced.
func (c *cautious) plain(f *sqltext.FuncCall) bool {
	schema, name, ok := qualifiedName(f.Funcname)
	if !ok || schema != "" && schema != "pg_catalog" {
		return false
	}
	return schema != "" || !slices.ContainsFunc(c.snap.FunctionsNamed("", name),
		func(f *catalog.Function) bool { return !knownExtension(f.Extension) || f.MayBeReplaced })
}

// sublink visits a sub-select of an expression. In what is shown it runs for rows that are; elsewhere whenever
// something asks.
func (c *cautious) sublink(s *sqltext.SubLink, at stand) {
	query := s.GetSubselect().GetSelectStmt()
	if at.output && !at.strict {
		c.query(query, at.level, true, false)
		return
	}
	switch {
	case s.SubLinkType == sqltext.EXPR_SUBLINK &&
		!(query != nil && (oneRow(query) && c.addsUp(query, at.level) || first(query))):
		c.because("a sub-select that is compared with may have several rows")
		return
	case s.SubLinkType == sqltext.ARRAY_SUBLINK: // of arrays, or a large one
		c.because("a sub-select makes an array")
		return
	}
	c.query(query, at.level, false, true)
}

// addsUp tells whether the aggregate that a SELECT has is its own: one over columns of a query outside alone is that
// one's (check_agglevels_and_constraints of PostgreSQL's parse_agg.c).
func (c *cautious) addsUp(s *sqltext.SelectStmt, parent *level) bool {
	own, outer := false, false
	f := s.TargetList[0].GetResTarget().GetVal().GetFuncCall()
	for _, arg := range slices.Concat(f.GetArgs(), f.GetAggOrder(), []*sqltext.Node{f.GetAggFilter()}) {
		c.inside(arg, func(n *sqltext.Node) bool {
			if ref := n.GetColumnRef(); ref != nil {
				m := c.column(ref, c.levelOf(s, parent))
				own, outer = own || m.known && !m.outer, outer || !m.known || m.outer
			}
			outer = outer || n.GetSubLink() != nil
			return true
		})
	}
	return own || !outer
}

// first tells whether a SELECT has one row at most because it says so.
func first(s *sqltext.SelectStmt) bool {
	n := s.GetLimitCount().GetAConst().GetIval()
	return n != nil && n.Ival <= 1 && s.LimitOption == sqltext.LIMIT_OPTION_COUNT
}

// known tells whether a type is PostgreSQL's own, or an enum or one of an extension that is known: nothing of the
// owner's runs when it is cast to.
func (c *cautious) known(t *sqltext.TypeName) bool {
	schema, name, ok := qualifiedName(t.GetNames())
	if !ok {
		return false
	}
	if (schema == "" || schema == "pg_catalog") && len(c.snap.TypesNamed("pg_catalog", name)) == 1 {
		return true
	}
	found := c.snap.TypesNamed(schema, name)
	return len(found) > 0 && !slices.ContainsFunc(found, func(t *catalog.Type) bool {
		return t.Kind != 'e' && !(t.Kind == 'b' && knownExtension(t.Extension))
	})
}
