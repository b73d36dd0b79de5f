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
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
)

// While a database is verified, a reload of its policy and the end of the process have to wait. Therefore the probes,
// which read tables of any size, get little time at first, and twice as much at each repetition. A probe that does not
// finish in time counts neither as passed nor as failed.
//
// Agents are served nevertheless. Before the probes, the examination has found that row security is switched on, and
// that policies, views and functions are as pgconsent migrate made them. The probes search for mistakes that the
// examination does not know of. Only the signed path is not used before its probe has passed. Unfinished probes are
// repeated later, and "pgconsent doctor" gives them more time.
const (
	probeTime      = 3 * time.Second  // for all probes of a database at their first run
	probeStatement = time.Second      // for a probe's statement on one table at its first run
	maxProbeFactor = 16               // repeated probes get at most this many times as much time
	minProbeWait   = 15 * time.Second // time until unfinished probes are repeated first; it doubles each time
	maxProbeWait   = 10 * time.Minute
)

// databaseVerifier verifies one database before its agents are served. It examines the database each time. It checks
// that logins need a password only after the server has read its configuration, and pg_hba.conf with it, again. It runs
// the probes when policy or catalog have changed. Calls for the same database do not overlap.
type databaseVerifier struct {
	config *config.Config
	log    *slog.Logger

	loadTime string // when the server loaded the configuration under which logins were checked last
	// the last check has shown that the server asks owners for a password; before, no client is treated as an owner
	asksOwners  atomic.Bool
	loginFound  []doctor.Finding
	probes      probeState
	signedPath  signedPath
	examination atomic.Pointer[operations.Diagnosis] // the last findings, for operators
}

// probeState is the result of the last probes of a database.
type probeState struct {
	found              []doctor.Finding
	passedVersions     string          // versions of policy and catalog for which all probes have passed
	unfinishedVersions string          // versions of policy and catalog for which probes are unfinished
	passedParts        map[string]bool // those of the unfinished probes' parts that have passed
	retryDelay         time.Duration   // time until unfinished probes are repeated
	nextAttempt        time.Time       // when unfinished probes are repeated
	timeFactor         int             // repeated probes get this many times as much time
}

// signedPath says whether statements may read through the signed views, which is called the signed path, instead of
// under row security.
type signedPath struct {
	closedReason string // why statements may not take the signed path; "": they may
	passedPlan   string // hash of the last plan whose probe has passed; "": none
}

// databaseVerifiers has the verifiers of all databases, by name.
type databaseVerifiers map[string]*databaseVerifier

func newVerifiers(c *config.Config, log *slog.Logger) databaseVerifiers {
	verifiers := databaseVerifiers{}
	for name := range c.Databases {
		verifiers[name] = &databaseVerifier{config: c, log: log.With("database", name)}
	}
	return verifiers
}

// verify verifies a database. Package enforce calls it.
func (all databaseVerifiers) verify(ctx context.Context, conn *pgx.Conn, t enforce.Target) error {
	v, ok := all[t.Database.Name]
	if !ok {
		return fmt.Errorf("database %s is not configured", t.Database.Name)
	}
	err := v.checkDatabase(ctx, conn, t)
	v.storeFindings(err)
	var unsafeTables *doctor.UnsafeTables
	if errors.As(err, &unsafeTables) {
		return enforce.UnsafeTables{Relations: unsafeTables.Relations, Cause: err}
	}
	return err
}

// storeFindings stores the findings for the overview of operators.
func (v *databaseVerifier) storeFindings(err error) {
	e := operations.Diagnosis{At: time.Now()}
	if err != nil && !errors.As(err, new(enforce.SignedPathOff)) {
		e.Problem = err.Error()
	}
	for _, f := range slices.Concat(v.loginFound, v.probes.found) {
		if f.Severity != doctor.SeverityOK {
			e.Found = append(e.Found, f)
		}
	}
	v.examination.Store(&e)
}

func (v *databaseVerifier) checkDatabase(ctx context.Context, conn *pgx.Conn, t enforce.Target) error {
	target := doctor.Target{
		AgentRole: t.Database.AgentRole, ControlRole: t.Database.ControlRole, ReaderRole: t.Database.ReaderRole,
		RowsRole: t.Database.RowsRole,
		Policy:   t.Policy, Snapshot: t.Snapshot, Plan: t.Plan,
	}
	db := v.config.Databases[t.Database.Name]
	var loadTime string
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_conf_load_time()::pg_catalog.text").Scan(&loadTime); err != nil {
		return fmt.Errorf("when the server read its configuration: %w", err)
	}
	if v.loadTime != loadTime {
		if err := v.checkLogins(ctx, db, target); err != nil {
			return err
		}
		v.loadTime = loadTime
	}
	unsafeErr := doctor.CheckServing(ctx, conn, target)
	if unsafeErr != nil && !errors.As(unsafeErr, new(*doctor.UnsafeTables)) {
		return unsafeErr
	}
	if err := checkAcknowledged(ctx, conn, v.config, t.Database.Name); err != nil {
		return err
	}
	if unsafeErr != nil {
		return unsafeErr // Some tables are suspended, and the probes would fail at them.
	}
	if versions := t.Policy.Version() + " " + t.Snapshot.Version(); v.probes.areDue(versions) {
		if err := v.runProbes(ctx, conn, db, target, versions); err != nil {
			return err
		}
	}
	return v.signedPathError()
}

