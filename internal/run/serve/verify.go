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

// While a database is verified, a reload of its policy and the end of the process wait. So the probes, which read
// tables of any size, have little time at first, and twice as much each time that they are repeated. A probe that does
// not finish in its time counts neither as a pass nor as a failure.
//
// Agents are served nevertheless. Row security protects the rows, and the examination has just found it switched on,
// and the policies, views and functions as migrate made them. The probes look for mistakes that the examination does
// not know of. Only the signed path is not used until its probe has passed. Unfinished probes are repeated later, and
// "pgconsent doctor" gives them more time.
const (
	probeTime      = 3 * time.Second  // how long all probes of a database may take, the first time
	probeStatement = time.Second      // how long a statement may take for one table
	maxProbeFactor = 16               // repeated probes get up to this many times as long
	minProbeWait   = 15 * time.Second // the time until unfinished probes are repeated, doubled each time
	maxProbeWait   = 10 * time.Minute
)

// verifier verifies one database before its agents are served. It has the doctor examine the database each time. It
// tries logins without a password when the server has read its configuration, and pg_hba.conf with it, again. It probes
// when the policy or the catalog has changed. Calls for one database come one after the other.
type verifier struct {
	config *config.Config
	log    *slog.Logger

	loadTime string // when the server loaded the configuration with which it asked owners for a password
	// the server asked owners for a password at the last try; before, no client is served as an owner
	asksOwners  atomic.Bool
	loginFound  []doctor.Finding
	probes      probeState
	signedPath  signedPath
	examination atomic.Pointer[operations.Diagnosis]
}

// probeState is what the last probes of a database have found.
type probeState struct {
	found              []doctor.Finding
	passedVersions     string          // versions of policy and catalog for which all passed
	unfinishedVersions string          // versions for which they were not finished
	passedParts        map[string]bool // the parts of the unfinished probes that have passed
	wait               time.Duration   // the time until unfinished probes are repeated
	next               time.Time       // when unfinished probes are repeated
	factor             int             // how many times as long they get then
}

// signedPath is whether statements may take the signed path.
type signedPath struct {
	closedReason string // the reason why they may not; "": they may
	passedPlan   string // the hash of the plan whose probe passed last; "": none
}

// verifiers are those of all databases.
type verifiers map[string]*verifier

func newVerifiers(c *config.Config, log *slog.Logger) verifiers {
	all := verifiers{}
	for name := range c.Databases {
		all[name] = &verifier{config: c, log: log.With("database", name)}
	}
	return all
}

// check is the function that enforcement calls.
func (all verifiers) check(ctx context.Context, conn *pgx.Conn, t enforce.Target) error {
	v, ok := all[t.Database.Name]
	if !ok {
		return fmt.Errorf("database %s is not configured", t.Database.Name)
	}
	err := v.check(ctx, conn, t)
	v.store(err)
	var confined *doctor.UnsafeTables
	if errors.As(err, &confined) {
		return enforce.UnsafeTables{Relations: confined.Relations, Why: err}
	}
	return err
}

// store keeps the findings for the operator.
func (v *verifier) store(err error) {
	e := operations.Diagnosis{At: time.Now()}
	if err != nil && !errors.As(err, new(enforce.SignedPathOff)) {
		e.Problem = err.Error()
	}
	for _, f := range slices.Concat(v.loginFound, v.probes.found) {
		if f.Severity != doctor.OK {
			e.Found = append(e.Found, f)
		}
	}
	v.examination.Store(&e)
}

func (v *verifier) check(ctx context.Context, conn *pgx.Conn, t enforce.Target) error {
	target := doctor.Target{
		AgentRole: t.Database.AgentRole, ControlRole: t.Database.ControlRole, ReaderRole: t.Database.ReaderRole,
		RowsRole: t.Database.RowsRole,
		Policy:   t.Policy, Snapshot: t.Snapshot, Plan: t.Plan,
	}
	db := v.config.Databases[t.Database.Name]
	var loaded string
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_conf_load_time()::pg_catalog.text").Scan(&loaded); err != nil {
		return fmt.Errorf("when the server read its configuration: %w", err)
	}
	if v.loadTime != loaded {
		if err := v.checkLogins(ctx, db, target); err != nil {
			return err
		}
		v.loadTime = loaded
	}
	unsafe := doctor.Check(ctx, conn, target)
	if unsafe != nil && !errors.As(unsafe, new(*doctor.UnsafeTables)) {
		return unsafe
	}
	if err := checkAcknowledged(ctx, conn, v.config, t.Database.Name); err != nil {
		return err
	}
	if unsafe != nil {
		return unsafe // some tables are suspended, at which the probes would fail
	}
	if versions := t.Policy.Version() + " " + t.Snapshot.Version(); v.probes.areDue(versions) {
		if err := v.probe(ctx, conn, db, target, versions); err != nil {
			return err
		}
	}
	return v.signedPathError()
}

