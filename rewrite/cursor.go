package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// These are bits in the options of DECLARE (nodes/parsenodes.h).
const (
	cursorBinary = 0x1
	cursorHold   = 0x20
)

// declareCursorStmt visits DECLARE name CURSOR FOR query. As in PostgreSQL, cursors and the portals of the wire
// protocol share their names. The query cannot be signed: it runs later, while the text of a FETCH is the current
// query.
func (w *walker) declareCursorStmt(d *sqltext.DeclareCursorStmt, raw *sqltext.RawStmt) verdict.Effect {
	w.countNode("DeclareCursorStmt")
	w.runsLater = true
	effect := verdict.Effect{Kind: verdict.EffectDeclare, Name: d.Portalname, WithHold: d.Options&cursorHold != 0,
		Binary: d.Options&cursorBinary != 0}
	w.renameStatement(w.tokenOf(raw, 1), "DeclareCursorStmt", d.Portalname,
		func(upstream string) { d.Portalname = upstream })
	query := d.GetQuery().GetSelectStmt()
	if query == nil {
		w.refuse(refusalOf("DeclareCursorStmt"))
		return effect
	}
	w.selectStmt(query, nil)
	effect.BodyTag = "SELECT"
	effect.Body = &verdict.Verdict{Rewritten: verdict.Rewritten{Effects: []verdict.Effect{{ReadsRows: true}}}}
	return effect
}

// fetchStmt visits FETCH and MOVE.
func (w *walker) fetchStmt(f *sqltext.FetchStmt, raw *sqltext.RawStmt) verdict.Effect {
	w.countNode("FetchStmt")
	effect := verdict.Effect{Kind: verdict.EffectFetch, Name: f.Portalname}
	w.renameStatement(w.lastToken(raw), "FetchStmt", f.Portalname, func(upstream string) { f.Portalname = upstream })
	return effect
}

// closePortalStmt visits CLOSE name and CLOSE ALL.
func (w *walker) closePortalStmt(c *sqltext.ClosePortalStmt, raw *sqltext.RawStmt) verdict.Effect {
	w.countNode("ClosePortalStmt")
	effect := verdict.Effect{Kind: verdict.EffectClose, Name: c.Portalname}
	if c.Portalname != "" {
		w.renameStatement(w.lastToken(raw), "ClosePortalStmt", c.Portalname,
			func(upstream string) { c.Portalname = upstream })
	}
	return effect
}
