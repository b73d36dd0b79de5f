package enforce

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// database is a configured database, with everything that enforcement has found out about it.
type database struct {
	enforcer     *Enforcer
	cfg          Database
	servingState atomic.Pointer[servingState] // how agents are served now; all sessions read it
	probing      atomic.Bool                  // a probe is running and has reached the server

	keyColumns atomic.Pointer[keyColumns] // the key columns of tables whose returned keys the audit records
	origins    atomic.Pointer[origins]    // columns that clients are told in place of the columns of pgconsent's views

	epoch atomic.Int64 // number of the last change of consent; statements sent from now on see the changes up to it

	controlPool *controlPool
	comparisons comparisonQueue

	probeRequests chan struct{}                 // receives a value for each requested probe
	pendingProbe  atomic.Pointer[chan struct{}] // the probe that was requested closes it; nil: no probe is requested

	mu      sync.Mutex // held during a probe; it guards the fields below
	control *pgx.ConnConfig
	conn    *pgx.Conn
	policyDocuments
	lastReads
	signedPathOff       bool   // the signed path is off, as the last check requires
	signedPathOffReason string // why statements do not read signed views now; "": they do, or there are none
	announcedName       string // the application name of conn, which says which policy is served
	originsState        *state // the state from which origins was computed
	state               *state // the state from the last successful probe, also while servingState refuses agents
	// the state that the previous probe found while the catalogs were changing; nil: they were not changing
	stateWhileChanging *state
	lastFailure        string // the failure that was logged last
}

// policyDocuments are the known versions of a database's policy.
type policyDocuments struct {
	document        *policy.Document // the active policy
	policyFiles     *policy.Watch    // the files of the policy as they were when the policy was last read
	pendingDocument *policy.Document // the policy that waits for pgconsent migrate; nil: none does
	// the newest policy, if it did not fit the catalogs: it may name objects that are created later
	unfittingPolicy *policy.Document
}

// lastReads are the results of earlier probes of a database, and when each part was read last.
type lastReads struct {
	reader           *pgcatalog.Reader
	catalogs         *catalog.Snapshot // the catalogs that were read last
	lastProbe        probeResult       // the probe from which the state was made
	storedVersions   verdict.Versions  // the versions of the state whose catalogs the database has stored
	checkedAt        time.Time         // when Check last agreed
	catalogsReadAt   time.Time         // when the catalogs were read
	lastFingerprints fingerprints      // the last known fingerprints of the catalogs
	prunedAt         time.Time         // when old records of changes were deleted
	sizes            tableSizes        // the sizes of tables as they were read last
	sizesReadAt      time.Time         // when the sizes of tables were read
}

// probeResult is what one probe of a database has found out.
type probeResult struct {
	fingerprint     string // the version of the snapshot of the catalogs
	agentChanges    int64  // how many changes of the catalogs that concern agents were found so far
	catalogsRead    bool   // this probe read the catalogs
	installedPolicy migrations.Installed
	keys            *seal.Keyring
	catalogVersion  int64 // the version of the catalogs, read before the other values
	tracksDDL       bool  // event triggers of the database report DDL
	clockOffset     time.Duration
	server          string // when the server was started, which identifies the server
}

// fingerprints are the fingerprints of the catalogs at one moment.
type fingerprints struct {
	fingerprint    string
	agentChanges   int64
	server         string // when the server was started
	agentHash      string // the database's hash of the parts that concern agents; "": it was not queried
	readerChanges  int64  // the changes that the reader had counted, or unknownChanges
	catalogVersion int64  // the version of the catalogs, read before the catalogs
	writeCount     int64  // the number of writes to the catalogs, read before the catalogs
	readAt         time.Time
}

// unknownChanges is the value of fingerprints.readerChanges if the reader counted the changes on an earlier connection.
const unknownChanges = -1

