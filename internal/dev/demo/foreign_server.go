package demo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgcluster"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// objectNames are the names of the world's database and of its roles on the server.
type objectNames struct{ database, owner, agent, control, reader, rows string }

// privateNames returns the names on the demo's own server.
func privateNames(w *world.World) objectNames {
	return objectNames{w.Name, w.Owner, "pgconsent_agent", "pgconsent_control", "pgconsent_reader", "pgconsent_rows"}
}

// foreignNames returns the names on an existing server. They have a common prefix, so that people recognise the demo's
// objects.
func foreignNames(w *world.World) objectNames {
	prefix := "pgconsent_demo_" + w.Name
	return objectNames{prefix, prefix + "_owner", prefix + "_agent", prefix + "_control", prefix + "_reader", prefix + "_rows"}
}

func (n objectNames) roleNames() []string {
	return []string{n.agent, n.control, n.rows, n.reader, n.owner}
}

// existingServer is a server that the demo has not started, to which it connects with the role of the DSN.
type existingServer struct {
	dsn       string
	config    *pgx.ConnConfig
	tls       bool
	superuser bool
	user      string
	names     objectNames
	world     *world.World
	notice    func(string)
}

// markComment returns the comment by which the demo recognises the objects that it has made.
func (g *existingServer) markComment() string { return "pgconsent demo of world " + g.world.Name }

const notLoadedSuffix = ": not loaded yet"

// openForeignServer logs in, and checks that the role has the rights that the demo needs.
func openForeignServer(ctx context.Context, dsn string, w *world.World, notice func(string)) (*existingServer, error) {
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "--postgres is not a connection string").
			WithHint("postgres://user:password@host:5432/postgres, or host=… port=… user=…")
	}
	g := &existingServer{dsn: dsn, config: c, user: c.User, names: foreignNames(w), world: w, notice: notice}
	c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notice(n.Message) }
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return nil, sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream,
			"cannot log in to the server of --postgres: %v", err).
			WithHint("The DSN names a role that may make databases and roles, and a database to log in to, such as postgres.")
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, g.tls = conn.PgConn().Conn().(*tls.Conn)
	var databases, roles bool
	var version int
	if err := conn.QueryRow(ctx, `SELECT r.rolsuper, r.rolsuper OR r.rolcreatedb, r.rolsuper OR r.rolcreaterole,
		pg_catalog.current_setting('server_version_num')::pg_catalog.int4
		FROM pg_catalog.pg_roles AS r WHERE r.rolname = current_user`).Scan(&g.superuser, &databases, &roles, &version); err != nil {
		return nil, err
	}
	if version < pgcluster.MinMajor*10000 {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream,
			"the server is PostgreSQL %d: %d or later is needed", version/10000, pgcluster.MinMajor)
	}
	if !databases || !roles {
		missing := []string{}
		if !databases {
			missing = append(missing, "CREATEDB")
		}
		if !roles {
			missing = append(missing, "CREATEROLE")
		}
		return nil, sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonUpstream,
			"role %s of --postgres may not make what the demo needs", g.user).
			WithHint("Let a superuser run: ALTER ROLE %s %s", quoteIdent(g.user), strings.Join(missing, " "))
	}
	return g, nil
}

// connect connects with the role of the DSN, or with another role, to a database; "": the database of the DSN.
func (g *existingServer) connect(ctx context.Context, database, role, password string) (*pgx.Conn, error) {
	c := g.config.Copy()
	if database != "" {
		c.Database = database
	}
	if role != "" {
		c.User, c.Password = role, password
	}
	return pgx.ConnectConfig(ctx, c)
}

// serverObjects says which objects with the demo's names exist on the server.
type serverObjects struct {
	database       string // the comment on the database
	databaseExists bool
	roles          map[string]bool
}

// findObjects finds the objects with the demo's names, and returns an error if the demo has not made one of them.
func (g *existingServer) findObjects(ctx context.Context, conn *pgx.Conn) (serverObjects, error) {
	f := serverObjects{roles: map[string]bool{}}
	var comment *string
	err := conn.QueryRow(ctx,
		"SELECT pg_catalog.shobj_description(d.oid, 'pg_database') FROM pg_catalog.pg_database AS d WHERE "+
			"d.datname = $1", g.names.database).Scan(&comment)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return f, err
	default:
		f.databaseExists = true
		if comment != nil {
			f.database = *comment
		}
		if f.database != g.markComment() && f.database != g.markComment()+notLoadedSuffix {
			return f, g.newForeignObjectError("database", g.names.database)
		}
	}
	for _, role := range g.names.roleNames() {
		var comment *string
		err := conn.QueryRow(ctx,
			"SELECT pg_catalog.shobj_description(r.oid, 'pg_authid') FROM pg_catalog.pg_roles AS r WHERE "+
				"r.rolname = $1", role).Scan(&comment)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
		case err != nil:
			return f, err
		case comment == nil || *comment != g.markComment():
			return f, g.newForeignObjectError("role", role)
		default:
			f.roles[role] = true
		}
	}
	return f, nil
}

