package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// roleAttributes is a row of pg_roles.
type roleAttributes struct {
	OID                                                                 uint32
	Name                                                                string
	Super, Inherit, CreateRole, CreateDB, Login, Replication, BypassRLS bool
}

func checkRoles(ctx context.Context, x *examination) ([]Finding, error) {
	rows, err := x.conn.Query(ctx, `SELECT oid, rolname, rolsuper, rolinherit, rolcreaterole,
		rolcreatedb, rolcanlogin, rolreplication, rolbypassrls
		FROM pg_catalog.pg_roles WHERE rolname = ANY ($1)`, x.roleNames())
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[roleAttributes])
	if err != nil {
		return nil, err
	}
	x.roles = map[string]roleAttributes{}
	for _, r := range list {
		x.roles[r.Name] = r
	}
	var found []Finding
	names := x.roleNames()
	slices.Sort(names)
	if len(slices.Compact(names)) != len(x.roleNames()) {
		found = append(found, Finding{"role_shared", SeverityUnsafe,
			"two of the roles agent, control, reader and rows are one", "Configure different roles and run pgconsent migrate."})
	}
	for _, name := range x.roleNames() {
		if _, ok := x.roles[name]; !ok {
			found = append(found, Finding{"role_missing", SeverityUnsafe, "the role " + name + " does not exist",
				"Run pgconsent migrate."})
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	found = append(found, findRoleAttributes("agent", x.roles[x.AgentRole])...)
	found = append(found, findRoleAttributes("reader", x.roles[x.ReaderRole])...)
	if x.roles[x.ReaderRole].Login {
		found = append(found, Finding{"reader_login", SeverityUnsafe,
			"the role " + x.ReaderRole + ", which reads every lookup table, can log in",
			"ALTER ROLE " + quoteIdent(x.ReaderRole) + " NOLOGIN"})
	}
	found = append(found, findRoleAttributes("rows", x.roles[x.RowsRole])...)
	if x.roles[x.RowsRole].Login {
		found = append(found, Finding{"rows_login", SeverityUnsafe, "the role " + x.RowsRole +
			", which reads hidden columns, can log in",
			"ALTER ROLE " + quoteIdent(x.RowsRole) + " NOLOGIN"})
	}
	if c := x.roles[x.ControlRole]; c.Super || c.BypassRLS || c.CreateRole {
		found = append(found, Finding{"control_rights", SeverityWarning, "the role " + c.Name +
			" has more rights than it needs",
			"ALTER ROLE " + quoteIdent(c.Name) + " NOSUPERUSER NOBYPASSRLS NOCREATEROLE"})
	}
	moreFindings, err := collectFindings(
		func() ([]Finding, error) { return x.findMemberships(ctx, "agent", x.AgentRole) },
		func() ([]Finding, error) { return x.findMemberships(ctx, "reader", x.ReaderRole) },
		func() ([]Finding, error) { return x.findMemberships(ctx, "rows", x.RowsRole) },
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"agent_owner", SeverityUnsafe,
				"the role " + x.AgentRole + " owns objects in %s: row policies do not bind an owner",
				"REASSIGN OWNED BY " + quoteIdent(x.AgentRole) + " TO the owner of the tables, in %s."},
				`SELECT DISTINCT coalesce('database ' || pg_catalog.quote_ident(b.datname), 'the cluster')
				 FROM pg_catalog.pg_shdepend d LEFT JOIN pg_catalog.pg_database b ON b.oid = d.dbid
				 WHERE d.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND d.refobjid = $1 AND d.deptype = 'o'`, x.roles[x.AgentRole].OID)
		},
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"agent_members", SeverityWarning,
				"the role %s is a member of " + x.AgentRole + ": the agents' row policies bind it too",
				"REVOKE " + quoteIdent(x.AgentRole) + " FROM %s"},
				`SELECT pg_catalog.quote_ident(r.rolname) FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles r ON r.oid = m.member
				 WHERE m.roleid = $1 AND NOT r.rolsuper`, x.roles[x.AgentRole].OID)
		},
		// PostgreSQL makes the creator of a role a member of it, with only the right to grant it.
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"control_members", SeverityWarning,
				"the role %s is a member of " + x.ControlRole + ": it reads the keys of seals, and records consent",
				"REVOKE " + quoteIdent(x.ControlRole) + " FROM %s"},
				`SELECT DISTINCT pg_catalog.quote_ident(r.rolname) FROM pg_catalog.pg_auth_members m
				 JOIN pg_catalog.pg_roles r ON r.oid = m.member CROSS JOIN LATERAL pg_catalog.to_jsonb(m) j
				 WHERE m.roleid = $1 AND NOT r.rolsuper AND (COALESCE((j ->> 'inherit_option')::pg_catalog.bool, true)
				   OR COALESCE((j ->> 'set_option')::pg_catalog.bool, true))
				   AND r.oid <> (SELECT n.nspowner FROM pg_catalog.pg_namespace n WHERE n.nspname = 'pgconsent')`, x.roles[x.ControlRole].OID)
		},
		// A seal stored as a default of a role or database would be valid in each of their sessions.
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"role_settings", SeverityUnsafe,
				"a default of the setting pgconsent.seal is stored for a role or database",
				"ALTER ROLE … RESET pgconsent.seal (see pg_db_role_setting)"},
				`SELECT 'x' FROM pg_catalog.pg_db_role_setting s
					WHERE EXISTS (SELECT 1 FROM pg_catalog.unnest(s.setconfig) c WHERE c LIKE 'pgconsent.%') LIMIT 1`)
		},
		// In sessions with this setting, foreign keys and ordinary triggers do not fire.
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"triggers_off", SeverityWarning,
				"session_replication_role is stored for %s: foreign keys and triggers that are not ENABLE ALWAYS " +
					"do not fire there", "ALTER … RESET session_replication_role, for %s (see pg_db_role_setting)"},
				`SELECT concat_ws(' in ', CASE WHEN s.setrole <> 0 THEN 'role ' || pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(s.setrole)) END,
				   CASE WHEN s.setdatabase <> 0 THEN 'this database' WHEN s.setrole = 0 THEN 'all roles' END)
				 FROM pg_catalog.pg_db_role_setting s
				 WHERE (s.setdatabase = 0 OR s.setdatabase = (SELECT d.oid
				   FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()))
				   AND EXISTS (SELECT 1 FROM pg_catalog.unnest(s.setconfig) c
				     WHERE c LIKE 'session_replication_role=%' AND c <> 'session_replication_role=origin') ORDER BY 1`)
		},
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"triggers_off", SeverityWarning,
				"session_replication_role is %s in the server's configuration: foreign keys and triggers that are " +
					"not ENABLE ALWAYS do not fire", "ALTER SYSTEM RESET session_replication_role, and SELECT pg_reload_conf()."},
				`SELECT s.reset_val FROM pg_catalog.pg_settings s
					WHERE s.name = 'session_replication_role' AND s.source = 'configuration file' AND s.reset_val <> 'origin'`)
		},
	)
	return append(found, moreFindings...), err
}