// areCurrent reports whether the catalogs count as unchanged since these fingerprints were read.
func (f fingerprints) areCurrent(catalogVersion, writes int64) bool {
	interval := fingerprintInterval
	if writes != f.writeCount {
		interval = fingerprintIntervalOfWrite
	}
	return catalogVersion == f.catalogVersion && time.Since(f.readAt) < interval
}

// How long the catalogs count as unchanged while the database reports no DDL: a minute if its statistics show no new
// write to the catalogs, otherwise five seconds.
const (
	fingerprintInterval        = time.Minute
	fingerprintIntervalOfWrite = 5 * time.Second
)

// controlSettings are the settings of control connections, whatever the database sets for other connections. They turn
// off JIT compilation and parallel workers, which make pgconsent's large queries slower.
var controlSettings = map[string]string{
	"application_name":                migrations.ControlName,
	"search_path":                     "pg_catalog",
	"statement_timeout":               "0", // no limit: a probe may take as long as it needs
	"idle_session_timeout":            "0", // no limit: the connection that listens for notifications is idle
	"jit":                             "off",
	"max_parallel_workers_per_gather": "0",
	"client_encoding":                 "UTF8",
	"standard_conforming_strings":     "on",
	"row_security":                    "on",
	// Repeated queries must not take the predicate locks of SERIALIZABLE, which could make other transactions fail.
	"default_transaction_isolation": "read committed",
}

func newDatabase(e *Enforcer, c Database) (*database, error) {
	for role, name := range map[*string]string{&c.AgentRole: "pgconsent_agent", &c.ControlRole: "pgconsent_control",
		&c.ReaderRole: "pgconsent_reader", &c.RowsRole: "pgconsent_rows"} {
		if *role == "" {
			*role = name
		}
	}
	doc, files, err := policy.LoadWatched(c.PolicyPath)
	if err != nil {
		return nil, err
	}
	control, err := pgx.ParseConfig(c.ControlConnection)
	if err != nil {
		return nil, fmt.Errorf("database %s: control connection: %w", c.Name, err)
	}
	for name, value := range controlSettings {
		control.RuntimeParams[name] = value
	}
	control.ConnectTimeout = connectTimeout
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: keepAliveTimeout / 3, Interval: keepAliveTimeout / 3, Count: 2}}
	control.DialFunc = dialer.DialContext
	d := &database{enforcer: e, cfg: c, control: control, controlPool: newControlPool(),
		policyDocuments: policyDocuments{document: doc, policyFiles: files},
		lastReads:       lastReads{reader: pgcatalog.NewReader(c.SearchPath)}, probeRequests: make(chan struct{}, 1)}
	d.comparisons.lastCompared = map[string]time.Time{}
	if c.AgentConnection != "" {
		d.comparisons.queue = make(chan comparison, maxComparisons)
	}
	return d, nil
}

// A probe often fails because pgconsent migrate is running at that moment. As agents are refused meanwhile, up to
// quickRetries more probes follow soon.
const (
	retryDelay   = 250 * time.Millisecond
	quickRetries = 12
)

// watch probes the database periodically, and when a probe is requested, until ctx ends.
func (d *database) watch(ctx context.Context) {
	tick := time.NewTicker(d.enforcer.cfg.ProbeInterval)
	defer tick.Stop()
	var retryTimer <-chan time.Time
	failed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-d.probeRequests:
		case <-retryTimer:
		}
		err := d.refresh(ctx) // refresh logs the error and stores the result in servingState
		d.reloadIfChanged()
		retryTimer = nil
		if failed++; err == nil {
			failed = 0
		} else if failed <= quickRetries && d.enforcer.cfg.ProbeInterval > retryDelay {
			retryTimer = time.After(retryDelay)
		}
	}
}

