package migrations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// findState reads the state of the database that a plan depends on: row security, rights of PUBLIC, and roles.
func (r *migrationRun) findState(ctx context.Context, o Options) (Found, error) {
	f := Found{RowSecurity: map[string]bool{}, PublicUsage: map[string]bool{}}
	fail := func(err error) (Found, error) { return Found{}, fmt.Errorf("migrate: look at the database: %w", err) }

	err := r.tx.QueryRow(ctx,
		`SELECT current_database(), (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user)`).
		Scan(&f.Database, &f.Superuser)
	if err != nil {
		return fail(err)
	}
	secured, err := r.queryNames(ctx,
		`SELECT n.nspname || '.' || c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.relrowsecurity`)
	if err != nil {
		return fail(err)
	}
	for _, name := range secured {
		f.RowSecurity[name] = true
	}
	usable, err := r.queryNames(ctx, `SELECT n.nspname FROM pg_namespace AS n
		CROSS JOIN LATERAL aclexplode(COALESCE(n.nspacl, acldefault('n', n.nspowner))) AS x
		WHERE x.grantee = 0 AND x.privilege_type = 'USAGE'`)
	if err != nil {
		return fail(err)
	}
	for _, name := range usable {
		f.PublicUsage[name] = true
	}
	if f.PublicCreate, err = r.queryNames(ctx, `SELECT n.nspname FROM pg_namespace AS n
		CROSS JOIN LATERAL aclexplode(COALESCE(n.nspacl, acldefault('n', n.nspowner))) AS x
		WHERE x.grantee = 0 AND x.privilege_type = 'CREATE' ORDER BY n.nspname`); err != nil {
		return fail(err)
	}
	onDatabase, err := r.queryNames(ctx, `SELECT x.privilege_type FROM pg_database AS d
		CROSS JOIN LATERAL aclexplode(COALESCE(d.datacl, acldefault('d', d.datdba))) AS x
		WHERE d.datname = current_database() AND x.grantee = 0 ORDER BY x.privilege_type`)
	if err != nil {
		return fail(err)
	}
	for _, privilege := range onDatabase {
		switch privilege {
		case "CONNECT":
			f.PublicConnect = true
		case "CREATE", "TEMPORARY":
			f.PublicOnDatabase = append(f.PublicOnDatabase, privilege)
		}
	}
	// KeepRoles get by name the rights that PUBLIC loses. Left out are roles that pgconsent has made for another database,
	// so that migrate --down there can drop them. Left out are also roles that cannot connect to this database.
	f.KeepRoles, err = r.queryNames(ctx, `SELECT r.rolname FROM pg_roles AS r
		WHERE NOT r.rolsuper AND r.rolname !~ '^pg_' AND r.rolname <> ALL ($1::text[]) AND NOT `+isMarkedCondition+`
			AND has_database_privilege(r.oid, current_database(), 'CONNECT') ORDER BY r.rolname`,
		[]string{o.AgentRole, o.ControlRole, o.ReaderRole, o.RowsRole})
	if err != nil {
		return fail(err)
	}
	return f, nil
}

// queryNames runs a query with one column of type text or name, and returns its values.
func (r *migrationRun) queryNames(ctx context.Context, sql string, args ...any) ([]string, error) {
	rows, err := r.tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// checkAgentRights returns an error if the agent role can still create objects. This can happen since REVOKE by a role
// that has not granted the right does nothing, without an error.
func (r *migrationRun) checkAgentRights(ctx context.Context, o Options) error {
	missing, err := r.missingRevocations(ctx, o)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return &MissingRightsError{missing}
	}
	return nil
}

// missingRevocations returns the REVOKE statements after which the agent role could create no objects. It returns none
// if the role already cannot.
func (r *migrationRun) missingRevocations(ctx context.Context, o Options) ([]Statement, error) {
	fail := func(err error) ([]Statement, error) {
		return nil, fmt.Errorf("migrate: check the agent's role: %w", err)
	}
	var missing []Statement
	var database string
	agent := quoteIdent(o.AgentRole)
	for _, privilege := range []string{"TEMPORARY", "CREATE"} {
		var has bool
		err := r.tx.QueryRow(ctx, `SELECT current_database(), COALESCE((SELECT has_database_privilege(r.oid, current_database(), $2)
			FROM pg_roles AS r WHERE r.rolname = $1), false)`, o.AgentRole, privilege).Scan(&database, &has)
		if err != nil {
			return fail(err)
		}
		if has {
			missing = append(missing, Statement{
				fmt.Sprintf("REVOKE %s ON DATABASE %s FROM PUBLIC, %s", privilege, quoteIdent(database), agent),
				"an agent that can make objects can run its own code inside ours; grant the right by name to the roles that need it",
			})
		}
	}
	schemas, err := r.queryNames(ctx, `SELECT n.nspname FROM pg_namespace AS n CROSS JOIN pg_roles AS r
		WHERE r.rolname = $1 AND has_schema_privilege(r.oid, n.oid, 'CREATE') ORDER BY 1`, o.AgentRole)
	if err != nil {
		return fail(err)
	}
	for _, s := range schemas {
		missing = append(missing, Statement{
			fmt.Sprintf("REVOKE CREATE ON SCHEMA %s FROM PUBLIC, %s", quoteIdent(s), agent),
			"an agent that can make objects can run its own code inside ours",
		})
	}
	return missing, nil
}
