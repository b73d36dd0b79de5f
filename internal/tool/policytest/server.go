package policytest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgcluster"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/migrations"
)

// Server is a PostgreSQL server on which the tests make and remove databases.
type Server struct {
	admin         *pgx.ConnConfig // how the administrator logs in, who makes the databases
	superuser     bool
	prefix        string // the names of databases and roles that the tests make begin with it
	roles         migrations.Options
	owner         string // the owner of the databases; "": the file names the owner
	password      string // the password of the test roles; "": the server asks for none
	cluster       *pgcluster.Cluster
	dir           string // the folder of the cluster
	madeDatabases []string
	madeRoles     []string // roles that the tests have made
	nameCount     int
}

// NewPrivateServer starts a new PostgreSQL server with this machine's binaries. Close stops it and removes its folder.
func NewPrivateServer(ctx context.Context) (_ *Server, err error) {
	dir, err := os.MkdirTemp("", "pgconsent-test")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, superuser: true, prefix: "test"}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}()
	if err := os.Chmod(dir, 0o711); err != nil { // PostgreSQL may run as another system user.
		return nil, err
	}
	s.cluster, err = pgcluster.Start(ctx, pgcluster.Config{Dir: dir, NoSync: true,
		Settings: map[string]string{"shared_buffers": "32MB", "autovacuum": "off", "max_wal_size": "4GB"}})
	if err != nil {
		return nil, err
	}
	if s.admin, err = pgx.ParseConfig("sslmode=disable"); err != nil {
		return nil, err
	}
	s.admin.Host, s.admin.Port, s.admin.User, s.admin.Database = s.cluster.SocketDir, uint16(s.cluster.Port),
		s.cluster.Superuser, "postgres"
	s.admin.Fallbacks = nil
	return s, nil
}

// NewServerOn uses a running server. The role of the DSN makes databases and roles whose names begin with
// pgconsent_test_, and Close removes them. Nothing else on the server changes.
func NewServerOn(ctx context.Context, dsn string) (*Server, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "--postgres is not a connection string").
			WithHint("postgres://user:password@host:5432/postgres, or host=… port=… user=…")
	}
	random := make([]byte, 4)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	s := &Server{admin: config, prefix: "pgconsent_test_" + hex.EncodeToString(random), password: rand.Text()}
	s.roles = migrations.Options{AgentRole: s.prefix + "_agent", ControlRole: s.prefix + "_control",
		ReaderRole: s.prefix + "_reader", RowsRole: s.prefix + "_rows",
		AgentPassword: s.password, ControlPassword: s.password}
	conn, err := s.firstLogin(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var databases, roles bool
	var version int
	if err := conn.QueryRow(ctx, `SELECT r.rolsuper, r.rolsuper OR r.rolcreatedb, r.rolsuper OR r.rolcreaterole,
		pg_catalog.current_setting('server_version_num')::pg_catalog.int4
		FROM pg_catalog.pg_roles AS r WHERE r.rolname = current_user`).Scan(&s.superuser, &databases, &roles, &version); err != nil {
		return nil, err
	}
	if version < pgcluster.MinMajor*10000 {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream,
			"the server is PostgreSQL %d: %d or later is needed", version/10000, pgcluster.MinMajor)
	}
	if !databases || !roles {
		return nil, sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonUpstream,
			"role %s may not make databases and roles", config.User).
			WithHint("Let a superuser run: ALTER ROLE %s CREATEDB CREATEROLE", pgx.Identifier{config.User}.Sanitize())
	}
	if s.superuser {
		s.owner = s.prefix + "_owner"
	} else {
		s.owner = config.User
	}
	return s, nil
}

// firstLogin logs in as the administrator. It stores the host and the use of TLS that worked, since a DSN with sslmode
// prefer or allow leaves that open.
func (s *Server) firstLogin(ctx context.Context) (*pgx.Conn, error) {
	attempts := append([]*pgconn.FallbackConfig{{Host: s.admin.Host, Port: s.admin.Port, TLSConfig: s.admin.TLSConfig}}, s.admin.Fallbacks...)
	s.admin.Fallbacks = nil
	var failures []string
	for _, way := range attempts {
		s.admin.Host, s.admin.Port, s.admin.TLSConfig = way.Host, way.Port, way.TLSConfig
		conn, err := pgx.ConnectConfig(ctx, s.config("", ""))
		if err == nil {
			return conn, nil
		}
		if failures = append(failures, err.Error()); ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var refused *pgconn.PgError
		if errors.As(err, &refused) && (refused.Code == "28P01" || refused.Code == "3D000") {
			break
		}
	}
	return nil, newLoginError("%s", strings.Join(slices.Compact(failures), "; "))
}

