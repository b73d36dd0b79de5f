// Package enforce is the one place that identifies an agent, decides and rewrites its statements, seals its sessions
// and records what it did.
//
// Guarantees. A statement is allowed only under a policy whose database half is the one installed in the database, over
// a catalog that was compared with the server's within Config.StaleAfter, or that the database itself holds each
// statement to; when neither can be said, every statement is refused until it can (DESIGN invariant I1). What is
// allowed carries the text of package rewrite and nothing else. Each decision has an audit record before it can be
// released (I8). An agent that is disabled or whose attributes change loses its sessions at once.
//
// Not here: the wire (package proxy, which meets this one in package verdict), the predicates (packages predicate and
// rls) and the checks of the database itself, which [Config.Check] is given to run.
//
// Wiring. The serving command makes a proxy.Route of what [Enforcer.Agent] returns:
//
//	access, ok := enforcer.Agent(user, database)
//	if !ok { … owner or refused … }
//	return proxy.Route{
//		Kind:         proxy.Agent,
//		Upstream:     proxy.Upstream{ … , Params: access.Params},
//		Credential:   access.Credential,
//		CheckSetting: access.CheckSetting,
//		Open: func(ctx context.Context, info proxy.SessionInfo) (verdict.Decider, error) {
//			return access.Open(ctx, enforce.SessionInfo(info))
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
	Agents    []Agent // replaced by [Enforcer.SetAgents]
	Audit     *audit.Log
	Metrics   *metrics.Metrics // nil: nothing is counted
	Log       *slog.Logger     // nil: slog.Default()
	AIR       *air.Tracker     // nil: nobody is reminded

	// Check is asked about a database each time its catalog or what is installed in it changed, and every ten seconds.
	// An error refuses the database's agents until it is gone; a [SignedPathOff] leaves them the row security door. Nil:
	// only the hash of what is installed is compared.
	Check func(ctx context.Context, conn *pgx.Conn, t Target) error

	Refresh    time.Duration // between two looks at a database; 0: 2 s
	CacheBytes uint64        // bound of the rewrite cache; 0: 64 MiB

	Mode        rewrite.Mode // rewrite.Both or rewrite.Doors; the others are for tests
	RowSecurity rls.Mode     // rls.Enforce but in tests

	// StaleAfter is how long agents are served by what a look found while no other succeeds; 0: 60 s. While one is
	// under way, and the database tells of DDL, there is no such limit: each statement asks whether the catalogs are
	// still those.
	StaleAfter time.Duration
}

// Database is one database that agents may use.
type Database struct {
	Name       string   // as clients ask for it
	Policy     string   // file or folder
	Control    string   // connection string of the control role
	SearchPath []string // pinned, without pg_catalog

	Agent string // connection string of the agent role, on which what is observed is compared; "": nothing is

	// "": pgconsent_agent, pgconsent_control, pgconsent_reader, pgconsent_rows
	AgentRole, ControlRole, ReaderRole, RowsRole string
}

// Target is what [Config.Check] looks at.
type Target struct {
	Database Database
	Policy   *policy.Policy
	Snapshot *catalog.Snapshot
	Plan     *rls.Plan
}

const (
	// staleAfter is Config.StaleAfter where nothing is said.
	staleAfter = time.Minute
	// checkAgain is how long the answer of Check holds while nothing is known to have changed.
	checkAgain = 10 * time.Second
	// reloadTimeout bounds the look that a policy is put in force with while somebody waits for it.
	reloadTimeout = time.Minute
	// compareTimeout bounds a comparison of what is observed.
	compareTimeout = 20 * time.Second
	// connectTimeout bounds the connection that a look is made on, and silence is how long the server's machine may
	// say nothing. A look itself has no limit: it goes on however slow the server is, and beginning anew would cost
	// it more.
	connectTimeout = time.Minute
	silence        = 15 * time.Second
)

