package faults

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce"
	"github.com/pgconsent/pgconsent/proxy"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/network"
	"github.com/pgconsent/pgconsent/test/tier"
)

const schema = `CREATE TABLE marks (owner int NOT NULL, mark text NOT NULL, part int NOT NULL);
CREATE INDEX ON marks (owner, mark);`

const policy = `version: 1
attributes: { user: { type: integer, source: credential } }
tables:
  marks: { rows: [ own: { column: owner, is: user } ], write: { commands: [insert, update, delete] } }
`

// agent is an agent that logs in. If user is 0, it acts for several users, and its sessions set the user.
type agent struct {
	name string
	user int // number of the user; 0: the agent acts for several users
}

var agents = []agent{{"one", 1}, {"two", 2}, {"backend", 0}}

// poolSize is the size of the pools. It is so small that sessions have to wait for connections.
const poolSize = 3

// stage is a server with a proxy for each pool mode, and relays between them that can cause faults.
type stage struct {
	t       testing.TB
	cluster *cluster
	modes   []*mode
}

// mode is a proxy, with relays on both of its sides. Its sessions have their own connections, or share those of a pool.
type mode struct {
	name                     string
	pooled                   bool
	proxy                    *instance.Proxy
	clientRelay, serverRelay *network.Relay
}

// newStage starts a server, and a proxy for each of the pool modes.
func newStage(t testing.TB, modes ...string) *stage {
	t.Helper()
	st := &stage{t: t, cluster: startCluster(t)}
	d := instance.Database{Name: "app", DB: st.cluster.db, Policy: policy, SearchPath: []string{"public"}, Setup: schema,
		Refresh: 200 * time.Millisecond, Quiet: true}
	instance.Install(t, d, instance.Auto)
	var logins []instance.Agent
	for _, a := range agents {
		login := instance.Agent{Name: a.name, Database: "app"}
		if a.user > 0 {
			login.Attributes = map[string]string{"user": fmt.Sprint(a.user)}
		} else {
			login.ActsFor = &enforce.ActsFor{Attributes: []string{"user"}, Setting: "pgconsent.user"}
		}
		logins = append(logins, login)
	}
	for _, name := range modes {
		m := &mode{name: name, pooled: name == "transaction", serverRelay: network.New(t, "unix", st.cluster.socket())}
		d := d
		d.Server, d.Pool = m.serverRelay.Address(), nil
		if m.pooled {
			d.Pool = &proxy.PoolSettings{Size: poolSize, Wait: tier.Patience}
		}
		t.Setenv("PGCONSENT_POOL", name)
		m.proxy = instance.Serve(t, instance.Auto, []instance.Database{d}, logins)
		m.clientRelay = network.New(t, "tcp", m.proxy.Addr())
		st.modes = append(st.modes, m)
	}
	return st
}

// dsn returns the connection string of an agent. It leads through the relay that causes faults, unless bypassRelay is
// set.
func (m *mode) dsn(a agent, bypassRelay bool) string {
	if bypassRelay {
		return instance.DSNAt(m.proxy.Addr(), a.name, "app")
	}
	return instance.DSNAt(m.clientRelay.Address(), a.name, "app")
}

// resources are counts of what must not stay behind after the sessions.
type resources struct {
	goroutines, processes int
	descriptors           []string // what the open file descriptors refer to

	// The number of the proxy's own control connections. The proxy opens as many as sessions have needed at the same time,
	// up to a limit.
	control int
}

func (r resources) String() string {
	return fmt.Sprintf("%d goroutines, %d processes of the server, %d connections of enforcement, descriptors %q",
		r.goroutines, r.processes, r.control, r.descriptors)
}

// isWithin reports whether no count exceeds that of before.
func (r resources) isWithin(before resources) bool {
	return r.goroutines <= before.goroutines && r.processes <= before.processes &&
		len(r.descriptors)-r.control <= len(before.descriptors)-before.control
}

func (st *stage) countResources() (r resources) {
	r = resources{goroutines: countGoroutines(), processes: len(st.cluster.processes("pgconsent_agent")),
		control: len(st.cluster.processes("pgconsent_control"))}
	all, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range all {
		target, _ := os.Readlink("/proc/self/fd/" + fd.Name())
		r.descriptors = append(r.descriptors, target)
	}
	return r
}

// countGoroutines returns the number of goroutines. It leaves out the goroutines in which pgx reads in advance after a
// slow write, since they end with their connection.
func countGoroutines() (n int) {
	for stack := range strings.SplitSeq(stacks(), "\n\n") {
		if !strings.Contains(stack, "created by github.com/jackc/pgx/v5/pgconn/internal/bgreader.") {
			n++
		}
	}
	return n
}

func stacks() string {
	all := make([]byte, 4<<20)
	return string(all[:runtime.Stack(all, true)])
}

// awaitRest waits until no session is open, closes the idle connections of pools, and returns the resources that are
// left. If before is set, it also waits until there are no more resources than before.
func (st *stage) awaitRest(before *resources) resources {
	st.t.Helper()
	for end := time.Now().Add(tier.Patience); ; time.Sleep(10 * time.Millisecond) {
		remaining, idle := "", true
		for _, m := range st.modes {
			m.clientRelay.Plan(nil)
			m.serverRelay.Plan(nil)
			usedConnections, idleConnections := 0, 0
			for _, p := range m.proxy.Server().Pools() {
				usedConnections += p.Used + p.Waiting
				idleConnections += p.Idle
			}
			n := len(m.proxy.Server().Sessions())
			if usedConnections == 0 && idleConnections > 0 && n == 0 {
				m.serverRelay.Break(network.Close)
			}
			idle = idle && usedConnections+idleConnections+n+m.clientRelay.Open()+m.serverRelay.Open() == 0
			remaining += fmt.Sprintf("%s: %d sessions, %d connections in use and %d idle, on the networks %d and %d; ",
				m.name, n, usedConnections, idleConnections, m.clientRelay.Open(), m.serverRelay.Open())
		}
		current := resources{}
		if idle {
			current = st.countResources()
			if before == nil || current.isWithin(*before) {
				return current
			}
		}
		if time.Now().After(end) {
			st.t.Fatalf("left behind: %s\n%v\nbefore: %v\n%s", remaining, current, before, stacks())
		}
	}
}

// checkLog fails the test if the log of a proxy reports a panic or an internal error.
func (st *stage) checkLog() {
	st.t.Helper()
	for _, m := range st.modes {
		if text := m.proxy.Errors(); strings.Contains(text, "panic") || strings.Contains(text, "internal error") {
			st.t.Errorf("%s: the log says\n%s", m.name, instance.Truncate(text))
		}
	}
}
