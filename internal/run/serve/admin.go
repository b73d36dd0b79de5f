package serve

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/record/dsar/access"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// adminService returns the service with the operations of subjects, owners and operators. The operations that read
// hidden rows connect with the role that owns the tables, each time anew.
func (s *Service) adminService(service *operations.Service) *operations.AdminService {
	o := operations.AdminService{Service: service, ActivePolicy: s.enforcer.ActivePolicy, Overview: s.operatorOverview}
	login := func(role func(*config.Database) (string, string)) func(context.Context, string) (*pgx.Conn, error) {
		return func(ctx context.Context, database string) (*pgx.Conn, error) {
			cfg := s.config.Load()
			db := cfg.Databases[database]
			if db == nil {
				return nil, operations.NewNoOwnerLoginError()
			}
			name, secret := role(db)
			if secret == "" {
				return nil, operations.NewNoOwnerLoginError()
			}
			dsn, err := cfg.ConnString(db, name, secret)
			if err != nil {
				return nil, err
			}
			conn, err := pgx.Connect(ctx, dsn)
			if err != nil {
				return nil, sqlstate.LoginFailedError(name, err)
			}
			return conn, nil
		}
	}
	o.ConnectOwner = login(func(db *config.Database) (string, string) { return db.Roles.Migrate, db.Secrets.Migrate })
	o.ConnectAgent = login(func(db *config.Database) (string, string) { return db.Roles.Agent, db.Secrets.Agent })
	o.Agents = func(database string) map[string]map[string]string {
		out := map[string]map[string]string{}
		for name, a := range s.config.Load().Agents {
			if a.Database == database {
				out[name] = a.Attributes
			}
		}
		return out
	}
	o.AgentRole = func(database string) string { return s.config.Load().Databases[database].Roles.Agent }
	o.ReportSources = func(database string) access.ReportSources { return AccessSources(s.config.Load(), database, nil) }
	return operations.NewAdminService(o)
}

// operatorOverview returns the state of the process, for operators.
func (s *Service) operatorOverview(context.Context) operations.Overview {
	cfg := s.config.Load()
	v := operations.Overview{At: time.Now(), Started: s.startedAt, Enforcement: string(cfg.Enforcement),
		TLS: s.certificate.Load() != nil, Sessions: s.enforcer.OpenSessions()}
	v.Denials, v.Denied = s.enforcer.Denials()
	for _, status := range s.enforcer.DatabaseStatuses() {
		d := operations.DatabaseState{DatabaseStatus: status, Sweep: s.sweepers.lastSweep(status.Database)}
		if db := s.router.verifiers[status.Database]; db != nil {
			if e := db.examination.Load(); e != nil {
				d.Diagnosis = *e
			}
		}
		v.Databases = append(v.Databases, d)
	}
	v.Audit = operations.AuditState{Mode: string(s.audit.Mode())}
	if err := s.audit.WriteFailure(); err != nil {
		v.Audit.Problem = err.Error()
	}
	switch {
	case cfg.Audit.Mode == string(audit.ModeOff):
	case cfg.Audit.Sink == config.SinkDatabase:
		v.Audit.Database = cfg.Audit.Database
	default:
		v.Audit.Folder = cfg.Audit.File
		segments, _ := filepath.Glob(filepath.Join(cfg.Audit.File, "*.jsonl"))
		for _, path := range segments {
			if info, err := os.Stat(path); err == nil {
				v.Audit.Segments, v.Audit.Bytes = v.Audit.Segments+1, v.Audit.Bytes+info.Size()
			}
		}
	}
	return v
}