// areDue tells whether the probes are to be run for these versions.
func (p *probeState) areDue(versions string) bool {
	return p.passedVersions != versions && (p.unfinishedVersions != versions || !time.Now().Before(p.next))
}

// probe runs the probes for these versions of policy and catalog.
func (v *verifier) probe(ctx context.Context, conn *pgx.Conn, db *config.Database, target doctor.Target,
	versions string) error {
	p := &v.probes
	if p.unfinishedVersions != versions {
		p.passedParts, p.factor = map[string]bool{}, 1
	}
	target.PassedProbes = p.passedParts // On a busy server the probes get further each time, and get more time.
	target.ProbeTime = time.Duration(p.factor) * probeStatement
	p.factor = min(2*p.factor, maxProbeFactor)
	found, err := v.probeAsAgent(ctx, conn, db, target)
	p.found = found
	if err == nil {
		err = doctor.UnsafeError(found)
	}
	if err != nil {
		return err
	}
	if doctor.HasUnfinished(found) {
		// Soon, since full text, LIKE and JSON are slow without the signed path.
		if p.wait = min(2*p.wait, maxProbeWait); p.wait == 0 || p.unfinishedVersions != versions {
			p.wait = minProbeWait
		}
		p.unfinishedVersions, p.next = versions, time.Now().Add(p.wait)
	} else {
		p.passedVersions = versions
	}
	for _, f := range found {
		if f.Severity == doctor.OK {
			p.passedParts[f.ID] = true
		}
	}
	v.signedPath.closedReason = ""
	if target.Plan.HasSignedViews() {
		v.signedPath.decide(target.Plan.Hash(), p.passedParts, found)
	}
	v.warn(found)
	return nil
}

// closedReason is the reason why the signed path may not be used; "" if its probe has passed, now or before. Unlike row
// security it is used only once it was tried: without it statements read under row security, and only take longer.
func closedReason(passed map[string]bool, found []doctor.Finding) string {
	for _, f := range found {
		if f.Severity == doctor.NoSignedPath {
			return f.What
		}
	}
	if passed[doctor.SignedPath] {
		return ""
	}
	return "its probe was not finished"
}

// decide says whether the signed path may be used for the plan of that hash. The last result for a plan counts until
// another one is there, however long that takes.
func (s *signedPath) decide(hash string, passed map[string]bool, found []doctor.Finding) {
	s.closedReason = closedReason(passed, found)
	switch {
	case s.closedReason == "":
		s.passedPlan = hash
	case slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Severity == doctor.NoSignedPath }):
		s.passedPlan = ""
	case s.passedPlan == hash:
		s.closedReason = ""
	}
}

// signedPathError tells enforcement not to use the signed path where its probe failed, or was not finished.
func (v *verifier) signedPathError() error {
	if v.signedPath.closedReason != "" {
		return enforce.SignedPathOff{Why: v.signedPath.closedReason}
	}
	return nil
}

// checkLogins refuses a server that lets owners in without a password, and notes the result for the router.
func (v *verifier) checkLogins(ctx context.Context, db *config.Database, target doctor.Target) error {
	secure, err := v.config.Upstream.ClientTLS()
	if err != nil {
		return err
	}
	network, address := v.config.Upstream.Dial()
	found, err := doctor.CheckLogins(ctx, doctor.Upstream{
		Network: network, Address: address, TLS: secure, Database: db.Name}, db.Owners, target)
	if err != nil {
		return err
	}
	v.loginFound = found
	err = doctor.UnsafeError(found)
	v.asksOwners.Store(err == nil)
	if err == nil {
		v.warn(found)
	}
	return err
}

// probeAsAgent runs the probes as the agent role. They have a time of their own, since little of ctx's may be left;
// where ctx is canceled they end.
func (v *verifier) probeAsAgent(ctx context.Context, conn *pgx.Conn, db *config.Database,
	target doctor.Target) ([]doctor.Finding, error) {
	agent, err := v.config.ConnString(db, db.Roles.Agent, db.Secrets.Agent)
	if err != nil {
		return nil, err
	}
	probing, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime/probeStatement*target.ProbeTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})()
	return doctor.Probe(probing, conn, agent, target)
}

func (v *verifier) warn(found []doctor.Finding) {
	for _, f := range found {
		if f.Severity == doctor.Warning {
			v.log.Warn(f.What, "finding", f.ID, "fix", f.Fix)
		}
	}
}
