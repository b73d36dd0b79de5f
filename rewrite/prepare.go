package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// prepareStmt visits PREPARE name (types) AS query. As in PostgreSQL, SQL and the wire protocol share the names of
// prepared statements. The query cannot be signed: it runs later, while the text of an EXECUTE is the current query, or
// no text is.
func (w *walker) prepareStmt(p *sqltext.PrepareStmt, raw *sqltext.RawStmt) verdict.Effect {
	w.countNode("PrepareStmt")
	w.runsLater = true
	effect := verdict.Effect{Kind: verdict.EffectPrepare, Name: p.Name}
	w.renameStatement(w.tokenOf(raw, 1), "PrepareStmt", p.Name, func(upstream string) { p.Name = upstream })
	for _, n := range p.Argtypes {
		t := n.GetTypeName()
		if t == nil {
			w.refuse(refusalOf("PrepareStmt.argtypes"))
			return effect
		}
		w.visitTypeName(t)
	}
	effect.BodyTag, effect.Body = w.preparedQuery(p.Query)
	return effect
}

// preparedQuery visits the query of a PREPARE. It returns the query's tag, and the part of its verdict that is known at
// this time.
func (w *walker) preparedQuery(n *sqltext.Node) (tag string, body *verdict.Verdict) {
	if kind, ok := n.GetNode().(*sqltext.Node_MergeStmt); ok {
		w.mergeStmt(kind.MergeStmt)
	} else {
		w.visitQuery(n, nil)
	}
	return tagOfStatement(n), &verdict.Verdict{Rewritten: verdict.Rewritten{Effects: []verdict.Effect{{ReadsRows: true}}}}
}

// executeStmt visits EXECUTE name (expressions). The proxy has decided about the prepared statement at PREPARE, and
// checks at each EXECUTE whether that decision is still valid.
func (w *walker) executeStmt(e *sqltext.ExecuteStmt, raw *sqltext.RawStmt) verdict.Effect {
	w.countNode("ExecuteStmt")
	w.hasExecute = true
	w.scope = newScope(nil)
	w.renameStatement(w.tokenOf(raw, 1), "ExecuteStmt", e.Name, func(upstream string) { e.Name = upstream })
	w.exprs(e.Params)
	return verdict.Effect{Kind: verdict.EffectExecute, Name: e.Name}
}

// renameStatement replaces the client's name of a prepared statement or cursor with the name that the proxy uses on the
// server.
func (w *walker) renameStatement(token sqltext.Token, node, name string, apply func(upstream string)) {
	if !token.IsName() || name == "" {
		w.refuse(refusalOf(node))
		return
	}
	upstream := verdict.UpstreamName(name)
	w.replace(token.Start, token.End, catalog.QuoteIdent(upstream), func() { apply(upstream) })
}

// tokenOf returns the n-th token of a statement, counted from 0; an empty token if there are fewer.
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