// Enforcer decides for all agents of one process.
type Enforcer struct {
	room atomic.Int64 // for how many connections of ordinary roles the server has room; 0: not known yet

	cfg       Config
	databases map[string]*database
	cache     *cache
	limiters  *limiters
	quotas    *quotas
	epochs    atomic.Uint64 // numbers the states of all databases

	mu       sync.Mutex
	agents   map[string]Agent
	sessions map[*session]struct{}

	denials denials

	stop context.CancelFunc
	wait sync.WaitGroup
}

// New loads every policy, looks at every database and starts to watch them. A policy that does not load, and a database
// whose walls cannot be vouched for, are errors. A database that cannot be reached is none: its agents are refused
// until it can.
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
	if cfg.Refresh == 0 {
		cfg.Refresh = 2 * time.Second
	}
	if cfg.StaleAfter == 0 {
		cfg.StaleAfter = staleAfter
	}
	if cfg.CacheBytes == 0 {
		cfg.CacheBytes = 64 << 20
	}
	e := &Enforcer{
		cfg: cfg, databases: map[string]*database{}, sessions: map[*session]struct{}{}, agents: map[string]Agent{},
		limiters: newLimiters(),
		quotas:   newQuotas(),
	}
	var err error
	if e.cache, err = newCache(cfg.CacheBytes); err != nil {
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
		if err := d.refresh(ctx); err != nil && !unreachable(err) {
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
		e.wait.Go(func() { d.watch(watch) })
		e.wait.Go(func() { d.listen(watch) })
		if d.compares.queue != nil {
			e.wait.Go(func() { d.compareAll(watch) })
		}
	}
	return e, nil
}

// Close stops watching. Sessions are the proxy's to end; their statements are refused once the last look is too old.
func (e *Enforcer) Close() {
	e.stop()
	e.wait.Wait()
	e.closeConnections()
	e.cache.close()
}

func (e *Enforcer) closeConnections() {
	for _, d := range e.databases {
		d.disconnect()
	}
}

// Ready returns nil when the agents of every database are served by what was found within StaleAfter, and otherwise
// why not.
func (e *Enforcer) Ready() error {
	var failed []error
	for _, name := range slices.Sorted(maps.Keys(e.databases)) {
		v, err := e.databases[name].current()
		if err == nil && v.stale(e.cfg.StaleAfter) {
			err = lost(nil)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("database %s: %w", name, err))
		}
	}
	if err := e.cfg.Audit.Broken(); err != nil {
		failed = append(failed, fmt.Errorf("audit: %w", err))
	}
	return errors.Join(failed...)
}

// Degraded says what of databases whose agents are served they do not get: suspended tables, the signed path. It waits
// for no look.
func (e *Enforcer) Degraded() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(e.databases)) {
		v, refused := e.databases[name].current()
		if refused != nil {
			continue
		}
		if u := v.state.suspended; !u.none() {
			out = append(out, fmt.Sprintf("database %s: suspended: %s (changed, or not protected: %s)", name,
				listed(slices.Concat(slices.Collect(maps.Keys(u.relations)), u.replaced)),
				listed(slices.Concat(u.altered, u.unfit, u.replaced))))
		}
		if v.shut != "" {
			out = append(out, fmt.Sprintf("database %s: the signed path is shut: %s", name, v.shut))
		}
	}
	return out
}

// listed are names in their order, each once.
func listed(names []catalog.Name) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = n.String()
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// Reload reads every policy again. One whose database half is installed is in force when Reload returns; one that needs
// pgconsent migrate waits for it, and one that is wrong is an error: in both cases the old one stays.
func (e *Enforcer) Reload() error {
	var failed []error
	for _, name := range slices.Sorted(maps.Keys(e.databases)) {
		if err := e.databases[name].reload(); err != nil {
			failed = append(failed, fmt.Errorf("database %s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

// Sessions is how many sessions of agents are open.
func (e *Enforcer) Sessions() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sessions)
}
