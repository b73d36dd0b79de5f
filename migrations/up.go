package migrations

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Changed counts the objects of a plan that were dropped, made or replaced, and the tables to which these belong.
type Changed struct {
	Objects    int `json:"objects"`
	AllObjects int `json:"all_objects"`
	Tables     int `json:"tables"`
	AllTables  int `json:"all_tables"`
}

// install changes only the objects that differ, if the installed plan is recorded and nothing in it was altered by
// hand. Otherwise, and if other objects depend on one that must be dropped, it drops everything that is installed and
// makes everything anew.
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

// installedState is what install finds of an earlier migrate.
type installedState struct {
	baseNumber int  // the number of the newest installed base migration
	altered    bool // some installed object has changed since migrate made it
	plan       *installedPlan
	found      Found // the state into which a plan has to fit that replaces the installed one; set only if plan is
}

// inspectInstalled reads what is installed. The result has a plan if the next plan can be compared with it. The base
// must be the newest, nothing may be altered, and database and roles must be the same as before. A copy of a database
// has its objects and not the privileges on the database itself. PUBLIC may do in the copy what it could do in the
// original before migrate.
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

// installDifference changes only the objects that differ from the installed plan. done is false if everything has to be
// made anew.
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
		"2BP01", // another object depends on one that must be dropped
		"42P16", // a view cannot be replaced because its columns differ
	}, pgErr.Code) {
		r.statements = r.statements[:ran]
		return false, r.execUnlisted(ctx, "ROLLBACK TO SAVEPOINT pgconsent_difference")
	}
	return true, err
}

// applyDifference drops, makes and replaces objects, and takes back rights that no object gives any more.
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

// finish does what each migrate does at its end, whatever it has changed.
func (r *migrationRun) finish(ctx context.Context, o Options) error {
	if err := r.createEventTriggers(ctx); err != nil {
		return err
	}
	if err := r.setPasswords(ctx, o); err != nil {
		return err
	}
	return r.checkAgentRights(ctx, o)
}

// installWhole removes what an earlier migrate has installed, and makes all objects.
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
	// all rights are given anew, so none is withheld
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

// down removes what migrate has installed.
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

// undefinedCodes are the SQLSTATEs for a table, column, role, schema, function or database that does not exist, so that
// nothing of it needs restoring.
var undefinedCodes = []string{"42P01", "42703", "42704", "3F000", "42883", "3D000"}

// undoAll removes what earlier plans have made, and restores what they found.
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

// tryAll runs statements, and ignores failures of statements about objects that do not exist.
func (r *migrationRun) tryAll(ctx context.Context, statements []Statement) error {
	for _, s := range statements {
		if _, err := r.tryExec(ctx, s, undefinedCodes...); err != nil {
			return err
		}
	}
	return nil
}

// tablesOf returns the tables to which objects belong, each once, as SQL names them.
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

// recordInstalled records which policy is installed.
func (r *migrationRun) recordInstalled(ctx context.Context, p Plan, b planBasis) error {
	return r.exec(ctx, Statement{fmt.Sprintf(
		"DELETE FROM pgconsent.installed; INSERT INTO pgconsent.installed (hash, policy_version, found) VALUES (%s, %s, %s)",
		quoteLiteral(p.Hash()), quoteLiteral(p.PolicyVersion()), quoteLiteral(b.String())),
		"Say which policy is installed: proxies compare it with theirs."})
}
