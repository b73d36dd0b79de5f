package proxy

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/network"
	"github.com/pgconsent/pgconsent/test/tier"
)

// faultyProxy is a proxy whose connections to clients and to the server can be broken by the test.
type faultyProxy struct {
	*testProxy
	pooled                       bool
	user                         string // the user whose sessions get faults
	clientNetwork, serverNetwork *network.Relay
	witness                      *peer    // a session whose own connection is never broken
	witnessedCount               int      // how many statements the witness has run
	want                         []string // the answers of a session without a fault; markOf(0) is in place of its mark
	learnedCount                 int      // how often these answers were recorded
	cases                        int
	acknowledged                 map[string]bool // rows, as "mark step", whose commit was acknowledged
	completeCount, partialCount  int             // how many sessions got all of their answers, and how many some
}

// faultModes are the modes in which faults are tried, with whether a pool is used. In transaction mode all sessions
// share one connection.
var faultModes = map[string]bool{"session": false, "transaction": true}

// ownersSession is the mode for an owner's session, whose bytes the proxy relays unchanged.
const ownersSession = "owner"

func startFaultyProxy(t *testing.T, isPooled bool, options ...func(*testProxy, *Config)) *faultyProxy {
	t.Helper()
	checkDescriptors(t)
	f := &faultyProxy{pooled: isPooled, user: agentName, acknowledged: map[string]bool{}}
	f.serverNetwork = network.New(t, "unix", fmt.Sprintf("%s/.s.PGSQL.%d", pgtest.SocketDir(), pgtest.Port()))
	f.testProxy = startProxy(t, append(options, func(p *testProxy, c *Config) {
		c.DialTimeout = time.Second
		p.editRoute = func(r *Route) {
			r.Upstream.Network, r.Upstream.Address = "tcp", f.serverNetwork.Address()
			if isPooled && r.Kind == Agent {
				r.Pool = &PoolSettings{Size: 1, Wait: tier.Patience}
			}
		}
	})...)
	f.clientNetwork = network.New(t, "tcp", f.addr)
	admin := f.db.Connect(t, "postgres")
	if _, err := admin.Exec(t.Context(), "CREATE TABLE marks (mark text, step int); GRANT ALL ON marks TO wire_agent; "+
		"ALTER ROLE wire_agent SET TimeZone = 'UTC'"); err != nil {
		t.Fatal(err)
	}
	f.witness = f.connectRaw(t)
	return f
}

// markOf returns the mark of a session, a text that it writes and reads.
func markOf(n int) string { return fmt.Sprintf("mark%+06d", n) }

// faultScript writes and reads a mark in all states that a session can have.
func faultScript(mark string) [][]pgx3.FrontendMessage {
	insert := func(step int) string { return fmt.Sprintf("INSERT INTO marks VALUES ('%s', %d)", mark, step) }
	return [][]pgx3.FrontendMessage{
		{q(insert(1))},
		{pa("", "SELECT $1::text", 25), bi("", "", mark), de('P', ""), ex("", 0), sy},
		{q("BEGIN")},
		{pa("", "INSERT INTO marks VALUES ($1, 2)"), bi("", "", mark), ex("", 0), sy},
		{q(insert(2))},
		{q("COMMIT")},
		{q("SET application_name = '" + mark + "'")},
		{q("BEGIN; " + insert(3) + "; " + insert(3) + "; COMMIT")},
		{pa("named", "SELECT mark, step FROM marks WHERE mark = $1 ORDER BY step"), sy},
		{q("COPY marks FROM STDIN"), &pgx3.CopyData{Data: []byte(mark + "\t4\n")}, &pgx3.CopyDone{}},
		{bi("", "named", mark), ex("", 3), ex("", 0), sy},
		{q("SHOW application_name")},
		{q("SELECT '" + mark + "', n FROM generate_series(1, 40) AS n")},
		{pa("", insert(5)), bi("", ""), ex("", 0), sy},
		{q("BEGIN"), q("SELECT '" + mark + "' FROM marks WHERE 1/(step-step) = 9"), q("SELECT nope"), q("ROLLBACK")},
		{&pgx3.Terminate{}},
	}
}

// committed maps positions in the answers of a complete session to the rows whose commit is acknowledged there.
func (f *faultyProxy) committed(mark string) map[int][]string {
	committedRows := map[int][]string{}
	var insertedRows []string
	step := 0
	steps := []int{1, 2, 2, 3, 3, 4, 5}
	for i, line := range f.want {
		switch {
		case strings.HasPrefix(line, "C INSERT"), strings.HasPrefix(line, "C COPY"):
			insertedRows = append(insertedRows, fmt.Sprintf("%s %d", mark, steps[step]))
			step++
		case line == "Z I":
			committedRows[i], insertedRows = insertedRows, nil
		}
	}
	return committedRows
}

