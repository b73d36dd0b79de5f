package proxy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// PostgreSQL uses some settings while it parses or plans a text. For example, it converts the constant in
//
//	WHERE happened_at > '2024-05-01 12:00'
//
// by the session's TimeZone. A statement that was prepared under another TimeZone means something else. So the proxy
// empties its cache of statements when such a setting changes, and does not use it until the transaction of the change
// is over.

// settingsThatPlansIgnore are settings that do not affect how PostgreSQL parses or plans a text. Settings with a dot in
// their names do not either.
var settingsThatPlansIgnore = map[string]bool{
	"application_name": true, "client_min_messages": true, "default_transaction_deferrable": true,
	"default_transaction_isolation": true, "default_transaction_read_only": true, "idle_in_transaction_session_timeout": true,
	"idle_session_timeout": true, "lock_timeout": true, "statement_timeout": true, "transaction": true,
	"transaction_deferrable": true, "transaction_isolation": true, "transaction_read_only": true, "transaction_timeout": true,
}

// noteEffects notes which settings and prepared statements a text that is about to run may change or remove. runs are
// the verdicts on statements that it runs by name; group is the number of its group of messages.
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

// changesSettings reports whether a text changes a setting that affects how PostgreSQL parses or plans.
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
