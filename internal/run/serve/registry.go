package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// OpenRegistry returns the consent registry of a configured database. The registry connects with the control role when
// it is first used.
func OpenRegistry(cfg *config.Config, database string) (*registry.Registry, error) {
	if cfg.Consent == nil {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
			"no consent registry is configured in %s", cfg.Path).
			WithHint("Add \"consent: {}\" to the configuration and run pgconsent migrate.")
	}
	keys, err := registry.LoadKeys(cfg.Consent.Key)
	if err != nil {
		return nil, err
	}
	db := cfg.Databases[database]
	dsn, err := cfg.ConnString(db, db.Roles.Control, db.Secrets.Control)
	if err != nil {
		return nil, err
	}
	connect, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("database %s: control connection: %w", database, err)
	}
	return registry.Open(registry.Config{Connect: connect, Database: database, Keys: keys, Anchor: cfg.Consent.Anchor,
		Settings: ConsentSettings(cfg.Consent)})
}

// InitRegistry creates the key of the consent registry if a registry is configured and the key file does not exist. It
// writes the anchor file while the registry is empty. conn is the connection of pgconsent migrate, which has just
// installed the registry.
func InitRegistry(ctx context.Context, cfg *config.Config, conn *pgx.Conn, database string) (created bool, err error) {
	if cfg.Consent == nil {
		return false, nil
	}
	// If the registry has records, a new key would not help: only the lost key can verify them.
	if _, err := os.Stat(cfg.Consent.Key); errors.Is(err, os.ErrNotExist) {
		var records bool
		if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pgconsent.consent_record)").Scan(&records); err != nil {
			return false, err
		}
		if records {
			return false, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
				"the database has consent records, and their key %s is not there", cfg.Consent.Key).
				WithHint("Restore it from your copy. A new key does not verify what the old one has signed.")
		}
	}
	if created, err = registry.MakeKey(cfg.Consent.Key); err != nil {
		return created, err
	}
	keys, err := registry.LoadKeys(cfg.Consent.Key)
	if err != nil {
		return created, err
	}
	return created, registry.AnchorEmpty(ctx, conn, keys, cfg.Consent.Anchor, database)
}

// checkAcknowledged returns an error if the consent registry lacks records that this proxy has acknowledged before.
// This can happen after a restore of a backup, and the lost records may be withdrawals.
func checkAcknowledged(ctx context.Context, conn *pgx.Conn, c *config.Config, database string) error {
	if c.Consent == nil {
		return nil
	}
	keys, err := registry.LoadKeys(c.Consent.Key)
	if err != nil {
		return err
	}
	return registry.CheckAcknowledged(ctx, conn, keys, c.Consent.Anchor, database)
}

// ConsentSettings returns the settings of package consent that the section consent stands for.
func ConsentSettings(c *config.Consent) consent.Settings {
	const day = 24 * time.Hour
	return consent.Settings{
		TemporaryDuration: time.Duration(c.DurationDays) * day, WarningTime: time.Duration(c.WarningDays) * day,
		ReviewTime: c.ReviewDuration(),
		NoRenewal:  !*c.AutoRenewal, RequireExplicit: *c.RequireExplicit, NoDecay: !*c.Decay, Controller: c.Controller,
	}
}