func (g *existingServer) newForeignObjectError(kind, name string) error {
	return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream,
		"the server has a %s %s that the demo did not make: it stays", kind, name).
		WithHint("Rename it, or use another server. The demo knows its own by the comment %q.", g.markComment())
}

// load makes the roles and the database, and fills the database, unless an earlier start has done so.
func (g *existingServer) load(ctx context.Context, f demoFolder, progress func(string)) (err error) {
	admin, err := g.connect(ctx, "", "", "")
	if err != nil {
		return err
	}
	defer admin.Close(context.WithoutCancel(ctx))
	exists, err := g.findObjects(ctx, admin)
	if err != nil {
		return err
	}
	password, err := config.ReadSecret(f.secretPath("owner"))
	if err != nil {
		return err
	}
	if err := g.makeRoles(ctx, admin, exists, f); err != nil {
		return err
	}
	if exists.databaseExists && exists.database == g.markComment() {
		progress("world " + g.world.Name + " is loaded already, in database " + g.names.database)
		return f.resume("--down", progress)
	}
	if exists.databaseExists {
		if err := pgcluster.DropDatabase(ctx, admin, g.names.database); err != nil {
			return g.explainRights("start over", err)
		}
	}
	progress("making the database " + g.names.database)
	if err := g.exec(ctx, admin, "make the database",
		"CREATE DATABASE "+quoteIdent(g.names.database)+" TEMPLATE template0", "COMMENT ON DATABASE "+
			quoteIdent(g.names.database)+" IS '"+g.markComment()+notLoadedSuffix+"'",
		"ALTER DATABASE "+quoteIdent(g.names.database)+" OWNER TO "+quoteIdent(g.names.owner)); err != nil {
		return err
	}
	owner, err := g.connect(ctx, g.names.database, g.names.owner, password)
	if err != nil {
		return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream,
			"%s cannot log in with its password: %v", g.names.owner, err).
			WithHint("The demo logs in as roles of its own: pg_hba.conf must let %s_* in by scram-sha-256, from "+
				"here, to database %s.", g.names.database, g.names.database)
	}
	defer owner.Close(context.WithoutCancel(ctx))
	extender := owner
	if g.superuser {
		if extender, err = g.connect(ctx, g.names.database, "", ""); err != nil {
			return err
		}
		defer extender.Close(context.WithoutCancel(ctx))
	}
	if err := g.world.CreateExtensions(ctx, extender); err != nil {
		return g.explainRights("make the extensions", err)
	}
	if err := g.world.LoadAsOwner(ctx, owner, progress); err != nil {
		return err
	}
	if err := f.resetState(); err != nil {
		return err
	}
	return g.exec(ctx, owner, "note that it is loaded",
		"COMMENT ON DATABASE "+quoteIdent(g.names.database)+" IS '"+g.markComment()+"'")
}

// makeRoles makes the missing roles, and sets the passwords of login roles to those in their files. pgconsent migrate
// does not change the password of a role that has rights in another database. The role may have such rights from an
// earlier migration there.
func (g *existingServer) makeRoles(ctx context.Context, admin *pgx.Conn, existing serverObjects, f demoFolder) error {
	comment := "'" + g.markComment() + "'"
	if !existing.roles[g.names.owner] {
		if err := g.exec(ctx, admin, "make the role "+g.names.owner,
			"CREATE ROLE "+quoteIdent(g.names.owner)+" LOGIN CREATEROLE", "COMMENT ON ROLE "+quoteIdent(g.names.owner)+
				" IS "+comment); err != nil {
			return err
		}
	}
	if err := g.setPassword(ctx, admin, g.names.owner, "LOGIN CREATEROLE", f.secretPath("owner")); err != nil {
		return err
	}
	if !g.superuser { // only a member of a role may give objects to the role
		if err := g.exec(ctx, admin, "join "+g.names.owner,
			"GRANT "+quoteIdent(g.names.owner)+" TO "+quoteIdent(g.user)); err != nil {
			return err
		}
	}
	// The owner role makes the other roles, because it runs migrations and must be able to grant them rights.
	if err := g.exec(ctx, admin, "become "+g.names.owner, "SET ROLE "+quoteIdent(g.names.owner)); err != nil {
		return err
	}
	secrets := map[string]string{g.names.agent: f.secretPath("agent"), g.names.control: f.secretPath("control")}
	for _, role := range g.names.roleNames() {
		if role == g.names.owner {
			continue
		}
		secret, logsIn := secrets[role]
		options := "NOLOGIN NOINHERIT"
		if logsIn {
			options = "LOGIN NOINHERIT"
		}
		if !existing.roles[role] {
			if err := g.exec(ctx, admin, "make the role "+role, "CREATE ROLE "+quoteIdent(role)+" "+options,
				"COMMENT ON ROLE "+quoteIdent(role)+" IS "+comment); err != nil {
				return err
			}
		}
		if !logsIn {
			continue
		}
		if err := g.setPassword(ctx, admin, role, options, secret); err != nil {
			return err
		}
	}
	return g.exec(ctx, admin, "be "+g.user+" again", "RESET ROLE")
}

