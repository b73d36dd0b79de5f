package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/config"
	"github.com/pgconsent/pgconsent/doctor"
	"github.com/pgconsent/pgconsent/enforce"
)

// While a database is looked at, a reload of its policy and the end of the process wait, and its agents are refused when
// that takes longer than ten seconds. So the probes, which read tables of any size, have little time; what they do not
// finish in it counts for nothing, neither as a pass nor as a failure. Agents are served nevertheless: row security that
// is on, and policies, views and functions that are as migrate made them, are what holds the wall, and the examination has
// just found them so. The probes are there for what nobody thought of. They are tried again later, and "pgconsent doctor"
// gives them more time.
const (
	probeTime      = 3 * time.Second // for all probes of a database
	probeStatement = time.Second     // for one table
	probeAgain     = 10 * time.Minute
)

// voucher checks one database before its agents are served: the doctor's examination each time; its probes as the agent
// role, and logins without a password, when the policy, the catalog or the server's configuration (which pg_hba.conf
// counts as) changed. Calls for one database come one after the other.
type voucher struct {
	config *config.Config
	log    *slog.Logger
	passed string    // versions under which the probes found nothing
	late   string    // versions under which they were not finished
	again  time.Time // when to try those again
}

// vouch returns the check that enforcement asks for.
func vouch(c *config.Config, log *slog.Logger) func(context.Context, *pgx.Conn, enforce.Target) error {
	var mu sync.Mutex
	vouchers := map[string]*voucher{}
	return func(ctx context.Context, conn *pgx.Conn, t enforce.Target) error {
		mu.Lock()
		v := vouchers[t.Database.Name]
		if v == nil {
			v = &voucher{config: c, log: log.With("database", t.Database.Name)}
			vouchers[t.Database.Name] = v
		}
		mu.Unlock()
		return v.check(ctx, conn, t)
	}
}

func (v *voucher) check(ctx context.Context, conn *pgx.Conn, t enforce.Target) error {
	subject := doctor.Subject{
		AgentRole: t.Database.AgentRole, ControlRole: t.Database.ControlRole, ReaderRole: t.Database.ReaderRole,
		Policy: t.Policy, Snapshot: t.Snapshot, Plan: t.Plan, ProbeTime: probeStatement,
	}
	if err := doctor.Check(ctx, conn, subject); err != nil {
		return err
	}
	var loaded string
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_conf_load_time()::pg_catalog.text").Scan(&loaded); err != nil {
		return fmt.Errorf("when the server read its configuration: %w", err)
	}
	versions := t.Policy.Version() + " " + t.Snapshot.Version() + " " + loaded
	if v.passed == versions || v.late == versions && time.Now().Before(v.again) {
		return nil
	}
	found, err := v.try(ctx, conn, t, subject)
	if err == nil {
		err = doctor.Refuse(found)
	}
	switch {
	case err != nil:
		return err
	case doctor.Unfinished(found):
		v.late, v.again = versions, time.Now().Add(probeAgain)
	default:
		v.passed = versions
	}
	for _, f := range found {
		if f.Severity == doctor.Warning {
			v.log.Warn(f.What, "finding", f.ID, "fix", f.Fix)
		}
	}
	return nil
}

// try logs in without a password and as the agent role. It has a time of its own, since little may be left of ctx's; where
// ctx is cancelled it ends.
func (v *voucher) try(ctx context.Context, conn *pgx.Conn, t enforce.Target, subject doctor.Subject) ([]doctor.Finding, error) {
	db, ok := v.config.Databases[t.Database.Name]
	if !ok {
		return nil, fmt.Errorf("database %s is not configured", t.Database.Name)
	}
	agent, err := v.config.ConnString(db, db.Roles.Agent, db.Secrets.Agent)
	if err != nil {
		return nil, err
	}
	secure, err := v.config.Upstream.ClientTLS()
	if err != nil {
		return nil, err
	}
	probing, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})()
	network, address := v.config.Upstream.Dial()
	found, err := doctor.Logins(probing, doctor.Upstream{Network: network, Address: address, TLS: secure, Database: db.Name}, db.Owners, subject)
	if err != nil {
		return nil, err
	}
	probed, err := doctor.Probe(probing, conn, agent, subject)
	return append(found, probed...), err
}
