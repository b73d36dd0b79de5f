package migrations

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Changed counts the objects that Up has dropped, made or replaced, and their tables. AllObjects and AllTables also
// count those that stayed.
type Changed struct {
	Objects    int `json:"objects"`
	AllObjects int `json:"all_objects"`
	Tables     int `json:"tables"`
	AllTables  int `json:"all_tables"`
}

// install changes only the objects that differ, if the database records the installed plan and nobody has altered its
// objects. Otherwise, or if other objects depend on one that must be dropped, it drops all installed objects and makes
// all anew.
func (r *migrationRun) install(ctx context.Context, o Options, p Plan) (Changed, error) {
	have, err := r.installedBase(ctx)
	if err != nil {
		return Changed{}, err
	}
	in, err := r.inspectInstalled(ctx, have, o)
	if err != nil {
		return Changed{}, err
	}
	if in.plan != nil {
		d := comparePlans(in.plan.objects, p.Objects(in.found))
		done, err := r.installDifference(ctx, o, p, in, d)
		if err != nil || done {
			return d.changed(), err
		}
	}
	return r.installWhole(ctx, o, p, in)
}

// installedState says what an earlier migrate has installed.
type installedState struct {
	baseNumber int  // the number of the newest installed base migration
	altered    bool // somebody has altered an installed object
	plan       *installedPlan
	found      Found // the state for which the next plan is made; set only if plan is
}

// inspectInstalled reads what is installed. The result has a plan only if the next plan can be compared with it. For
// that, the base must be the newest, no object may be altered, and the database's name and the roles must be the same
// as before. The name matters since a copy of a database has the objects, but not the privileges on the database
// itself.
func (r *migrationRun) inspectInstalled(ctx context.Context, have int, o Options) (installedState, error) {
	in := installedState{baseNumber: have}
	if have != len(baseMigrations) {
		return in, nil
	}
	var err error
	if in.altered, err = r.isAltered(ctx); err != nil || in.altered {
		return in, err
	}
	missing, err := r.missingRevocations(ctx, o)
	if err != nil || len(missing) > 0 {
		return in, err
	}
	plan, err := r.readInstalledPlan(ctx)
	if err != nil || plan == nil || !slices.Equal(plan.basis.Roles, o.roles()) {
		return in, err
	}
	known, err := r.queryNames(ctx, "SELECT r.rolname FROM pg_catalog.pg_roles AS r WHERE r.rolname = ANY ($1::text[])", o.roles())
	if err != nil || len(known) != len(o.roles()) {
		return in, err
	}
	now, err := r.findState(ctx, o)
	if err != nil || plan.basis.Database != now.Database {
		return in, err
	}
	if in.found, err = r.stateWithoutPlan(ctx, plan.basis, now); err == nil {
		in.plan = plan
	}
	return in, err
}

// installDifference changes only the objects that differ from the installed plan. done is false if all objects must be
// made anew instead.
func (r *migrationRun) installDifference(ctx context.Context, o Options, p Plan, in installedState,
	d difference) (done bool, err error) {
	if len(d.dropped)+len(d.steps) == 0 {
		if in.plan.Hash != p.Hash() || in.plan.PolicyVersion != p.PolicyVersion() {
			if err := r.recordInstalled(ctx, p, in.plan.basis); err != nil {
				return false, err
			}
		}
		return true, r.finish(ctx, o)
	}
	if err := r.lockTables(ctx, d.changedTables(), false); err != nil {
		return false, err
	}
	if _, err := r.createRoles(ctx, o); err != nil {
		return false, err
	}
	ran := len(r.statements)
	if err := r.execUnlisted(ctx, "SAVEPOINT pgconsent_difference"); err != nil {
		return false, err
	}
	err = r.applyDifference(ctx, o, p, in, d)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && slices.Contains([]string{
		"2BP01", // an object of others depends on one to drop
		"42P16", // a view with other columns cannot be replaced
	}, pgErr.Code) {
		r.statements = r.statements[:ran]
		return false, r.execUnlisted(ctx, "ROLLBACK TO SAVEPOINT pgconsent_difference")
	}
	return true, err
}

