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
	one := open(t, db, defaults)
	two := openWithKeys(t, db, defaults, one.Keys, filepath.Join(t.TempDir(), "other.anchor"))
	must(t, one, grant("ada", consent.StreamTemporary))
	must(t, two, consent.Command{Action: consent.ActionUpgrade, Subject: "ada", Caller: subject("ada")})
	var approved, told atomic.Int32
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			r := []*Registry{one, two}[i%2]
			_, err := r.Execute(t.Context(), consent.Command{
				Action: consent.ActionDecide, Subject: "ada", Decision: consent.DecisionApprove, Caller: consent.Party{
					Role: consent.RoleAgent, ID: fmt.Sprint("agent ", i)}})
			switch {
			case err == nil:
				approved.Add(1)
			case errors.As(err, new(*consent.ValidationError)):
				told.Add(1)
			default:
				t.Error(err)
			}
		})
		wg.Go(func() {
			r := []*Registry{one, two}[i%2]
			if _, err := r.Execute(t.Context(), grant(fmt.Sprint("person ", i), consent.StreamTemporary)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if approved.Load() != 1 || told.Load() != 11 {
		t.Errorf("%d approved it, %d were told", approved.Load(), told.Load())
	}
	if n, err := one.LastRecordNumber(t.Context()); err != nil || n != 2+1+12 {
		t.Errorf("%d records %v", n, err)
	}
	sound(t, one)
	sound(t, two)
}

// If the same change is sent many times at once with one request key, it is made once. Another change with that key is
// refused.
func TestDoubleSubmit(t *testing.T) {
	r := open(t, database(t), defaults)
	command := grant("ada", consent.StreamTemporary)
	command.RequestKey = "form 12"
	var fresh atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			out, err := r.Execute(t.Context(), command)
			if err != nil || out.RecordNumber != 1 {
				t.Errorf("%+v %v", out, err)
			}
			if !out.IsRepeated {
				fresh.Add(1)
			}
		})
	}
	wg.Wait()
	if n, _ := r.LastRecordNumber(t.Context()); n != 1 || fresh.Load() != 1 {
		t.Errorf("%d records, %d made", n, fresh.Load())
	}
	command.Stream = consent.StreamAnonymous
	if _, err := r.Execute(t.Context(), command); !errors.As(err, new(*consent.ConflictError)) {
		t.Errorf("%v, want a ConflictError", err)
	}
	other := grant("bob", consent.StreamTemporary)
	other.RequestKey = "form 12"
	if out := must(t, r, other); out.IsRepeated {
		t.Error("another subject's key counts")
	}
	sound(t, r)
}

// cutting is a connection that breaks after a commit is sent, before the answer, as when the server restarts.
type cutting struct {
	net.Conn
	cut  *atomic.Int32
	dead *atomic.Bool
}

func (c cutting) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("commit\x00")) && c.cut.Add(-1) >= 0 {
		c.dead.Store(true)
	}
	return c.Conn.Write(b)
}

func (c cutting) Read(b []byte) (int, error) {
	if c.dead.Load() {
		_, _ = c.Conn.Read(b) // the server has committed
		_ = c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return c.Conn.Read(b)
}

// If a commit's answer is lost, the retry finds its record. Nothing is done twice, erasures included.
func TestCommitsWithoutAnswer(t *testing.T) {
	db := database(t)
	sane := open(t, db, defaults)
	r := openWithKeys(t, db, defaults, sane.Keys, sane.Anchor)
	var cut atomic.Int32
	dial := r.Connect.DialFunc
	r.Connect.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return cutting{c, &cut, new(atomic.Bool)}, err
	}
	for i, command := range []consent.Command{
		grant("ada", consent.StreamTemporary), {Action: consent.ActionUpgrade, Subject: "ada", Caller: subject("ada")}, {
			Action: consent.ActionRevoke, Subject: "ada", Caller: subject("ada")},
		{Action: consent.ActionErase, Subject: "ada", Caller: subject("ada")},
	} {
		cut.Store(1)
		out, err := r.Execute(t.Context(), command)
		if err != nil || !out.IsRepeated || out.RecordNumber != int64(i+1) {
			t.Errorf("%s: %+v %v", command.Action, out, err)
		}
	}
	sound(t, sane)
}