// play runs the script of a session that gets a fault, and checks its answers. They must be a prefix of an undisturbed
// session's, perhaps followed by the error that ends the session.
func (f *faultyProxy) play(t *testing.T, mark string, atOnce bool) (answers []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	conn, err := pgconn.Connect(ctx, f.frontDSN())
	if err != nil {
		return nil
	}
	if conn.SyncConn(ctx) != nil {
		return nil
	}
	hijacked, err := conn.Hijack()
	if err != nil {
		return nil
	}
	nc := hijacked.Conn
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(tier.Patience))
	script := faultScript(mark)
	if atOnce {
		go func() {
			for _, round := range script {
				for _, m := range round {
					hijacked.Frontend.Send(m)
				}
			}
			_ = hijacked.Frontend.Flush()
		}()
	}
	for _, round := range script {
		readyCount := 0
		for _, m := range round {
			if !atOnce {
				hijacked.Frontend.Send(m)
			}
			switch m.(type) {
			case *pgx3.Query, *pgx3.Sync:
				readyCount++
			}
		}
		if !atOnce && hijacked.Frontend.Flush() != nil {
			readyCount = 1 // an error may follow, with the reason
		}
		for readyCount > 0 {
			m, err := hijacked.Frontend.Receive()
			if err != nil {
				return answers
			}
			line, typ := transcribe(m)
			if typ != 'S' { // a ParameterStatus may come later
				answers = append(answers, line)
			}
			if typ == 'Z' {
				readyCount--
			}
		}
	}
	return answers
}

// frontDSN is the address for sessions that get faults.
func (f *faultyProxy) frontDSN() string {
	host, port, _ := net.SplitHostPort(f.clientNetwork.Address())
	return fmt.Sprintf("host=%s port=%s user=%s password='%s' dbname=%s sslmode=disable", host, port, f.user, agentPassword, f.db.Name)
}

// learnAnswers records the answers of an undisturbed session. It returns how many bytes pass in each direction between
// session and proxy, and between proxy and server.
func (f *faultyProxy) learnAnswers(t *testing.T, atOnce bool) (clientBytes, serverBytes [2]int64) {
	t.Helper()
	f.awaitSettled(t)
	f.breakIdle(t)
	f.learnedCount++
	mark := markOf(-f.learnedCount)
	answers := f.play(t, mark, atOnce)
	if n := len(answers); n == 0 || answers[n-1] != "Z I" {
		t.Fatalf("nothing befell it: %q", answers)
	}
	for i := range answers {
		answers[i] = strings.ReplaceAll(answers[i], mark, markOf(0))
	}
	if f.want == nil {
		f.want = answers
	} else if !slices.Equal(f.want, answers) {
		t.Fatalf("answers in turn and at once differ:\n%q\n%q", f.want, answers)
	}
	eventually(t, "the session is over", func() bool { return f.clientNetwork.Open() == 0 })
	f.awaitSettled(t)
	if f.pooled {
		return f.clientNetwork.Last(), f.serverNetwork.SoFar()
	}
	return f.clientNetwork.Last(), f.serverNetwork.Last()
}

// breakIdle breaks the pool's connection while no session uses it, and waits until the proxy has noticed.
func (f *faultyProxy) breakIdle(t *testing.T) {
	t.Helper()
	if f.pooled {
		f.serverNetwork.Break(network.Close)
		eventually(t, "the connection has ended", func() bool { return f.serverNetwork.Open() == 0 })
		f.awaitSettled(t)
	}
}

// awaitSettled waits until the witness is the proxy's only session, and no broken connection to the server is left.
func (f *faultyProxy) awaitSettled(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(tier.Patience); ; time.Sleep(time.Millisecond) {
		f.server.mu.Lock()
		sessions := len(f.server.conns)
		f.server.mu.Unlock()
		f.server.slots.mu.Lock()
		connections, agents := f.server.slots.connections, 0
		for _, n := range f.server.slots.byAgent {
			agents += n
		}
		f.server.slots.mu.Unlock()
		f.server.cancels.mu.Lock()
		keys := len(f.server.cancels.agents)
		f.server.cancels.mu.Unlock()
		isSettled := connections == 1
		if f.pooled {
			s := f.server.Pools()[0]
			isSettled = s.Used == 0 && s.Waiting == 0 && s.Idle == connections
		}
		if sessions == 1 && agents == 1 && keys == 1 && isSettled && f.serverNetwork.Open() == connections {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left: %d sessions of the proxy, %d of the agent, %d cancel keys, %d connections, %d of them on the network; pools: %+v",
				sessions, agents, keys, connections, f.serverNetwork.Open(), f.server.Pools())
		}
	}
}