// applyDifference drops, makes and replaces the objects in d, and revokes rights that no object of the new plan grants.
func (r *migrationRun) applyDifference(ctx context.Context, o Options, p Plan, in installedState, d difference) error {
	before, err := r.readPrivileges(ctx)
	if err != nil {
		return err
	}
	for _, was := range d.dropped {
		if err := r.tryAll(ctx, was.undoStatements); err != nil {
			return err
		}
	}
	for _, sql := range d.revokeStatements() {
		if _, err := r.tryExec(ctx, Statement{sql, "The policy does not give this right any more."},
			undefinedCodes...); err != nil {
			return err
		}
	}
	release, err := r.joinOwners(ctx, o, in.found)
	if err != nil {
		return err
	}
	for _, s := range d.steps {
		if err := r.execAll(ctx, s.statements()); err != nil {
			return err
		}
	}
	if err := release(); err != nil {
		return err
	}
	if err := r.finish(ctx, o); err != nil {
		return err
	}
	after, err := r.readPrivileges(ctx)
	if err != nil {
		return err
	}
	if err := r.execAll(ctx, in.plan.privileges.restoreStatements(before, after)); err != nil {
		return err
	}
	in.plan.privileges.add(before, after)
	return r.recordPlan(ctx, p, in, d)
}

// finish makes missing event triggers, sets passwords and checks the agent role's rights, at the end of every migrate.
func (r *migrationRun) finish(ctx context.Context, o Options) error {
	if err := r.createEventTriggers(ctx); err != nil {
		return err
	}
	if err := r.setPasswords(ctx, o); err != nil {
		return err
	}
	return r.checkAgentRights(ctx, o)
}

// installWhole drops all objects of an earlier migrate, and makes all objects of the plan p.
func (r *migrationRun) installWhole(ctx context.Context, o Options, p Plan, in installedState) (Changed, error) {
	if err := r.lockTables(ctx, tablesOf(p.Objects(Found{})), in.baseNumber > 0); err != nil {
		return Changed{}, err
	}
	if in.baseNumber > 0 {
		if err := r.undoAll(ctx); err != nil {
			return Changed{}, err
		}
	}
	made, err := r.createRoles(ctx, o)
	if err != nil {
		return Changed{}, err
	}
	if err := r.installBase(ctx, in.baseNumber); err != nil {
		return Changed{}, err
	}
	if in.altered || in.baseNumber > 0 && in.baseNumber < len(baseMigrations) {
		if err := r.restoreBase(ctx); err != nil {
			return Changed{}, err
		}
	}
	before, err := r.readPrivileges(ctx)
	if err != nil {
		return Changed{}, err
	}
	for _, role := range made {
		if err := r.exec(ctx, Statement{
			"INSERT INTO pgconsent.installed_role (name) VALUES (" + quoteLiteral(role) + ") ON CONFLICT DO NOTHING",
			"Remember which roles to drop again.",
		}); err != nil {
			return Changed{}, err
		}
	}
	if in.found, err = r.findState(ctx, o); err != nil {
		return Changed{}, err
	}
	d := comparePlans(nil, p.Objects(in.found))
	release, err := r.joinOwners(ctx, o, in.found)
	if err != nil {
		return Changed{}, err
	}
	if err := r.execAll(ctx, MakeAll(d.newObjects)); err != nil {
		return Changed{}, err
	}
	// the agents' rights were all granted anew, so the list of withdrawn rights is emptied
	if err := r.execUnlisted(ctx, "DELETE FROM pgconsent.withheld"); err != nil {
		return Changed{}, err
	}
	if err := release(); err != nil {
		return Changed{}, err
	}
	if err := r.finish(ctx, o); err != nil {
		return Changed{}, err
	}
	after, err := r.readPrivileges(ctx)
	if err != nil {
		return Changed{}, err
	}
	in.plan = &installedPlan{basis: newBasis(in.found, o, d.newObjects), privileges: newPrivilegeChanges(before, after)}
	return d.changed(), r.recordPlan(ctx, p, in, d)
}