// roleNames returns the configured names of the four roles.
func (x *examination) roleNames() []string {
	return []string{x.AgentRole, x.ControlRole, x.ReaderRole, x.RowsRole}
}

// findRoleAttributes finds attributes of a role that bypass row security, or let it create a role that does.
func findRoleAttributes(kind string, r roleAttributes) []Finding {
	var found []Finding
	for _, a := range []struct {
		hasAttribute bool
		id, sql      string
		reason       string
	}{
		{r.Super, "superuser", "SUPERUSER", "nothing binds a superuser"},
		{r.BypassRLS, "bypassrls", "BYPASSRLS", "row policies do not bind it"},
		{r.CreateRole, "createrole", "CREATEROLE", "it can give itself other roles"},
		{r.CreateDB, "createdb", "CREATEDB", "it can copy databases"},
		{r.Replication, "replication", "REPLICATION", "it can read the whole cluster's changes"},
	} {
		if a.hasAttribute {
			found = append(found, Finding{kind + "_" + a.id, SeverityUnsafe, fmt.Sprintf("the role %s has %s: %s", r.Name,
				a.sql, a.reason),
				fmt.Sprintf("ALTER ROLE %s NO%s", quoteIdent(r.Name), a.sql)})
		}
	}
	return found
}

func (x *examination) findMemberships(ctx context.Context, kind, name string) ([]Finding, error) {
	return x.findingsOfQuery(ctx, Finding{kind + "_member", SeverityUnsafe,
		"the role " + name + " is a member of %s: it has, or can take, that role's rights and policies",
		"REVOKE %s FROM " + quoteIdent(name)},
		`SELECT pg_catalog.quote_ident(r.rolname) FROM pg_catalog.pg_auth_members m
			JOIN pg_catalog.pg_roles r ON r.oid = m.roleid WHERE m.member = $1`,
		x.roles[name].OID)
}

// quoteIdent writes a name as an SQL identifier.
func quoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