// refresh probes the database, updates the state if something has changed, and publishes the result to the sessions.
func (d *database) refresh(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.probing.Store(false)
	request := d.pendingProbe.Load()
	defer d.finishProbe(request)
	startedAt := time.Now()
	result, err := d.probe(ctx)
	if err == nil {
		err = d.updateState(ctx, result)
	}
	for try := 1; try < maxChangingTries && errors.Is(err, errCatalogsChanging); try++ {
		startedAt = time.Now()
		if result, err = d.probe(ctx); err == nil {
			err = d.updateState(ctx, result)
		}
	}
	if errors.Is(err, errCatalogsChanging) && d.state != nil {
		// The objects that the active state needs are still checked. An error of PostgreSQL proves nothing here, since a
		// checked object may no longer exist.
		var pg *pgconn.PgError
		now, unsafe := d.checkAndSuspend(ctx, d.state)
		switch v := d.servingState.Load(); {
		case unsafe != nil && !errors.As(unsafe, &pg):
			err = unsafe
		case unsafe == nil && now != d.state:
			d.setState(now, d.document, d.lastProbe)
			if v != nil && v.refusal == nil {
				updated := *v
				updated.state = now
				d.servingState.Store(&updated)
			}
		}
	}
	if err == nil {
		d.prune(ctx, result)
	}
	if err == nil {
		err = d.readSizes(ctx)
	}
	if err == nil {
		d.setOrigins()
		d.switchSignedPath()
		err = d.announceServedPolicy(ctx)
	}
	if err != nil && d.conn != nil && !errors.Is(err, errCatalogsChanging) {
		// The next probe opens a new connection: this connection may have outlived its login role, or the role's rights.
		_ = d.conn.Close(ctx)
	}
	d.publishResult(startedAt, result, err)
	return err
}

// announceServedPolicy tells pgconsent migrate which database half this process serves, by the application name in
// pg_stat_activity. The caller holds mu.
func (d *database) announceServedPolicy(ctx context.Context) error {
	name := migrations.ServingName(d.state.plan.Hash())
	if name == d.announcedName {
		return nil
	}
	if _, err := d.conn.Exec(ctx, "SELECT pg_catalog.set_config('application_name', $1, false)", name); err != nil {
		return fmt.Errorf("say what is served: %w", err)
	}
	d.announcedName = name
	return nil
}

// publishResult stores the result of a refresh in servingState, where the sessions read it. The caller holds mu.
func (d *database) publishResult(startedAt time.Time, result probeResult, err error) {
	m, log := d.enforcer.cfg.Metrics, d.enforcer.cfg.Log.With("database", d.cfg.Name)
	m.CountRefresh(d.cfg.Name, err == nil)
	unreached, moving := err != nil && unreachableError(err), errors.Is(err, errCatalogsChanging)
	m.SetUpstreamUp(d.cfg.Name, !unreached)
	switch {
	case err == nil:
		if d.lastFailure != "" {
			log.Info("agents are served again")
		}
		d.lastFailure = ""
		if v := d.servingState.Load(); v != nil && v.refusal == nil && v.hasClockMoved(result.clockOffset) {
			log.Warn("a clock was moved, the database's or this machine's: all sessions are sealed anew", "by",
				(result.clockOffset - v.clockOffset).Round(time.Second).String())
		}
		// If the database tracks DDL, it refuses statements after a change. So the result of the probe is still valid now.
		if result.tracksDDL {
			startedAt = time.Now()
		}
		d.servingState.Store(&servingState{
			state: d.state, verified: startedAt, tracksDDL: result.tracksDDL, clockOffset: result.clockOffset,
			catalogVersion: result.catalogVersion, server: result.server,
			signedPathOffReason: d.signedPathOffReason,
		})
		m.SetSignedPath(d.cfg.Name, d.enforcer.cfg.RewriteMode.UsesSignedPath() && !d.signedPathOff)
		d.enforcer.endSessionsOnOtherServers(d)
		m.SetActivePolicy(d.cfg.Name, d.state.versions.Policy, d.state.versions.Catalog)
	case unreached || moving:
		// No such error proves that the state is wrong. So the state stays active while the last successful probe is recent
		// enough.
		if d.servingState.Load() == nil {
			d.servingState.Store(&servingState{refusal: unavailableRefusal(err)})
		}
		if d.lastFailure != err.Error() {
			message := "the database cannot be reached"
			switch {
			case moving:
				message = "the catalogs change again and again while they are read"
			}
			log.Error(message+"; its agents are refused when that lasts", "error", err)
		}
		d.lastFailure = err.Error()
	default:
		d.servingState.Store(&servingState{refusal: notServedRefusal(err)})
		if d.lastFailure != err.Error() {
			log.Error("agents are refused: the database cannot be verified", "error", err)
		}
		d.lastFailure = err.Error()
	}
	_, refused := d.current()
	m.SetServing(d.cfg.Name, refused == nil)
}

