package sweep

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/test/tier"
)

// TestSweepUntilKilled is a child process that sweeps until it kills itself, after a given number of transactions. See
// [TestKilledSweepIsResumed].
func TestSweepUntilKilled(t *testing.T) {
	dsn := os.Getenv("SWEEP_DSN")
	if dsn == "" {
		t.Skip("the process that TestKilledSweepIsResumed starts and kills, and no test")
	}
	keys, err := registry.LoadKeys(os.Getenv("SWEEP_KEY"))
	if err != nil {
		t.Fatal(err)
	}
	connect, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry.Open(registry.Config{Connect: connect, Database: "app", Keys: keys, Anchor: os.Getenv("SWEEP_ANCHOR")})
	if err != nil {
		t.Fatal(err)
	}
	steps, err := strconv.Atoi(os.Getenv("SWEEP_STEPS"))
	if err != nil {
		t.Fatal(err)
	}
	remainingSteps := steps
	s := &Sweeper{Registry: r, BatchSize: 3, betweenTransactions: func() {
		if remainingSteps--; remainingSteps == 0 {
			// Kill the process a little later, in the middle of the next transaction.
			go func() {
				time.Sleep(time.Duration(tier.Rand(uint64(steps)).IntN(4000)) * time.Microsecond)
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}()
		}
	}}
	if out, err := s.Run(context.Background(), false); err != nil || len(out.Failures) > 0 {
		t.Fatalf("%+v %v", out, err)
	}
	os.Exit(0)
}

// fill adds subjects of every kind, with several rows each.
func (s *site) fill() {
	s.ago(120)
	for _, subjectID := range []string{"p1", "p2", "p3", "p4"} {
		s.partner(subjectID)
		for i := range 5 {
			s.row(subjectID, 110+i)
		}
	}
	s.ago(100)
	s.degrade("p1", consent.StreamAnonymous)
	s.ago(70)
	s.degrade("p2", consent.StreamAnonymous)
	s.degrade("p3", consent.StreamTemporary)
	s.ago(20)
	for _, subjectID := range []string{"t1", "t2", "t3"} {
		s.temporary(subjectID)
		s.exec("INSERT INTO people VALUES ($1, 'name')", subjectID)
		for range 5 {
			s.row(subjectID, 19)
		}
	}
	s.ago(12)
	s.temporary("warned")
	s.row("warned", 11)
	s.ago(0)
	s.do(consent.Command{Action: consent.ActionRevoke, Subject: "p4"})
	s.do(consent.Command{Action: consent.ActionErase, Subject: "t3"})
}

// A sweep that is killed at any point is continued by the next one. The result is that of an undisturbed sweep.
func TestKilledSweepIsResumed(t *testing.T) {
	tier.All(t)
	undisturbed := build(t, consent.Settings{})
	undisturbed.fill()
	undisturbed.sweep()
	want, wantMade := undisturbed.rows(), undisturbed.query(leftSummaries)
	wantEvents := undisturbed.query(recordedEvents)
	random := tier.Rand(1)
	for round := range 4 {
		s := build(t, consent.Settings{})
		s.fill()
		kills := 0
		for steps := 1 + random.IntN(3); ; steps += random.IntN(4) {
			child := exec.Command(os.Args[0], "-test.run=^TestSweepUntilKilled$") //nolint:gosec // this test
			child.Env = append(os.Environ(), "SWEEP_DSN="+s.db.DSN("pgconsent_control", "role-password"),
				"SWEEP_KEY="+s.key, "SWEEP_ANCHOR="+s.Registry.Anchor, fmt.Sprint("SWEEP_STEPS=", steps))
			out, err := child.CombinedOutput()
			if err == nil {
				break
			}
			if child.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%v %s", err, out)
			}
			kills++
			s.idle()
		}
		s.sweep()
		if got := s.rows(); got != want {
			t.Errorf("round %d, %d kills:\n%s\nwant\n%s", round, kills, got, want)
		}
		if got := s.query(leftSummaries); got != wantMade {
			t.Errorf("round %d, %d kills: summaries of\n%s\nwant\n%s", round, kills, got, wantMade)
		}
		if got := s.query(recordedEvents); got != wantEvents {
			t.Errorf("round %d, %d kills: records\n%s\nwant\n%s", round, kills, got, wantEvents)
		}
		if leftNotes := s.query("SELECT subject FROM pgconsent.sweep_note UNION ALL SELECT subject FROM pgconsent.sweep_erased"); leftNotes != "" {
			t.Errorf("left behind: %s", leftNotes)
		}
		s.verify()
		if kills == 0 && round == 0 {
			t.Error("nothing was killed")
		}
	}
}

// leftSummaries queries the remaining summaries, and for each one whether its interaction still exists.
const leftSummaries = `SELECT concat(s.body, ' ', i.id IS NOT NULL) FROM summaries AS s LEFT JOIN interactions AS i ON i.id = s.of ORDER BY 1`

// recordedEvents queries the recorded events, each one once per subject.
const recordedEvents = `SELECT DISTINCT s.subject || ' ' || r.event FROM pgconsent.consent_record r ` +
	`JOIN pgconsent.subject s ON s.ref = r.subject WHERE s.subject IS NOT NULL ORDER BY 1`

