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
	LastStatementAt                         time.Time // when the last statement began; zero: none did, or it is not known
	CountsStatements                        bool      // the session is an agent's, whose statements are counted
	Statements, Refused                     uint64
}

// Pool is the pool of connections to the server that the sessions of an agent share.
type Pool struct {
	Database, Agent          string
	Size                     int           // how many connections it may have
	Used, Idle               int           // connections that sessions have, and that none has
	Waiting                  int           // sessions that wait for a connection
	TakenCount, TimeoutCount uint64        // how often a session got a connection, and waited for too long
	WaitTime                 time.Duration // how long sessions have waited in all
}

// Statistic is the value of one series of a metric. Labels is as in the format of Prometheus, without braces.
type Statistic struct {
	Name, Labels string
	Value        float64
}

// Policy is what agents of a database are served by.
type Policy struct {
	Database         string
	IsServed         bool
	Refusal          string // why agents are refused; "": they are served
	Policy, Catalog  string // the active versions, or those that were active last; "": there are none
	MigrationPending bool   // a changed policy waits for pgconsent migrate
	SignedPath       bool   // statements may take the signed path
	Tables           int64  // the tables that the policy lists
	ObservedTables   int64  // the tables that it only observes
	VerifiedAt       time.Time
	PausedSince      time.Time // zero: new statements of agents do not wait
}

// SuspendedObject is an object whose statements are refused.
type SuspendedObject struct {
	Database, Kind, Name, Cause, Remedy string
}

// Service is the process that operators look at and act on. Its methods are called by many goroutines. An error of
// type *sqlstate.Error is told to the operator with its hint.
type Service interface {
	Sessions() []Session
	Pools() []Pool
	Statistics() ([]Statistic, error)
	Policies() []Policy
	Suspended() []SuspendedObject
	// Databases returns the names of the configured databases, sorted.
	Databases() []string

	// Reload reads again what can be changed while the process runs.
	Reload() error
	// Pause makes new statements of agents on a database wait until [Service.Resume]. It returns how many sessions of
	// agents have a statement or a transaction under way, which goes on, and false if the database was paused already.
	Pause(database string) (busyCount int, isChanged bool)
	// Resume lets them go on, and returns false if the database was not paused.
	Resume(database string) (isChanged bool)
	// Kill ends a session and cancels its statement. It returns the name of the database for the audit record.
	Kill(id string) (database string, err error)
}

// Config configures a console. Service is required.
type Config struct {
	Service    Service
	Version    string                     // what SHOW VERSION answers
	IsOperator func(operator string) bool // whether a user may still use the console; nil: always
	Record     func(audit.Call) error     // records a command before it is answered; nil: it is only logged
	Log        *slog.Logger               // nil: slog.Default()
}

// Console serves operators. Make one with [New].
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
