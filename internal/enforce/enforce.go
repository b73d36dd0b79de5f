// Package enforce is the one place that identifies agents, decides and rewrites their statements, seals their sessions
// and records what they did.
//
// Guarantees. A statement is allowed only under a policy whose database half is installed in the database. Also, either
// the catalogs used for the decision were compared with the server's within Config.StaleAfter, or the database compares
// their version for each statement. Otherwise every statement is refused (invariant I1 in
// docs/explanation/invariants.md). An allowed statement goes to the server as package rewrite wrote it. Each decision
// has an audit record before the statement can be sent (I8). If an agent is disabled or its attributes change, its
// sessions end at once.
//
// Not here: the wire protocol (package proxy), the predicates (packages predicate and rls) and the checks of the
// database itself, which [Config.Check] runs. Packages proxy and enforce share the types of package verdict.
//
// Wiring. The serving command builds a proxy.Route from what [Enforcer.Agent] returns:
//
//	access, ok := enforcer.Agent(user, database)
//	if !ok { … owner or refused … }
//	return proxy.Route{
//		Kind:         proxy.Agent,
//		Upstream:     proxy.Upstream{ … , Params: access.Params},
//		Credential:   access.Credential,
//		CheckSetting: access.CheckSetting,
//		Open: func(ctx context.Context, info proxy.SessionInfo) (verdict.Decider, error) {
//			return access.OpenSession(ctx, enforce.SessionInfo(info))
//		},
//	}
package enforce

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/registry/air"
	"github.com/pgconsent/pgconsent/internal/run/metrics"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// Config is what an enforcer needs. Databases and Audit are required.
type Config struct {
	Databases []Database
	Agents    []Agent // the agents at the start; [Enforcer.SetAgents] replaces them
	Audit     *audit.Log
	Metrics   *metrics.Metrics // nil: nothing is counted
	Log       *slog.Logger     // nil: slog.Default()
	Reminders *air.Tracker     // counts interactions for reminders; nil: no user is reminded

	// Check examines a database each time its catalogs or the installed policy changed, and every ten seconds. While it
	// returns an error, the database's agents are refused; if the error is a [SignedPathOff], their statements take the
	// row security path instead. Nil: only the hash of the installed policy is compared.
	Check func(ctx context.Context, conn *pgx.Conn, t Target) error

	// VerifyUser verifies the token of a user for whom an agent's session is to act. It returns the attributes that the
	// token gives, and when the token expires. The error contains nothing of the token. Nil: no tokens are accepted.
	VerifyUser func(ctx context.Context, token, agent, database string) (attributes map[string]string, until time.Time, err error)

	ProbeInterval time.Duration // time between two probes of a database; 0: 2 s
	CacheBytes    uint64        // size of the cache of verdicts; 0: 64 MiB; the cache of shapes has an eighth of it

	// RewriteMode says how the rewriter adds rules to statements. Modes that the configuration does not allow are for
	// tests.
	RewriteMode     rewrite.Mode
	RowSecurityMode rls.Mode // rls.Enforce, except in tests

	// StaleAfter is how long agents are served by the result of a probe while no later probe succeeds; 0: 60 s. This limit
	// does not apply while a probe is running and the database tracks DDL: then each statement compares the version of the
	// catalogs.
	StaleAfter time.Duration
}

// Database is one database that agents may use.
type Database struct {
	Name              string   // the name by which clients ask for the database
	PolicyPath        string   // path of the policy's file or folder
	ControlConnection string   // connection string of the control role
	SearchPath        []string // search path of agents' sessions, without pg_catalog

	// connection string of the agent role, for comparisons of observed statements; "": no comparisons are made
	AgentConnection string

	// names of roles; "": pgconsent_agent, pgconsent_control, pgconsent_reader, pgconsent_rows
	AgentRole, ControlRole, ReaderRole, RowsRole string
}

// Target is what [Config.Check] examines.
type Target struct {
	Database Database
	Policy   *policy.Policy
	Snapshot *catalog.Snapshot
	Plan     *rls.Plan
}

const (
	// staleAfter is the default of Config.StaleAfter.
	staleAfter = time.Minute
	// checkInterval is how long the answer of Check is used if no change is known.
	checkInterval = 10 * time.Second
	// reloadTimeout limits the probe that a reload of the policy makes, since somebody waits for it.
	reloadTimeout = time.Minute
	// compareTimeout limits a comparison of an observed statement.
	compareTimeout = 20 * time.Second
	// connectTimeout limits connecting to the server. keepAliveTimeout is how long the server's machine may be silent. A
	// probe itself has no limit: if pgconsent began it again, a slow server would only have more work.
	connectTimeout   = time.Minute
	keepAliveTimeout = 15 * time.Second
)

// Enforcer decides for all agents of one process.
type Enforcer struct {
	connectionLimit atomic.Int64 // how many connections of ordinary roles the server allows; 0: not known yet

	cfg          Config
	databases    map[string]*database
	verdictCache *verdictCache
	shapes       boundedCache[shapeKey, *textShape]
	limiters     *rateLimiters
	quotas       *quotas
	epochCounter atomic.Uint64 // numbers the states of all databases

	mu       sync.Mutex
	agents   map[string]Agent
	sessions map[*session]struct{}

	denials denials

	stop       context.CancelFunc
	goroutines sync.WaitGroup
}

