package proxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/test/network"
	"github.com/pgconsent/pgconsent/test/tier"
)

// withPool makes agents share a number of connections.
func withPool(size int) func(*testProxy, *Config) {
	return func(p *testProxy, _ *Config) {
		p.editRoute = func(r *Route) {
			if r.Kind == Agent {
				r.Pool = &PoolSettings{Size: size, Wait: tier.Patience}
			}
		}
	}
}

// TestRandomScriptsInPool: a session of a pool answers as a PostgreSQL session does, while other sessions use the same
// connections between its transactions.
func TestRandomScriptsInPool(t *testing.T) {
	p := startProxy(t, withPool(2))
	stop, otherSessions := make(chan struct{}), sync.WaitGroup{}
	for range 2 {
		c := p.connectRaw(t)
		otherSessions.Go(func() {
			defer c.Close()
			for n := uint64(0); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				for _, m := range [][]round{
					{upToReady(1, q(fmt.Sprintf("SET TimeZone = 'Etc/GMT+%d'", n%12)))},
					{upToReady(1, pa("a", "SELECT 'other' AS b"), bi("", "a"), ex("", 0), cl('S', "a"), sy)},
					{upToReady(1, pa("", "SELECT 'unnamed'"), bi("", ""), ex("", 0), sy)},
				} {
					c.play(t, m)
				}
			}
		})
	}
	defer otherSessions.Wait()
	defer close(stop)
	randomScripts(t, p, 50, withoutFailedTransactions)
}

// withoutFailedTransactions leaves out answers in a failed transaction, except ReadyForQuery. In that state PostgreSQL
// still describes some prepared statements, and reports errors of a Bind. The proxy cannot prepare them on another
// connection, and says that the transaction is aborted.
func withoutFailedTransactions(transcript []string) (out []string) {
	hasFailed := false
	for _, line := range transcript {
		isReady := strings.HasPrefix(line, "Z ")
		if isReady || !hasFailed {
			out = append(out, line)
		}
		if isReady {
			hasFailed = line == "Z E"
		}
	}
	return out
}

// runInTurn plays texts such as "a: SELECT 1" one after the other, each in the session with that name, and returns the
// answers. All sessions share one connection.
func runInTurn(t *testing.T, p *testProxy, texts ...string) (out []string) {
	t.Helper()
	peers := map[string]*peer{}
	for _, text := range texts {
		peerName, description, _ := strings.Cut(text, ": ")
		if peers[peerName] == nil {
			peers[peerName] = p.connectRaw(t)
		}
		for _, line := range peers[peerName].play(t, []round{upToReady(1, q(description))}) {
			if !strings.HasPrefix(line, "T") && !strings.HasPrefix(line, "Z") {
				out = append(out, peerName+": "+line)
			}
		}
	}
	return out
}

