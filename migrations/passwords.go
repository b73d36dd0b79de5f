package migrations

import (
	"context"
	"fmt"
	"slices"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// setPasswords sets the passwords in the options. Roles belong to the whole server, so a role that migrate has not made
// in this database may serve another one. If such a role has rights there, its password is set only if it has none.
func (r *migrationRun) setPasswords(ctx context.Context, o Options) error {
	own, err := r.readMadeRoles(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	for _, role := range []struct{ name, password, key string }{
		{o.AgentRole, o.AgentPassword, "agent"}, {o.ControlRole, o.ControlPassword, "control"}} {
		if role.password == "" {
			continue
		}
		if !slices.Contains(own, role.name) {
			switch state, err := r.password(ctx, role.name, role.password); {
			case err != nil:
				return fmt.Errorf("migrate: %w", err)
			case state == isSame, state == isUnknown: // for isUnknown, serve and doctor report a wrong password
				continue
			case state == isOther:
				return sqlstate.New(sqlstate.InvalidPassword, sqlstate.ReasonIdentity,
					"role %s was there before, with another password than that of secrets.%s", role.name, role.key).
					WithHint(
						"Another database of this server may be served by it. Give this one a role of its own, "+
							"under roles.%s in its configuration, or put the role's password where secrets.%s says. "+
							"To change it for all of them: ALTER ROLE %s PASSWORD NULL, and migrate again.", role.key,
						role.key, quoteIdent(role.name))
			}
		}
		verifier, err := config.NewVerifier(role.password) // so that no statement or log contains the password
		if err != nil {
			return fmt.Errorf("migrate: the password of %s: %w", role.name, err)
		}
		if err := r.execUnlisted(ctx, "ALTER ROLE "+quoteIdent(role.name)+" PASSWORD "+quoteLiteral(verifier)); err != nil {
			return fmt.Errorf("migrate: set the password of %s: %w", role.name, err)
		}
	}
	return nil
}

// passwordState says how a role's current password compares with the configured one.
type passwordState int

const (
	mayBeSet passwordState = iota // the role has no password, or no rights in another database
	isSame
	isOther
	isUnknown // the migrating role may not read pg_authid
)

func (r *migrationRun) password(ctx context.Context, role, password string) (passwordState, error) {
	var elsewhere, may bool
	err := r.tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_shdepend AS d, pg_catalog.pg_database AS here
			WHERE here.datname = pg_catalog.current_database() AND d.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND d.refobjid = r.oid
			  AND CASE WHEN d.dbid <> 0 THEN d.dbid WHEN d.classid = 'pg_catalog.pg_database'::pg_catalog.regclass THEN d.objid
			    ELSE here.oid END <> here.oid),
		pg_catalog.has_table_privilege('pg_catalog.pg_authid', 'SELECT')
		FROM pg_catalog.pg_roles AS r WHERE r.rolname = $1`, role).Scan(&elsewhere, &may)
	switch {
	case err != nil:
		return isUnknown, fmt.Errorf("look at role %s: %w", role, err)
	case !elsewhere:
		return mayBeSet, nil
	case !may:
		return isUnknown, nil
	}
	var verifier *string
	if err := r.tx.QueryRow(ctx, "SELECT a.rolpassword FROM pg_catalog.pg_authid AS a WHERE a.rolname = $1",
		role).Scan(&verifier); err != nil {
		return isUnknown, fmt.Errorf("look at role %s: %w", role, err)
	}
	switch {
	case verifier == nil:
		return mayBeSet, nil
	case config.MatchesPassword(*verifier, password):
		return isSame, nil
	}
	return isOther, nil
}
