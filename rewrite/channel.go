package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// listenStmt visits LISTEN on a channel that the policy lists. Agents receive the payloads on such a channel unchanged,
// so the policy's author must know that no payload contains data of a row.
func (w *walker) listenStmt(s *sqltext.ListenStmt) verdict.Effect {
	w.countNode("ListenStmt")
	if !w.pol.HasChannel(s.Conditionname) {
		w.refuse(refusalOf("ListenStmt"))
	}
	return verdict.Effect{Kind: verdict.EffectListen, Name: s.Conditionname}
}

// notifyStmt visits NOTIFY, which only channels of the policy accept.
func (w *walker) notifyStmt(s *sqltext.NotifyStmt) verdict.Effect {
	w.countNode("NotifyStmt")
	if !w.pol.HasChannel(s.Conditionname) {
		w.refuse(refusalOf("NotifyStmt"))
	}
	return verdict.Effect{}
}

// isPlainNotify tells whether a call of pg_notify means the same as NOTIFY. The call must stand in a SELECT without
// FROM, and its channel must be a literal, or a parameter that the proxy checks when the client binds it.
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
	w.valueChecks = append(w.valueChecks, func(values [][]byte, _ func(name string) bool) *sqlstate.Error {
		if name, isKnown := channel.textWith(values); !isKnown || !pol.HasChannel(name) {
			return refusalOf("NotifyStmt")
		}
		return nil
	})
	return true
}
