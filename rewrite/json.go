package rewrite

import "github.com/pgconsent/pgconsent/internal/sql/sqltext"

// The SQL/JSON constructors and predicates of PostgreSQL 16; earlier servers answer with their own syntax error.

func (w *walker) jsonValue(v *sqltext.JsonValueExpr) {
	if v == nil {
		return
	}
	w.saw("JsonValueExpr")
	w.expr(v.RawExpr)
	w.expr(v.FormattedExpr)
	w.jsonFormat(v.Format)
}

func (w *walker) jsonFormat(f *sqltext.JsonFormat) {
	if f != nil {
		w.saw("JsonFormat")
	}
}

func (w *walker) jsonKeyValue(kv *sqltext.JsonKeyValue) {
	if kv == nil {
		return
	}
	w.saw("JsonKeyValue")
	w.expr(kv.Key)
	w.jsonValue(kv.Value)
}

func (w *walker) jsonOutput(o *sqltext.JsonOutput) {
	if o == nil {
		return
	}
	w.saw("JsonOutput")
	if o.TypeName != nil {
		w.typeName(o.TypeName)
	}
	if o.Returning != nil {
		w.saw("JsonReturning")
		w.jsonFormat(o.Returning.Format)
	}
}

func (w *walker) jsonAggregate(c *sqltext.JsonAggConstructor) {
	if c == nil {
		return
	}
	w.saw("JsonAggConstructor")
	w.jsonOutput(c.Output)
	w.expr(c.AggFilter)
	w.exprs(c.AggOrder)
	w.windowDef(c.Over)
}

func (w *walker) jsonArrayQuery(q *sqltext.JsonArrayQueryConstructor) {
	w.saw("JsonArrayQueryConstructor")
	query := q.GetQuery().GetSelectStmt()
	if query == nil {
		w.refuse(refusal(sqltext.Kind(q.GetQuery())))
		return
	}
	w.selectStmt(query, w.scope)
	w.jsonOutput(q.Output)
	w.jsonFormat(q.Format)
}
