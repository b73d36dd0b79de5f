package enforce

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/xdg-go/scram"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A change of an agent in the configuration ends the agent's open sessions, except for a change of its password or of
// its number of sessions.
func TestChangedAgentsLoseTheirSessions(t *testing.T) {
	startedAt := Agent{
		Name: "a", Database: "d", Credential: &scram.StoredCredentials{}, LogsInByToken: true,
		Attributes: map[string]string{"user": ann}, Claims: map[string]string{"user": "sub"},
		ActsFor: &ActsFor{Attributes: []string{"room"}, ByToken: true, Setting: TokenSetting},
	}
	for i := range reflect.TypeFor[Agent]().NumField() {
		field := reflect.TypeFor[Agent]().Field(i).Name
		now, stays := startedAt, false
		switch f := reflect.ValueOf(&now).Elem().Field(i); field {
		case "Name":
			continue // with another name it is another agent
		case "MaxSessions": // as PostgreSQL's CONNECTION LIMIT, it applies to new sessions only
			now.MaxSessions, stays = 9, true
		case "Credential":
			now.Credential, stays = &scram.StoredCredentials{KeyFactors: scram.KeyFactors{Iters: 9}}, true
		case "ActsFor":
			for _, change := range []*ActsFor{nil, {Attributes: []string{"team"}, ByToken: true, Setting: TokenSetting},
				{Attributes: []string{"room"}, Setting: TokenSetting}, {Attributes: []string{"room"}, ByToken: true, Setting: "app.room"},
				{Attributes: []string{"room"}, ByToken: true, Setting: TokenSetting, Claims: map[string]string{"room": "sub"}}} {
				now.ActsFor = change
				if isUnchangedAgent(map[string]Agent{"a": now}, startedAt) {
					t.Errorf("%s changes to %v, and sessions go on", field, change)
				}
			}
			continue
		default:
			switch f.Kind() {
			case reflect.String:
				f.SetString("other")
			case reflect.Bool:
				f.SetBool(!f.Bool())
			case reflect.Map:
				for _, change := range []map[string]string{
					nil, {"user": "other"}, {"other": ann}, {"user": f.MapIndex(reflect.ValueOf("user")).String(), "more": "x"}} {
					now.Attributes, now.Claims = startedAt.Attributes, startedAt.Claims
					f.Set(reflect.ValueOf(maps.Clone(change)))
					if isUnchangedAgent(map[string]Agent{"a": now}, startedAt) {
						t.Errorf("%s changes to %v, and sessions go on", field, change)
					}
				}
				continue
			default:
				t.Errorf("%s: say what a change of it does to sessions", field)
			}
		}
		if isUnchangedAgent(map[string]Agent{"a": now}, startedAt) != stays {
			t.Errorf("%s changes, and sessions go on: %v", field, !stays)
		}
	}
	unreached := startedAt
	unreached.Credential, unreached.LogsInByToken = nil, false
	if isUnchangedAgent(map[string]Agent{"a": unreached}, unreached) || isUnchangedAgent(nil, startedAt) {
		t.Error("sessions of agents that cannot log in go on")
	}
}

// token opens a session of an agent that has logged in with a token.
func (w *world) token(name string, change func(*SessionInfo)) (*client, error) {
	w.t.Helper()
	access, ok := w.Agent(name, "memories")
	if !ok {
		w.t.Fatalf("%s is no agent", name)
	}
	c := &client{w: w, revoked: make(chan *sqlstate.Error, 1)}
	info := SessionInfo{ID: name, Agent: name, Database: "memories",
		Server: w.databases["memories"].servingState.Load().server, OnRevoke: func(err *sqlstate.Error) { c.revoked <- err }}
	change(&info)
	var err error
	if c.Decider, err = access.OpenSession(w.t.Context(), info); err == nil {
		w.t.Cleanup(c.Close)
	}
	return c, err
}

