package faults

import (
	"context"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/test/network"
)

// randomFault chooses the fault of a new connection: one of oneIn connections is cut, as many are slow, and the others
// have no fault. kind describes the fault for the report.
func randomFault(random *rand.Rand, oneIn int) (f network.Fault, kind string) {
	switch random.IntN(oneIn) {
	case 0:
		f = network.Fault{CloseMode: network.CloseMode(1 + random.IntN(4)), In: network.Direction(random.IntN(2)),
			ResetAfter: 300 * time.Millisecond}
		f.After = random.Int64N(300 << random.IntN(7)) // the first bytes are those of the login
		return f, "cuts (" + f.CloseMode.String() + ")"
	case 1:
		piece := 1 << random.IntN(12)
		return network.Fault{MaxBytesAtOnce: piece, Pause: time.Duration(random.IntN(1+piece)) * time.Microsecond}, "slow connections"
	}
	return network.Fault{}, ""
}

// causeEvent causes an event that affects all sessions, such as the end of the server.
func (r *round) causeEvent(event string, random *rand.Rand) {
	switch event {
	case "cut clients", "cut server":
		for _, m := range r.modes {
			if event == "cut server" {
				m.serverRelay.Break(network.CloseMode(1 + random.IntN(3)))
			} else {
				m.clientRelay.Break(network.CloseMode(1 + random.IntN(3)))
			}
		}
	case "terminate":
		r.cluster.withSuperuser(func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity "+
				"WHERE usename = 'pgconsent_agent' AND pid % 3 = $1", random.IntN(3))
			return err
		})
	case "kill":
		pids := r.cluster.processes("pgconsent_agent")
		if len(pids) == 0 {
			return
		}
		_ = syscall.Kill(pids[random.IntN(len(pids))], syscall.SIGKILL)
	case "restart":
		r.cluster.restart()
	}
	r.count("times " + event)
}
