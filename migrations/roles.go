package migrations

import (
	"context"
	"fmt"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// roleMark begins the comment (COMMENT ON ROLE) on each role that a migrate in any database of the server has made.
const roleMark = "pgconsent: "

// isMarkedCondition is the SQL condition that a migrate has made the role r, a row of pg_roles.
const isMarkedCondition = "pg_catalog.starts_with(COALESCE(pg_catalog.shobj_description(r.oid, 'pg_authid'), ''), '" + roleMark + "')"

// createRoles makes the missing ones of pgconsent's roles and returns their names. It does not change existing roles;
// pgconsent doctor reports what is wrong with these.
func (r *migrationRun) createRoles(ctx context.Context, o Options) ([]string, error) {
	var canCreate, onDatabase bool
	err := r.tx.QueryRow(ctx, `SELECT r.rolcreaterole OR r.rolsuper,
		pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')
		FROM pg_catalog.pg_roles AS r WHERE r.rolname = current_user`).Scan(&canCreate, &onDatabase)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	var missing []Statement
	var made []string
	for _, role := range []struct{ name, options, why string }{
		{o.ReaderRole, "NOLOGIN NOINHERIT", "The role that owns helper and signed views; nobody logs in as it."},
		{o.RowsRole, "NOLOGIN NOINHERIT",
			"The role that owns the views of tables with hidden columns; row security binds it, and nobody logs in as it."},
		{o.AgentRole, "LOGIN NOINHERIT",
			"The role that agents' connections have on the server: it owns nothing and is a member of nothing."},
		{o.ControlRole, "LOGIN NOINHERIT", "The role by which pgconsent reads catalogs and keys."},
	} {
		var there bool
		if err := r.tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_roles AS r WHERE r.rolname = $1)",
			role.name).Scan(&there); err != nil {
			return nil, fmt.Errorf("migrate: %w", err)
		}
		if there {
			continue
		}
		s := Statement{"CREATE ROLE " + quoteIdent(role.name) + " " + role.options, role.why}
		if !canCreate {
			missing = append(missing, s)
			continue
		}
		comment := Statement{"COMMENT ON ROLE " + quoteIdent(role.name) + " IS " + catalog.QuoteLiteral(roleMark+role.why),
			"It tells pgconsent in other databases of this server whose role it is."}
		if err := r.execAll(ctx, []Statement{s, comment}); err != nil {
			return nil, err
		}
		made = append(made, role.name)
	}
	if !onDatabase {
		missing = append(missing, Statement{"GRANT CREATE ON DATABASE " + r.databaseIdent(ctx) +
			" TO " + r.userIdent(ctx), "migrate makes schemas"})
	}
	for _, role := range []string{o.ReaderRole, o.RowsRole} {
		ok, err := r.isMember(ctx, role)
		if err == nil && !ok && canCreate {
			ok, err = r.mayJoin(ctx, role)
		}
		if err != nil {
			return nil, err
		}
		if !ok {
			missing = append(missing, Statement{"GRANT " + quoteIdent(role) + " TO " + r.userIdent(ctx),
				"views can only be given to a role one is a member of"})
		}
	}
	if len(missing) > 0 {
		return nil, &MissingRightsError{missing}
	}
	return made, nil
}

// areNeededElsewhere reports whether one of pgconsent's roles owns something or has rights in another database of the
// server. If so, that database needs all of the roles.
func (r *migrationRun) areNeededElsewhere(ctx context.Context, o Options) (needed bool, err error) {
	err = r.tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_shdepend AS d JOIN pg_catalog.pg_roles AS r ON r.oid = d.refobjid
		WHERE d.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND r.rolname = ANY ($1::text[]) AND d.dbid <> 0
			AND d.dbid <> (SELECT b.oid FROM pg_catalog.pg_database AS b WHERE b.datname = pg_catalog.current_database()))`,
		o.roles()).Scan(&needed)
	return needed, err
}

// isMember reports whether the migrating role is a member of role, so that it could make role the owner of objects. It
// returns false if role does not exist.
func (r *migrationRun) isMember(ctx context.Context, role string) (bool, error) {
	var member bool
	err := r.tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_roles AS r WHERE r.rolname = $1 AND pg_catalog.pg_has_role(r.oid,
		CASE WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 160000 THEN 'SET' ELSE 'MEMBER' END))`, role).Scan(&member)
	return member, err
}

// mayJoin reports whether the migrating role, which has CREATEROLE, can make itself a member of role. From PostgreSQL
// 16 on it needs the ADMIN option on role.
func (r *migrationRun) mayJoin(ctx context.Context, role string) (bool, error) {
	var may bool
	err := r.tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_roles AS r WHERE r.rolname = $1 AND
		(pg_catalog.current_setting('server_version_num')::pg_catalog.int4 < 160000
			OR pg_catalog.pg_has_role(r.oid, 'MEMBER WITH ADMIN OPTION')))`, role).Scan(&may)
	return may, err
}

// joinOwners makes the migrating role a member of the reader and rows roles, so that it can make them the owners of
// views. release undoes that.
func (r *migrationRun) joinOwners(ctx context.Context, o Options, f Found) (release func() error, err error) {
	var statements, after []Statement
	for _, owner := range []struct{ role, schemas string }{
		{o.ReaderRole, "pgconsent, pgconsent_signed, pgconsent_rows"}, {o.RowsRole, "pgconsent_rows"},
	} {
		role := quoteIdent(owner.role)
		statements = append(statements, Statement{
			"GRANT CREATE ON SCHEMA " + owner.schemas + " TO " +
				role, "Views can only be given to a role that could have made them."})
		after = append(after, Statement{"REVOKE CREATE ON SCHEMA " + owner.schemas + " FROM " + role, "The views are made."})
		member, err := r.isMember(ctx, owner.role)
		if err != nil {
			return nil, err
		}
		if !f.Superuser && !member {
			statements = append(statements, Statement{
				"GRANT " + role + " TO CURRENT_USER", "Views can only be given to a role one is a member of."})
			after = append(after, Statement{"REVOKE " + role + " FROM CURRENT_USER", "The views are made."})
		}
	}
	return func() error { return r.execAll(ctx, after) }, r.execAll(ctx, statements)
}

// readMadeRoles returns the roles that migrate has recorded as made in this database.
func (r *migrationRun) readMadeRoles(ctx context.Context) ([]string, error) {
	return r.queryNames(ctx, "SELECT m.name FROM pgconsent.installed_role AS m ORDER BY m.name")
}

// readMarkedRoles returns those of the roles in o that a migrate has made, in this or another database of the server.
func (r *migrationRun) readMarkedRoles(ctx context.Context, o Options) ([]string, error) {
	return r.queryNames(ctx, "SELECT r.rolname FROM pg_catalog.pg_roles AS r WHERE r.rolname = ANY ($1::text[]) AND "+
		isMarkedCondition+" ORDER BY 1", o.roles())
}

func (r *migrationRun) databaseIdent(ctx context.Context) string {
	return r.scalar(ctx, "SELECT pg_catalog.quote_ident(pg_catalog.current_database())")
}

func (r *migrationRun) userIdent(ctx context.Context) string {
	return r.scalar(ctx, "SELECT pg_catalog.quote_ident(current_user)")
}

// scalar runs a query that returns one text, and returns "?" if the query fails.
func (r *migrationRun) scalar(ctx context.Context, sql string) string {
	var s string
	if err := r.tx.QueryRow(ctx, sql).Scan(&s); err != nil {
		return "?"
	}
	return s
}
