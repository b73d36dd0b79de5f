package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Two proxies with an anchor each, and many callers, write at once. One caller decides about a partnership, the others
// are told that there is nothing to decide. No record is lost, and each anchor matches the chain.
func TestWritersRace(t *testing.T) {
	tier.All(t)
	db := database(t)
	firstRegistry := open(t, db, defaults)
	secondRegistry := openWithKeys(t, db, defaults, firstRegistry.Keys, filepath.Join(t.TempDir(), "other.anchor"))
	mustExecute(t, firstRegistry, grant("ada", consent.StreamTemporary))
	mustExecute(t, secondRegistry, consent.Command{Action: consent.ActionUpgrade, Subject: "ada", Caller: subject("ada")})
	var approvedCount, rejectedCount atomic.Int32
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			r := []*Registry{firstRegistry, secondRegistry}[i%2]
			_, err := r.Execute(t.Context(), consent.Command{
				Action: consent.ActionDecide, Subject: "ada", Decision: consent.DecisionApprove, Caller: consent.Party{
					Role: consent.RoleAgent, ID: fmt.Sprint("agent ", i)}})
			switch {
			case err == nil:
				approvedCount.Add(1)
			case errors.As(err, new(*consent.ValidationError)):
				rejectedCount.Add(1)
			default:
				t.Error(err)
			}
		})
		wg.Go(func() {
			r := []*Registry{firstRegistry, secondRegistry}[i%2]
			if _, err := r.Execute(t.Context(), grant(fmt.Sprint("person ", i), consent.StreamTemporary)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if approvedCount.Load() != 1 || rejectedCount.Load() != 11 {
		t.Errorf("%d approved it, %d were told", approvedCount.Load(), rejectedCount.Load())
	}
	if n, err := firstRegistry.LastRecordNumber(t.Context()); err != nil || n != 2+1+12 {
		t.Errorf("%d records %v", n, err)
	}
	requireVerified(t, firstRegistry)
	requireVerified(t, secondRegistry)
}

// If the same change is sent many times at once with one request key, it is made once. Another change with that key is
// refused.
func TestDoubleSubmit(t *testing.T) {
	r := open(t, database(t), defaults)
	command := grant("ada", consent.StreamTemporary)
	command.RequestKey = "form 12"
	var newRecordCount atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			out, err := r.Execute(t.Context(), command)
			if err != nil || out.RecordNumber != 1 {
				t.Errorf("%+v %v", out, err)
			}
			if !out.IsRepeated {
				newRecordCount.Add(1)
			}
		})
	}
	wg.Wait()
	if n, _ := r.LastRecordNumber(t.Context()); n != 1 || newRecordCount.Load() != 1 {
		t.Errorf("%d records, %d made", n, newRecordCount.Load())
	}
	command.Stream = consent.StreamAnonymous
	if _, err := r.Execute(t.Context(), command); !errors.As(err, new(*consent.ConflictError)) {
		t.Errorf("%v, want a ConflictError", err)
	}
	otherCommand := grant("bob", consent.StreamTemporary)
	otherCommand.RequestKey = "form 12"
	if out := mustExecute(t, r, otherCommand); out.IsRepeated {
		t.Error("another subject's key counts")
	}
	requireVerified(t, r)
}

// cutConn is a connection that breaks after a commit is sent, before the answer, as when the server restarts.
type cutConn struct {
	net.Conn
	commitsToCut *atomic.Int32
	isClosed     *atomic.Bool
}

func (c cutConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("commit\x00")) && c.commitsToCut.Add(-1) >= 0 {
		c.isClosed.Store(true)
	}
	return c.Conn.Write(b)
}

