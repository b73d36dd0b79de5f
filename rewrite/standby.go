package rewrite

import (
	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// caseExpr visits CASE. A client may ask for NULL on a standby, as in
//
//	CASE WHEN pg_is_in_recovery() THEN NULL ELSE txid_current() END
//
// Such a client (DataGrip is one) accepts NULL for the number of the transaction, and gets NULL: see standbyFallback.
func (w *walker) caseExpr(c *sqltext.CaseExpr) {
	w.countNode("CaseExpr")
	if c.Arg != nil {
		w.checkEquality()
	}
	w.visitExpr(c.Arg)
	w.exprs(c.Args)
	outside := w.nullOnStandby
	w.nullOnStandby = outside || isNullOnStandby(c)
	w.visitExpr(c.Defresult)
	w.nullOnStandby = outside
}

// isNullOnStandby tells whether a CASE has the form CASE WHEN pg_is_in_recovery() THEN NULL ELSE … END.
func isNullOnStandby(c *sqltext.CaseExpr) bool {
	if c.Arg != nil || len(c.Args) != 1 {
		return false
	}
	whenClause := c.Args[0].GetCaseWhen()
	f := whenClause.GetExpr().GetFuncCall()
	if f == nil || len(f.Args) > 0 || !whenClause.GetResult().GetAConst().GetIsnull() {
		return false
	}
	schema, name, ok := qualifiedName(f.Funcname)
	return ok && name == "pg_is_in_recovery" && (schema == "" || schema == "pg_catalog")
}

// standbyFallback replaces a call of txid_current by NULL if the call is in the ELSE of such a CASE. If it returns
// false, the call is refused.
func (w *walker) standbyFallback(n *sqltext.Node, f *sqltext.FuncCall, schema, name string) bool {
	const null = "(NULL::pg_catalog.int8)"
	if !w.nullOnStandby || name != "txid_current" || len(f.Args) > 0 || schema != "" && schema != "pg_catalog" ||
		schema == "" && len(w.snap.FunctionsNamed("", name)) > 0 {
		return false
	}
	first := w.source.TokenAt(f.Location)
	last := first + 2
	if w.source.KindAt(first+1) == sqltext.Dot {
		last = first + 4
	}
	constant := parseExpression(null)
	if constant == nil || last >= len(w.source.Tokens) || w.source.KindAt(last) != sqltext.CloseParen {
		return false
	}
	w.replace(w.source.Tokens[first].Start, w.source.Tokens[last].End, null, func() {
		n.Node = proto.Clone(constant).(*sqltext.Node).Node
	})
	return true
}