// idle waits until the server has ended the killed sweeper's sessions.
func (s *site) idle() {
	for s.query("SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND (application_name "+
		"= 'pgconsent sweep' OR application_name = 'pgconsent consent' AND state <> 'idle')") != "" {
		time.Sleep(time.Millisecond)
	}
	for s.query("SELECT pid::text FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM "+
		"pg_database WHERE datname = current_database())") != "" {
		time.Sleep(time.Millisecond)
	}
}

// Consents end and are renewed while several sweepers run. No row is deleted that an active consent covers, and no row
// stays that is older than the end of one.
func TestRenewalsDuringASweep(t *testing.T) {
	tier.All(t)
	s := build(t, consent.Settings{TemporaryDuration: 150 * time.Millisecond, WarningTime: time.Millisecond})
	ctx, stop := context.WithCancel(t.Context())
	var sweepers, users sync.WaitGroup
	for range 2 {
		sweepers.Go(func() {
			for ctx.Err() == nil {
				if out, err := s.Run(ctx, false); ctx.Err() == nil && (err != nil || len(out.Failures) > 0) {
					t.Errorf("%+v %v", out, err)
				}
			}
		})
	}
	var mu sync.Mutex
	writtenCount := 0
	for u := range 4 {
		conn := s.db.Connect(t, "postgres")
		users.Go(func() {
			subjectID, random := fmt.Sprintf("u%d", u), tier.Rand(uint64(u))
			for range 25 {
				if _, err := s.Registry.Execute(ctx,
					consent.Command{Action: consent.ActionInteract, Subject: subjectID, Caller: consent.Party{Role: consent.RoleApplication, ID: "app"}}); err != nil {
					t.Error(err)
					return
				}
				if _, err := conn.Exec(ctx,
					"WITH i AS (INSERT INTO interactions (user_id, at) VALUES ($1, clock_timestamp()) RETURNING "+
						"id) INSERT INTO summaries (of) SELECT id FROM i", subjectID); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				writtenCount++
				mu.Unlock()
				time.Sleep(time.Duration(random.IntN(220)) * time.Millisecond) // around the end of the consent
			}
			s.partner(subjectID) // this consent does not expire
			if _, err := conn.Exec(ctx, "INSERT INTO interactions (user_id, at) VALUES ($1, clock_timestamp())", subjectID); err != nil {
				t.Error(err)
			}
		})
	}
	// Record every row that is written, even if it is deleted later.
	s.exec(`CREATE TABLE log (id bigint, user_id text, at timestamptz);
		CREATE FUNCTION log() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO log VALUES (NEW.id, NEW.user_id, NEW.at); RETURN NULL; END';
		CREATE TRIGGER log AFTER INSERT ON interactions FOR EACH ROW EXECUTE FUNCTION log()`)
	users.Wait()
	stop()
	sweepers.Wait()
	s.idle()
	lostRows := s.query(`SELECT l.user_id FROM log l JOIN pgconsent.consent_current c ON c.subject = l.user_id
		WHERE NOT EXISTS (SELECT FROM interactions i WHERE i.id = l.id) AND l.at >= COALESCE(c.void_before, '-infinity')
		AND l.at >= COALESCE(CASE WHEN c.expires_at <= now() THEN c.expires_at END, '-infinity')`)
	if lostRows != "" {
		t.Errorf("lost: %s", lostRows)
	}
	s.sweep()
	if got := s.query("SELECT i.user_id FROM interactions i JOIN pgconsent.consent_current c ON c.subject = " +
		"i.user_id WHERE i.at < c.void_before"); got != "" {
		t.Errorf("left: %s", got)
	}
	if got := s.query("SELECT s.id::text FROM summaries AS s WHERE NOT EXISTS (SELECT FROM interactions WHERE id = s.of)"); got != "" {
		t.Errorf("summaries of what has gone: %s", got)
	}
	if got := s.query("SELECT count(*) - (SELECT count(*) FROM summaries) || '' FROM interactions"); got != "4" { // each user's last row has none
		t.Errorf("%s rows are without their summary, want 4", got)
	}
	expiryCount := s.query("SELECT count(*)::text FROM pgconsent.consent_record WHERE event = 'expired'")
	keptCount := s.query("SELECT count(*)::text FROM interactions")
	if expiryCount == "0" || keptCount == "0" || strings.TrimSpace(keptCount) == fmt.Sprint(writtenCount) {
		t.Errorf("%s expiries, %s of %d rows kept: nothing was tried", expiryCount, keptCount, writtenCount)
	}
	s.verify()
}

// Only one sweeper runs at a time: a second one says so and does nothing.
// seeds/001:158-159.
func TestOneAtATime(t *testing.T) {
	tier.All(t)
	s := build(t, consent.Settings{})
	s.fill()
	busyCount := 0
	otherSweeper := &Sweeper{Registry: s.Registry}
	s.betweenTransactions = func() {
		if out, err := otherSweeper.Run(context.Background(), false); err != nil || !out.SweepRunning || len(out.Tables) > 0 {
			t.Errorf("%+v %v", out, err)
		}
		busyCount++
	}
	s.sweep()
	if busyCount == 0 {
		t.Error("nothing was tried")
	}
}
