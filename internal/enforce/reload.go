package enforce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// reload reads the policy's files again. It activates the policy if the database objects that the policy needs are
// installed.
func (d *database) reload() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, log := d.enforcer.cfg.Metrics, d.enforcer.cfg.Log.With("database", d.cfg.Name)
	notReloaded := func(err error) error {
		log.Error("the policy was not reloaded; the old one stays active", "error", err)
		return err
	}
	doc, watch, err := policy.LoadWatched(d.cfg.PolicyPath)
	d.policyFiles = watch
	if err != nil {
		return notReloaded(err)
	}
	if d.state == nil { // There is no state yet, so there is no old policy to continue with.
		d.document = doc
		return nil
	}
	if !d.state.suspension.isEmpty() {
		d.unfittingPolicy = doc // The policy may fit the present catalogs, which the suspended state does not have.
		return notReloaded(errors.New(
			"tables are suspended until pgconsent migrate has run: a new policy is taken over by it, or after it"))
	}
	c, err := d.compile(doc, d.state.snapshot)
	if err != nil {
		d.unfittingPolicy = doc
		if grown := tablesWithWaitingColumns(d.state.snapshot); grown != "" {
			err = fmt.Errorf("%w; columns of %s are not known before pgconsent migrate has run", err, grown)
		}
		return notReloaded(err)
	}
	d.unfittingPolicy = nil
	if c.plan.Hash() != d.lastProbe.installedPolicy.Hash {
		d.pendingDocument = doc
		m.SetPolicyPending(d.cfg.Name, true)
		log.Warn("policy_pending: the new policy changes the database side; the old one stays active, run pgconsent migrate",
			"pending", c.policy.Version(), "in_force", d.state.versions.Policy)
		return nil
	}
	d.pendingDocument = nil
	m.SetPolicyPending(d.cfg.Name, false)
	if c.policy.Version() == d.state.versions.Policy {
		return nil
	}
	s := d.newState(c, d.state.snapshot, d.lastProbe.keys)
	if err := d.verify(s); err != nil {
		return notReloaded(err)
	}
	d.setState(s, doc, d.lastProbe)
	d.switchSignedPath()
	if v := d.servingState.Load(); v.state != nil {
		d.servingState.Store(&servingState{state: d.state, verified: v.verified, clockOffset: v.clockOffset,
			catalogVersion: v.catalogVersion,
			server:         v.server, tracksDDL: v.tracksDDL, signedPathOffReason: v.signedPathOffReason})
	}
	m.SetActivePolicy(d.cfg.Name, s.versions.Policy, s.versions.Catalog)
	log.Info("policy reloaded", "policy", s.versions.Policy)
	return nil
}

// tablesWithWaitingColumns returns the names of the tables with columns that wait for pgconsent migrate.
func tablesWithWaitingColumns(snap *catalog.Snapshot) string {
	var grown []catalog.Name
	for _, r := range snap.Relations() {
		if len(r.WaitingColumns) > 0 {
			grown = append(grown, r.Name)
		}
	}
	return joinSortedNames(grown)
}

// reloadIfChanged reloads the policy if its files have changed since they were last read.
func (d *database) reloadIfChanged() {
	d.mu.Lock()
	changed := d.policyFiles != nil && d.policyFiles.HasChanged()
	d.mu.Unlock()
	if changed {
		d.enforcer.cfg.Log.Info("the files of the policy have changed", "database", d.cfg.Name)
		_ = d.reload() // reload logs the error; the old policy stays active
	}
}

// readNewerFiles reads the policy's files again if the database has another policy installed than the known one.
// Somebody may have changed the files and run pgconsent migrate since the last refresh. It returns false if the files
// are not the installed policy either. The caller holds mu.
func (d *database) readNewerFiles(snap *catalog.Snapshot, o probeResult) (*policy.Document, compiledPolicy, bool) {
	doc, watch, err := policy.LoadWatched(d.cfg.PolicyPath)
	if err != nil {
		return nil, compiledPolicy{}, false
	}
	c, err := d.compile(doc, snap)
	if err != nil || c.plan.Hash() != o.installedPolicy.Hash {
		return nil, compiledPolicy{}, false
	}
	d.policyFiles = watch
	return doc, c, true
}

// verify probes the database and runs Check for a state that is not active yet. The caller holds mu.
func (d *database) verify(s *state) error {
	ctx, cancel := context.WithTimeout(context.Background(), reloadTimeout)
	defer cancel()
	defer d.probing.Store(false)
	d.lastFingerprints.readAt = time.Time{}
	result, err := d.probe(ctx)
	if err != nil {
		return err
	}
	if result.agentChanges != d.lastProbe.agentChanges || result.installedPolicy != d.lastProbe.installedPolicy {
		return errors.New("the database is changing: reload the policy again in a few seconds")
	}
	return d.runChecks(ctx, s)
}