// Attributes from a token are checked against the policy like those of the configuration, and must not repeat these.
// The session ends when the token expires.
func TestAttributesOfTokens(t *testing.T) {
	tier.All(t)
	w := start(t, func(w *world) {
		w.cfg.Agents = append(w.cfg.Agents, Agent{Name: "bare", Database: "memories", LogsInByToken: true},
			Agent{Name: "empty", Database: "memories", Credential: &scram.StoredCredentials{}}, Agent{
				Name: "given", Database: "memories", LogsInByToken: true, Attributes: map[string]string{"user": ann}})
	})
	for name, c := range map[string]struct {
		agent   string
		granted map[string]string
		until   time.Duration
		ok      bool
	}{
		"what is missing":                    {"bare", map[string]string{"user": ann}, time.Hour, true},
		"nothing":                            {"bare", nil, time.Hour, false},
		"what is not the type's":             {"bare", map[string]string{"user": "ann"}, time.Hour, false},
		"what the policy has not":            {"bare", map[string]string{"user": ann, "tenant": "x"}, time.Hour, false},
		"what is given already":              {"given", map[string]string{"user": bob}, time.Hour, false},
		"nothing to who needs nothing":       {"given", nil, time.Hour, true},
		"something to who shows none":        {"caregiver", map[string]string{"user": bob}, time.Hour, false},
		"what is missing, to who shows none": {"empty", map[string]string{"user": ann}, time.Hour, false},
		"what is over":                       {"bare", map[string]string{"user": ann}, -time.Second, false},
		"to who needs nothing, and over":     {"given", nil, -time.Second, false},
	} {
		opened, err := w.token(c.agent, func(i *SessionInfo) { i.TokenAttributes, i.ExpiresAt = c.granted, time.Now().Add(c.until) })
		var e *sqlstate.Error
		switch {
		case c.ok != (err == nil), !c.ok && (!errors.As(err, &e) || e.Code != sqlstate.InvalidAuthorization):
			t.Errorf("%s: %v", name, err)
		case c.ok && opened.Decider.(*session).attributes["user"] != ann:
			t.Errorf("%s: %v", name, opened.Decider.(*session).attributes)
		}
	}
	c, err := w.token("bare", func(i *SessionInfo) {
		i.TokenAttributes, i.ExpiresAt = map[string]string{"user": ann}, time.Now().Add(5*time.Second)
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-c.revoked:
		if e.Code != sqlstate.AdminShutdown {
			t.Error(e)
		}
	case <-time.After(tier.Patience):
		t.Error("the session outlives its token")
	}
}

// Attributes that the database computes can be set neither by the configuration nor by a token.
func TestLiveAttributesCannotBeGiven(t *testing.T) {
	w := start(t, nil)
	doc, err := policy.Parse("p", []byte(strings.Replace(rules, "attributes: {",
		"attributes: { mode: { type: text, source: set, setting: app.mode, within: { values: [brief] }, optional: true },", 1)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc, w.databases["memories"].servingState.Load().state.snapshot,
		policy.WithViews(rewrite.RewriteViewQuery))
	if err != nil {
		t.Fatal(err)
	}
	for _, attributes := range []map[string]string{{"user": ann}, {"user": ann, "mode": "brief"}} {
		if _, err := agentAttributes(p, Agent{Attributes: attributes}); (err == nil) != (len(attributes) == 1) {
			t.Errorf("%v: %v", attributes, err)
		}
		if _, err := agentAttributes(p, Agent{LogsInByToken: true, Claims: map[string]string{"mode": "m"}, Attributes: attributes}); err == nil {
			t.Errorf("a claim gives an attribute that the database works out")
		}
	}
}

// If something changes while an agent logs in, the login is refused, or the session ends at once.
func TestChangesDuringALogin(t *testing.T) {
	tier.All(t)
	for name, change := range map[string]func(*world){
		"it is disabled":          func(w *world) { w.SetAgents(nil) },
		"it has other attributes": func(w *world) { w.SetAgents([]Agent{agent("caregiver", bob)}) },
		"the policy asks for more": func(w *world) {
			w.write(strings.Replace(rules, "attributes: {", "attributes: { ward: { type: text, source: credential },", 1))
		},
		"the policy is another": func(w *world) { w.write(rules + "limits: { statements: 500 }\n") },
		"the server is another": func(w *world) { w.another() },
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, func(w *world) { w.cfg.ProbeInterval = time.Hour })
			w.databases["memories"].stopListening(t)
			blocker := w.db.Connect(t, "postgres")
			tx, err := blocker.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			// The login requests a reference for its user, and has to wait for this lock.
			if _, err := tx.Exec(t.Context(), "LOCK TABLE pgconsent.audit_subject"); err != nil {
				t.Fatal(err)
			}
			type opened struct {
				c   *client
				err error
			}
			done := make(chan opened, 1)
			go func() {
				c, err := w.token("caregiver", func(*SessionInfo) {})
				done <- opened{c, err}
			}()
			eventually(t, "it waits", func() bool { return waiting(t.Context(), w.dba) })
			change(w)
			if err := w.Reload(); err != nil && !strings.Contains(name, "server") {
				t.Fatal(err)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			o := <-done
			stays := name == "the policy is another" // the new policy does not require more
			var over bool
			if over = o.err != nil; !over {
				over = o.c.Decider.(*session).revocation.Load() != nil // the session was ended during the login
			}
			if over == stays {
				t.Errorf("it is served: %v, %v", !over, o.err)
			}
		})
	}
}

// If the active policy changes during a login, a connection with the statement timeout of the previous policy does not
// become a session.
func TestTimeoutOfANewPolicy(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval = time.Hour })
	limits := []string{"", "limits: { statement_timeout: 5s }\n", "limits: { statement_timeout: 20s }\n"}
	put := func(of string) {
		t.Helper()
		w.write(rules + of)
		if err := w.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	server := w.databases["memories"].servingState.Load().server
	for _, before := range limits {
		for _, after := range limits {
			put(before)
			access, ok := w.Agent("caregiver", "memories")
			if !ok {
				t.Fatal("no agent")
			}
			if _, set := access.Params[statementTimeout]; set != (before != "") {
				t.Errorf("%q: %v", before, access.Params)
			}
			for asked, more := range map[string]bool{"1s": false, "21s": true, "1h": true, "0": true} {
				if _, _, refused := access.CheckSetting(statementTimeout, asked, "startup"); (refused != nil) != (more && before != "") {
					t.Errorf("%q: a client asks for %s: %v", before, asked, refused)
				}
			}
			put(after)
			d, err := access.OpenSession(t.Context(), SessionInfo{ID: "s", Agent: "caregiver", Database: "memories", Server: server})
			if (err == nil) != (before == after) {
				t.Errorf("from %q to %q: %v", before, after, err)
			}
			if err == nil {
				d.Close()
			}
		}
	}
}

// waiting reports whether a session waits for a lock.
func waiting(ctx context.Context, conn *pgx.Conn) (yes bool) {
	_ = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)").Scan(&yes)
	return yes
}

// another simulates that the last refresh was of another server.
func (w *world) another() {
	d := w.databases["memories"]
	v := *d.servingState.Load()
	v.server += "1"
	d.servingState.Store(&v)
}
