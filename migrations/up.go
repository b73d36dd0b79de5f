package migrations

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Changed counts the objects of a plan that were dropped, made or replaced, and the tables to which they belong.
type Changed struct {
	Objects    int `json:"objects"`
	AllObjects int `json:"all_objects"`
	Tables     int `json:"tables"`
	AllTables  int `json:"all_tables"`
}

// up changes only the objects that differ, where it is known what is installed and nothing of it was altered by hand.
// Else, and where others depend on something that has to be dropped, it drops all that was installed and makes all anew.
func (r *run) up(ctx context.Context, o Options, p Plan) (Changed, error) {
	have, err := r.installedBase(ctx)
	if err != nil {
		return Changed{}, err
	}
	in, err := r.inspect(ctx, have, o)
	if err != nil {
		return Changed{}, err
	}
	if in.plan != nil {
		d := compare(in.plan.objects, p.Objects(in.found))
		done, err := r.upDifference(ctx, o, p, in, d)
		if err != nil || done {
			return d.changed(), err
		}
	}
	return r.upWhole(ctx, o, p, in)
}

// inspection is what up finds of an earlier migrate.
type inspection struct {
	have    int  // base migrations
	altered bool // some of it is not as it was made
	plan    *installedPlan
	found   Found // the state that a plan has to fit in, beside the one that is installed; only with a plan
}

// inspect has a plan where the next one can be compared with it: the base is the newest, nothing was altered, and the
// database and the roles are those of then. A copy of a database has its objects and not the privileges on the database
// itself: PUBLIC may do in the copy what it could do in the original before migrate.
func (r *run) inspect(ctx context.Context, have int, o Options) (inspection, error) {
	in := inspection{have: have}
	if have != len(bases) {
		return in, nil
	}
	var err error
	if in.altered, err = r.altered(ctx); err != nil || in.altered {
		return in, err
	}
	missing, err := r.mayMake(ctx, o)
	if err != nil || len(missing) > 0 {
		return in, err
	}
	plan, err := r.readPlan(ctx)
	if err != nil || plan == nil || !slices.Equal(plan.basis.Roles, o.roles()) {
		return in, err
	}
	known, err := r.names(ctx, "SELECT r.rolname FROM pg_catalog.pg_roles AS r WHERE r.rolname = ANY ($1::text[])", o.roles())
	if err != nil || len(known) != len(o.roles()) {
		return in, err
	}
	now, err := r.find(ctx, o)
	if err != nil || plan.basis.Database != now.Database {
		return in, err
	}
	if in.found, err = r.foundBeside(ctx, plan.basis, now); err == nil {
		in.plan = plan
	}
	return in, err
}

// upDifference changes what differs from the plan that is installed. It is not done where it has to be made whole.
func (r *run) upDifference(ctx context.Context, o Options, p Plan, in inspection, d difference) (done bool, err error) {
	if len(d.drop)+len(d.steps) == 0 {
		if in.plan.Hash != p.Hash() || in.plan.PolicyVersion != p.PolicyVersion() {
			if err := r.sayInstalled(ctx, p, in.plan.basis); err != nil {
				return false, err
			}
		}
		return true, r.finish(ctx, o)
	}
	if err := r.lock(ctx, d.tables(), false); err != nil {
		return false, err
	}
	if _, err := r.roles(ctx, o); err != nil {
		return false, err
	}
	ran := len(r.ran)
	if err := r.quietly(ctx, "SAVEPOINT pgconsent_difference"); err != nil {
		return false, err
	}
	err = r.apply(ctx, o, p, in, d)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && slices.Contains([]string{
		"2BP01", // something else depends on an object
		"42P16", // a view cannot be replaced: it has other columns
	}, pgErr.Code) {
		r.ran = r.ran[:ran]
		return false, r.quietly(ctx, "ROLLBACK TO SAVEPOINT pgconsent_difference")
	}
	return true, err
}

