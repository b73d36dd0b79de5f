package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// Bits of a DECLARE's options (nodes/parsenodes.h).
const (
	cursorBinary = 0x1
	cursorHold   = 0x20
)

// declareCursorStmt visits DECLARE name CURSOR FOR query. Cursors share their names with the portals of the wire, as in
// PostgreSQL. The query is not signed: it runs under the text of each FETCH.
func (w *walker) declareCursorStmt(d *sqltext.DeclareCursorStmt, raw *sqltext.RawStmt) verdict.Effect {
	w.saw("DeclareCursorStmt")
	w.runsLater = true
	effect := verdict.Effect{Kind: verdict.Declares, Name: d.Portalname, Hold: d.Options&cursorHold != 0,
		Binary: d.Options&cursorBinary != 0}
	w.rename(w.tokenOf(raw, 1), "DeclareCursorStmt", d.Portalname, func(upstream string) { d.Portalname = upstream })
	query := d.GetQuery().GetSelectStmt()
	if query == nil {
		w.refuse(refusal("DeclareCursorStmt"))
		return effect
	}
	w.selectStmt(query, nil)
	effect.Tag, effect.Body = "SELECT", &verdict.Verdict{Rewritten: verdict.Rewritten{Effects: []verdict.Effect{{Reads: true}}}}
	return effect
}

// fetchStmt visits FETCH and MOVE.
func (w *walker) fetchStmt(f *sqltext.FetchStmt, raw *sqltext.RawStmt) verdict.Effect {
	w.saw("FetchStmt")
	effect := verdict.Effect{Kind: verdict.Fetches, Name: f.Portalname}
	w.rename(w.lastToken(raw), "FetchStmt", f.Portalname, func(upstream string) { f.Portalname = upstream })
	return effect
}

// closePortalStmt visits CLOSE name and CLOSE ALL.
func (w *walker) closePortalStmt(c *sqltext.ClosePortalStmt, raw *sqltext.RawStmt) verdict.Effect {
	w.saw("ClosePortalStmt")
	effect := verdict.Effect{Kind: verdict.Closes, Name: c.Portalname}
	if c.Portalname != "" {
		w.rename(w.lastToken(raw), "ClosePortalStmt", c.Portalname, func(upstream string) { c.Portalname = upstream })
	}
	return effect
}