// areDue reports whether the probes have to run for these versions of policy and catalog.
func (p *probeState) areDue(versions string) bool {
	return p.passedVersions != versions && (p.unfinishedVersions != versions || !time.Now().Before(p.nextAttempt))
}

// runProbes runs the probes for these versions of policy and catalog.
func (v *databaseVerifier) runProbes(ctx context.Context, conn *pgx.Conn, db *config.Database, target doctor.Target,
	versions string) error {
	p := &v.probes
	if p.unfinishedVersions != versions {
		p.passedParts, p.timeFactor = map[string]bool{}, 1
	}
	target.PassedProbes = p.passedParts // what has passed is not repeated
	target.ProbeTime = time.Duration(p.timeFactor) * probeStatement
	p.timeFactor = min(2*p.timeFactor, maxProbeFactor)
	found, err := v.probeAsAgent(ctx, conn, db, target)
	p.found = found
	if err == nil {
		err = doctor.UnsafeError(found)
	}
	if err != nil {
		return err
	}
	if doctor.HasUnfinished(found) {
		// The first delay is short, because full-text search, LIKE and JSON are slow without the signed path.
		if p.retryDelay = min(2*p.retryDelay, maxProbeWait); p.retryDelay == 0 || p.unfinishedVersions != versions {
			p.retryDelay = minProbeWait
		}
		p.unfinishedVersions, p.nextAttempt = versions, time.Now().Add(p.retryDelay)
	} else {
		p.passedVersions = versions
	}
	for _, f := range found {
		if f.Severity == doctor.SeverityOK {
			p.passedParts[f.ID] = true
		}
	}
	v.signedPath.closedReason = ""
	if target.Plan.HasSignedViews() {
		v.signedPath.update(target.Plan.Hash(), p.passedParts, found)
	}
	v.logWarnings(found)
	return nil
}

// closedReason returns why statements may not take the signed path, and "" if its probe has passed now or before. The
// signed path is not used before that; statements then run under row security, and only take longer.
func closedReason(passedProbes map[string]bool, found []doctor.Finding) string {
	for _, f := range found {
		if f.Severity == doctor.SeverityNoSignedPath {
			return f.Problem
		}
	}
	if passedProbes[doctor.SignedPathProbe] {
		return ""
	}
	return "its probe was not finished"
}

// update sets whether statements may take the signed path with the plan of this hash. If the probe was not finished,
// its last result for the same plan stays valid.
func (s *signedPath) update(hash string, passedProbes map[string]bool, found []doctor.Finding) {
	s.closedReason = closedReason(passedProbes, found)
	switch {
	case s.closedReason == "":
		s.passedPlan = hash
	case slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Severity == doctor.SeverityNoSignedPath }):
		s.passedPlan = ""
	case s.passedPlan == hash:
		s.closedReason = ""
	}
}

// signedPathError returns an error if statements may not take the signed path. Package enforce then uses row security.
func (v *databaseVerifier) signedPathError() error {
	if v.signedPath.closedReason != "" {
		return enforce.SignedPathOff{Reason: v.signedPath.closedReason}
	}
	return nil
}

// checkLogins returns an error if the server lets owners log in without a password, and stores the result for the
// router.
func (v *databaseVerifier) checkLogins(ctx context.Context, db *config.Database, target doctor.Target) error {
	clientTLS, err := v.config.Upstream.ClientTLS()
	if err != nil {
		return err
	}
	network, address := v.config.Upstream.NetworkAddress()
	found, err := doctor.CheckLogins(ctx, doctor.Upstream{
		Network: network, Address: address, TLS: clientTLS, Database: db.Name}, db.Owners, target)
	if err != nil {
		return err
	}
	v.loginFound = found
	err = doctor.UnsafeError(found)
	v.asksOwners.Store(err == nil)
	if err == nil {
		v.logWarnings(found)
	}
	return err
}

// probeAsAgent runs the probes with the agent role. The probes have their own time limit, since little may be left of
// the time of ctx. If ctx is canceled, they end.
func (v *databaseVerifier) probeAsAgent(ctx context.Context, conn *pgx.Conn, db *config.Database,
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
	return doctor.RunProbes(probing, conn, agent, target)
}

func (v *databaseVerifier) logWarnings(found []doctor.Finding) {
	for _, f := range found {
		if f.Severity == doctor.SeverityWarning {
			v.log.Warn(f.Problem, "finding", f.ID, "fix", f.Fix)
		}
	}
}