// isEnd returns whether the last answers say why a session ends. If the rows of a COPY are cut off, PostgreSQL says it
// twice.
func isEnd(answers []string) bool {
	lastAnswer := answers[len(answers)-1]
	switch len(answers) {
	case 1:
		return strings.HasPrefix(lastAnswer, "E FATAL ") || strings.HasPrefix(lastAnswer, "E ERROR 08006 ")
	case 2:
		return strings.HasPrefix(answers[0], "E ERROR 08006 ") && strings.HasPrefix(lastAnswer, "E FATAL 08P01 ")
	}
	return false
}

// playWithFault causes a fault in a session, and checks the answers that this session and others get.
func (f *faultyProxy) playWithFault(t *testing.T, description string, arm func(), atOnce bool) {
	t.Helper()
	f.cases++
	mark := markOf(f.cases)
	arm()
	answers := f.play(t, mark, atOnce)
	f.clientNetwork.Plan(nil)
	f.serverNetwork.Plan(nil)
	f.serverNetwork.SetFaultOfOpen(network.Fault{})
	committedRows := f.committed(mark)
	for i, line := range answers {
		if isEnd(answers[i:]) {
			break
		}
		if want := strings.ReplaceAll(f.want[min(i, len(f.want)-1)], markOf(0), mark); line != want {
			t.Fatalf("%s: %s was told %q, want %q behind %q", description, mark, line, want, answers[:i])
		}
		for _, row := range committedRows[i] {
			f.acknowledged[row] = true
		}
	}
	if len(answers) == len(f.want) {
		f.completeCount++
	} else if len(answers) > 0 {
		f.partialCount++
	}
	f.awaitSettled(t)
	f.witnessedCount++
	witnessMark := fmt.Sprintf("witness %d", f.witnessedCount)
	got := f.witness.play(t, []round{upToReady(1, pa("", "SELECT $1::text || current_setting('application_name')"), bi("", "", witnessMark), ex("", 0), sy)})
	if want := []string{"1", "2", fmt.Sprintf("D [%q]", witnessMark), "C SELECT 1", "Z I"}; !slices.Equal(got, want) {
		t.Fatalf("behind %s another session was told %q, want %q", description, got, want)
	}
}

// checkRows checks that each row whose commit was acknowledged exists exactly once, and that rows of one transaction
// exist all or not at all.
func (f *faultyProxy) checkRows(t *testing.T) {
	t.Helper()
	rows, err := f.db.Connect(t, "postgres").Query(t.Context(), "SELECT mark || ' ' || step, count(*) FROM marks GROUP BY 1")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	var row string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&row, &n}, func() error { found[row] = n; return nil }); err != nil {
		t.Fatal(err)
	}
	for row := range f.acknowledged {
		if found[row] == 0 {
			t.Errorf("row %s is lost, whose commit was acknowledged", row)
		}
	}
	for row, n := range found {
		want := 1
		if strings.HasSuffix(row, " 2") || strings.HasSuffix(row, " 3") {
			want = 2
		}
		if n != want {
			t.Errorf("%d rows %s, want %d", n, row, want)
		}
	}
	t.Logf("%d sessions, of which %d got all answers and %d some; %d rows acknowledged, %d found", f.cases, f.completeCount, f.partialCount,
		len(f.acknowledged), len(found))
}

// TestCutAtEveryByte: a connection may break after any byte, on either side of the proxy, in either direction. Other
// sessions still get their own answers, and nothing of the broken session is left.
func TestCutAtEveryByte(t *testing.T) {
	const oneIn = 192 // one in so many byte positions is tried in each run
	for _, mode := range []string{"session", "transaction", ownersSession} {
		t.Run(mode, func(t *testing.T) {
			f := startFaultyProxy(t, faultModes[mode])
			if mode == ownersSession {
				f.user = "wire_owner"
			}
			n := int(tier.Seed()) - 1
			isPicked := func() bool { n++; return tier.IsPicked(n, oneIn) }
			for _, atOnce := range []bool{false, true} {
				clientBytes, serverBytes := f.learnAnswers(t, atOnce)
				for _, closeMode := range []network.CloseMode{network.Close, network.Reset, network.HalfClose} {
					for _, in := range []network.Direction{network.ToServer, network.ToClient} {
						n += 7 // other positions are tried for each kind of end
						for position := int64(0); position <= clientBytes[in]; position++ {
							if isPicked() {
								fault := network.Fault{CloseMode: closeMode, In: in, After: position}
								f.playWithFault(t, "the client's connection: "+fault.String(), func() { f.clientNetwork.Next(fault) }, atOnce)
							}
						}
						for position := int64(0); position <= serverBytes[in]; position++ {
							if isPicked() {
								fault := network.Fault{CloseMode: closeMode, In: in, After: position}
								f.playWithFault(t, "the connection to the server: "+fault.String(), func() { f.armBack(t, fault) }, atOnce)
							}
						}
					}
				}
			}
			f.checkRows(t)
			if f.partialCount == 0 || len(f.acknowledged) == 0 {
				t.Error("the test proves nothing")
			}
		})
	}
}

