package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// listenStmt visits LISTEN. What is sent on a channel of the policy passes as it is: its author says that no row is in it.
func (w *walker) listenStmt(s *sqltext.ListenStmt) verdict.Effect {
	w.saw("ListenStmt")
	if !w.pol.HasChannel(s.Conditionname) {
		w.refuse(refusal("ListenStmt"))
	}
	return verdict.Effect{Kind: verdict.Listens, Name: s.Conditionname}
}

// notifyStmt visits NOTIFY.
func (w *walker) notifyStmt(s *sqltext.NotifyStmt) verdict.Effect {
	w.saw("NotifyStmt")
	if !w.pol.HasChannel(s.Conditionname) {
		w.refuse(refusal("NotifyStmt"))
	}
	return verdict.Effect{}
}

// isPlainNotify tells whether a call of pg_notify is NOTIFY in other words: a SELECT without rows, whose channel is a
// literal, or a parameter that is looked at when it is bound.
func (w *walker) isPlainNotify(f *sqltext.FuncCall) bool {
	if len(f.Args) != 2 || f.AggFilter != nil || f.Over != nil || f.AggStar || f.AggDistinct || len(f.AggOrder) > 0 ||
		f.FuncVariadic || w.scope == nil || w.scope.query == nil || w.scope.parent != nil || len(w.scope.items) > 0 {
		return false
	}
	channel, ok := w.settingArgument(f.Args[0])
	switch {
	case !ok:
		return false
	case channel.parameter == 0:
		return w.pol.HasChannel(channel.text)
	}
	pol := w.pol
	w.valueChecks = append(w.valueChecks, func(values [][]byte) *sqlstate.Error {
		if name, given := channel.in(values); !given || !pol.HasChannel(name) {
			return refusal("NotifyStmt")
		}
		return nil
	})
	return true
}
