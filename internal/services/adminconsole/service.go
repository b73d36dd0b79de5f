package adminconsole

import (
	"log/slog"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/audit"
)

// Session is a client's session.
type Session struct {
	ID, Kind, User, Database, Client, State string
	StartedAt                               time.Time
	LastStatementAt                         time.Time // when the last statement began; zero: none or not known
	CountsStatements                        bool      // the session is an agent's; others' are not counted
	Statements, Refused                     uint64
}

// Pool is the pool of connections to PostgreSQL that the sessions of one agent share.
type Pool struct {
	Database, Agent          string
	Size                     int           // the largest number of connections
	Used, Idle               int           // numbers of connections that a session uses, and that no session uses
	Waiting                  int           // number of sessions that wait for a connection
	TakenCount, TimeoutCount uint64        // how often a session got a connection, and how often one gave up waiting
	WaitTime                 time.Duration // sum of the times for which sessions have waited
}

// Statistic is one value of a metric. Labels are written as in the text format of Prometheus, without braces.
type Statistic struct {
	Name, Labels string
	Value        float64
}

// Policy is the state of the policy by which the agents of a database are served.
type Policy struct {
	Database         string
	IsServed         bool
	Refusal          string // why agents are refused; "": they are served
	Policy, Catalog  string // versions of the policy and of the catalog that are active, or were last; "": none were
	MigrationPending bool   // pgconsent migrate must install the changed policy first
	SignedPath       bool   // statements may use the signed views instead of row security
	Tables           int64  // number of tables that the policy lists
	ObservedTables   int64  // number of tables that the policy observes only
	VerifiedAt       time.Time
	PausedSince      time.Time // since when new statements of agents wait; zero: they do not wait
}

// SuspendedObject is an object of the database; statements that use it are refused.
type SuspendedObject struct {
	Database, Kind, Name, Cause, Remedy string
}

// Service is the process whose state operators see and on which they act. Several goroutines may call its methods at
// the same time. The operator gets the text of an error, and its hint if it is a *sqlstate.Error.
type Service interface {
	Sessions() []Session
	Pools() []Pool
	Statistics() ([]Statistic, error)
	Policies() []Policy
	Suspended() []SuspendedObject
	// Databases returns the names of the configured databases, sorted.
	Databases() []string

	// Reload reads again the files that may be changed while the process runs.
	Reload() error
	// Pause makes new statements of agents on a database wait until [Service.Resume] is called. Statements and
	// transactions that have begun go on: busyCount is the number of agents' sessions that have one. isChanged is false if
	// the database was paused before.
	Pause(database string) (busyCount int, isChanged bool)
	// Resume lets the waiting statements of a database run. It returns false if the database was not paused.
	Resume(database string) (isChanged bool)
	// Kill cancels the statement of a session and ends the session. It returns the name of the session's database for the
	// audit record.
	Kill(id string) (database string, err error)
}

// Config has the settings of a console. Service is required.
type Config struct {
	Service    Service
	Version    string                     // the answer to SHOW VERSION
	IsOperator func(operator string) bool // reports whether a user may still use the console; nil: every user may
	Record     func(audit.Call) error     // writes the audit record before the answer; nil: only the log
	Log        *slog.Logger               // nil: slog.Default()
}

// Console serves operators. [New] makes one.
type Console struct{ Config }

// New returns a console.
func New(c Config) *Console {
	if c.IsOperator == nil {
		c.IsOperator = func(string) bool { return true }
	}
	if c.Record == nil {
		c.Record = func(audit.Call) error { return nil }
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Console{c}
}