// setPassword sets a role's password to the one in a file, whichever password it had before.
func (g *existingServer) setPassword(ctx context.Context, admin *pgx.Conn, role, options, file string) error {
	password, err := config.ReadSecret(file)
	if err != nil {
		return err
	}
	// The statement contains only a verifier, so that the password itself occurs in no statement or log.
	verifier, err := config.NewVerifier(password)
	if err != nil {
		return err
	}
	return g.exec(ctx, admin, "give "+role+" its password",
		"ALTER ROLE "+quoteIdent(role)+" "+options+" PASSWORD '"+verifier+"'")
}

// quoteIdent writes a name as an SQL identifier.
func quoteIdent(name string) string { return pgx.Identifier{name}.Sanitize() }

// exec runs statements one by one. Its errors name the action that failed.
func (g *existingServer) exec(ctx context.Context, conn *pgx.Conn, action string, statements ...string) error {
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return g.explainRights(action, err)
		}
	}
	return nil
}

// explainRights adds to an error which rights the role needs.
func (g *existingServer) explainRights(action string, err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "42501" {
		return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonUpstream, "cannot %s: %s", action, pgErr.Message).
			WithHint("Role %s of --postgres needs CREATEDB and CREATEROLE; for extensions that are not trusted, "+
				"and for what others made, a superuser.", g.user)
	}
	return fmt.Errorf("%s: %w", action, err)
}

// RemoveFromServer removes the database and the roles that the demo has made on an existing server, and reports each.
func RemoveFromServer(ctx context.Context, dsn string, w *world.World, report func(string)) error {
	g, err := openForeignServer(ctx, dsn, w, func(string) {})
	if err != nil {
		return err
	}
	conn, err := g.connect(ctx, "", "", "")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	exists, err := g.findObjects(ctx, conn)
	if err != nil {
		return err
	}
	if !exists.databaseExists && len(exists.roles) == 0 {
		report("there is nothing of the demo of world " + w.Name)
		return nil
	}
	if exists.databaseExists {
		if err := pgcluster.DropDatabase(ctx, conn, g.names.database); err != nil {
			return g.explainRights("drop the database", err)
		}
		report("database " + g.names.database + " is gone")
	}
	for _, role := range g.names.roleNames() { // the owner role comes last, since it has made the other roles
		if !exists.roles[role] {
			continue
		}
		setRole := ""
		if !g.superuser && role != g.names.owner {
			setRole = "SET LOCAL ROLE " + quoteIdent(g.names.owner) + "; "
		}
		if _, err := conn.PgConn().Exec(ctx,
			"BEGIN; "+setRole+"DROP ROLE "+quoteIdent(role)+"; COMMIT").ReadAll(); err != nil {
			return g.explainRights("drop the role "+role, err)
		}
		report("role " + role + " is gone")
	}
	return nil
}

// upstreamEntry returns the server's entry in the configuration.
func (g *existingServer) upstreamEntry() (yaml.MapSlice, error) {
	out := yaml.MapSlice{{Key: "host", Value: g.config.Host}, {Key: "port", Value: int(g.config.Port)}}
	if strings.HasPrefix(g.config.Host, "/") {
		return out, nil
	}
	mode := "disable"
	if g.tls {
		mode = "verify-full"
		if g.config.TLSConfig == nil || g.config.TLSConfig.InsecureSkipVerify {
			mode = "require"
		}
	}
	out = append(out, yaml.MapItem{Key: "tls", Value: mode})
	if mode == "verify-full" {
		ca := dsnParameter(g.dsn, "sslrootcert")
		if ca == "" {
			ca = os.Getenv("PGSSLROOTCERT")
		}
		if ca != "" && ca != "system" {
			abs, err := filepath.Abs(ca)
			if err != nil {
				return nil, err
			}
			out = append(out, yaml.MapItem{Key: "ca", Value: abs})
		}
	}
	return out, nil
}

var parameterPair = regexp.MustCompile(`(?:^|\s)([a-z_]+)\s*=\s*('(?:[^'\\]|\\.)*'|\S+)`)

// dsnParameter returns a parameter of a connection string, which may be a URL or a list of key=value.
func dsnParameter(dsn, name string) string {
	if u, err := url.Parse(dsn); err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql") {
		return u.Query().Get(name)
	}
	for _, m := range parameterPair.FindAllStringSubmatch(dsn, -1) {
		if m[1] == name {
			return strings.Trim(m[2], "'")
		}
	}
	return ""
}
