package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// deallocateStmt visits DEALLOCATE. Drivers send it for statements that they have prepared by the wire protocol.
// PostgreSQL knows these statements by names that the proxy has chosen.
func (w *walker) deallocateStmt(d *sqltext.DeallocateStmt, raw *sqltext.RawStmt) verdict.Effect {
	w.countNode("DeallocateStmt")
	effect := verdict.Effect{Kind: verdict.EffectDeallocate, Name: d.Name}
	if d.Name == "" { // the statement is DEALLOCATE ALL
		return effect
	}
	w.renameStatement(w.lastToken(raw), "DeallocateStmt", d.Name, func(upstream string) { d.Name = upstream })
	return effect
}

// lastToken returns the last token of a statement.
func (w *walker) lastToken(raw *sqltext.RawStmt) sqltext.Token {
	last := sqltext.Token{Kind: sqltext.Semicolon}
	end := raw.GetStmtLocation() + raw.GetStmtLen()
	for _, t := range w.source.Tokens {
		inside := t.Start >= raw.GetStmtLocation() && (raw.GetStmtLen() == 0 || t.Start < end)
		if inside && t.Kind != sqltext.Semicolon {
			last = t
		}
	}
	return last
}
