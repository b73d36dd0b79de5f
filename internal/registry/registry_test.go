package registry

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// basePlan is a migration plan that installs only the base, with the rights of the control role.
type basePlan struct{}

func (basePlan) Hash() string          { return "none" }
func (basePlan) PolicyVersion() string { return "none" }

func (basePlan) Objects(f migrations.Found) []migrations.Object {
	o := migrations.Object{Identity: "rights of the control role", MakeStatements: []migrations.Statement{
		{SQL: "GRANT USAGE ON SCHEMA pgconsent TO pgconsent_control", Why: "test"},
		{SQL: fmt.Sprintf(`REVOKE TEMPORARY, CREATE ON DATABASE %q FROM PUBLIC`, f.Database), Why: "test"},
		{SQL: fmt.Sprintf(`GRANT CONNECT ON DATABASE %q TO PUBLIC`, f.Database), Why: "test"},
		{SQL: "GRANT EXECUTE ON FUNCTION pgconsent.changed_since(pg_snapshot), pgconsent.prune_changes(), " +
			"pgconsent.audit_ref(text), pgconsent.audit_forget(text) TO pgconsent_control", Why: "test"},
	}}
	for _, g := range append(migrations.ConsentGrants("pgconsent_control"), migrations.SweepGrants("pgconsent_control")...) {
		o.MakeStatements = append(o.MakeStatements, g.GrantStatement())
	}
	return []migrations.Object{o}
}

func database(t testing.TB) *pgtest.DB {
	t.Helper()
	return pgtest.Template(t, "registry", func(ctx context.Context, conn *pgx.Conn) error {
		return migrations.Up(ctx, conn, migrations.Options{}, basePlan{})
	})
}

// open returns a registry on a database of its own.
func open(t testing.TB, db *pgtest.DB, s consent.Settings) *Registry {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "consent.key")
	if isCreated, err := MakeKey(key); err != nil || !isCreated {
		t.Fatal(isCreated, err)
	}
	keys, err := LoadKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	return openWithKeys(t, db, s, keys, filepath.Join(dir, "consent.anchor"))
}

func openWithKeys(t testing.TB, db *pgtest.DB, s consent.Settings, keys Keys, anchor string) *Registry {
	t.Helper()
	cfg, err := pgx.ParseConfig(db.DSN("pgconsent_control", ""))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(Config{Connect: cfg, Database: "app", Keys: keys, Anchor: anchor, Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

var defaults = consent.Settings{}

func subject(id string) consent.Party { return consent.Party{Role: consent.RoleSubject, ID: id} }

func grant(id string, s consent.Stream) consent.Command {
	return consent.Command{Action: consent.ActionGrant, Subject: id, Stream: s, Caller: subject(id), Interface: "test"}
}

func mustExecute(t testing.TB, r *Registry, c consent.Command) Result {
	t.Helper()
	out, err := r.Execute(t.Context(), c)
	if err != nil {
		t.Fatalf("%s: %v", c.Action, err)
	}
	return out
}

// requireVerified fails the test if the registry does not verify.
func requireVerified(t testing.TB, r *Registry) {
	t.Helper()
	report, err := r.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Error(f)
	}
}

func TestLifecycleOfASubject(t *testing.T) {
	r := open(t, database(t), consent.Settings{Controller: "Example GmbH"})
	const ada = "ada'); DROP TABLE people; -- {\"$ne\": null}"
	if _, _, err := r.CurrentOfSubject(t.Context(), ada); !errors.As(err, new(*consent.NotFoundError)) {
		t.Fatalf("got %v, want a NotFoundError", err)
	}
	out := mustExecute(t, r, grant(ada, consent.StreamTemporary))
	if out.RecordNumber != 1 || out.Consent.State != consent.StateGiven ||
		out.Consent.ExpiresAt.Sub(out.RecordedAt).Round(time.Hour) != 14*24*time.Hour {
		t.Errorf("%+v", out)
	}
	mustExecute(t, r, consent.Command{Action: consent.ActionUpgrade, Subject: ada, Caller: subject(ada), Reason: "we work together"})
	questions, err := r.PendingPartnerships(t.Context())
	if err != nil || len(questions) != 1 || questions[0].Subject != ada {
		t.Fatalf("%+v %v", questions, err)
	}
	decide := consent.Command{Action: consent.ActionDecide, Subject: ada, Decision: consent.DecisionApprove,
		Caller: consent.Party{Role: consent.RoleAgent, ID: "chat"}}
	if out := mustExecute(t, r, decide); out.Consent.Stream != consent.StreamPartnered || !out.Consent.ExpiresAt.IsZero() {
		t.Errorf("%+v", out)
	}
	mustExecute(t, r, consent.Command{Action: consent.ActionDegrade, Subject: ada, Stream: consent.StreamAnonymous, Caller: subject(ada)})
	mustExecute(t, r, consent.Command{Action: consent.ActionRevoke, Subject: ada, Caller: subject(ada)})
	history, err := r.History(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	var events []consent.Event
	for _, h := range history {
		events = append(events, h.Event)
		if h.Subject != ada || h.Controller != "Example GmbH" {
			t.Errorf("%+v", h)
		}
	}
	if len(events) != 5 || history[1].Reason != "we work together" || history[2].RecordedBy.ID != "chat" ||
		history[4].State != consent.StateWithdrawn {
		t.Errorf("%v", events)
	}
	requireVerified(t, r)
}
