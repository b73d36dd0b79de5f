package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/tool/starter"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

type initCmd struct {
	DSN string `name:"dsn" required:"" placeholder:"DSN" help:"How to log in to the database, as the owner of its tables or a superuser."`
	Dir string `default:"." placeholder:"DIR" help:"Where the files go. Default: here."`
}

func (initCmd) Help() string {
	return `Reads the catalogs, never a row, and writes pgconsent.yaml, policy.yaml and files of secrets into the folder. Each
proposal is written beside its evidence; anything unclear is denied and listed with a reason. Nothing is changed in the
database, and no file is overwritten.

  pgconsent init --dsn postgres://app_owner@localhost/app
  pgconsent init --dsn "$DATABASE_URL" --dir /etc/pgconsent --json`
}

// initResult is the JSON output of the command init.
type initResult struct {
	Files []string `json:"files"`
	*starter.Proposal
	Next []string `json:"next"`
}

func (c initCmd) Run(s *session) error {
	connConfig, err := pgx.ParseConfig(c.DSN)
	if err != nil {
		return usageError{
			errors.New("the DSN is not understood: write postgres://user@host:5432/database, or host=… user=… dbname=…")}
	}
	conn, err := pgx.ConnectConfig(s.ctx, connConfig)
	if err != nil {
		return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream, "cannot log in to the server as %s",
			connConfig.User).
			WithHint("Is the server running, and is the password in the DSN, in PGPASSWORD or in ~/.pgpass?").WithCause(err)
	}
	defer conn.Close(context.WithoutCancel(s.ctx))
	server, err := readServer(s.ctx, conn, connConfig)
	if err != nil {
		return err
	}
	snap, err := pgcatalog.Load(s.ctx, conn, server.SearchPath)
	if err != nil {
		return err
	}
	policies, err := readRowPolicies(s.ctx, conn)
	if err != nil {
		return err
	}
	proposal, text, err := proposePolicy(snap, policies, server.Database)
	if err != nil {
		return err
	}
	server.Owners = tableOwners(snap, proposal, server.Role)
	files := map[string]string{"policy.yaml": text, "pgconsent.yaml": proposal.Configuration(server)}
	for _, name := range []string{"agent.pw", "control.pw"} {
		files[name] = newPassword()
	}
	if server.HasPassword {
		files["migrate.pw"] = connConfig.Password + "\n"
	}
	paths, err := writeNewFiles(c.Dir, files)
	if err != nil {
		return err
	}
	flag := ""
	if path := filepath.Join(c.Dir, config.DefaultFile); path != config.DefaultFile {
		flag = " -c " + path
	}
	nextSteps := []string{
		"read " + filepath.Join(c.Dir, "policy.yaml") + ": every rule is a guess until you have",
		"give agents their attributes in " + filepath.Join(c.Dir, config.DefaultFile),
		"pgconsent policy check" + flag,
		"pgconsent migrate --dry-run" + flag,
		"pgconsent migrate" + flag,
		"pgconsent agent add assistant" + flag,
		"pgconsent doctor" + flag,
		"pgconsent serve" + flag,
	}
	if s.jsonOutput {
		return s.printJSON(initResult{paths, proposal, nextSteps})
	}
	for _, name := range paths {
		fmt.Fprintf(s.out, "wrote %s\n", name)
	}
	fmt.Fprintf(s.out, "%s proposed, %s denied: policy.yaml says why\n\nnext:\n",
		countOf(len(proposal.Tables), "table"), countOf(len(proposal.Denied), "object"))
	for _, step := range nextSteps {
		fmt.Fprintf(s.out, "  %s\n", step)
	}
	return nil
}

