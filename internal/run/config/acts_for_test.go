package config

import (
	"strings"
	"testing"
)

// The section acts_for must be complete, and must have no key that has no effect.
func TestActsFor(t *testing.T) {
	const jwt = "jwt: { issuer: a, audience: b, jwks: keys.json, claims: { attributes: { tenant: org } } }\n"
	for _, q := range []struct{ extraText, section, problems, setting string }{
		{jwt, "{ attributes: [user], by: jwt, claims: { user: sub } }", "", ""},
		{jwt, "{ attributes: [user, tenant], by: jwt, claims: { user: sub }, actor: client-7 }", "", ""},
		{"", "{ attributes: [user], by: trusted }", "", "pgconsent.user"},
		{"", "{ attributes: [user], by: trusted, setting: App.User_ID }", "", "app.user_id"},
		{"", "{ attributes: [user], by: trusted, claims: { user: sub } }", "", "request.jwt.claims"},
		{"", "{ attributes: [user, tenant], by: trusted, claims: { user: sub, tenant: org } }", "", "request.jwt.claims"},

		{"", "{ attributes: [user], by: jwt, claims: { user: sub } }", "has no section jwt", ""},
		{jwt, "{ attributes: [user], by: jwt }", "which claim gives the attribute user", ""},
		{jwt, "{ attributes: [user], by: jwt, claims: { user: sub }, setting: app.user }", "setting is for by: trusted", ""},
		{"", "{ attributes: [user], by: header }", `"header" is not known`, ""},
		{"", "{ attributes: [user] }", "is not known", ""},
		{"", "{ by: trusted }", "names no attributes", ""},
		{"", "{ attributes: [team], by: trusted }", "itself has the attribute team", ""},
		{"", "{ attributes: [user, user], by: trusted, claims: { user: sub } }", "twice", ""},
		{"", "{ attributes: [User], by: trusted }", "cannot be an attribute", ""},
		{"", "{ attributes: [user, tenant], by: trusted }", "several attributes", ""},
		{"", "{ attributes: [user, tenant], by: trusted, claims: { user: sub } }", "gives the attribute tenant", ""},
		{"", "{ attributes: [user], by: trusted, claims: { user: sub, other: x } }", "none of its attributes", ""},
		{"", "{ attributes: [user], by: trusted, setting: user }", "plain names", ""},
		{"", "{ attributes: [user], by: trusted, setting: pgconsent.token }", "pgconsent's own", ""},
		{"", "{ attributes: [seal], by: trusted }", "pgconsent's own", ""},
		{"", "{ attributes: [user], by: trusted, actor: x }", "actor is for by: jwt", ""},
		{"", "{ attributes: [user], by: trusted, on: true }", `unknown key "on"`, ""},
	} {
		text := "version: 1\ndatabases: { app: { policy: p.yaml, owners: [o] } }\n" + q.extraText +
			"agents: { backend: { database: app, attributes: { team: blue }, acts_for: " + q.section + " } }\n"
		cfg, err := parseConfig("/etc/pgconsent.yaml", "pgconsent.yaml", []byte(text), func(string) string { return "" })
		switch {
		case q.problems == "" && err != nil:
			t.Errorf("%s: %v", q.section, err)
		case q.problems == "" && cfg.Agents["backend"].ActsFor.Setting != q.setting:
			t.Errorf("%s: the setting is %q", q.section, cfg.Agents["backend"].ActsFor.Setting)
		case q.problems != "" && (err == nil || !strings.Contains(err.Error(), q.problems)):
			t.Errorf("%s: %v, want %q", q.section, err, q.problems)
		}
	}
}