// Server sessions are ended at random while many callers write. Every call succeeds in the end, and has exactly one
// record.
func TestSessionsEndMidCall(t *testing.T) {
	tier.All(t)
	db := database(t)
	r := open(t, db, defaults)
	stop, stopped := make(chan struct{}), make(chan struct{})
	answered := make(chan struct{}, 40)
	killer := db.Connect(t, "postgres")
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(60 * time.Millisecond):
				select { // on a slow machine, too, some calls succeed
				case <-stop:
					return
				case <-answered:
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
				answered <- struct{}{}
			}
		})
	}
	wg.Wait()
	close(stop)
	<-stopped
	if n, err := r.LastRecordNumber(t.Context()); err != nil || n != 40 {
		t.Errorf("%d records %v", n, err)
	}
	sound(t, r)
}

// clock sets the clock that the registry's functions use, an interval back.
func clock(t *testing.T, conn *pgx.Conn, back string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(),
		"CREATE OR REPLACE FUNCTION pgconsent.consent_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ "+
			"SELECT clock_timestamp() - interval '"+back+"' $$", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

// While the clock is behind the last record, nothing is granted or renewed. Withdrawals work.
func TestClockGoesBack(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	first := must(t, r, grant("ada", consent.StreamTemporary))
	conn := db.Connect(t, "postgres")
	behind := func() time.Duration {
		t.Helper()
		seen, err := r.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return seen.ClockLag
	}
	for _, back := range []string{"0", "-1 hour"} {
		if clock(t, conn, back); behind() != 0 {
			t.Errorf("a clock set back by %s is said to be %v behind the last record", back, behind())
		}
	}
	clock(t, conn, "1 hour")
	if b := behind(); b < 50*time.Minute || b > time.Hour {
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
	must(t, r, consent.Command{Action: consent.ActionNoteReport, Subject: "ada", Caller: subject("ada")})
	out := must(t, r, consent.Command{Action: consent.ActionRevoke, Subject: "ada", Caller: subject("ada")})
	if out.RecordedAt.Before(first.RecordedAt) {
		t.Error("records go back in time")
	}
	x, anchored := exported(t, r)
	if found := Check(x, r.Keys, &anchored); len(found) > 0 {
		t.Error(found)
	}
}

// If the anchor cannot be read or written, the registry grants nothing, but records withdrawals.
func TestAnchorCannotBeWritten(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, anchor string){
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
			must(t, r, grant("ada", consent.StreamTemporary))
			must(t, r, grant("bob", consent.StreamTemporary))
			spoil(t, r.Anchor)
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
	must(t, r, grant("ada", consent.StreamTemporary))
	before, err := os.ReadFile(r.Anchor)
	if err != nil {
		t.Fatal(err)
	}
	must(t, r, grant("bob", consent.StreamTemporary))
	if err := os.WriteFile(r.Anchor, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.Anchor+".new", []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	sound(t, r)
	must(t, r, consent.Command{Action: consent.ActionRevoke, Subject: "bob", Caller: subject("bob")})
	sound(t, r)
	if report, _ := r.Verify(t.Context()); report.AnchoredRecord != 3 {
		t.Errorf("%+v", report)
	}
	// A second registry may use the same anchor file. Neither loses its entry.
	other := openWithKeys(t, db, defaults, r.Keys, r.Anchor)
	other.Database = "copy"
	must(t, other, grant("eve", consent.StreamTemporary))
	sound(t, r)
	sound(t, other)
}

// A proxy without an anchor verifies the whole registry before its first grant.
func TestFirstUseChecksTheWholeRegistry(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	lived(t, r)
	conn := db.Connect(t, "postgres")
	if _, err := conn.Exec(t.Context(),
		"ALTER TABLE pgconsent.consent_record DISABLE TRIGGER USER; UPDATE pgconsent.consent_record SET purposes "+
			"= '{all}' WHERE number = 2; ALTER TABLE pgconsent.consent_record ENABLE TRIGGER USER"); err != nil {
		t.Fatal(err)
	}
	late := openWithKeys(t, db, defaults, r.Keys, filepath.Join(t.TempDir(), "late.anchor"))
	if _, err := late.Execute(t.Context(), grant("new", consent.StreamTemporary)); !errors.As(err, new(*TamperedError)) {
		t.Errorf("%v, want a TamperedError", err)
	}
	out, err := late.Execute(t.Context(), consent.Command{Action: consent.ActionRevoke, Subject: "person 1",
		Caller: subject("person 1")})
	if err != nil || out.Tampered == nil || out.Consent.State != consent.StateWithdrawn {
		t.Errorf("%+v %v", out, err)
	}
	// A proxy with another key file grants nothing either.
	foreign, err := parseKeys([]byte("1 " + fmt.Sprintf("%064x", 9)))
	if err != nil {
		t.Fatal(err)
	}
	thief := openWithKeys(t, db, defaults, foreign, filepath.Join(t.TempDir(), "thief.anchor"))
	if _, err := thief.Execute(t.Context(), grant("new", consent.StreamTemporary)); !errors.As(err, new(*TamperedError)) {
		t.Errorf("%v, want a TamperedError", err)
	}
}

// As time passes, an undecided request lapses, and a consent gets one warning before it expires.
func TestDueCommands(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	conn := db.Connect(t, "postgres")
	sweep := func() (did []consent.Action) {
		t.Helper()
		due, err := r.DueCommands(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range due {
			if out := must(t, r, command); out.RecordNumber > 0 {
				did = append(did, command.Action)
			}
		}
		return did
	}
	clock(t, conn, "30 days")
	must(t, r, grant("ada", consent.StreamTemporary))
	must(t, r, consent.Command{Action: consent.ActionUpgrade, Subject: "ada", Caller: subject("ada")})
	for _, step := range []struct {
		back string
		want string
	}{{"30 days", "[]"}, {"27 days", "[lapse]"}, {"18 days", "[warn]"}, {"17 days", "[]"}, {"16 days", "[expire]"}, {"0 days", "[]"}} {
		clock(t, conn, step.back)
		if got := fmt.Sprint(sweep()); got != step.want {
			t.Errorf("%s ago: %s, want %s", step.back, got, step.want)
		}
	}
}

// If an expired consent is granted again, its expiry is recorded first. The result describes the state after both
// records.
func TestResultAfterExpiryAndGrant(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	conn := db.Connect(t, "postgres")
	clock(t, conn, "30 days")
	must(t, r, grant("ada", consent.StreamTemporary))
	clock(t, conn, "0")
	out := must(t, r, grant("ada", consent.StreamTemporary))
	stands, now, err := r.CurrentRecord(t.Context(), consent.Key{Subject: "ada", Grantee: "*", Scope: "*"})
	if err != nil || !stands.IsActiveAt(now) {
		t.Fatalf("%+v %v", stands, err)
	}
	if out.RecordNumber != 3 || out.Consent.State != consent.StateGiven || !out.Consent.ExpiresAt.Equal(stands.ExpiresAt) {
		t.Errorf("the answer is %+v, but %+v stands", out, stands)
	}
}

// Verifying everything may take longer than a call retries. If the database cannot be reached, the error says so, and
// claims nothing about a change.
func TestSlowVerify(t *testing.T) {
	tier.All(t)
	db := database(t)
	r := open(t, db, defaults)
	must(t, r, grant("ada", consent.StreamTemporary))
	sound(t, r)
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
	sound(t, r)
	if err := <-released; err != nil {
		t.Fatal(err)
	}
	away := *r.Connect
	away.Host, away.Fallbacks = t.TempDir(), nil
	other, err := Open(Config{Connect: &away, Database: "app", Keys: r.Keys, Anchor: r.Anchor, RetryFor: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Verify(t.Context()); err == nil || strings.Contains(err.Error(), "change") {
		t.Errorf("away: %v", err)
	}
}
