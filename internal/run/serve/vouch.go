package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce"
	"github.com/pgconsent/pgconsent/internal/face/operations"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
)

// While a database is looked at, a reload of its policy and the end of the process wait. So the probes, which read
// tables of any size, have little time at first, and twice as much each time that they are tried again; what they do
// not finish in it counts for nothing, neither as a pass nor as a failure. Agents are served nevertheless: row security
// that is on, and policies, views and functions that are as migrate made them, are what holds the wall, and the
// examination has just found them so. The gate door alone stays shut until its probe passed. The probes are there for
// what nobody thought of. They are tried again later, and "pgconsent doctor" gives them more time.
const (
	probeTime      = 3 * time.Second  // for all probes of a database, the first time
	probeStatement = time.Second      // for one table
	probeLonger    = 16               // so many times as long they have in the end
	probeSoon      = 15 * time.Second // until they are tried again, twice as long each time
	probeAgain     = 10 * time.Minute // and at most
)

// voucher checks one database before its agents are served: the doctor's examination each time; logins without a
// password when the server has read its configuration, and pg_hba.conf with it, again; the probes when the policy or
// the catalog changed. Calls for one database come one after the other.
type voucher struct {
	config *config.Config
	log    *slog.Logger
	asks   string      // the server's configuration under which it asked owners for a password
	asked  atomic.Bool // it did when it was last tried; until then nobody is taken for an owner

	passed string          // versions under which the probes found nothing
	late   string          // versions under which they were not finished
	done   map[string]bool // and those of them that passed
	wait   time.Duration
	again  time.Time // when to try those again
	longer int       // how many times as long they have then
	shut   string    // why the gate door is shut, as those probes found
	opened string    // the hash of the plan for which they last found that it may be open; "": of none

	loggedIn, probed []doctor.Finding // what the last tries of either found
	examined         atomic.Pointer[operations.Diagnosis]
}

// vouchers are those of all databases.
type vouchers map[string]*voucher

func newVouchers(c *config.Config, log *slog.Logger) vouchers {
	all := vouchers{}
	for name := range c.Databases {
		all[name] = &voucher{config: c, log: log.With("database", name)}
	}
	return all
}

// check is what enforcement asks for.
func (all vouchers) check(ctx context.Context, conn *pgx.Conn, t enforce.Target) error {
	v, ok := all[t.Database.Name]
	if !ok {
		return fmt.Errorf("database %s is not configured", t.Database.Name)
	}
	err := v.check(ctx, conn, t)
	v.remember(err)
	var confined *doctor.UnsafeTables
	if errors.As(err, &confined) {
		return enforce.UnsafeTables{Relations: confined.Relations, Why: err}
	}
	return err
}

// remember keeps what was found for the operator.
func (v *voucher) remember(err error) {
	e := operations.Diagnosis{At: time.Now()}
	if err != nil && !errors.As(err, new(enforce.SignedPathOff)) {
		e.Problem = err.Error()
	}
	for _, f := range append(v.loggedIn[:len(v.loggedIn):len(v.loggedIn)], v.probed...) {
		if f.Severity != doctor.OK {
			e.Found = append(e.Found, f)
		}
	}
	v.examined.Store(&e)
}

