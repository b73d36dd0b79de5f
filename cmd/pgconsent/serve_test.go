package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/test/tier"
)

// startServe starts serve and returns the address on which it listens.
func (i *installation) startServe(t *testing.T, args ...string) (*program, string) {
	t.Helper()
	return i.startServeThrough(t, nil, args...)
}

// startServeThrough does what startServe does, with a command that executes the program.
func (i *installation) startServeThrough(t *testing.T, wrapper []string, args ...string) (*program, string) {
	t.Helper()
	p := launchThrough(t, nil, append(append(wrapper, os.Args[0], "serve", "-c", i.config, "--log-format", "json"), args...)...)
	return p, p.listenAddress(t)
}

// listenAddress waits until serve listens, and returns its address, or all addresses as the log lists them.
func (p *program) listenAddress(t *testing.T) (address string) {
	t.Helper()
	waitFor(t, "serve listens", func() bool {
		for line := range strings.Lines(p.errs.String()) {
			var logLine struct{ Msg, Listen string }
			if json.Unmarshal([]byte(line), &logLine) == nil && logLine.Msg == "serving" {
				address = logLine.Listen
			}
		}
		return address != ""
	})
	return address
}

// countVisible logs an agent in, and returns the number of visible rows of a person, or the error.
func (i *installation) countVisible(t *testing.T, address, suffix string) (int, error) {
	t.Helper()
	config, err := pgx.ParseConfig(i.dsn("chat", address))
	if err != nil {
		t.Fatal(err)
	}
	config.ConnectTimeout = 20 * time.Second
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		return -1, err
	}
	defer conn.Close(t.Context())
	var n int
	err = conn.QueryRow(t.Context(), "SELECT count(*) FROM interactions WHERE user_id = $1", suffix).Scan(&n)
	return n, err
}

func (i *installation) dsn(user, address string) string {
	return "postgres://" + user + ":secret@" + address + "/app?sslmode=disable"
}

// An idle owner delays the end of serve, but no longer than --drain, and not after a second signal.
func TestDrain(t *testing.T) {
	tier.All(t)
	i := installDatabase(t)
	for _, c := range []struct {
		name           string
		drainTime      string // "1h" is longer than the test waits
		secondSignal   syscall.Signal
		awaitedLogText string // a text in the log before the second signal
		owner          bool
		minTime        time.Duration
		code           int
	}{
		{"agents only", "1h", 0, "", false, 0, exitOK},
		{"an idle owner", "1s", 0, "", true, 900 * time.Millisecond, exitOK},
		// The program is ended by the second signal.
		{"a second signal", "1h", syscall.SIGTERM, `"draining"`, true, 0, -1},
		// The signals differ, because the system may merge two equal signals into one.
		{"two signals at once", "1h", syscall.SIGINT, "", true, 0, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, address := i.startServe(t, "--drain", c.drainTime)
			agent := connect(t, i.dsn("chat", address))
			if n := queryInt(t, agent, "SELECT count(*) FROM memories"); n != 1 {
				t.Errorf("the agent sees %d memories", n)
			}
			if c.owner {
				if n := queryInt(t, connect(t, i.dsn("app_owner", address)), "SELECT count(*) FROM memories"); n != 2 {
					t.Errorf("the owner sees %d memories", n)
				}
			}
			start := time.Now()
			p.signal(t, syscall.SIGTERM)
			if c.secondSignal != 0 {
				waitFor(t, "it drains", func() bool { return strings.Contains(p.errs.String(), c.awaitedLogText) })
				p.signal(t, c.secondSignal)
			}
			code := p.awaitEnd(t)
			if elapsed := time.Since(start); code != c.code || elapsed < c.minTime {
				t.Errorf("code %d after %v, want %d after %v", code, elapsed, c.code, c.minTime)
			}
		})
	}
	if _, stderr, code := call(t, "", "serve", "-c", i.config, "--drain", "0s"); code != exitUsage || !strings.Contains(stderr, "--drain must be more than 0") {
		t.Errorf("--drain 0s: %d %s", code, stderr)
	}
	if out, _, _ := call(t, "", "serve", "--help"); !strings.Contains(out, "Default: 10s") {
		t.Errorf("the help does not tell the default of --drain: %s", out)
	}
}

// A policy probe of the doctor that takes too long refuses nobody and is logged. The policy is still enforced.
func TestSlowProbe(t *testing.T) {
	tier.All(t)
	i := installDatabase(t)
	ctx := context.Background()
	lockHolder := i.db.Connect(t, "postgres")
	// This REINDEX blocks the planning of statements that read the table, as if the table were very large.
	for _, sql := range []string{"BEGIN", "REINDEX INDEX notes_pkey"} {
		if _, err := lockHolder.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	p, address := i.startServe(t)
	// On a busy machine the probe may leave too little time for the rest of the check. The state is then unknown, and the
	// check is repeated.
	var agent *pgx.Conn
	for end := time.Now().Add(tier.Patience); agent == nil; time.Sleep(100 * time.Millisecond) {
		c, err := pgx.Connect(ctx, i.dsn("chat", address))
		if err == nil {
			agent = c
			t.Cleanup(func() { _ = c.Close(context.Background()) })
		} else if !strings.Contains(err.Error(), "57P03") || time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if n := queryInt(t, agent, "SELECT count(*) FROM memories"); n != 1 {
		t.Errorf("the agent sees %d memories", n)
	}
	if !strings.Contains(p.errs.String(), `"finding":"probe_timeout"`) ||
		!strings.Contains(p.errs.String(), "public_notes") && !strings.Contains(p.errs.String(), "public.notes") {
		t.Errorf("the probe that was not finished is not said: %s", p.errs)
	}
	if strings.Contains(strings.ReplaceAll(p.errs.String(), "refused when that lasts", ""), "refused") {
		t.Errorf("agents are refused: %s", p.errs)
	}
}

// If pg_hba.conf changes to trust while serve runs, serve refuses owners and agents, and logs why.
func TestTrustWhileServing(t *testing.T) {
	tier.All(t)
	i := installDatabase(t)
	ctx := context.Background()
	p, address := i.startServe(t)
	agent := connect(t, i.dsn("chat", address))
	const line = "host all app_owner all trust"
	i.exec(t, withHBA(line, true))
	isTrusted := true
	t.Cleanup(func() {
		if isTrusted {
			i.exec(t, withHBA(line, false))
		}
	})
	wrongPasswordError := func() string {
		conn, err := pgx.Connect(ctx, strings.Replace(i.dsn("app_owner", address), ":secret@", ":wrong@", 1))
		if err == nil {
			conn.Close(ctx)
			return ""
		}
		return sqlState(err)
	}
	waitFor(t, "owners are refused", func() bool { return wrongPasswordError() == "28P01" })
	waitFor(t, "agents are refused", func() bool { return agent.QueryRow(ctx, "SELECT 1").Scan(new(int)) != nil })
	if !strings.Contains(p.errs.String(), "owner_login: ") {
		t.Errorf("the log does not say why: %s", p.errs)
	}
	i.exec(t, withHBA(line, false))
	isTrusted = false
	waitFor(t, "owners are served again", func() bool {
		conn, err := pgx.Connect(ctx, i.dsn("app_owner", address))
		if err == nil {
			conn.Close(ctx)
		}
		return err == nil
	})
	waitFor(t, "agents are served again", func() bool {
		conn, err := pgx.Connect(ctx, i.dsn("chat", address))
		if err == nil {
			conn.Close(ctx)
		}
		return err == nil
	})
}