// down removes all objects and base migrations from the database, and the roles that migrate has made, unless another
// database needs these.
func (r *migrationRun) down(ctx context.Context, o Options) error {
	have, err := r.installedBase(ctx)
	if err != nil {
		return err
	}
	if have == 0 {
		return ErrNotInstalled
	}
	if err := r.lockTables(ctx, nil, true); err != nil {
		return err
	}
	if err := r.undoAll(ctx); err != nil {
		return err
	}
	made, err := r.readMadeRoles(ctx)
	if err != nil {
		return err
	}
	marked, err := r.readMarkedRoles(ctx, o)
	if err != nil {
		return err
	}
	needed, err := r.areNeededElsewhere(ctx, o)
	if err != nil {
		return err
	}
	if err := r.removeBase(ctx, have); err != nil {
		return err
	}
	if needed {
		return nil
	}
	for _, role := range slices.Compact(slices.Sorted(slices.Values(append(made, marked...)))) {
		if _, err := r.tryExec(ctx, Statement{"DROP ROLE IF EXISTS " + quoteIdent(role),
			"Drop the role, unless another database needs it."}, "2BP01", "42501", "55006"); err != nil {
			return err
		}
	}
	return nil
}

// undefinedCodes are the SQLSTATEs for a table, column, role, schema, function or database that does not exist. An undo
// statement that fails with one of these has nothing to undo.
var undefinedCodes = []string{"42P01", "42703", "42704", "3F000", "42883", "3D000"}

// undoAll drops all objects of the installed plan, and restores the privileges that migrations have changed.
func (r *migrationRun) undoAll(ctx context.Context) error {
	statements, err := r.undoStatements(ctx)
	if err != nil {
		return err
	}
	changes, err := r.readPrivilegeChanges(ctx)
	if err != nil {
		return err
	}
	if err := r.tryAll(ctx, append(statements, changes.undoStatements(r.databaseIdent(ctx))...)); err != nil {
		return err
	}
	return r.exec(ctx, Statement{"DELETE FROM pgconsent.installed_undo; DELETE FROM pgconsent.installed; " +
		"DELETE FROM pgconsent.installed_plan; DELETE FROM pgconsent.installed_privilege", "Nothing is left to undo."})
}

// tryAll runs statements, and ignores those that fail because an object does not exist.
func (r *migrationRun) tryAll(ctx context.Context, statements []Statement) error {
	for _, s := range statements {
		if _, err := r.tryExec(ctx, s, undefinedCodes...); err != nil {
			return err
		}
	}
	return nil
}

// tablesOf returns the quoted names of the objects' tables, sorted and each once.
func tablesOf(objects []Object) []string {
	var out []string
	for _, o := range objects {
		out = append(out, tableNames(o.Tables)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func tableNames(tables []catalog.Name) []string {
	out := make([]string, len(tables))
	for i, t := range tables {
		out[i] = t.SQL()
	}
	return out
}

// recordInstalled records the hash, policy version and basis of the plan that is installed now.
func (r *migrationRun) recordInstalled(ctx context.Context, p Plan, b planBasis) error {
	return r.exec(ctx, Statement{fmt.Sprintf(
		"DELETE FROM pgconsent.installed; INSERT INTO pgconsent.installed (hash, policy_version, found) VALUES (%s, %s, %s)",
		quoteLiteral(p.Hash()), quoteLiteral(p.PolicyVersion()), quoteLiteral(b.String())),
		"Say which policy is installed: proxies compare it with theirs."})
}
