package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/record/audit/pgchain"
	"github.com/pgconsent/pgconsent/internal/record/dsar/access"
	"github.com/pgconsent/pgconsent/internal/run/config"
)

// AccessSources returns the sources of a report about a person: the audit logs of the configuration, audit logs of
// other proxies in the given folders, and the log in which the report itself is recorded. The caller adds the
// connection, the policy and the registry.
func AccessSources(cfg *config.Config, database string, folders []string) access.ReportSources {
	out := access.ReportSources{Database: database, AuditKey: cfg.Audit.Key}
	isRecorded := cfg.Audit.Mode != string(audit.ModeOff)
	out.EachLog = func(ctx context.Context, f func(access.AuditLog) error) error {
		if isRecorded {
			if err := forEachLog(ctx, cfg, f); err != nil {
				return err
			}
		}
		for _, folder := range folders {
			if err := f(access.AuditLog{Name: folder, From: audit.Folder(folder)}); err != nil {
				return err
			}
		}
		return nil
	}
	if isRecorded {
		out.OpenReportLog = func(key audit.Key) (*audit.Log, string, error) {
			log, err := openReports(cfg, key)
			return log, nameInReport(cfg.Audit.ReportLog()), err
		}
	}
	return out
}

// LogName returns the name of an audit log for operators: its folder, or its chain and database.
func LogName(a config.Audit) string {
	if a.Sink == config.SinkDatabase {
		return fmt.Sprintf("chain %s of database %s", a.Chain, a.Database)
	}
	return a.File
}

// nameInReport returns the name of an audit log for a report. It leaves out the path of the folder, which the reader of
// the report need not know.
func nameInReport(a config.Audit) string {
	if a.Sink == config.SinkDatabase {
		return LogName(a)
	}
	return filepath.Base(a.File)
}

// forEachLog calls f with each audit log of the configuration: the one in files, or all chains in the database,
// including those of other proxies.
func forEachLog(ctx context.Context, cfg *config.Config, f func(access.AuditLog) error) error {
	if cfg.Audit.Sink != config.SinkDatabase {
		if _, err := os.Stat(cfg.Audit.File); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return f(access.AuditLog{Name: nameInReport(cfg.Audit), From: audit.Folder(cfg.Audit.File), IsOfThisProcess: true,
			Anchor: cfg.Audit.Anchor})
	}
	return withAuditConnection(ctx, cfg, cfg.Audit, func(conn *pgx.Conn) error {
		chains, err := pgchain.ListChains(ctx, conn)
		if err != nil {
			return err
		}
		for _, chain := range chains {
			section := cfg.Audit
			if section.Chain = chain; section.IsReportLog() {
				continue
			}
			if err := pgchain.NewReader(ctx, conn, section.Database, chain).InSnapshot(func(from audit.Source) error {
				log := access.AuditLog{Name: LogName(section), From: from}
				if chain == cfg.Audit.Chain {
					log.IsOfThisProcess, log.Anchor = true, cfg.Audit.Anchor
				}
				return f(log)
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// AuditSource calls f with the records of an audit log, in a folder or in a database. From a database, f gets the
// records of one snapshot, or, if isLive is true, also new records as they are written.
func AuditSource(ctx context.Context, c *config.Config, a config.Audit, isLive bool, f func(audit.Source) error) error {
	if a.Sink != config.SinkDatabase {
		return f(audit.Folder(a.File))
	}
	return withAuditConnection(ctx, c, a, func(conn *pgx.Conn) error {
		from := pgchain.NewReader(ctx, conn, a.Database, a.Chain)
		if isLive {
			return f(from)
		}
		return from.InSnapshot(f)
	})
}

// MissingAuditGuards returns the triggers and rights that should prevent changes of audit records in a database, but
// are missing. It returns none if the audit is in files.
func MissingAuditGuards(ctx context.Context, c *config.Config, a config.Audit) (missing []string, err error) {
	if a.Sink != config.SinkDatabase {
		return nil, nil
	}
	err = withAuditConnection(ctx, c, a, func(conn *pgx.Conn) error {
		missing, err = pgchain.MissingGuards(ctx, conn)
		return err
	})
	return missing, err
}

// withAuditConnection connects with the control role to the database that has the audit records, and calls f.
func withAuditConnection(ctx context.Context, c *config.Config, a config.Audit, f func(*pgx.Conn) error) error {
	connect, err := auditConnection(c, a)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, connect)
	if err != nil {
		return fmt.Errorf("database %s, which has the records of the audit: %w", a.Database, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return f(conn)
}

// TryAudit checks whether the database of an audit log would accept a record now. It returns nil if so, and otherwise
// the reason.
func TryAudit(ctx context.Context, c *config.Config, a config.Audit) error {
	return withAuditConnection(ctx, c, a, func(conn *pgx.Conn) error { return pgchain.TryAppend(ctx, conn) })
}
