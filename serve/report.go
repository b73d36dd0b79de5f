package serve

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/audit"
	"github.com/pgconsent/pgconsent/dsar"
	"github.com/pgconsent/pgconsent/dsar/access"
	"github.com/pgconsent/pgconsent/identity"
	"github.com/pgconsent/pgconsent/sqlstate"
)

// reporting holds one at a time: a report reads the whole audit.
var reporting = make(chan struct{}, 1)

// report makes the report to a data subject, with the login of the tables' owner.
func (s *Service) report(ctx context.Context, c identity.Caller, subject string, data bool) (*dsar.Report, error) {
	cfg := s.config.Load()
	db := cfg.Databases[c.Database]
	if db.Secrets.Migrate == "" {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "pgconsent has no login of the owner of the tables here").
			WithHint("Name the password of roles.migrate with secrets.migrate in the configuration; pgconsent dsar makes reports as well.")
	}
	p := s.enforcer.Policy(c.Database)
	if p == nil {
		return nil, sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonStale, "the database's agents are not served now").WithHint("Try again in a moment.")
	}
	select {
	case reporting <- struct{}{}:
		defer func() { <-reporting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	dsn, err := cfg.ConnString(db, db.Roles.Migrate, db.Secrets.Migrate)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream, "the database cannot be reached").WithHint("Try again in a moment.").WithCause(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	from := AccessSources(cfg, c.Database, nil)
	from.Conn, from.Policy, from.Registry = conn, p, s.Registry(c.Database)
	by := c.Name
	if c.Role == identity.Subject {
		by = c.Subject
	}
	return access.Make(ctx, from, access.Request{Subject: subject, By: by, Via: "http", Format: "json", Data: data})
}

// decisions are the newest records of decisions on a database before a number (0: any), newest first.
func (s *Service) decisions(ctx context.Context, database string, before uint64, most int) ([]audit.Record, error) {
	cfg := s.config.Load()
	if s.audit.Mode() == audit.Off {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "no audit is kept here").WithHint("audit: { mode: strict, file: audit/ }")
	}
	want := func(r audit.Record) bool {
		if r.Kind != audit.KindDecision || before != 0 && r.Seq >= before || ctx.Err() != nil {
			return false
		}
		var of struct {
			Database string `json:"database"`
		}
		return json.Unmarshal(r.Line, &of) == nil && of.Database == database
	}
	var out []audit.Record
	err := AuditSource(ctx, cfg, cfg.Audit, false, func(records audit.Source) error {
		_, err := audit.Newest(records, most, want, func(r audit.Record) error {
			if err := ctx.Err(); err != nil || !want(r) {
				return err
			}
			r.Line = slices.Clone(r.Line)
			if out = append(out, r); len(out) > most {
				out = out[1:]
			}
			return nil
		})
		return err
	})
	slices.Reverse(out)
	return out, err
}