func newLoginError(reason string, args ...any) *sqlstate.Error {
	return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream, "cannot log in to the server: "+reason,
		args...)
}

// connectAs logs in as a role ("": the administrator) to a database ("": the database of the DSN).
func (s *Server) connectAs(ctx context.Context, database, role string) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, s.config(database, role))
	if err != nil {
		return nil, newLoginError("%v", err)
	}
	return conn, nil
}

func (s *Server) config(database, role string) *pgx.ConnConfig {
	c := s.admin.Copy()
	if database != "" {
		c.Database = database
	}
	if role != "" {
		c.User, c.Password = role, s.password
	}
	c.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {}
	c.RuntimeParams["jit"] = "off" // Compiling a plan would take longer than running it.
	return c
}

// dsnFor returns the connection string by which a test role logs in to a database.
func (s *Server) dsnFor(database, role string) string {
	quote := func(v string) string { return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v) + "'" }
	mode := "disable"
	if s.admin.TLSConfig != nil {
		mode = "require" // The administrator's login has verified the certificate if its DSN requires that.
	}
	out := fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=%s", quote(s.admin.Host), s.admin.Port, quote(role),
		quote(database), mode)
	if s.password != "" {
		out += " password=" + quote(s.password)
	}
	return out
}

// createDatabase makes a database; if from is not empty, as a copy of it. The statement is not cancelled when ctx ends:
// PostgreSQL might still complete it, and nobody would remove that database.
func (s *Server) createDatabase(ctx context.Context, from, owner string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	ctx = context.WithoutCancel(ctx)
	conn, err := s.connectAs(ctx, "", "")
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	s.nameCount++
	name := fmt.Sprintf("%s_%d", s.prefix, s.nameCount)
	if from == "" {
		from = "template0"
	}
	if s.superuser {
		if err := s.makeOwner(ctx, conn, owner); err != nil {
			return "", err
		}
	}
	quotedName := pgx.Identifier{name}.Sanitize()
	strategy := ""
	if s.cluster != nil {
		strategy = " STRATEGY FILE_COPY" // FILE_COPY needs checkpoints, which are cheap without fsync.
	}
	createSQL := "CREATE DATABASE " + quotedName + " TEMPLATE " + pgx.Identifier{from}.Sanitize() + strategy
	if _, err := conn.Exec(ctx, createSQL); err != nil {
		return "", fmt.Errorf("make a database: %w", err)
	}
	s.madeDatabases = append(s.madeDatabases, name)
	// PostgreSQL does not copy the privileges on the database itself.
	statements := []string{"REVOKE CREATE, TEMPORARY ON DATABASE " + quotedName + " FROM PUBLIC"}
	if s.superuser {
		statements = append(statements, "ALTER DATABASE "+quotedName+" OWNER TO "+pgx.Identifier{owner}.Sanitize())
	}
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", fmt.Errorf("make a database: %w", err)
		}
	}
	return name, nil
}

func (s *Server) makeOwner(ctx context.Context, conn *pgx.Conn, owner string) error {
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = $1)", owner).
		Scan(&exists); err != nil || exists {
		return err
	}
	if _, err := conn.Exec(ctx, "CREATE ROLE "+pgx.Identifier{owner}.Sanitize()+" LOGIN"); err != nil {
		return err
	}
	s.madeRoles = append(s.madeRoles, owner)
	return nil
}

func (s *Server) dropDatabase(ctx context.Context, name string) error {
	conn, err := s.connectAs(ctx, "", "")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return pgcluster.DropDatabase(ctx, conn, name)
}

// Close removes all databases, roles and files that the tests made, and stops a private server.
func (s *Server) Close(ctx context.Context) error {
	if s.dir != "" {
		var err error
		if s.cluster != nil {
			err = s.cluster.StopNow()
			if home := filepath.Dir(s.cluster.DataDir); !strings.HasPrefix(home, s.dir) {
				err = errors.Join(err, os.RemoveAll(home))
			}
		}
		return errors.Join(err, os.RemoveAll(s.dir))
	}
	var failures []error
	for _, name := range s.madeDatabases {
		failures = append(failures, s.dropDatabase(ctx, name))
	}
	conn, err := s.connectAs(ctx, "", "")
	if err != nil {
		return errors.Join(append(failures, err)...)
	}
	defer conn.Close(ctx)
	for _, role := range append([]string{s.roles.AgentRole, s.roles.ControlRole, s.roles.ReaderRole,
		s.roles.RowsRole}, s.madeRoles...) {
		_, err := conn.Exec(ctx, "DROP ROLE IF EXISTS "+pgx.Identifier{role}.Sanitize())
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}