// TestNothingOfAnotherSession: the state that a session has on the server ends with the session. The next session on
// the connection finds nothing of it.
func TestNothingOfAnotherSession(t *testing.T) {
	for name, c := range map[string]struct{ texts, want []string }{
		"settings": {
			[]string{"a: SET TimeZone = 'Asia/Tokyo'", "b: SHOW TimeZone", "a: SHOW TimeZone", "b: SET TimeZone = 'Etc/GMT+3'",
				"a: SHOW TimeZone", "a: RESET TimeZone", "b: SHOW TimeZone", "a: SHOW TimeZone"},
			[]string{"a: C SET", "a: S TimeZone=Asia/Tokyo", `b: D ["UTC"]`, "b: C SHOW", `a: D ["Asia/Tokyo"]`, "a: C SHOW",
				"b: C SET", "b: S TimeZone=Etc/GMT+3",
				`a: D ["Asia/Tokyo"]`, "a: C SHOW", "a: C RESET", "a: S TimeZone=UTC",
				`b: D ["Etc/GMT+3"]`, "b: C SHOW", `a: D ["UTC"]`, "a: C SHOW"},
		},
		"settings that are undone": {
			[]string{"a: BEGIN", "a: SET TimeZone = 'Asia/Tokyo'", "a: ROLLBACK", "b: SHOW TimeZone", "a: SHOW TimeZone",
				"a: BEGIN; SET LOCAL TimeZone = 'Asia/Tokyo'; COMMIT", "b: SHOW TimeZone", "a: SHOW TimeZone"},
			[]string{"a: C BEGIN", "a: C SET", "a: S TimeZone=Asia/Tokyo", "a: C ROLLBACK", "a: S TimeZone=UTC",
				`b: D ["UTC"]`, "b: C SHOW", `a: D ["UTC"]`, "a: C SHOW", "a: C BEGIN", "a: C SET", "a: C COMMIT",
				`b: D ["UTC"]`, "b: C SHOW", `a: D ["UTC"]`, "a: C SHOW"},
		},
		"numbers of sequences": {
			[]string{"a: INSERT INTO numbered DEFAULT VALUES", "a: SELECT 1", "b: SELECT lastval()", "b: INSERT INTO numbered DEFAULT VALUES", "b: SELECT lastval()"},
			[]string{"a: C INSERT 0 1", `a: D ["1"]`, "a: C SELECT 1", "b: E ERROR 55000 the statement failed on the server; its message is withheld  @0",
				"b: C INSERT 0 1", `b: D ["2"]`, "b: C SELECT 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, withPool(1))
			admin := p.db.Connect(t, "postgres")
			if _, err := admin.Exec(t.Context(), "CREATE TABLE numbered (n serial); GRANT ALL ON numbered, numbered_n_seq TO wire_agent; "+
				"ALTER ROLE wire_agent SET TimeZone = 'UTC'"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, runInTurn(t, p, c.texts...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSettingsOnEachConnection: a session that returns to a connection finds its current settings there, not those that
// it had when it left.
func TestSettingsOnEachConnection(t *testing.T) {
	p := startProxy(t, withPool(2))
	a, b := p.connectRaw(t), p.connectRaw(t)
	zone := func(client *peer) string {
		t.Helper()
		return strings.Join(client.play(t, []round{upToReady(1, q("SHOW TimeZone"))}), " ")
	}
	run := func(client *peer, text string) { client.play(t, []round{upToReady(1, q(text))}) }
	run(a, "SET TimeZone = 'Etc/GMT+1'") // on the first connection
	run(b, "BEGIN")                      // takes the first connection
	run(a, "SET TimeZone = 'Etc/GMT+2'") // on the second connection
	run(b, "COMMIT")
	for range 2 {
		run(b, "BEGIN")
		if got := zone(a); !strings.Contains(got, "Etc/GMT+2") {
			t.Error(got)
		}
		run(b, "COMMIT")
		if got := zone(a); !strings.Contains(got, "Etc/GMT+2") {
			t.Error(got)
		}
	}
}

// TestPoolIsShared: sessions outside a transaction share connections. A session in a transaction has a connection to
// itself.
func TestPoolIsShared(t *testing.T) {
	p := startProxy(t, withPool(2))
	processes := map[uint32]bool{}
	var sessions []*pgx.Conn
	for range 20 {
		sessions = append(sessions, p.connect(t))
	}
	for _, c := range sessions {
		var pid uint32
		if err := c.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		processes[pid] = true
	}
	if len(processes) > 2 {
		t.Errorf("%d server processes", len(processes))
	}
	if s := p.server.Pools(); len(s) != 1 || s[0].Size != 2 || s[0].Taken < 40 || s[0].Used+s[0].Idle > 2 {
		t.Errorf("pools: %+v", s)
	}
}

// TestPoolKeepsConnectionOfSessionThatLeaves: a session that has changed a setting and leaves at once leaves its
// connection to the next session, without the setting. It may say that it leaves, or only close its socket.
func TestPoolKeepsConnectionOfSessionThatLeaves(t *testing.T) {
	p := startProxy(t, withPool(2))
	var first, last string
	for i := range 6 {
		c := p.connectRaw(t)
		last = fmt.Sprint(c.play(t, []round{upToReady(1, q("SELECT pg_backend_pid(), current_setting('TimeZone')"))}))
		if i == 0 {
			first = last
		}
		if last != first {
			t.Errorf("session %d: %s\nthe first: %s", i, last, first)
		}
		c.play(t, []round{upToReady(1, q("SET TimeZone = 'Asia/Tokyo'"))})
		if i%2 == 0 {
			c.send(t, &pgx3.Terminate{})
		}
		c.Close()
		eventually(t, "no session has the connection", func() bool { s := p.server.Pools()[0]; return s.Used == 0 && s.Idle == 1 })
	}
}

// TestPoolWaits: sessions wait for a connection in the order in which they came. A session ends with 53300 if none
// becomes free in time.
func TestPoolWaits(t *testing.T) {
	p := startProxy(t, withPool(1))
	first, second := p.connect(t), p.connect(t)
	if _, err := first.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	answerResult := make(chan error, 1)
	go func() {
		_, err := second.Exec(context.Background(), "SELECT 1")
		answerResult <- err
	}()
	eventually(t, "a session waits", func() bool { return p.server.Pools()[0].Waiting == 1 })
	if _, err := first.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-answerResult; err != nil {
		t.Errorf("the session that waited: %v", err)
	}

	p.mu.Lock()
	p.editRoute = func(r *Route) { r.Pool = &PoolSettings{Size: 1, Wait: time.Millisecond} }
	p.mu.Unlock()
	thirdConn := p.connect(t)
	if _, err := first.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	var refused *pgconn.PgError
	if _, err := thirdConn.Exec(t.Context(), "SELECT 1"); !errors.As(err, &refused) || refused.Code != "53300" || refused.Hint == "" {
		t.Errorf("no connection: %v", err)
	}
	if s := p.server.Pools()[0]; s.TimedOut != 1 || s.Waiting != 0 {
		t.Errorf("pool: %+v", s)
	}
}

// TestPoolKeepsSessionsWithState: a session with state that cannot be moved to another connection keeps its connection,
// which ends with the session.
func TestPoolKeepsSessionsWithState(t *testing.T) {
	for name, texts := range map[string][]string{
		"PREPARE":              {"PREPARE x AS SELECT 1"},
		"cursor WITH HOLD":     {"DECLARE k CURSOR WITH HOLD FOR SELECT 1"},
		"LISTEN":               {"LISTEN c"},
		"advisory lock":        {"SELECT pg_advisory_lock(1)"},
		"the seed of random()": {"SELECT setseed(0.5)"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, withPool(2))
			c := p.connect(t, "default_query_exec_mode=simple_protocol")
			for _, text := range texts {
				if _, err := c.Exec(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
			var keptPID, otherPID uint32
			for range 3 {
				if err := c.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&keptPID); err != nil {
					t.Fatal(err)
				}
				if err := p.connect(t).QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&otherPID); err != nil {
					t.Fatal(err)
				}
				if keptPID == otherPID {
					t.Fatal("another session got the connection")
				}
			}
			if err := c.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			admin := p.db.Connect(t, "postgres")
			eventually(t, "the connection is closed", func() bool {
				var exists bool
				if err := admin.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)",
					keptPID).Scan(&exists); err != nil {
					t.Fatal(err)
				}
				return !exists
			})
		})
	}
}

// TestPoolIdentity: sessions with the same identity use a connection under the same seal. For another identity, the
// seal is replaced first.
func TestPoolIdentity(t *testing.T) {
	p := startProxy(t, withPool(1))
	users := []string{"anna", "anna", "bert", "bert", "anna"}
	var seals []string
	offset := 0
	p.setupDecider = func(j *fakeDecider) { j.info.TokenAttributes = map[string]string{"user": users[offset]} }
	for offset = range users {
		c := p.connect(t)
		var now string
		if err := c.QueryRow(t.Context(), "SELECT $1 || current_setting('pgconsent.seal')", users[offset]+" ").Scan(&now); err != nil {
			t.Fatal(err)
		}
		seals = append(seals, now)
	}
	if seals[0] != seals[1] {
		t.Errorf("sessions of one identity have seals of their own: %q", seals)
	}
	if a, b := strings.Fields(seals[1])[2], strings.Fields(seals[2])[2]; a == b && p.deciders[2].seals.Load() == 0 {
		t.Errorf("a session of another identity ran under the seal of the one before: %q", seals)
	}
	if n := p.deciders[2].seals.Load() * p.deciders[4].seals.Load(); n == 0 {
		t.Error("a session ran under the seal of another identity")
	}
	if n := p.deciders[1].seals.Load() + p.deciders[3].seals.Load(); n != 0 {
		t.Error("a session did not take the seal of its own identity")
	}
}

// TestPoolAfterLosses: the pool works as before after three events: a session ends in a transaction, a server process
// ends, and a connection receives another session's cancel request.
func TestPoolAfterLosses(t *testing.T) {
	p := startProxy(t, withPool(1))
	for range 3 {
		c := p.connect(t)
		if _, err := c.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		if err := c.PgConn().Conn().Close(); err != nil {
			t.Fatal(err)
		}
	}
	idleConn := p.connect(t)
	if _, err := idleConn.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	admin := p.db.Connect(t, "postgres")
	eventually(t, "no session has the connection", func() bool { return p.server.Pools()[0].Idle == 1 })
	if _, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'wire_agent' "+
		"AND datname = current_database()"); err != nil {
		t.Fatal(err)
	}
	if _, err := idleConn.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("behind the end of the server process: %v", err)
	}
	for i := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		runningConn, result := p.connect(t), make(chan error, 1)
		go func() {
			_, err := runningConn.Exec(ctx, "SELECT pg_sleep(0.005)")
			result <- err
		}()
		time.Sleep(time.Duration(i%8) * time.Millisecond)
		cancel()
		<-result
		if _, err := idleConn.Exec(t.Context(), "SELECT 1"); err != nil {
			t.Errorf("behind a session whose statement was canceled: %v", err)
		}
	}
}

