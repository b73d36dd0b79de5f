package rewrite

import "github.com/pgconsent/pgconsent/internal/sql/sqltext"

// The methods below visit the SQL/JSON constructors and predicates of PostgreSQL 16. Earlier versions answer them with
// a syntax error.

func (w *walker) jsonValue(v *sqltext.JsonValueExpr) {
	if v == nil {
		return
	}
	w.countNode("JsonValueExpr")
	w.visitExpr(v.RawExpr)
	w.visitExpr(v.FormattedExpr)
	w.visitJSONFormat(v.Format)
}

func (w *walker) visitJSONFormat(f *sqltext.JsonFormat) {
	if f != nil {
		w.countNode("JsonFormat")
	}
}

func (w *walker) jsonKeyValue(kv *sqltext.JsonKeyValue) {
	if kv == nil {
		return
	}
	w.countNode("JsonKeyValue")
	w.visitExpr(kv.Key)
	w.jsonValue(kv.Value)
}

func (w *walker) jsonOutput(o *sqltext.JsonOutput) {
	if o == nil {
		return
	}
	w.countNode("JsonOutput")
	if o.TypeName != nil {
		w.visitTypeName(o.TypeName)
	}
	if o.Returning != nil {
		w.countNode("JsonReturning")
		w.visitJSONFormat(o.Returning.Format)
	}
}

func (w *walker) jsonAggregate(c *sqltext.JsonAggConstructor) {
	if c == nil {
		return
	}
	w.countNode("JsonAggConstructor")
	w.jsonOutput(c.Output)
	w.visitExpr(c.AggFilter)
	w.exprs(c.AggOrder)
	w.windowDef(c.Over)
}

func (w *walker) visitJSONArrayQuery(q *sqltext.JsonArrayQueryConstructor) {
	w.countNode("JsonArrayQueryConstructor")
	query := q.GetQuery().GetSelectStmt()
	if query == nil {
		w.refuse(refusalOf(sqltext.NodeKind(q.GetQuery())))
		return
	}
	w.selectStmt(query, w.scope)
	w.jsonOutput(q.Output)
	w.visitJSONFormat(q.Format)
}
