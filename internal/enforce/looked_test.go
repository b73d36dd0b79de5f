package enforce

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/rls"
)

// TestRepeatedProbes: Check is called again after ten seconds, and after each new connection. The enforcer does not
// confirm a state that is older than its last probe, and begins no session on a server that it has not probed.
func TestRepeatedProbes(t *testing.T) {
	asked := 0
	w := start(t, func(w *world) {
		w.cfg.ProbeInterval = time.Hour
		w.cfg.Check = func(context.Context, *pgx.Conn, Target) error { asked++; return nil }
	})
	d := w.databases["memories"]
	d.stopListening(t)
	look := func(what string, want bool) {
		t.Helper()
		before := asked
		if err := d.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if (asked > before) != want {
			t.Errorf("%s: Check is asked: %t", what, !want)
		}
	}
	look("nothing has changed", false)
	d.mu.Lock()
	d.checkedAt = d.checkedAt.Add(-checkInterval - time.Second)
	d.mu.Unlock()
	look("ten seconds went by", true)
	look("it was asked a moment ago", false)
	d.mu.Lock()
	_ = d.conn.Close(t.Context())
	d.mu.Unlock()
	look("the connection is another", true)

	d.mu.Lock()
	defer d.mu.Unlock()
	seen := d.lastProbe
	for what, change := range map[string]func(){
		"the catalogs":      func() { d.lastProbe.agentChanges-- },
		"what is installed": func() { d.lastProbe.installedPolicy.Hash += "x" },
	} {
		change()
		if err := d.verify(d.state); err == nil {
			t.Errorf("%s are others than was seen, and vouched for", what)
		}
		d.lastProbe = seen
	}
	if err := d.verify(d.state); err != nil {
		t.Error(err)
	}
	d.mu.Unlock()
	if _, refused := d.servingStateForServer(t.Context(), "another"); refused == nil {
		t.Error("a server that was not looked at is known")
	}
	d.mu.Lock()
	server := d.servingState.Load().server
	if _, refused := d.servingStateForServer(t.Context(), server); refused != nil {
		t.Error(refused)
	}
}

// TestClaimsAreChecked: a session's claim is effective if the policy accepts it: at the start of the session, by SET,
// and if claims change one after the other. It has no effect if its value is not known.
func TestClaimsAreChecked(t *testing.T) {
	const claiming = `version: 1
attributes:
  user: { type: uuid, source: credential }
  room: { type: text, source: set, optional: true, within: { values: [a, b] } }
  seat: { type: text, source: set, optional: true, within: { attribute: room } }
tables:
  memories: { rows: [ { own: { column: user_id, is: user } } ] }
`
	w := start(t, func(w *world) {
		w.write(claiming)
		if err := installWith(context.Background(), w.dba, claiming, rls.Options{}); err != nil {
			t.Fatal(err)
		}
	})
	const room, seat = "pgconsent.room", "pgconsent.seat"
	access, _ := w.Agent("caregiver", "memories")
	open := func(settings map[string]string) (*session, error) {
		d, err := access.OpenSession(t.Context(), SessionInfo{
			ID: "s", Agent: "caregiver", Database: "memories", Server: w.databases["memories"].servingState.Load().server, Settings: settings})
		if err != nil {
			return nil, err
		}
		t.Cleanup(d.Close)
		return d.(*session), nil
	}
	for _, c := range []struct {
		settings map[string]string
		may      bool
	}{
		{nil, true}, {map[string]string{room: "a"}, true}, {map[string]string{room: "c"}, false}, {map[string]string{room: "a", seat: "a"}, true},
		{map[string]string{room: "a", seat: "b"}, false}, {map[string]string{seat: "a"}, false}, {map[string]string{room: ""}, true},
	} {
		if _, err := open(c.settings); (err == nil) != c.may {
			t.Errorf("%v: %v", c.settings, err)
		}
	}
	s, err := open(map[string]string{room: "b"})
	if err != nil {
		t.Fatal(err)
	}
	for text, may := range map[string]bool{
		"SET pgconsent.room = 'a'": true, "SET pgconsent.room = 'c'": false, "SET pgconsent.seat = 'b'": true, "SET pgconsent.seat = 'a'": false,
		"SET pgconsent.room = 'a'; SET pgconsent.seat = 'a'": true, "SET pgconsent.room = 'a'; SET pgconsent.seat = 'b'": false,
		"RESET pgconsent.room": true, "SET pgconsent.room = ''": true,
	} {
		if v := s.Decide(t.Context(), text, verdict.Simple); v.IsAllowed() != may {
			t.Errorf("%s: %v", text, v.Refusal)
		}
	}
	p := w.databases["memories"].servingState.Load().state.policy
	for _, known := range []bool{true, false} {
		s.info.Claims = func() verdict.Claims { return verdict.Claims{Known: known, Values: map[string]string{room: "a"}} }
		if _, claims := s.claimedAttributes(p)["room"]; claims != known {
			t.Errorf("claims that can be told: %t; they count: %t", known, claims)
		}
		if (s.claimedSettings(p) != nil) != known {
			t.Errorf("claims that can be told: %t; they are compared with: %t", known, !known)
		}
	}
	unreached, cancel := context.WithCancel(t.Context())
	cancel()
	if v := s.Decide(unreached, "SET pgconsent.room = 'a'", verdict.Simple); v.IsAllowed() {
		t.Error("a claim of which nothing could be found out is let through")
	}
}

// TestKeysOfATableReadTwice: if a result contains the key of a table twice, the record does not say which rows were
// returned. If a result was not read to its end, or has rows of several tables, the record does not claim to be
// complete.
func TestKeysOfATableReadTwice(t *testing.T) {
	description := func(columns ...uint16) []byte {
		b := binary.BigEndian.AppendUint16(nil, uint16(len(columns)))
		for _, number := range columns {
			b = append(b, 'c', 0)
			b = binary.BigEndian.AppendUint32(b, 7)
			b = binary.BigEndian.AppendUint16(b, number)
			b = binary.BigEndian.AppendUint32(b, 23)
			b = append(b, make([]byte, 8)...)
		}
		return b
	}
	columns := keyColumns{7: {1: {"public.t", 0, 2}, 2: {"public.t", 1, 2}}}
	for _, c := range []struct {
		of     []uint16
		places int
	}{{[]uint16{1, 2}, 2}, {[]uint16{2, 1}, 2}, {[]uint16{3, 1, 2}, 2}, {[]uint16{1}, 0}, {[]uint16{1, 3}, 0}, {
		[]uint16{1, 1}, 0}, {[]uint16{1, 2, 1}, 0}, {[]uint16{1, 2, 1, 2}, 0}, {[]uint16{1, 1, 2}, 0}} {
		r := &returnedKeys{tables: []string{"public.t"}, columns: columns, description: description(c.of...)}
		r.locateKeyColumns()
		if got := len(r.positions["public.t"]); got != c.places {
			t.Errorf("columns %v: a key of %d parts, want %d", c.of, got, c.places)
		}
	}
	for _, single := range []bool{true, false} {
		for _, incomplete := range []bool{true, false} {
			for seen := range int64(4) {
				r := &returnedKeys{tables: []string{"public.t"}, singleTable: single, rowCount: seen, incompleteTables: map[string]bool{"public.t": incomplete}}
				for rows := range int64(4) {
					if got := r.auditKeys(rows)[0].AreComplete; got != (rows == 0 || single && !incomplete && seen == rows) {
						t.Errorf("%d rows of %d seen, single %t, incomplete %t: exact %t", seen, rows, single, incomplete, got)
					}
				}
			}
		}
	}
}