// armBack causes a fault in the next session's connection to the server, which is a new one or the shared one. In a
// pool every second connection is new, so that its login breaks as well.
func (f *faultyProxy) armBack(t *testing.T, fault network.Fault) {
	t.Helper()
	if f.pooled { // the witness may still use the connection, and must not get the fault
		f.awaitSettled(t)
	}
	if f.pooled && f.cases%2 == 0 {
		f.serverNetwork.SetFaultOfOpen(fault)
		return
	}
	f.breakIdle(t)
	f.serverNetwork.Next(fault)
}

// TestSlowNetworks: a session whose bytes arrive slowly and in pieces, in both directions and on both sides, gets all
// its answers. Other sessions do not wait for it.
func TestSlowNetworks(t *testing.T) {
	for mode, isPooled := range faultModes {
		t.Run(mode, func(t *testing.T) {
			f := startFaultyProxy(t, isPooled)
			for _, atOnce := range []bool{false, true} {
				f.learnAnswers(t, atOnce)
				for _, fault := range []network.Fault{{MaxBytesAtOnce: 1}, {MaxBytesAtOnce: 17, Pause: 100 * time.Microsecond}} {
					f.playWithFault(t, "a slow client", func() { f.clientNetwork.Next(fault) }, atOnce)
					f.playWithFault(t, "a slow server", func() { f.armBack(t, fault) }, atOnce)
				}
			}
			if f.checkRows(t); f.completeCount != f.cases {
				t.Errorf("%d of %d sessions got all answers", f.completeCount, f.cases)
			}
		})
	}
}

// TestSilentNetworks: bytes that were sent no longer arrive, and only later one end gets an error. After that, nothing
// of the session is left.
func TestSilentNetworks(t *testing.T) {
	tier.All(t)
	for mode, isPooled := range faultModes {
		t.Run(mode, func(t *testing.T) {
			f := startFaultyProxy(t, isPooled)
			clientBytes, serverBytes := f.learnAnswers(t, false)
			random := tier.Rand(10)
			for range tier.Count(1, 2, 40) {
				for _, in := range []network.Direction{network.ToServer, network.ToClient} {
					for _, side := range []string{"client", "server"} {
						failAfter := clientBytes[in]
						if side == "server" {
							failAfter = serverBytes[in]
						}
						fault := network.Fault{CloseMode: network.Swallow, In: in, After: random.Int64N(failAfter), ResetAfter: time.Second}
						f.playWithFault(t, "silence on the side of the "+side+": "+fault.String(), func() {
							if side == "client" {
								f.clientNetwork.Next(fault)
							} else {
								f.armBack(t, fault)
							}
						}, false)
					}
				}
			}
			f.checkRows(t)
		})
	}
}

// TestManyEndAtOnce: many sessions of a busy pool end at once, and its connections serve the other sessions.
func TestManyEndAtOnce(t *testing.T) {
	for mode, isPooled := range faultModes {
		t.Run(mode, func(t *testing.T) {
			f := startFaultyProxy(t, isPooled)
			f.learnAnswers(t, false)
			for round := range tier.Count(3, 12, 100) {
				var peers []*peer
				for range 6 {
					peers = append(peers, connectPeer(t, f.frontDSN()))
				}
				for i, c := range peers {
					c.send(t, q(fmt.Sprintf("BEGIN; INSERT INTO marks VALUES ('round %d', 1); SELECT %d, pg_sleep(0.0%d)", round, i, i)))
				}
				if isPooled {
					eventually(t, "sessions wait", func() bool { return f.server.Pools()[0].Waiting > 0 })
				}
				f.clientNetwork.Break(network.CloseMode(1 + round%2))
				f.playWithFault(t, "others that ended at once", func() {}, round%4 > 1)
			}
			f.checkRows(t)
		})
	}
}