// probe reads from the database everything that decisions depend on.
func (d *database) probe(ctx context.Context) (probeResult, error) {
	var o probeResult
	if d.conn == nil || d.conn.IsClosed() {
		conn, err := pgx.ConnectConfig(ctx, d.control.Copy())
		if err != nil {
			return o, fmt.Errorf("control connection: %w", err)
		}
		// The new connection may be to another server: everything is checked again.
		d.conn, d.checkedAt, d.announcedName = conn, time.Time{}, ""
		d.lastFingerprints.readAt, d.lastFingerprints.readerChanges = time.Time{}, unknownChanges
		d.reader.Reset()
	}
	d.probing.Store(true)
	var err error
	var room int
	if o.clockOffset, o.server, room, err = readServerClock(ctx, d.conn); err != nil {
		return o, err
	}
	d.enforcer.connectionLimit.Store(int64(room))
	if o.catalogVersion, o.tracksDDL, err = catalogVersion(ctx, d.conn); err != nil {
		return o, err
	}
	if o.installedPolicy, err = migrations.ReadInstalled(ctx, d.conn); err != nil {
		return o, err
	}
	writes, err := pgcatalog.CatalogWrites(ctx, d.conn)
	if err != nil {
		return o, err
	}
	if o.keys, err = seal.LoadKeyring(ctx, d.conn); err != nil {
		return o, err
	}
	if err := d.readEpoch(ctx, d.conn); err != nil {
		return o, err
	}
	return o, d.readCatalogs(ctx, &o, writes)
}

// readServerClock returns the database's clock minus the proxy's; the database's clock decides when seals expire. It
// also returns when the server was started, and for how many connections of ordinary roles the server has room.
func readServerClock(ctx context.Context, conn *pgx.Conn) (offset time.Duration, server string, room int, err error) {
	before := time.Now()
	var theirs time.Time
	// Servers before PostgreSQL 16 have no reserved_connections.
	if err := conn.QueryRow(ctx, `SELECT pg_catalog.clock_timestamp(), `+serverStartSQL+`,
		pg_catalog.current_setting('max_connections')::pg_catalog.int4
		OPERATOR(pg_catalog.-) pg_catalog.current_setting('superuser_reserved_connections')::pg_catalog.int4
		OPERATOR(pg_catalog.-) COALESCE(pg_catalog.current_setting('reserved_connections', true)::pg_catalog.int4, 0)`).
		Scan(&theirs, &server, &room); err != nil {
		return 0, "", 0, fmt.Errorf("clock: %w", err)
	}
	after := time.Now()
	return theirs.Sub(before.Add(after.Sub(before) / 2)), server, room, nil
}

