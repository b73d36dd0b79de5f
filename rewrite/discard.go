package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// discardStmt visits DISCARD, with which pools reset a connection.
func (w *walker) discardStmt(d *sqltext.DiscardStmt) verdict.Effect {
	w.saw("DiscardStmt")
	switch d.Target {
	case sqltext.DISCARD_ALL:
		return verdict.Effect{Kind: verdict.Discards}
	case sqltext.DISCARD_PLANS, sqltext.DISCARD_SEQUENCES, sqltext.DISCARD_TEMP:
		return verdict.Effect{}
	}
	w.refuse(refusal("DiscardStmt"))
	return verdict.Effect{}
}

// unlistenStmt visits UNLISTEN, which pools send as well. Agents listen to nothing.
func (w *walker) unlistenStmt() verdict.Effect {
	w.saw("UnlistenStmt")
	return verdict.Effect{}
}

// checkDiscards refuses DISCARD ALL where something of the same message could run without the session's seal, which it
// takes away. The proxy can set the seal only between messages, outside of transactions. Nor does PostgreSQL take it
// among other statements.
func checkDiscards(effects []verdict.Effect) *sqlstate.Error {
	transaction := false
	for i, e := range effects {
		switch e.Kind {
		case verdict.BeginsTx, verdict.EndsTx:
			transaction = true
		case verdict.Discards:
			if transaction || i+1 < len(effects) {
				return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonSetting,
					"DISCARD ALL must stand at the end of a message, outside transactions").
					WithHint("It takes the session's identity away, which pgconsent sets again before the next message. RESET ALL leaves it.")
			}
		}
	}
	return nil
}
