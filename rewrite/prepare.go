package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// prepareStmt visits PREPARE name (types) AS query. Statements share their names with those of the wire, as in
// PostgreSQL. The query is not signed: it runs under the text of an EXECUTE, or under no text at all.
func (w *walker) prepareStmt(p *sqltext.PrepareStmt, raw *sqltext.RawStmt) verdict.Effect {
	w.saw("PrepareStmt")
	w.runsLater = true
	effect := verdict.Effect{Kind: verdict.Prepares, Name: p.Name}
	w.rename(w.tokenOf(raw, 1), "PrepareStmt", p.Name, func(upstream string) { p.Name = upstream })
	for _, n := range p.Argtypes {
		t := n.GetTypeName()
		if t == nil {
			w.refuse(refusal("PrepareStmt.argtypes"))
			return effect
		}
		w.typeName(t)
	}
	effect.Tag, effect.Body = w.preparedQuery(p.Query)
	return effect
}

// preparedQuery visits the query of PREPARE, and returns its tag and the verdict on it as far as it is known here.
func (w *walker) preparedQuery(n *sqltext.Node) (tag string, body *verdict.Verdict) {
	if kind, ok := n.GetNode().(*sqltext.Node_MergeStmt); ok {
		w.mergeStmt(kind.MergeStmt)
	} else {
		w.query(n, nil)
	}
	return tagOfStatement(n), &verdict.Verdict{Rewritten: verdict.Rewritten{Effects: []verdict.Effect{{Reads: true}}}}
}

// executeStmt visits EXECUTE name (expressions). The statement was decided when it was prepared. The proxy checks each
// time it runs whether that is still valid.
func (w *walker) executeStmt(e *sqltext.ExecuteStmt, raw *sqltext.RawStmt) verdict.Effect {
	w.saw("ExecuteStmt")
	w.hasExecute = true
	w.scope = newScope(nil)
	w.rename(w.tokenOf(raw, 1), "ExecuteStmt", e.Name, func(upstream string) { e.Name = upstream })
	w.exprs(e.Params)
	return verdict.Effect{Kind: verdict.Executes, Name: e.Name}
}

// rename replaces the client's name of a statement with the server's name.
func (w *walker) rename(at sqltext.Token, node, name string, apply func(upstream string)) {
	if !at.IsName() || name == "" {
		w.refuse(refusal(node))
		return
	}
	upstream := verdict.UpstreamName(name)
	w.replace(at.Start, at.End, catalog.QuoteIdent(upstream), func() { apply(upstream) })
}

// tokenOf returns the n-th token of a statement, or one that is no name.
func (w *walker) tokenOf(raw *sqltext.RawStmt, n int) sqltext.Token {
	for i, t := range w.source.Tokens {
		if t.Start >= raw.GetStmtLocation() {
			if i += n; i < len(w.source.Tokens) {
				return w.source.Tokens[i]
			}
			break
		}
	}
	return sqltext.Token{Kind: sqltext.Semicolon}
}