// readServer returns the facts about the connection that the configuration needs.
func readServer(ctx context.Context, conn *pgx.Conn, connConfig *pgx.ConnConfig) (starter.Connection, error) {
	server := starter.Connection{Database: connConfig.Database, Host: connConfig.Host, Port: int(connConfig.Port),
		TLS:  "disable",
		Role: connConfig.User, HasPassword: connConfig.Password != ""}
	if tls := connConfig.TLSConfig; tls != nil && !strings.HasPrefix(connConfig.Host, "/") {
		server.TLS = "verify-full"
		if tls.InsecureSkipVerify {
			server.TLS = "require"
		}
	}
	var usesTLS bool
	if err := conn.QueryRow(ctx, `SELECT pg_catalog.current_database(), pg_catalog.current_schemas(false)::text[],
		COALESCE((SELECT s.ssl FROM pg_catalog.pg_stat_ssl AS s WHERE s.pid = pg_catalog.pg_backend_pid()), false),
		pg_catalog.to_regnamespace('pgconsent') IS NULL AND EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname IN ($1, $2))`,
		migrations.DefaultAgentRole, migrations.DefaultControlRole).
		Scan(&server.Database, &server.SearchPath, &usesTLS, &server.ServesOthers); err != nil {
		return server, fmt.Errorf("ask the server who it is: %w", err)
	}
	if !usesTLS { // with sslmode=prefer, the connection may be without TLS
		server.TLS = "disable"
	}
	server.SearchPath = slices.DeleteFunc(server.SearchPath, func(schema string) bool {
		return strings.HasPrefix(schema, "pg_") || strings.HasPrefix(schema, "pgconsent")
	})
	if len(server.SearchPath) == 0 {
		server.SearchPath = []string{"public"}
	}
	return server, nil
}

// readRowPolicies reads the existing row policies for SELECT. A table name without a schema in them means the table
// that the search path finds.
func readRowPolicies(ctx context.Context, conn *pgx.Conn) ([]starter.RowPolicy, error) {
	rows, err := conn.Query(ctx, `SELECT p.schemaname::text, p.tablename::text, p.policyname::text, p.permissive = 'PERMISSIVE',
		p.roles::text[], COALESCE(p.qual, '') FROM pg_catalog.pg_policies AS p WHERE p.cmd IN ('ALL', 'SELECT') ORDER BY 1, 2, 3`)
	if err != nil {
		return nil, fmt.Errorf("read row policies: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p starter.RowPolicy, err error) {
		err = row.Scan(&p.Table.Schema, &p.Table.Name, &p.Name, &p.Permissive, &p.Roles, &p.Using)
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("read row policies: %w", err)
	}
	return out, nil
}

// proposePolicy proposes policies until one compiles. If the rule of a table does not compile, the next proposal denies
// the table and gives the reason.
func proposePolicy(snap *catalog.Snapshot, policies []starter.RowPolicy, database string) (*starter.Proposal, string,
	error) {
	rejectedTables := map[string]string{}
	for range 1 + len(snap.Relations()) {
		proposal := starter.Propose(snap, policies, rejectedTables)
		text := proposal.Policy(database)
		doc, err := policy.Parse("policy.yaml", []byte(text))
		if err == nil {
			_, err = policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
		}
		var problems policy.Errors
		switch {
		case err == nil:
			return proposal, text, nil
		case !errors.As(err, &problems):
			return nil, "", err
		}
		name, ok := proposal.RelationAtLine(text, problems[0].Line)
		if !ok || rejectedTables[name] != "" {
			return nil, "", fmt.Errorf("the proposal does not compile: %w", err)
		}
		rejectedTables[name] = "its rule would not compile: " + problems[0].Message
	}
	return nil, "", errors.New("no proposal compiles")
}

// tableOwners returns the roles that own the tables, with the role of the DSN first.
func tableOwners(snap *catalog.Snapshot, p *starter.Proposal, role string) []string {
	owners := map[string]bool{}
	for _, t := range p.Tables {
		owners[t.Relation.Owner] = true
	}
	delete(owners, role)
	return append([]string{role}, slices.Sorted(maps.Keys(owners))...)
}

func newPassword() string {
	b := make([]byte, 24)
	_, _ = rand.Read(b) // rand.Read never fails
	return base64.RawURLEncoding.EncodeToString(b) + "\n"
}

// writeNewFiles writes either all files or none, and never overwrites a file.
func writeNewFiles(dir string, files map[string]string) (paths []string, err error) {
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
				"%s is there already, and nothing is overwritten", path).
				WithHint("Name another folder with --dir, or move the file away.")
		}
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			for _, path := range paths {
				_ = os.Remove(path)
			}
		}
	}()
	for _, name := range names {
		path := filepath.Join(dir, name)
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, ".pw") {
			mode = 0o600
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
		_, err = f.WriteString(files[name])
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	return paths, nil
}