func (v *voucher) check(ctx context.Context, conn *pgx.Conn, t enforce.Target) error {
	subject := doctor.Target{
		AgentRole: t.Database.AgentRole, ControlRole: t.Database.ControlRole, ReaderRole: t.Database.ReaderRole,
		RowsRole: t.Database.RowsRole,
		Policy:   t.Policy, Snapshot: t.Snapshot, Plan: t.Plan,
	}
	db := v.config.Databases[t.Database.Name]
	var loaded string
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_conf_load_time()::pg_catalog.text").Scan(&loaded); err != nil {
		return fmt.Errorf("when the server read its configuration: %w", err)
	}
	if v.asks != loaded {
		if err := v.logins(ctx, db, subject); err != nil {
			return err
		}
		v.asks = loaded
	}
	unsafe := doctor.Check(ctx, conn, subject)
	if unsafe != nil && !errors.As(unsafe, new(*doctor.UnsafeTables)) {
		return unsafe
	}
	if err := acknowledged(ctx, conn, v.config, t.Database.Name); err != nil {
		return err
	}
	if unsafe != nil {
		return unsafe // of some tables, over which the probes would stumble
	}
	versions := t.Policy.Version() + " " + t.Snapshot.Version()
	if v.passed == versions || v.late == versions && time.Now().Before(v.again) {
		return v.gate()
	}
	if v.late != versions {
		v.done, v.longer = map[string]bool{}, 1
	}
	subject.PassedProbes = v.done // on a busy server they get further each time, and have longer
	subject.ProbeTime = time.Duration(v.longer) * probeStatement
	v.longer = min(2*v.longer, probeLonger)
	found, err := v.probe(ctx, conn, db, subject)
	v.probed = found
	if err == nil {
		err = doctor.UnsafeError(found)
	}
	switch {
	case err != nil:
		return err
	case doctor.HasUnfinished(found):
		// Soon, since full text, LIKE and JSON are slow while the gate is shut.
		if v.wait = min(2*v.wait, probeAgain); v.wait == 0 || v.late != versions {
			v.wait = probeSoon
		}
		v.late, v.again = versions, time.Now().Add(v.wait)
	default:
		v.passed = versions
	}
	for _, f := range found {
		if f.Severity == doctor.OK {
			v.done[f.ID] = true
		}
	}
	v.shut = ""
	if t.Plan.HasDoors() {
		v.decide(t.Plan.Hash(), found)
	}
	v.warn(found)
	return v.gate()
}

// shut tells why the gate door has to stay shut; "" if its probe has passed, now or before. Unlike the wall, the gate
// opens only once it was tried: without it statements take the row security door, and lose time alone.
func shut(passed map[string]bool, found []doctor.Finding) string {
	for _, f := range found {
		if f.Severity == doctor.NoSignedPath {
			return f.What
		}
	}
	if passed["gate_door"] {
		return ""
	}
	return "its probe was not finished"
}

// decide says whether the signed path is shut for the plan of that hash. What its probe found last of a plan holds
// until it finds something else, however long that takes.
func (v *voucher) decide(hash string, found []doctor.Finding) {
	v.shut = shut(v.done, found)
	switch {
	case v.shut == "":
		v.opened = hash
	case slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Severity == doctor.NoSignedPath }):
		v.opened = ""
	case v.opened == hash:
		v.shut = ""
	}
}

// gate shuts the gate door where a probe of it failed, or was not finished.
func (v *voucher) gate() error {
	if v.shut != "" {
		return enforce.SignedPathOff{Why: v.shut}
	}
	return nil
}

// logins refuses a server that lets owners in without a password, and remembers it for those who come as owners.
func (v *voucher) logins(ctx context.Context, db *config.Database, subject doctor.Target) error {
	secure, err := v.config.Upstream.ClientTLS()
	if err != nil {
		return err
	}
	network, address := v.config.Upstream.Dial()
	found, err := doctor.CheckLogins(ctx, doctor.Upstream{
		Network: network, Address: address, TLS: secure, Database: db.Name}, db.Owners, subject)
	if err != nil {
		return err
	}
	v.loggedIn = found
	err = doctor.UnsafeError(found)
	v.asked.Store(err == nil)
	if err == nil {
		v.warn(found)
	}
	return err
}

// probe tries as the agent role. It has a time of its own, since little may be left of ctx's; where ctx is cancelled it
// ends.
func (v *voucher) probe(ctx context.Context, conn *pgx.Conn, db *config.Database,
	subject doctor.Target) ([]doctor.Finding, error) {
	agent, err := v.config.ConnString(db, db.Roles.Agent, db.Secrets.Agent)
	if err != nil {
		return nil, err
	}
	probing, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime/probeStatement*subject.ProbeTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})()
	return doctor.Probe(probing, conn, agent, subject)
}

func (v *voucher) warn(found []doctor.Finding) {
	for _, f := range found {
		if f.Severity == doctor.Warning {
			v.log.Warn(f.What, "finding", f.ID, "fix", f.Fix)
		}
	}
}
