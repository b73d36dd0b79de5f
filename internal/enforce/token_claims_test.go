package enforce

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// A claim of tokens that has no effect in a database is reported, with its name and that of the database. No token then
// lets the agent in.
func TestUndeclaredTokenClaims(t *testing.T) {
	doc, err := policy.Parse("policy.yaml",
		[]byte("version: 1\nattributes: { user: { type: text, source: credential }, lang: { type: text, source: "+
			"set, optional: true, within: { values: [en, de] } }, room: { type: text, source: set, within: { values: [a] } } }\ntables: {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc, &catalog.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		claims map[string]string
		want   string
	}{
		{map[string]string{"user": "tenant"}, ""},
		{nil, ""},
		{map[string]string{"user": "tenant", "usr": "sub"},
			`jwt.claims.attributes: the claim "sub" is to be attribute "usr", which the policy of database "app" does not declare: did you mean "user"?`},
		{map[string]string{"department": "dep"},
			`jwt.claims.attributes: the claim "dep" is to be attribute "department", which the policy of database "app" does not declare: ` +
				`declare it there with source: credential, and with optional: true if only agents of another database need it, or take it out`},
		{map[string]string{"lang": "locale"},
			`jwt.claims.attributes: the claim "locale" is to be attribute "lang", whose source is set in the policy of database "app": ` +
				`take it out, or declare it with source: credential`},
		{map[string]string{"room": "room"},
			`jwt.claims.attributes: the claim "room" is to be attribute "room", whose source is set in the policy of database "app": ` +
				`take it out, or declare it with source: credential`},
	} {
		a := Agent{Name: "robot", Database: "app", LogsInByToken: true, Claims: c.claims, Attributes: map[string]string{"user": "ada"}}
		got := ""
		if err := a.checkTokenClaims(p); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.claims, got, c.want)
		}
		if _, err := agentAttributes(p, a); (err != nil) != (c.want != "") {
			t.Errorf("%v: identified: %v", c.claims, err)
		}
		if a.LogsInByToken = false; a.checkTokenClaims(p) != nil {
			t.Errorf("%v: an agent with a password has no claims", c.claims)
		}
	}
}