// updateState makes a new state if the probe found something else than the probe from which the present state was made,
// and calls Check. The caller holds mu and has a connection.
func (d *database) updateState(ctx context.Context, o probeResult) error {
	if d.mustReadCatalogs(o) {
		v := d.servingState.Load()
		othersChanged := d.state != nil && v != nil && v.refusal == nil &&
			o.agentChanges == d.lastProbe.agentChanges &&
			o.installedPolicy == d.lastProbe.installedPolicy
		if err := d.rebuildState(ctx, o); !othersChanged || !errors.Is(err, errCatalogsChanging) {
			return err
		}
		d.catalogsReadAt = time.Now() // The present change concerns no agent: its result is read later.
	}
	o.fingerprint = d.lastProbe.fingerprint // The catalogs were not read now, so the earlier fingerprint still counts.
	s := d.state
	if time.Since(d.checkedAt) > checkInterval {
		now, err := d.checkAndSuspend(ctx, s)
		if err != nil {
			return err
		}
		if now != s {
			d.setState(now, d.document, o)
			s = now
		}
	}
	if !sameKey(o.keys.NewestKey(), s.sealKey) {
		before := s
		s = d.newState(compiledPolicy{s.policy, s.plan}, s.snapshot, o.keys)
		s.suspension = before.suspension
		d.setState(s, d.document, o)
	}
	return nil
}

// rebuildState makes a state from the present catalogs. The caller holds mu and has a connection.
func (d *database) rebuildState(ctx context.Context, o probeResult) error {
	s := d.state
	before := d.stateWhileChanging
	d.stateWhileChanging = nil
	snap, grown, settled, err := d.unchangedCatalogs(ctx, o)
	if err != nil {
		return err
	}
	doc := d.document
	c, err := d.compile(doc, snap)
	d.retryUnfittingPolicy(snap)
	if d.pendingDocument != nil {
		// pgconsent migrate may have installed the policy that was waiting for it.
		if waiting, errNext := d.compile(d.pendingDocument, snap); errNext == nil && waiting.plan.Hash() == o.installedPolicy.Hash {
			doc, c, err = d.pendingDocument, waiting, nil
		}
	}
	if err != nil || c.plan.Hash() != o.installedPolicy.Hash {
		if written, of, ok := d.readNewerFiles(snap, o); ok {
			doc, c, err = written, of, nil
		}
	}
	if err == nil {
		err = o.installedPolicy.CheckPlan(c.plan)
	}
	var rest *state
	switch {
	case err == nil:
	case !settled: // The parts of the catalogs may have been read before and after a change.
		return fmt.Errorf("%w: %w", errCatalogsChanging, err)
	default:
		var failed error
		if rest, failed = d.suspendChanged(ctx, snap, o); rest == nil {
			return errors.Join(failed, err)
		}
		doc = d.document
	}
	if doc != d.document {
		d.enforcer.cfg.Log.Info("the policy that waited for pgconsent migrate is active", "database", d.cfg.Name,
			"policy", c.policy.Version())
	}
	rebuilt := rest
	if rebuilt == nil {
		rebuilt = d.newState(c, snap, o.keys)
		// If agents read a table through a view of pgconsent, they do not see its new columns.
		grown = slices.DeleteFunc(grown, func(name catalog.Name) bool {
			table, listed := c.policy.Table(name)
			return listed && table.Columns != nil
		})
		if rebuilt = d.withSuspension(rebuilt, suspensionCauses{alteredRelations: grown}); rebuilt == nil {
			return errors.New("a table from which attributes of agents are worked out has another column " +
				"by which its rows are computed: run pgconsent migrate")
		}
	}
	same := s != nil && s.equal(rebuilt)
	v := d.servingState.Load()
	inForce := v != nil && v.refusal == nil
	if !settled && !(same && inForce) && (before == nil || !before.equal(rebuilt)) {
		d.stateWhileChanging = rebuilt
		return errCatalogsChanging
	}
	if same {
		rebuilt = s // With the same state the cached verdicts stay valid.
	} else {
		for _, w := range rebuilt.policy.WithheldWrites() {
			d.enforcer.cfg.Log.Warn("the policy lets agents write what they are not given", "database", d.cfg.Name, "why",
				w.Error())
		}
		for _, w := range rebuilt.policy.WriteDisclosures() {
			d.enforcer.cfg.Log.Warn("what the policy lets agents write tells them of rows that they do not see", "database",
				d.cfg.Name, "why", w.Error())
		}
	}
	if rebuilt, err = d.checkAndSuspend(ctx, rebuilt); err != nil {
		return err
	}
	d.setState(rebuilt, doc, o)
	if rest == nil && settled {
		d.storeCatalogs(ctx, rebuilt)
	}
	return nil
}

