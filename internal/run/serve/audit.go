package serve

import (
	"errors"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/record/audit/pgchain"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// openAudit opens the audit log of a configuration. It creates the log's key if there is none yet.
func openAudit(cfg *config.Config, observer audit.Observer, log *slog.Logger) (*audit.Log, error) {
	o, err := auditConfig(cfg, cfg.Audit)
	if err != nil {
		return nil, err
	}
	o.Observer, o.Log = observer, log
	if o.Mode != audit.ModeOff {
		if o.Key, err = loadAuditKey(cfg.Audit, o.Store); err != nil {
			return nil, err
		}
	}
	return audit.Open(o)
}

// openReports opens the log in which reports about persons are recorded. With the zero key, its records are not
// authenticated.
func openReports(c *config.Config, key audit.Key) (*audit.Log, error) {
	o, err := auditConfig(c, c.Audit.ReportLog())
	if err != nil {
		return nil, err
	}
	if o.Key = key; key.ID() == "" {
		o.AnchorFile = ""
	}
	return audit.Open(o)
}

// auditConfig returns the settings of one of the two logs, without the key.
func auditConfig(cfg *config.Config, section config.Audit) (audit.Config, error) {
	o := audit.Config{Mode: audit.Mode(section.Mode), AnchorFile: section.Anchor}
	o.MaxSegment, o.MaxSegmentAge, o.Retention = section.SegmentBounds()
	if o.Mode == audit.ModeOff || section.Sink != config.SinkDatabase {
		o.Dir = section.File
		return o, nil
	}
	connect, err := auditConnection(cfg, section)
	if err != nil {
		return o, err
	}
	o.Store = pgchain.New(connect, section.Database, section.Chain)
	return o, nil
}

// loadAuditKey loads the key of the audit. If the file does not exist, it creates a key, but only if there are no
// records yet that need the lost key. store is nil if records are in files.
func loadAuditKey(section config.Audit, store audit.Store) (audit.Key, error) {
	if store == nil {
		return audit.EnsureKey(section.Key, audit.Folder(section.File))
	}
	key, err := audit.LoadKey(section.Key)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	// Whether there are records can only be read once this process holds the chain.
	if err := store.LockChain(); err != nil {
		return key, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonAudit,
			"the audit's key %s is not there, and it cannot be told whether records need it: %v", section.Key, err).
			WithHint("Put the key back, or start once the database of the audit can be reached: serve makes a key " +
				"where there are no records yet.")
	}
	return audit.EnsureKey(section.Key, store)
}

// auditConnection returns the settings of a connection with the control role to the database that has the audit
// records.
func auditConnection(c *config.Config, a config.Audit) (*pgx.ConnConfig, error) {
	db := c.Databases[a.Database]
	dsn, err := c.ConnString(db, db.Roles.Control, db.Secrets.Control)
	if err != nil {
		return nil, err
	}
	return pgx.ParseConfig(dsn)
}
