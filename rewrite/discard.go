package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// discardStmt visits DISCARD, which connection pools send to reset a connection.
func (w *walker) discardStmt(d *sqltext.DiscardStmt) verdict.Effect {
	w.countNode("DiscardStmt")
	switch d.Target {
	case sqltext.DISCARD_ALL:
		return verdict.Effect{Kind: verdict.EffectDiscard}
	case sqltext.DISCARD_PLANS, sqltext.DISCARD_SEQUENCES, sqltext.DISCARD_TEMP:
		return verdict.Effect{}
	}
	w.refuse(refusalOf("DiscardStmt"))
	return verdict.Effect{}
}

// unlistenStmt visits UNLISTEN, which is always allowed, because connection pools send it to reset a connection.
func (w *walker) unlistenStmt() verdict.Effect {
	w.countNode("UnlistenStmt")
	return verdict.Effect{}
}

// checkDiscards refuses DISCARD ALL if another statement of the same message could run without the session's seal,
// which DISCARD ALL removes. The proxy can set the seal again only between messages and outside of transactions.
// PostgreSQL itself accepts DISCARD ALL only as the only statement of a message.
func checkDiscards(effects []verdict.Effect) *sqlstate.Error {
	transaction := false
	for i, e := range effects {
		switch e.Kind {
		case verdict.EffectBegin, verdict.EffectEnd:
			transaction = true
		case verdict.EffectDiscard:
			if transaction || i+1 < len(effects) {
				return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonSetting,
					"DISCARD ALL must stand at the end of a message, outside transactions").
					WithHint("It takes the session's identity away, which pgconsent sets again before the next message. RESET ALL leaves it.")
			}
		}
	}
	return nil
}
