package enforce

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// The functions of this file tell the operator who is connected, which statements were refused, and which versions are
// active. They return names of agents and tables, and codes, but no statement text, no value and no row.

// OpenSession describes an open session for the operator.
type OpenSession struct {
	ID, Agent, Database string
	Remote              string
	Since               time.Time
	Last                time.Time // when the last execution began; zero: there was none
	Executed, Denied    uint64
}

// OpenSessions returns the open sessions, the oldest first.
func (e *Enforcer) OpenSessions() []OpenSession {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]OpenSession, 0, len(e.sessions))
	for s := range e.sessions {
		l := OpenSession{ID: s.info.ID, Agent: s.agent.Name, Database: s.db.cfg.Name, Remote: s.info.RemoteAddr,
			Since:    s.openedAt,
			Executed: s.executedCount.Load(), Denied: s.deniedCount.Load()}
		if lastExecution := s.lastExecution.Load(); lastExecution != 0 {
			l.Last = time.Unix(0, lastExecution)
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b OpenSession) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return out
}

// Denial is a statement that was refused.
type Denial struct {
	At                                         time.Time
	Session, Agent, Database                   string
	Tag, Fingerprint, SQLState, Reason, Policy string
	Tables                                     []string
}

// maxDenials is how many refused statements stay in memory; the audit log has all of them.
const maxDenials = 200

// denials is a ring buffer of the statements refused last.
type denials struct {
	mu     sync.Mutex
	newest [maxDenials]Denial
	total  uint64 // how many statements were refused since the process started
}

func (d *denials) add(one Denial) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.newest[d.total%maxDenials] = one
	d.total++
}

// Denials returns the statements refused last, the newest first, and how many were refused since the process started.
func (e *Enforcer) Denials() (list []Denial, total uint64) {
	d := &e.denials
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range min(d.total, maxDenials) {
		list = append(list, d.newest[(d.total-1-i)%maxDenials])
	}
	return list, d.total
}

// countExecution counts an execution for the operator's overview, and remembers it if it was refused.
func (s *session) countExecution(r audit.Decision, now time.Time, allowed bool) {
	s.lastExecution.Store(now.UnixNano())
	s.executedCount.Add(1)
	if allowed {
		return
	}
	s.deniedCount.Add(1)
	d := Denial{At: now, Session: r.Session, Agent: r.Agent, Database: r.Database, Tag: r.Tag,
		Fingerprint: r.Fingerprint, SQLState: r.SQLState,
		Reason: r.Reason, Policy: r.Policy}
	for _, t := range r.Tables {
		if !slices.Contains(d.Tables, t.Name) {
			d.Tables = append(d.Tables, t.Name)
		}
	}
	s.enforcer.denials.add(d)
}

// DatabaseStatus is what an operator sees of one database.
type DatabaseStatus struct {
	Database        string
	Served          bool
	Refusal         string // why the agents of the database are refused; "": they are served
	Policy, Catalog string // the active versions, or while agents are refused, the last active ones
	// Pending says that a changed policy waits for pgconsent migrate.
	Pending        bool
	Verified       time.Time // when the last successful probe began
	SignedPathOff  bool      // the signed path is off: every statement takes the row security path
	UntrackedTable string    // a table that attributes are computed from and whose changes no trigger records
	Observed       []string  // tables that the policy only observes
	Tables         int       // number of tables that the policy lists
}

// DatabaseStatuses returns the statuses of all databases, ordered by the databases' names.
func (e *Enforcer) DatabaseStatuses() []DatabaseStatus {
	var out []DatabaseStatus
	for _, name := range slices.Sorted(maps.Keys(e.databases)) {
		out = append(out, e.databases[name].status())
	}
	return out
}

// status returns what an operator sees of the database.
func (d *database) status() DatabaseStatus {
	s := DatabaseStatus{Database: d.cfg.Name}
	v, refused := d.current()
	if s.Served = refused == nil; !s.Served {
		s.Refusal = refused.Message
	}
	if v == nil {
		v = d.servingState.Load()
	}
	if v != nil {
		s.Verified = v.verified
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.Pending, s.SignedPathOff = d.pendingDocument != nil, d.signedPathOff
	if st := d.state; st != nil {
		s.Policy, s.Catalog, s.UntrackedTable = st.versions.Policy, st.versions.Catalog, st.untrackedTable
		for _, table := range st.policy.Tables() {
			s.Tables++
			if table.Observed != nil {
				s.Observed = append(s.Observed, table.Relation.Name.String())
			}
		}
	}
	return s
}

// ActivePolicy returns the active policy of a database, and the catalog snapshot for which it was compiled.
func (e *Enforcer) ActivePolicy(name string) (*policy.Policy, *catalog.Snapshot, error) {
	d, ok := e.databases[name]
	if !ok {
		return nil, nil, fmt.Errorf("database %s is not configured", name)
	}
	v, refused := d.current()
	if refused != nil {
		return nil, nil, refused
	}
	return v.state.policy, v.state.snapshot, nil
}
