package rewrite

import (
	"strings"

	"github.com/pgconsent/pgconsent/sqlstate"
	"github.com/pgconsent/pgconsent/sqltext"
)

// setsPlainly tells whether a call of set_config is a SET in other words, as Django's of its time zone: literals, in a SELECT
// that reads nothing, of a setting that nobody but the session heeds. Beside rows it would be a way to tell which of them
// it was called for; what claims an attribute or keeps a snapshot is to be said by SET, which the proxy follows, and so is how statements are
// planned: the settings of care are sent before a statement, and what it runs may be planned behind such a call.
func (w *walker) setsPlainly(f *sqltext.FuncCall) (bool, *sqlstate.Error) {
	if len(f.Args) != 3 || f.AggFilter != nil || f.Over != nil || f.AggStar || f.AggDistinct || len(f.AggOrder) > 0 || f.FuncVariadic {
		return false, nil
	}
	name, named := constantString(f.Args[0])
	value, given := constantString(f.Args[1])
	local := f.Args[2].GetAConst()
	if !named || !given || local == nil || local.GetBoolval() == nil || w.scope == nil || w.scope.query == nil || w.scope.parent != nil || len(w.scope.items) > 0 {
		return false, nil
	}
	name = strings.ToLower(name)
	if _, mapped := w.claims[name]; mapped || strings.Contains(name, "transaction") || name == "plan_cache_mode" || name == "statement_timeout" && w.pol.Timeout() > 0 {
		return false, nil
	}
	if _, _, refused := CheckSetting(name, value, "set", w.snap.SearchPath(), w.claims); refused != nil {
		return false, refused
	}
	return true, nil
}
