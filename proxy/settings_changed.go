package proxy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// PostgreSQL reads some settings as it parses or plans a text: it converts the constant of
//
//	WHERE happened_at > '2024-05-01 12:00'
//
// by the TimeZone of that moment. A statement that was prepared under other settings would mean something else. So the
// cache of statements is emptied when one changes, and not used before the transaction of the change is over.

// settingsThatPlansIgnore are the settings, beside those with a dot in their names, that no text means something else
// by.
var settingsThatPlansIgnore = map[string]bool{
	"application_name": true, "client_min_messages": true, "default_transaction_deferrable": true,
	"default_transaction_isolation": true, "default_transaction_read_only": true, "idle_in_transaction_session_timeout": true,
	"idle_session_timeout": true, "lock_timeout": true, "statement_timeout": true, "transaction": true,
	"transaction_deferrable": true, "transaction_isolation": true, "transaction_read_only": true, "transaction_timeout": true,
}

// noteEffects notes the effects of a text that is about to run in this group of messages, and of the statements that it
// runs by name. The effects are on settings and on the names of prepared statements.
func (r *requests) noteEffects(v *verdict.Verdict, runs []*verdict.Verdict, group uint64) {
	for _, e := range v.Effects {
		if e.Kind == verdict.EffectDeallocate || e.Kind == verdict.EffectDiscard {
			r.noteClose(e.Name, true, group)
			if e.Name == "" {
				r.ledger.dropAllCached()
			}
		}
	}
	r.noteLeftovers(v, runs)
	if changesSettings(v) || slices.ContainsFunc(runs, changesSettings) {
		r.settingsChanged = true
		r.ledger.dropAllCached()
	}
}

// changesSettings tells whether a text changes a setting by which a text may mean something else.
func changesSettings(v *verdict.Verdict) bool {
	return v.CallsSetConfig || slices.ContainsFunc(v.Effects, func(e verdict.Effect) bool {
		switch e.Kind {
		case verdict.EffectSet:
			return !settingsThatPlansIgnore[e.Name] && !strings.Contains(e.Name, ".")
		case verdict.EffectResetAll, verdict.EffectDiscard:
			return true
		}
		return false
	})
}