func (c cutConn) Read(b []byte) (int, error) {
	if c.isClosed.Load() {
		_, _ = c.Conn.Read(b) // the server has committed
		_ = c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return c.Conn.Read(b)
}

// If a commit's answer is lost, the retry finds its record. Nothing is done twice, erasures included.
func TestCommitsWithoutAnswer(t *testing.T) {
	db := database(t)
	unbrokenRegistry := open(t, db, defaults)
	r := openWithKeys(t, db, defaults, unbrokenRegistry.Keys, unbrokenRegistry.Anchor)
	var commitsToCut atomic.Int32
	dial := r.Connect.DialFunc
	r.Connect.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return cutConn{c, &commitsToCut, new(atomic.Bool)}, err
	}
	for i, command := range []consent.Command{
		grant("ada", consent.StreamTemporary), {Action: consent.ActionUpgrade, Subject: "ada", Caller: subject("ada")}, {
			Action: consent.ActionRevoke, Subject: "ada", Caller: subject("ada")},
		{Action: consent.ActionErase, Subject: "ada", Caller: subject("ada")},
	} {
		commitsToCut.Store(1)
		out, err := r.Execute(t.Context(), command)
		if err != nil || !out.IsRepeated || out.RecordNumber != int64(i+1) {
			t.Errorf("%s: %+v %v", command.Action, out, err)
		}
	}
	requireVerified(t, unbrokenRegistry)
}

// Server sessions are ended at random while many callers write. Every call succeeds in the end, and has exactly one
// record.
func TestSessionsEndMidCall(t *testing.T) {
	tier.All(t)
	db := database(t)
	r := open(t, db, defaults)
	stop, killerDone := make(chan struct{}), make(chan struct{})
	answeredCalls := make(chan struct{}, 40)
	killer := db.Connect(t, "postgres")
	go func() {
		defer close(killerDone)
		for {
			select {
			case <-stop:
				return
			case <-time.After(60 * time.Millisecond):
				select { // on a slow machine, too, some calls succeed
				case <-stop:
					return
				case <-answeredCalls:
				}
				_, _ = killer.Exec(context.Background(),
					"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgconsent "+
						"consent' AND datname = current_database() ORDER BY random() LIMIT 1")
			}
		}
	}()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 10 {
				if _, err := r.Execute(t.Context(), grant(fmt.Sprintf("person %d %d", w, i), consent.StreamTemporary)); err != nil {
					t.Error(err)
				}
				answeredCalls <- struct{}{}
			}
		})
	}
	wg.Wait()
	close(stop)
	<-killerDone
	if n, err := r.LastRecordNumber(t.Context()); err != nil || n != 40 {
		t.Errorf("%d records %v", n, err)
	}
	requireVerified(t, r)
}