// TestLoginByAnEndedConnection: if a pooled connection has just ended while idle, a login gets another one.
func TestLoginByAnEndedConnection(t *testing.T) {
	p := startProxy(t, withPool(1))
	if err := p.connect(t).Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no session has the connection", func() bool { return p.server.Pools()[0].Idle == 1 })
	p.server.pools.mu.Lock()
	for _, agentPool := range p.server.pools.pools {
		c := agentPool.idle[0]
		c.mu.Lock()
		c.isDead = true
		c.mu.Unlock()
	}
	p.server.pools.mu.Unlock()
	if err := p.connect(t).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSessionOutlivesItsConnection: a connection may end after the last answer, just before the session returns it to
// the pool. The session does not notice.
func TestSessionOutlivesItsConnection(t *testing.T) {
	f := startFaultyProxy(t, true)
	f.learnAnswers(t, false)
	var session *session
	f.server.mu.Lock()
	for conn := range f.server.conns {
		session = conn.session
	}
	f.server.mu.Unlock()
	for range 3 {
		f.witness.send(t, q("SELECT pg_sleep(0.2)"))
		eventually(t, "the statement runs", func() bool { return session.hasConnection() && !session.ledger.needsNoConnection() })
		session.retry.takeTurn() // so that the session keeps its connection after the answer
		for typ := byte(0); typ != 'Z'; {
			m, err := f.witness.frontend.Receive()
			if err != nil {
				t.Fatal(err)
			}
			_, typ = transcribe(m)
		}
		session.retry.leaveTurn()
		f.serverNetwork.Break(network.Close)
		f.playWithFault(t, "a connection that ended behind an answer", func() {}, false)
	}
}
