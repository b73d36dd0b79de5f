package rewrite

import (
	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/sqltext"
	"github.com/pgconsent/pgconsent/verdict"
)

// deallocateStmt visits DEALLOCATE, which drivers send for statements that they have prepared on the wire. The server knows
// these under names of the proxy's.
func (w *walker) deallocateStmt(d *sqltext.DeallocateStmt, raw *sqltext.RawStmt) verdict.Effect {
	w.saw("DeallocateStmt")
	effect := verdict.Effect{Kind: verdict.Deallocates, Name: d.Name}
	if d.Name == "" { // ALL
		return effect
	}
	name, ok := w.lastToken(raw)
	if !ok || !name.IsName() {
		w.refuse(refusal("DeallocateStmt"))
		return effect
	}
	upstream := verdict.UpstreamName(d.Name)
	w.replace(name.Start, name.End, catalog.QuoteIdent(upstream), func() { d.Name = upstream })
	return effect
}

// lastToken returns the last token of a statement.
func (w *walker) lastToken(raw *sqltext.RawStmt) (last sqltext.Token, ok bool) {
	end := raw.GetStmtLocation() + raw.GetStmtLen()
	for _, t := range w.source.Tokens {
		inside := t.Start >= raw.GetStmtLocation() && (raw.GetStmtLen() == 0 || t.Start < end)
		if inside && t.Kind != sqltext.Semicolon {
			last, ok = t, true
		}
	}
	return last, ok
}
