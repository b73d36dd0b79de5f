package operations

import (
	"context"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
)

// Overview is the state of the sidecar, for an operator. It names agents, tables and error codes, but no row, person or
// statement.
type Overview struct {
	At          time.Time
	Started     time.Time
	Enforcement string // the setting enforcement: "auto" or "both"
	TLS         bool
	Databases   []DatabaseState
	Sessions    []enforce.OpenSession
	Denials     []enforce.Denial // the newest denials
	Denied      uint64           // how many statements the proxy has refused since its start
	Audit       AuditState
}

// DatabaseState is the state of one database.
type DatabaseState struct {
	enforce.DatabaseStatus
	Diagnosis Diagnosis
	Sweep     *SweepState // nil: no consent registry is configured
}

// Diagnosis is the result of the last run of the checks of pgconsent doctor.
type Diagnosis struct {
	At      time.Time // when the checks ran; zero: they have not run yet
	Problem string    // why agents are not served; "": they are served
	Found   []doctor.Finding
}

// AuditState is the state of the audit.
type AuditState struct {
	Mode     string
	Problem  string // why audit records cannot be written; "": they can be written
	Database string // database that has the audit records; "": they are in files
	Folder   string
	Segments int
	Bytes    int64
}

// SweepState is the result of the last sweep, which removes expired data.
type SweepState struct {
	Interval            time.Duration
	At                  time.Time // when it ran; zero: not since the start of the process
	Deleted, Anonymised int64
	Recorded            map[string]int
	Failures            int
	Problem             string
	Busy                bool // another proxy was sweeping at that time
}

// Operations returns the overview. Only operators may call it.
func (o *AdminService) Operations(ctx context.Context, c identity.Caller) (Overview, error) {
	if err := RequireRole(c, identity.Operator); err != nil {
		return Overview{}, err
	}
	if o.Overview == nil {
		return Overview{}, newNotFoundError("overview")
	}
	return o.Overview(ctx), nil
}

func newNotFoundError(kind string) error {
	return sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonInternal, "there is no such %s", kind)
}
