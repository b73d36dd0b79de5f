package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// When a client sets the user for whom it acts, the rewriter replaces the value by the signed one. The client's text
// does not remain.
func TestRepresentedUserSettingIsReplaced(t *testing.T) {
	const value = `v1|1|s|infinity|user=it's \ "x"#00`
	userToken := ""
	for _, mode := range []Mode{RowSecurityMode, InjectedMode, AutoMode, AlwaysSignedMode} {
		r := rewriter(t, mode).WithRepresentedUser(&RepresentedUser{Setting: "pgconsent.token", Initial: func() string { return "began" },
			Replace: func(v string) (string, *sqlstate.Error) { userToken = v; return value, nil }})
		const literal = `E'v1|1|s|infinity|user=it''s \\ "x"#00'`
		for sql, want := range map[string]string{
			"SET pgconsent.token = 'secret'":                                     "SET SESSION pgconsent.acting = " + literal,
			"set local PGCONSENT . TOKEN to 'secret' ;":                          "SET LOCAL pgconsent.acting = " + literal + " ;",
			"SET LOCAL \"pgconsent\".token = E'sec\\162et'":                      "SET LOCAL pgconsent.acting = " + literal,
			"RESET pgconsent.token":                                              "SET SESSION pgconsent.acting = 'began'",
			"SET LOCAL pgconsent.token TO DEFAULT":                               "SET LOCAL pgconsent.acting = 'began'",
			"SELECT set_config('pgconsent.token', 'secret', true)":               "SELECT pgconsent_signed.set_config('pgconsent.token', " + literal + ", true)",
			"SELECT pg_catalog.set_config('pgconsent.token'::text, 'secret', f)": "",
			"BEGIN; SET LOCAL pgconsent.token = 'secret'; SELECT 1":              "BEGIN; SET LOCAL pgconsent.acting = " + literal + "; SELECT 1",
			"SET pgconsent.token = secret":                                       "SET SESSION pgconsent.acting = " + literal,
			"SET pgconsent.acting = 'secret'":                                    "",
			"SET pgconsent.token FROM CURRENT":                                   "",
		} {
			userToken = ""
			res, refusal := r.Rewrite(sql, false)
			if (refusal == nil) != (want != "") || refusal == nil && res.Text != want {
				t.Errorf("%s: %v, %q", sql, refusal, res.Text)
				continue
			}
			if refusal == nil && (strings.Contains(res.Text, "sec") || strings.Contains(sql, "sec") && userToken != "secret") {
				t.Errorf("%s: %q was asked for, and %q is sent", sql, userToken, res.Text)
			}
			if rewrittenAgain, err := rewriter(t, mode).Rewrite(sql, false); err == nil && strings.Contains(rewrittenAgain.Text, "acting") {
				t.Errorf("%s acts without leave: %s", sql, rewrittenAgain.Text)
			}
		}
		res, refusal := r.Rewrite("SELECT set_config('pgconsent.token', $1, false)", true)
		if refusal != nil || res.Text != "SELECT pgconsent_signed.set_config('pgconsent.token', $1, false)" ||
			res.RepresentedUserParameter != (RepresentedUserParameter{Number: 1}) || !res.NeedsValueCheck || !res.ExpectsForms ||
			res.Effects[0].Claim == nil || !res.Effects[0].Claim.NamesRepresentedUser || res.Effects[0].Kind != verdict.EffectNone {
			t.Errorf("a parameter: %v, %+v", refusal, res)
		}
		resetResult, refusal := r.Rewrite("RESET ALL", false)
		if refusal != nil || resetResult.Text != verdict.ResetSettingsWithUser("began") || !strings.Contains(resetResult.Text, "626567616e") {
			t.Errorf("RESET ALL: %v, %s", refusal, resetResult.Text)
		}
	}
}
