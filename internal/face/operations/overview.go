package operations

import (
	"context"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce"
	"github.com/pgconsent/pgconsent/internal/face/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
)

// Overview is the state of the sidecar for an operator. It names agents, tables and codes, and has nothing of a row, a
// person or a statement.
type Overview struct {
	At          time.Time
	Started     time.Time
	Enforcement string // both | doors
	TLS         bool
	Databases   []DatabaseState
	Sessions    []enforce.OpenSession
	Denials     []enforce.Denial // the newest
	Denied      uint64           // since the start
	Audit       AuditState
}

// DatabaseState is the state of one database.
type DatabaseState struct {
	enforce.DatabaseStatus
	Diagnosis Diagnosis
	Sweep     *SweepState // nil: no consent registry is configured
}

// Diagnosis is the result of the last run of the doctor's checks.
type Diagnosis struct {
	At      time.Time // zero: there was none
	Problem string    // why agents are not served; "": they are
	Found   []doctor.Finding
}

// AuditState is the state of the audit.
type AuditState struct {
	Mode     string
	Problem  string // why records cannot be written; "": they can
	Database string // the database that has the records; "": they are in files
	Folder   string
	Segments int
	Bytes    int64
}

// SweepState is the result of the last sweep.
type SweepState struct {
	Every               time.Duration
	At                  time.Time // zero: not since the start
	Deleted, Anonymised int64
	Recorded            map[string]int
	Failures            int
	Problem             string
	Busy                bool // another proxy was sweeping
}

// Operations returns the overview: to operators.
func (o *AdminService) Operations(ctx context.Context, c identity.Caller) (Overview, error) {
	if err := RequireRole(c, identity.Operator); err != nil {
		return Overview{}, err
	}
	if o.Overview == nil {
		return Overview{}, notFound("overview")
	}
	return o.Overview(ctx), nil
}

func notFound(what string) error {
	return sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonInternal, "there is no such %s", what)
}