// apply drops, makes and replaces objects, and takes rights back that no object gives any more.
func (r *run) apply(ctx context.Context, o Options, p Plan, in inspection, d difference) error {
	before, err := r.privileges(ctx)
	if err != nil {
		return err
	}
	for _, was := range d.drop {
		if err := r.tryAll(ctx, was.undo); err != nil {
			return err
		}
	}
	for _, sql := range d.revokes() {
		if _, err := r.try(ctx, Statement{sql, "The policy does not give this right any more."}, gone...); err != nil {
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
	after, err := r.privileges(ctx)
	if err != nil {
		return err
	}
	if err := r.execAll(ctx, in.plan.privileges.giveBack(before, after)); err != nil {
		return err
	}
	in.plan.privileges.add(before, after)
	return r.remember(ctx, p, in, d)
}

// finish is done by each migrate, whatever it changes.
func (r *run) finish(ctx context.Context, o Options) error {
	if err := r.watchDDL(ctx); err != nil {
		return err
	}
	if err := r.passwords(ctx, o); err != nil {
		return err
	}
	return r.check(ctx, o)
}

// upWhole takes away what an earlier migrate has installed, and makes all objects.
func (r *run) upWhole(ctx context.Context, o Options, p Plan, in inspection) (Changed, error) {
	if err := r.lock(ctx, tablesOf(p.Objects(Found{})), in.have > 0); err != nil {
		return Changed{}, err
	}
	if in.have > 0 {
		if err := r.undo(ctx); err != nil {
			return Changed{}, err
		}
	}
	made, err := r.roles(ctx, o)
	if err != nil {
		return Changed{}, err
	}
	if err := r.installBase(ctx, in.have); err != nil {
		return Changed{}, err
	}
	if in.altered || in.have > 0 && in.have < len(bases) {
		if err := r.putBack(ctx); err != nil {
			return Changed{}, err
		}
	}
	before, err := r.privileges(ctx)
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
	if in.found, err = r.find(ctx, o); err != nil {
		return Changed{}, err
	}
	d := compare(nil, p.Objects(in.found))
	release, err := r.joinOwners(ctx, o, in.found)
	if err != nil {
		return Changed{}, err
	}
	if err := r.execAll(ctx, MakeAll(d.all)); err != nil {
		return Changed{}, err
	}
	if err := r.quietly(ctx, "DELETE FROM pgconsent.withheld"); err != nil { // all rights are given anew
		return Changed{}, err
	}
	if err := release(); err != nil {
		return Changed{}, err
	}
	if err := r.finish(ctx, o); err != nil {
		return Changed{}, err
	}
	after, err := r.privileges(ctx)
	if err != nil {
		return Changed{}, err
	}
	in.plan = &installedPlan{basis: newBasis(in.found, o, d.all), privileges: newPrivilegeChanges(before, after)}
	return d.changed(), r.remember(ctx, p, in, d)
}

func (r *run) down(ctx context.Context, o Options) error {
	have, err := r.installedBase(ctx)
	if err != nil {
		return err
	}
	if have == 0 {
		return ErrNotInstalled
	}
	if err := r.lock(ctx, nil, true); err != nil {
		return err
	}
	if err := r.undo(ctx); err != nil {
		return err
	}
	made, err := r.madeRoles(ctx)
	if err != nil {
		return err
	}
	marked, err := r.markedRoles(ctx, o)
	if err != nil {
		return err
	}
	needed, err := r.neededElsewhere(ctx, o)
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
		if _, err := r.try(ctx, Statement{"DROP ROLE IF EXISTS " + quoteIdent(role),
			"Drop the role, unless another database needs it."}, "2BP01", "42501", "55006"); err != nil {
			return err
		}
	}
	return nil
}

// gone are the codes of errors that a table, column, role, schema, function or database does not exist: it needs no
// restoring.
var gone = []string{"42P01", "42703", "42704", "3F000", "42883", "3D000"}

// undo takes away what earlier plans have made, and restores what they found.
func (r *run) undo(ctx context.Context) error {
	statements, err := r.undoStatements(ctx)
	if err != nil {
		return err
	}
	changes, err := r.readPrivilegeChanges(ctx)
	if err != nil {
		return err
	}
	if err := r.tryAll(ctx, append(statements, changes.undo(r.databaseIdent(ctx))...)); err != nil {
		return err
	}
	return r.exec(ctx, Statement{"DELETE FROM pgconsent.installed_undo; DELETE FROM pgconsent.installed; " +
		"DELETE FROM pgconsent.installed_plan; DELETE FROM pgconsent.installed_privilege", "Nothing is left to undo."})
}

// tryAll runs statements, but for those about what is gone.
func (r *run) tryAll(ctx context.Context, statements []Statement) error {
	for _, s := range statements {
		if _, err := r.try(ctx, s, gone...); err != nil {
			return err
		}
	}
	return nil
}

// tablesOf are the tables to which objects belong, each once, as SQL names them.
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

// sayInstalled says which policy is installed.
func (r *run) sayInstalled(ctx context.Context, p Plan, b basis) error {
	return r.exec(ctx, Statement{fmt.Sprintf(
		"DELETE FROM pgconsent.installed; INSERT INTO pgconsent.installed (hash, policy_version, found) VALUES (%s, %s, %s)",
		quoteLiteral(p.Hash()), quoteLiteral(p.PolicyVersion()), quoteLiteral(b.String())),
		"Say which policy is installed: proxies compare it with theirs."})
}
