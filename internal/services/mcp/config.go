package mcp

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/air"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/policy"
)

// Config has the settings of the server. Verifier, Connect, Record, Databases and Service are required.
type Config struct {
	Verifier identity.Verifier
	// Connect opens a session of the caller's agent through the proxy, which enforces, records and limits it like any
	// client's. Notices from the connection are passed to the function.
	Connect func(context.Context, identity.Caller, func(*pgconn.Notice)) (*pgx.Conn, error)
	// Record writes the audit record of a call that runs no statement. If it returns an error, the caller gets this error
	// instead of the result.
	Record    func(context.Context, audit.Call) error
	Databases map[string]*Database // the databases, by their names in the configuration
	Service   *operations.Service  // the operations that HTTP and the console use, too
	Reminders *air.Tracker         // nil: interactions are not tracked

	Version            string
	Log                *slog.Logger  // nil: nothing is logged
	Timeout            time.Duration // how long a call may take; 0: 30 s
	IdleTimeout        time.Duration // how long a session may be unused before it ends; 0: 30 min
	TokenCheckInterval time.Duration // time between two checks whether the tokens of sessions are still valid; 0: 2 s
}

// Database has what the tools need for one database.
type Database struct {
	Registry *registry.Registry    // nil: no consent registry is configured
	Policy   func() *policy.Policy // returns the active policy; nil while agents are not served
	// Attributes returns the attributes that an agent has in the configuration.
	Attributes func(agent string) map[string]string
	Privacy    *privacy.Service // nil: no policy with memories can be used
}

func (c Config) withDefaults() (Config, error) {
	if c.Verifier == nil || c.Connect == nil || c.Record == nil || c.Databases == nil || c.Service == nil {
		return c, errors.New("mcp: Verifier, Connect, Record, Databases and Service are required")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = 30 * time.Minute
	}
	if c.TokenCheckInterval == 0 {
		c.TokenCheckInterval = 2 * time.Second
	}
	return c, nil
}
