package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// targetDatabase is a configured database with a connection to it.
type targetDatabase struct {
	name            string
	config          *config.Database
	conn            *pgx.Conn
	autoPath        bool // the configuration has enforcement: auto
	agentsByName    map[string]*config.Agent
	tokenAttributes []string // the names of the attributes that come from tokens
}

// attributesFromTokens returns the names of the attributes that tokens provide, for agents with auth: jwt.
func attributesFromTokens(c *config.Config) []string {
	if c.JWT == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.JWT.Claims.Attributes))
}

// loginRole says with which role a command connects.
type loginRole int

const (
	asMigrate loginRole = iota
	asControl
)

// chooseDatabases returns the names of the databases that a command works on: the named one, or all configured ones.
func chooseDatabases(c *config.Config, name string) ([]string, error) {
	databaseNames := slices.Sorted(maps.Keys(c.Databases))
	if name == "" {
		return databaseNames, nil
	}
	if _, ok := c.Databases[name]; !ok {
		return nil, usageError{fmt.Errorf("there is no database %q in the configuration: it has %s",
			name, strings.Join(databaseNames, ", "))}
	}
	return []string{name}, nil
}

// forEachDatabase connects to the chosen databases one after the other, and calls f with each.
func (s *session) forEachDatabase(c *config.Config, name string, loginAs loginRole,
	f func(t targetDatabase) error) error {
	names, err := chooseDatabases(c, name)
	if err != nil {
		return err
	}
	for _, n := range names {
		db := c.Databases[n]
		role, secret := db.Roles.Migrate, db.Secrets.Migrate
		if loginAs == asControl {
			role, secret = db.Roles.Control, db.Secrets.Control
		}
		if err := s.withConnection(c, db, role, secret, func(conn *pgx.Conn) error {
			return f(targetDatabase{n, db, conn, c.Enforcement == config.EnforceAuto, c.Agents, attributesFromTokens(c)})
		}); err != nil {
			return fmt.Errorf("database %s: %w", n, err)
		}
	}
	return nil
}

func (s *session) withConnection(c *config.Config, db *config.Database, role, secret string, f func(*pgx.Conn) error) error {
	dsn, err := c.ConnString(db, role, secret)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(s.ctx, dsn)
	if err != nil {
		if loginErr := sqlstate.LoginFailedError(role, err); loginErr.Code == sqlstate.TooManyConnections {
			return loginErr
		}
		return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream,
			"cannot log in to the server as %s: %v", role, err).
			WithHint("upstream, roles and secrets of the configuration say how. Is the server running, and has " +
				"pgconsent migrate made the roles?")
	}
	defer conn.Close(context.WithoutCancel(s.ctx))
	return f(conn)
}

// compiledPolicy is a policy compiled for a database.
type compiledPolicy struct {
	policy   *policy.Policy
	snapshot *catalog.Snapshot
	plan     *rls.Plan
}

// compile compiles the policy in the form in which pgconsent migrate would install it.
func (s *session) compile(t targetDatabase) (compiledPolicy, error) {
	snap, err := pgcatalog.Load(s.ctx, t.conn, t.config.SearchPath)
	if err != nil {
		return compiledPolicy{}, err
	}
	return t.compile(snap)
}

// compileServedPolicy compiles the policy in the form in which serve uses it: without columns that were added to tables
// since pgconsent migrate, unless the policy names them.
func (s *session) compileServedPolicy(t targetDatabase) (compiledPolicy, error) {
	snap, err := pgcatalog.Load(s.ctx, t.conn, t.config.SearchPath)
	if err != nil {
		return compiledPolicy{}, err
	}
	waitingColumns, err := migrations.ReadWaitingColumns(s.ctx, t.conn)
	if err != nil {
		return compiledPolicy{}, err
	}
	servedSnapshot, _ := snap.WithoutColumns(waitingColumns)
	policyBuild, err := t.compile(servedSnapshot)
	if err != nil && servedSnapshot != snap {
		return t.compile(snap)
	}
	return policyBuild, err
}

func (t targetDatabase) compile(snap *catalog.Snapshot) (compiledPolicy, error) {
	doc, err := policy.Load(t.config.Policy)
	if err != nil {
		return compiledPolicy{}, err
	}
	p, err := policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
	if err != nil {
		return compiledPolicy{snapshot: snap}, err
	}
	roles := t.config.Roles
	return compiledPolicy{p, snap, rls.Generate(p, snap,
		rls.Options{AgentRole: roles.Agent, ControlRole: roles.Control, ReaderRole: roles.Reader,
			RowsRole: roles.Rows, SignedViews: t.autoPath})}, nil
}