// New loads every policy, probes every database and starts to watch them. It fails for a policy that does not load, and
// for a database whose enforcement layers cannot be verified. A database that cannot be reached is no error: its agents
// are refused until it can.
func New(ctx context.Context, cfg Config) (*Enforcer, error) {
	if cfg.Audit == nil {
		return nil, errors.New("enforce: no audit log: no record, no answer")
	}
	if len(cfg.Databases) == 0 {
		return nil, errors.New("enforce: no database")
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.ProbeInterval == 0 {
		cfg.ProbeInterval = 2 * time.Second
	}
	if cfg.StaleAfter == 0 {
		cfg.StaleAfter = staleAfter
	}
	if cfg.CacheBytes == 0 {
		cfg.CacheBytes = 64 << 20
	}
	e := &Enforcer{
		cfg: cfg, databases: map[string]*database{}, sessions: map[*session]struct{}{}, agents: map[string]Agent{},
		limiters: newRateLimiters(),
		quotas:   newQuotas(),
	}
	var err error
	if e.verdictCache, err = newVerdictCache(cfg.CacheBytes); err != nil {
		return nil, err
	}
	if e.shapes, err = newBoundedCache(cfg.CacheBytes/8, shapeBytes); err != nil {
		return nil, err
	}
	var failed []error
	for _, c := range cfg.Databases {
		if _, twice := e.databases[c.Name]; twice {
			return nil, fmt.Errorf("enforce: database %s is configured twice", c.Name)
		}
		d, err := newDatabase(e, c)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		e.databases[c.Name] = d
		if err := d.refresh(ctx); err != nil && !unreachableError(err) {
			failed = append(failed, fmt.Errorf("database %s: %w", c.Name, err))
		}
	}
	if len(failed) > 0 {
		e.closeConnections()
		return nil, errors.Join(failed...)
	}
	e.SetAgents(cfg.Agents)
	watch, stop := context.WithCancel(context.Background())
	e.stop = stop
	for _, d := range e.databases {
		e.goroutines.Go(func() { d.watch(watch) })
		e.goroutines.Go(func() { d.listen(watch) })
		if d.comparisons.queue != nil {
			e.goroutines.Go(func() { d.runComparisons(watch) })
		}
	}
	return e, nil
}

// Close stops the probes of the databases. The proxy ends the sessions; their statements are refused once the last
// probe is older than StaleAfter.
func (e *Enforcer) Close() {
	e.stop()
	e.goroutines.Wait()
	e.closeConnections()
	closeCache(e.verdictCache.verdicts)
	closeCache(e.shapes)
}

func (e *Enforcer) closeConnections() {
	for _, d := range e.databases {
		d.disconnect()
	}
}

// Ready returns nil if the agents of every database are served, each database's last successful probe is younger than
// StaleAfter, and audit records can be written. Otherwise it returns the reason.
func (e *Enforcer) Ready() error {
	var failed []error
	for _, name := range slices.Sorted(maps.Keys(e.databases)) {
		v, err := e.databases[name].current()
		if err == nil && v.isStale(e.cfg.StaleAfter) {
			err = unavailableRefusal(nil)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("database %s: %w", name, err))
		}
	}
	if err := e.cfg.Audit.WriteFailure(); err != nil {
		failed = append(failed, fmt.Errorf("audit: %w", err))
	}
	return errors.Join(failed...)
}

// Degraded lists what is not available to agents in databases that are served: suspended tables, views and functions,
// and the signed path. It waits for no probe.
func (e *Enforcer) Degraded() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(e.databases)) {
		v, refused := e.databases[name].current()
		if refused != nil {
			continue
		}
		if u := v.state.suspension; !u.isEmpty() {
			out = append(out, fmt.Sprintf("database %s: suspended: %s (changed, or not protected: %s)", name,
				joinSortedNames(slices.Concat(slices.Collect(maps.Keys(u.relations)), u.replacedFunctions)),
				joinSortedNames(slices.Concat(u.alteredRelations, u.unsafeRelations, u.replacedFunctions))))
		}
		if v.signedPathOffReason != "" {
			out = append(out, fmt.Sprintf("database %s: the signed path is shut: %s", name, v.signedPathOffReason))
		}
	}
	return out
}

// joinSortedNames returns a list of names in alphabetical order, each once.
func joinSortedNames(names []catalog.Name) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = n.String()
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// Reload reads the policy of every database again. A policy whose database half is installed is active when Reload
// returns. The old policy stays active while a new one waits for pgconsent migrate, and if the new one is invalid,
// which is an error.
func (e *Enforcer) Reload() error {
	var failed []error
	for _, name := range slices.Sorted(maps.Keys(e.databases)) {
		if err := e.databases[name].reload(); err != nil {
			failed = append(failed, fmt.Errorf("database %s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

// Sessions returns how many sessions of agents are open.
func (e *Enforcer) Sessions() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sessions)
}