// setClockBack sets the clock that the registry's functions use, an interval back.
func setClockBack(t *testing.T, conn *pgx.Conn, interval string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(),
		"CREATE OR REPLACE FUNCTION pgconsent.consent_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ "+
			"SELECT clock_timestamp() - interval '"+interval+"' $$", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

// While the clock is behind the last record, nothing is granted or renewed. Withdrawals work.
func TestClockGoesBack(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	first := mustExecute(t, r, grant("ada", consent.StreamTemporary))
	conn := db.Connect(t, "postgres")
	clockLag := func() time.Duration {
		t.Helper()
		inspection, err := r.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return inspection.ClockLag
	}
	for _, interval := range []string{"0", "-1 hour"} {
		if setClockBack(t, conn, interval); clockLag() != 0 {
			t.Errorf("a clock set back by %s is said to be %v behind the last record", interval, clockLag())
		}
	}
	setClockBack(t, conn, "1 hour")
	if b := clockLag(); b < 50*time.Minute || b > time.Hour {
		t.Errorf("a clock set back by an hour is said to be %v behind the last record", b)
	}
	for _, command := range []consent.Command{grant("bob", consent.StreamTemporary), grant("ada", consent.StreamTemporary),
		{Action: consent.ActionInteract, Subject: "ada", Caller: subject("ada")}, {Action: consent.ActionUpgrade, Subject: "ada", Caller: subject("ada")}} {
		if _, err := r.Execute(t.Context(), command); !errors.As(err, new(*consent.ClockError)) {
			t.Errorf("%s: %v, want a ClockError", command.Action, err)
		}
	}
	if n, _ := r.LastRecordNumber(t.Context()); n != 1 {
		t.Errorf("%d records", n)
	}
	mustExecute(t, r, consent.Command{Action: consent.ActionNoteReport, Subject: "ada", Caller: subject("ada")})
	out := mustExecute(t, r, consent.Command{Action: consent.ActionRevoke, Subject: "ada", Caller: subject("ada")})
	if out.RecordedAt.Before(first.RecordedAt) {
		t.Error("records go back in time")
	}
	x, anchored := exportRegistry(t, r)
	if found := Check(x, r.Keys, &anchored); len(found) > 0 {
		t.Error(found)
	}
}

// If the anchor cannot be read or written, the registry grants nothing, but records withdrawals.
func TestAnchorCannotBeWritten(t *testing.T) {
	for name, breakAnchor := range map[string]func(t *testing.T, anchor string){
		"no folder": func(t *testing.T, anchor string) {
			if err := os.RemoveAll(filepath.Dir(anchor)); err != nil {
				t.Fatal(err)
			}
		},
		"no room": func(t *testing.T, anchor string) { // the new anchor file cannot be written
			if err := os.Mkdir(anchor+".new", 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"not an anchor": func(t *testing.T, anchor string) {
			if err := os.WriteFile(anchor, []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, database(t), defaults)
			mustExecute(t, r, grant("ada", consent.StreamTemporary))
			mustExecute(t, r, grant("bob", consent.StreamTemporary))
			breakAnchor(t, r.Anchor)
			var e *AnchorError
			if _, err := r.Execute(t.Context(), grant("eve", consent.StreamTemporary)); !errors.As(err, &e) || e.IsRecorded {
				t.Errorf("%v, want an AnchorError", err)
			}
			if n, _ := r.LastRecordNumber(t.Context()); n != 2 {
				t.Errorf("%d records", n)
			}
			if _, err := r.Execute(t.Context(), consent.Command{Action: consent.ActionRevoke, Subject: "ada",
				Caller: subject("ada")}); !errors.As(err, &e) || !e.IsRecorded {
				t.Errorf("%v, want an AnchorError that says it is in force", err)
			}
			rec, now, err := r.CurrentRecord(t.Context(), consent.Key{Subject: "ada", Grantee: "*", Scope: "*"})
			if err != nil || rec.IsActiveAt(now) {
				t.Errorf("%+v %v", rec, err)
			}
		})
	}
}

// After a crash between the commit and the anchor, the anchor is one record behind. That is not reported as tampering,
// and the next change updates it.
func TestCrashBeforeTheAnchor(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	mustExecute(t, r, grant("ada", consent.StreamTemporary))
	before, err := os.ReadFile(r.Anchor)
	if err != nil {
		t.Fatal(err)
	}
	mustExecute(t, r, grant("bob", consent.StreamTemporary))
	if err := os.WriteFile(r.Anchor, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.Anchor+".new", []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	requireVerified(t, r)
	mustExecute(t, r, consent.Command{Action: consent.ActionRevoke, Subject: "bob", Caller: subject("bob")})
	requireVerified(t, r)
	if report, _ := r.Verify(t.Context()); report.AnchoredRecord != 3 {
		t.Errorf("%+v", report)
	}
	// A second registry may use the same anchor file. Neither loses its entry.
	otherRegistry := openWithKeys(t, db, defaults, r.Keys, r.Anchor)
	otherRegistry.Database = "copy"
	mustExecute(t, otherRegistry, grant("eve", consent.StreamTemporary))
	requireVerified(t, r)
	requireVerified(t, otherRegistry)
}

// A proxy without an anchor verifies the whole registry before its first grant.
func TestFirstUseChecksTheWholeRegistry(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	fillRegistry(t, r)
	conn := db.Connect(t, "postgres")
	if _, err := conn.Exec(t.Context(),
		"ALTER TABLE pgconsent.consent_record DISABLE TRIGGER USER; UPDATE pgconsent.consent_record SET purposes "+
			"= '{all}' WHERE number = 2; ALTER TABLE pgconsent.consent_record ENABLE TRIGGER USER"); err != nil {
		t.Fatal(err)
	}
	newProxyRegistry := openWithKeys(t, db, defaults, r.Keys, filepath.Join(t.TempDir(), "late.anchor"))
	if _, err := newProxyRegistry.Execute(t.Context(), grant("new", consent.StreamTemporary)); !errors.As(err, new(*TamperedError)) {
		t.Errorf("%v, want a TamperedError", err)
	}
	out, err := newProxyRegistry.Execute(t.Context(), consent.Command{Action: consent.ActionRevoke, Subject: "person 1",
		Caller: subject("person 1")})
	if err != nil || out.Tampered == nil || out.Consent.State != consent.StateWithdrawn {
		t.Errorf("%+v %v", out, err)
	}
	// A proxy with another key file grants nothing either.
	foreignKeys, err := parseKeys([]byte("1 " + fmt.Sprintf("%064x", 9)))
	if err != nil {
		t.Fatal(err)
	}
	foreignRegistry := openWithKeys(t, db, defaults, foreignKeys, filepath.Join(t.TempDir(), "thief.anchor"))
	if _, err := foreignRegistry.Execute(t.Context(), grant("new", consent.StreamTemporary)); !errors.As(err, new(*TamperedError)) {
		t.Errorf("%v, want a TamperedError", err)
	}
}

// As time passes, an undecided request lapses, and a consent gets one warning before it expires.
func TestDueCommands(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	conn := db.Connect(t, "postgres")
	sweep := func() (actions []consent.Action) {
		t.Helper()
		dueCommands, err := r.DueCommands(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range dueCommands {
			if out := mustExecute(t, r, command); out.RecordNumber > 0 {
				actions = append(actions, command.Action)
			}
		}
		return actions
	}
	setClockBack(t, conn, "30 days")
	mustExecute(t, r, grant("ada", consent.StreamTemporary))
	mustExecute(t, r, consent.Command{Action: consent.ActionUpgrade, Subject: "ada", Caller: subject("ada")})
	for _, step := range []struct {
		interval string
		want     string
	}{{"30 days", "[]"}, {"27 days", "[lapse]"}, {"18 days", "[warn]"}, {"17 days", "[]"}, {"16 days", "[expire]"}, {"0 days", "[]"}} {
		setClockBack(t, conn, step.interval)
		if got := fmt.Sprint(sweep()); got != step.want {
			t.Errorf("%s ago: %s, want %s", step.interval, got, step.want)
		}
	}
}

// If an expired consent is granted again, its expiry is recorded first. The result describes the state after both
// records.
func TestResultAfterExpiryAndGrant(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	conn := db.Connect(t, "postgres")
	setClockBack(t, conn, "30 days")
	mustExecute(t, r, grant("ada", consent.StreamTemporary))
	setClockBack(t, conn, "0")
	out := mustExecute(t, r, grant("ada", consent.StreamTemporary))
	currentRecord, now, err := r.CurrentRecord(t.Context(), consent.Key{Subject: "ada", Grantee: "*", Scope: "*"})
	if err != nil || !currentRecord.IsActiveAt(now) {
		t.Fatalf("%+v %v", currentRecord, err)
	}
	if out.RecordNumber != 3 || out.Consent.State != consent.StateGiven || !out.Consent.ExpiresAt.Equal(currentRecord.ExpiresAt) {
		t.Errorf("the answer is %+v, but %+v stands", out, currentRecord)
	}
}

// Verifying everything may take longer than a call retries. If the database cannot be reached, the error says so, and
// claims nothing about a change.
func TestSlowVerify(t *testing.T) {
	tier.All(t)
	db := database(t)
	r := open(t, db, defaults)
	mustExecute(t, r, grant("ada", consent.StreamTemporary))
	requireVerified(t, r)
	r.RetryFor = 500 * time.Millisecond
	conn := db.Connect(t, "postgres")
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE pgconsent.consent_guardian"); err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	go func() {
		time.Sleep(3 * r.RetryFor)
		_, err := conn.Exec(context.Background(), "COMMIT")
		released <- err
	}()
	requireVerified(t, r)
	if err := <-released; err != nil {
		t.Fatal(err)
	}
	unreachableConfig := *r.Connect
	unreachableConfig.Host, unreachableConfig.Fallbacks = t.TempDir(), nil
	otherRegistry, err := Open(Config{Connect: &unreachableConfig, Database: "app", Keys: r.Keys, Anchor: r.Anchor,
		RetryFor: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer otherRegistry.Close()
	if _, err := otherRegistry.Verify(t.Context()); err == nil || strings.Contains(err.Error(), "change") {
		t.Errorf("away: %v", err)
	}
}
