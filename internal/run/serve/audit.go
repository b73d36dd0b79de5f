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

// openAudit opens the log of a configuration with its key, and makes the key where there is none yet.
func openAudit(c *config.Config, observer audit.Observer, log *slog.Logger) (*audit.Log, error) {
	o, err := auditConfig(c, c.Audit)
	if err != nil {
		return nil, err
	}
	o.Observer, o.Log = observer, log
	if o.Mode != audit.Off {
		if o.Key, err = auditKey(c.Audit, o.Store); err != nil {
			return nil, err
		}
	}
	return audit.Open(o)
}

// openReports opens the log of reports about persons, beside that of the audit. The zero key authenticates nothing.
func openReports(c *config.Config, key audit.Key) (*audit.Log, error) {
	o, err := auditConfig(c, c.Audit.Reports())
	if err != nil {
		return nil, err
	}
	if o.Key = key; key.ID() == "" {
		o.Anchor = ""
	}
	return audit.Open(o)
}

// auditConfig configures one of the logs of a configuration, without its key.
func auditConfig(c *config.Config, a config.Audit) (audit.Config, error) {
	o := audit.Config{Mode: audit.Mode(a.Mode), Anchor: a.Anchor}
	o.MaxSegment, o.MaxAge, o.Retention = a.Sizes()
	if o.Mode == audit.Off || a.Sink != config.SinkDatabase {
		o.Dir = a.File
		return o, nil
	}
	connect, err := auditConnection(c, a)
	if err != nil {
		return o, err
	}
	o.Store = pgchain.New(connect, a.Database, a.Chain)
	return o, nil
}

// auditKey loads the key. Where it is missing and there are no records that need it, it makes one. store is nil where
// records are in files.
func auditKey(a config.Audit, store audit.Store) (audit.Key, error) {
	if store == nil {
		return audit.EnsureKey(a.Key, audit.Folder(a.File))
	}
	key, err := audit.LoadKey(a.Key)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	// Whether there are records has to be known first.
	if err := store.Take(); err != nil {
		return key, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonAudit,
			"the audit's key %s is not there, and it cannot be told whether records need it: %v", a.Key, err).
			WithHint("Put the key back, or start once the database of the audit can be reached: serve makes a key " +
				"where there are no records yet.")
	}
	return audit.EnsureKey(a.Key, store)
}

// auditConnection is the connection to the database that has the records of a configuration.
func auditConnection(c *config.Config, a config.Audit) (*pgx.ConnConfig, error) {
	db := c.Databases[a.Database]
	dsn, err := c.ConnString(db, db.Roles.Control, db.Secrets.Control)
	if err != nil {
		return nil, err
	}
	return pgx.ParseConfig(dsn)
}
