package migrations

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func (r *run) up(ctx context.Context, o Options, p Plan) error {
	have, err := r.installedBase(ctx)
	if err != nil {
		return err
	}
	putBack := false
	if have > 0 {
		current, err := r.isCurrent(ctx, have, o, p)
		if err != nil {
			return err
		}
		if current {
			if err := r.watchDDL(ctx); err != nil {
				return err
			}
			return r.passwords(ctx, o)
		}
		if err := r.lock(ctx, p.Tables()); err != nil {
			return err
		}
		putBack = true
		if have == len(bases) {
			if putBack, err = r.altered(ctx); err != nil {
				return err
			}
		}
		if err := r.undo(ctx); err != nil {
			return err
		}
	}
	if have == 0 {
		if err := r.lock(ctx, p.Tables()); err != nil {
			return err
		}
	}
	made, err := r.roles(ctx, o)
	if err != nil {
		return err
	}
	if err := r.installBase(ctx, have); err != nil {
		return err
	}
	if putBack {
		if err := r.putBack(ctx); err != nil {
			return err
		}
	}
	before, err := r.privileges(ctx)
	if err != nil {
		return err
	}
	for _, role := range made {
		if err := r.exec(ctx, Statement{
			"INSERT INTO pgconsent.installed_role (name) VALUES (" + quoteLiteral(role) + ") ON CONFLICT DO NOTHING",
			"Remember which roles to drop again.",
		}); err != nil {
			return err
		}
	}
	found, err := r.find(ctx, o)
	if err != nil {
		return err
	}
	release, err := r.joinOwners(ctx, o, found)
	if err != nil {
		return err
	}
	if err := r.execAll(ctx, p.UpFrom(found)); err != nil {
		return err
	}
	if err := r.quietly(ctx, "DELETE FROM pgconsent.withheld"); err != nil { // all rights are given anew
		return err
	}
	if err := release(); err != nil {
		return err
	}
	if err := r.watchDDL(ctx); err != nil {
		return err
	}
	if err := r.passwords(ctx, o); err != nil {
		return err
	}
	if err := r.check(ctx, o); err != nil {
		return err
	}
	after, err := r.privileges(ctx)
	if err != nil {
		return err
	}
	return r.remember(ctx, p, append(p.DownTo(found), restore(before, after)...))
}

// isCurrent tells whether the database has what p asks for, unchanged. A copy of a database has its objects and not the
// privileges on the database itself: what PUBLIC could do in the original before migrate, it can do in the copy.
func (r *run) isCurrent(ctx context.Context, have int, o Options, p Plan) (bool, error) {
	in, err := r.installed(ctx)
	if err != nil || have != len(bases) || in.Hash != p.Hash() || in.PolicyVersion != p.PolicyVersion() {
		return false, err
	}
	altered, err := r.altered(ctx)
	if err != nil || altered {
		return false, err
	}
	waiting, err := ReadWaiting(ctx, r.tx)
	if err != nil || len(waiting) > 0 {
		return false, err
	}
	missing, err := r.mayMake(ctx, o)
	return len(missing) == 0, err
}

// remember writes what is installed and how to undo it.
func (r *run) remember(ctx context.Context, p Plan, undo []Statement) error {
	if err := r.exec(ctx, Statement{fmt.Sprintf(
		"DELETE FROM pgconsent.installed; INSERT INTO pgconsent.installed (hash, policy_version) VALUES (%s, %s)",
		quoteLiteral(p.Hash()), quoteLiteral(p.PolicyVersion())),
		"Say which policy is installed: proxies compare it with theirs."}); err != nil {
		return err
	}
	if err := r.exec(ctx, insert("pgconsent.installed_undo (seq, sql, why)",
		"Remember how to restore what was found.", len(undo), func(i int) []string {
			return []string{strconv.Itoa(i), quoteLiteral(undo[i].SQL), quoteLiteral(undo[i].Why)}
		})); err != nil {
		return err
	}
	objects, err := objects(ctx, r.tx)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(objects))
	return r.exec(ctx, insert("pgconsent.installed_object (identity, fingerprint)",
		"Remember what was made, to notice drift.", len(names), func(i int) []string {
			return []string{quoteLiteral(names[i]), quoteLiteral(objects[names[i]])}
		}))
}

// insert replaces the rows of one of our tables.
func insert(into, why string, n int, row func(int) []string) Statement {
	table, _, _ := strings.Cut(into, " ")
	sql := "DELETE FROM " + table
	for i := range n {
		separator := ",\n"
		if i == 0 {
			separator = ";\nINSERT INTO " + into + " VALUES\n"
		}
		sql += separator + "(" + strings.Join(row(i), ", ") + ")"
	}
	return Statement{sql, why}
}

// undo takes away what the last plan made and restores what it found.
func (r *run) undo(ctx context.Context) error {
	statements, err := r.undoStatements(ctx)
	if err != nil {
		return err
	}
	for _, s := range statements {
		// A table, role, schema or function that is gone needs no restoring.
		if _, err := r.try(ctx, s, "42P01", "42704", "3F000", "42883"); err != nil {
			return err
		}
	}
	return r.exec(ctx, Statement{"DELETE FROM pgconsent.installed_undo; DELETE FROM pgconsent.installed",
		"Nothing is left to undo."})
}

func (r *run) down(ctx context.Context, o Options) error {
	have, err := r.installedBase(ctx)
	if err != nil {
		return err
	}
	if have == 0 {
		return ErrNotInstalled
	}
	if err := r.lock(ctx, nil); err != nil {
		return err
	}
	if err := r.undo(ctx); err != nil {
		return err
	}
	made, err := r.madeRoles(ctx)
	if err != nil {
		return err
	}
	if err := r.removeBase(ctx, have); err != nil {
		return err
	}
	for _, role := range made {
		if _, err := r.try(ctx, Statement{"DROP ROLE IF EXISTS " + quoteIdent(role),
			"Drop the role, unless another database needs it."}, "2BP01", "42501", "55006"); err != nil {
			return err
		}
	}
	return nil
}