// rereadInterval is the time after which changed catalogs are read again even if the changes concern no agent.
const rereadInterval = checkInterval

// mustReadCatalogs reports whether a new state must be made from the catalogs. This is so if parts that concern agents
// have changed, or if another change may help a waiting policy or refused agents. The caller holds mu.
func (d *database) mustReadCatalogs(o probeResult) bool {
	switch {
	case d.state == nil || o.agentChanges != d.lastProbe.agentChanges || o.installedPolicy != d.lastProbe.installedPolicy:
		return true
	case o.fingerprint == d.lastProbe.fingerprint:
		return false
	}
	v := d.servingState.Load()
	return d.pendingDocument != nil || d.unfittingPolicy != nil || v == nil || v.refusal != nil ||
		time.Since(d.catalogsReadAt) > rereadInterval
}

// retryUnfittingPolicy compiles again the policy that did not fit the catalogs. If it fits now, it waits for pgconsent
// migrate. The caller holds mu.
func (d *database) retryUnfittingPolicy(snap *catalog.Snapshot) {
	if d.unfittingPolicy == nil {
		return
	}
	c, err := d.compile(d.unfittingPolicy, snap)
	if err != nil {
		return
	}
	d.pendingDocument, d.unfittingPolicy = d.unfittingPolicy, nil
	d.enforcer.cfg.Metrics.SetPolicyPending(d.cfg.Name, true)
	d.enforcer.cfg.Log.Warn("policy_pending: the new policy fits the catalogs now; the old one stays active until "+
		"pgconsent migrate has installed the new one", "database", d.cfg.Name, "pending", c.policy.Version())
}

// errCatalogsChanging is the error of a probe during which the catalogs changed. If two probes in a row read equal
// catalogs, these were current when the first probe ended. If a probe reads the catalogs of the active state, they were
// current when the probe began.
var errCatalogsChanging = errors.New("the catalog is changing")

// maxChangingTries is how many times refresh probes a database while the result is errCatalogsChanging.
const maxChangingTries = 4

// tracksDDL reports whether the database refuses statements that were decided before the last DDL.
func (d *database) tracksDDL() bool {
	v := d.servingState.Load()
	return v != nil && v.tracksDDL
}

// isLockTimeout reports whether a statement failed because it waited for a lock longer than lock_timeout.
func isLockTimeout(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "55P03"
}

type compiledPolicy struct {
	policy *policy.Policy
	plan   *rls.Plan
}

func (d *database) compile(doc *policy.Document, snap *catalog.Snapshot) (compiledPolicy, error) {
	p, err := policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
	if err != nil {
		return compiledPolicy{}, err
	}
	return compiledPolicy{p, rls.Generate(p, snap, rls.Options{
		AgentRole: d.cfg.AgentRole, ControlRole: d.cfg.ControlRole, ReaderRole: d.cfg.ReaderRole,
		RowsRole: d.cfg.RowsRole, Mode: d.enforcer.cfg.RowSecurityMode,
		SignedViews: d.enforcer.cfg.RewriteMode.UsesSignedPath(),
	})}, nil
}

func (d *database) newState(c compiledPolicy, snap *catalog.Snapshot, keys *seal.Keyring) *state {
	epoch := d.enforcer.epochCounter.Add(1)
	s := &state{
		epoch: epoch, rightsEpoch: epoch, policy: c.policy, snapshot: snap, plan: c.plan, sealKey: keys.NewestKey(),
		activeRewriter: rewrite.New(snap, c.policy, d.enforcer.cfg.RewriteMode).WithSignedViews(func(view catalog.Name) bool {
			_, exists := snap.Relation(view)
			return exists
		}),
		profile: profileName(d.cfg, c.policy, c.plan),
	}
	s.unsignedRewriter, s.signingRewriter = s.activeRewriter, s.activeRewriter
	if d.enforcer.cfg.RewriteMode == rewrite.InjectedMode || d.enforcer.cfg.RewriteMode.UsesSignedPath() {
		s.unsignedRewriter = rewrite.New(snap, c.policy, rewrite.RowSecurityMode)
	}
	s.neededLiveAttributes = neededLiveAttributes(c.policy)
	s.observedPolicy = s.newObservedPolicy()
	s.untrackedTable, s.timeHidesRows = c.plan.UntrackedAttributeTable(), c.plan.TimeCanHide()
	s.untrackedRelations, s.timeDependent = newUntrackedRelations(c.policy, c.plan), newTimeDependent(c.policy, c.plan)
	s.foreignRelations = newForeignRelations(snap, c.policy, c.plan)
	s.versions.Policy, s.versions.Catalog = c.policy.Version(), snap.Version()
	return s
}

func (d *database) runChecks(ctx context.Context, s *state) error {
	if d.enforcer.cfg.Check != nil {
		err := d.enforcer.cfg.Check(ctx, d.conn, Target{d.cfg, s.policy, s.snapshot, s.plan})
		var (
			off    SignedPathOff
			unsafe UnsafeTables
		)
		if errors.As(err, &unsafe) { // Check did not test the signed path, which stays on or off.
			if !d.signedPathOff && (d.state == nil || d.state.plan.Hash() != s.plan.Hash()) {
				d.signedPathOff, d.signedPathOffReason = true, "its probe waits until no table is suspended"
			}
			d.checkedAt = time.Now()
			return err
		}
		switch {
		// If the database does not track DDL, nothing else would find the changes that the lock hides.
		case isLockTimeout(err) && d.tracksDDL():
			return fmt.Errorf("%w: DDL that is not committed yet has locked what is checked: %w", errCatalogsChanging, err)
		case err != nil && !errors.As(err, &off):
			return err
		}
		if d.signedPathOff, d.signedPathOffReason = err != nil, off.Reason; d.signedPathOff {
			d.enforcer.cfg.Log.Error("the signed path is off: every statement takes the row security path", "database",
				d.cfg.Name, "reason", off.Reason)
		}
	}
	d.checkedAt = time.Now()
	return nil
}

// setState sets the state that the next publishResult activates. It ends the sessions whose attributes are not valid
// under this state.
func (d *database) setState(s *state, doc *policy.Document, o probeResult) {
	if doc != d.document {
		d.document, d.pendingDocument, d.unfittingPolicy = doc, nil, nil
		d.enforcer.cfg.Metrics.SetPolicyPending(d.cfg.Name, false)
	}
	var before suspension
	if d.state != nil {
		before = d.state.suspension
	}
	d.logSuspension(before, s.suspension)
	d.state, d.lastProbe = s, o
	d.warnUnprotected(s)
	d.enforcer.logUnusableClaims(d, s.policy)
	d.enforcer.recheckIdentities(d, s)
}

// disconnect closes all control connections.
func (d *database) disconnect() {
	d.controlPool.close()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = d.conn.Close(ctx)
	}
}

// unreachableError reports whether an error means that the server does not answer. Other errors mean that its answer is
// wrong.
func unreachableError(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch {
		case pg.Code[:2] == "08", pg.Code[:2] == "57", pg.Code[:2] == "53", pg.Code[:2] == "58":
			// The server is shutting down or starting, or has no free connections, memory or disk space, or has an I/O error.
			return true
		default:
			return false
		}
	}
	var dial *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &dial) || errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled) || pgconn.Timeout(err) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
