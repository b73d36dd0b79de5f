package migrations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// installedPlan is what is stored of the plan that is installed.
type installedPlan struct {
	Installed
	basis      basis
	objects    map[string]installedObject // by identity
	privileges privilegeChanges
	lowest     int // the number of the statement that undo begins with
}

// installedObject is what is stored of one object.
type installedObject struct {
	identity, made  string
	tables, revokes []string
	undo            []Statement
	order           int // the number of the first of these: what was made later has a lower one
}

// basis is the state that a plan was made for, as far as the next one has to fit in it.
type basis struct {
	Database string
	Roles    []string

	RowSecurity      map[string]bool // of the tables of the plan
	PublicOnDatabase []string
	PublicCreate     []string
	KeepRoles        []string
}

func newBasis(f Found, o Options, objects []Object) basis {
	b := basis{
		Database: f.Database, Roles: o.roles(), RowSecurity: map[string]bool{},
		PublicOnDatabase: f.PublicOnDatabase, PublicCreate: f.PublicCreate, KeepRoles: f.KeepRoles,
	}
	b.add(f, objects)
	return b
}

// add adds the tables of objects.
func (b *basis) add(f Found, objects []Object) {
	for _, o := range objects {
		for _, t := range o.Tables {
			b.RowSecurity[t.String()] = f.RowSecurity[t.String()]
		}
	}
}

func (b basis) String() string {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // strings and booleans
	}
	return string(text)
}

func (o Options) roles() []string {
	return []string{o.AgentRole, o.ControlRole, o.ReaderRole, o.RowsRole}
}

// foundBeside is the state that a plan has to fit in that takes the place of one which is installed: as the database is
// now, but for what that plan has changed of it.
func (r *run) foundBeside(ctx context.Context, b basis, now Found) (Found, error) {
	maps.Copy(now.RowSecurity, b.RowSecurity)
	now.PublicOnDatabase = b.PublicOnDatabase
	var err error
	if now.PublicCreate, err = r.names(ctx,
		"SELECT n.nspname FROM pg_namespace AS n WHERE n.nspname = ANY ($1::text[]) ORDER BY n.nspname", b.PublicCreate); err != nil {
		return Found{}, fmt.Errorf("migrate: look at the database: %w", err)
	}
	now.KeepRoles = slices.DeleteFunc(slices.Clone(b.KeepRoles), func(role string) bool {
		return !slices.Contains(now.KeepRoles, role) // it was dropped
	})
	return now, nil
}

// readPlan reads what is stored of the plan that is installed; nil where there is none.
func (r *run) readPlan(ctx context.Context) (*installedPlan, error) {
	fail := func(err error) (*installedPlan, error) {
		return nil, fmt.Errorf("migrate: read what is installed: %w", err)
	}
	p := &installedPlan{objects: map[string]installedObject{}}
	var found string
	err := r.tx.QueryRow(ctx, "SELECT i.hash, i.policy_version, i.found FROM pgconsent.installed AS i").
		Scan(&p.Hash, &p.PolicyVersion, &found)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return fail(err)
	}
	if err := json.Unmarshal([]byte(found), &p.basis); err != nil {
		return fail(err)
	}
	var o installedObject
	rows, err := r.tx.Query(ctx, "SELECT p.identity, p.made, p.tables, p.revokes FROM pgconsent.installed_plan AS p")
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&o.identity, &o.made, &o.tables, &o.revokes}, func() error {
			p.objects[o.identity] = o
			o = installedObject{}
			return nil
		})
	}
	if err != nil {
		return fail(err)
	}
	var identity string
	var s Statement
	var seq int
	rows, err = r.tx.Query(ctx, "SELECT u.seq, u.object, u.sql, u.why FROM pgconsent.installed_undo AS u ORDER BY u.seq")
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&seq, &identity, &s.SQL, &s.Why}, func() error {
			o := p.objects[identity]
			if o.undo == nil {
				o.order = seq
			}
			o.undo = append(o.undo, s)
			p.objects[identity] = o
			p.lowest = min(p.lowest, seq)
			return nil
		})
	}
	if err != nil {
		return fail(err)
	}
	p.privileges, err = r.readPrivilegeChanges(ctx)
	return p, err
}

// undoStatements reads how to drop what was made, the last first.
func (r *run) undoStatements(ctx context.Context) ([]Statement, error) {
	rows, err := r.tx.Query(ctx, "SELECT u.sql, u.why FROM pgconsent.installed_undo AS u ORDER BY u.seq")
	if err != nil {
		return nil, fmt.Errorf("migrate: read how to undo: %w", err)
	}
	statements, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Statement])
	if err != nil {
		return nil, fmt.Errorf("migrate: read how to undo: %w", err)
	}
	return statements, nil
}

// remember stores what is installed now, and how to undo it.
func (r *run) remember(ctx context.Context, p Plan, in inspection, d difference) error {
	in.plan.basis.add(in.found, d.all)
	if err := r.sayInstalled(ctx, p, in.plan.basis); err != nil {
		return err
	}
	var dropped, outdated []string
	for _, was := range d.drop {
		dropped, outdated = append(dropped, was.identity), append(outdated, was.identity)
	}
	for _, was := range d.replaced {
		outdated = append(outdated, was.identity)
	}
	var objects, undo [][]string
	seq := in.plan.lowest
	for _, s := range d.steps {
		objects = append(objects, []string{quoteLiteral(s.Identity), quoteLiteral(s.made()),
			quoteArray(tableNames(s.Tables)), quoteArray(s.revokes())})
		if s.replaces {
			continue
		}
		// What is made last is dropped first.
		seq -= len(s.Drop)
		for i, u := range s.Drop {
			undo = append(undo, []string{strconv.Itoa(seq + i), quoteLiteral(u.SQL), quoteLiteral(u.Why), quoteLiteral(s.Identity)})
		}
	}
	given, err := r.readPrivilegeChanges(ctx)
	if err != nil {
		return err
	}
	drifts, err := r.fingerprints(ctx)
	if err != nil {
		return err
	}
	const how = "Remember how to restore what was found."
	for _, s := range slices.Concat(
		replaceRows("pgconsent.installed_plan", "identity", quoteAll(outdated), "identity, made, tables, revokes", objects,
			"Remember which objects there are: the next migrate changes those that differ."),
		replaceRows("pgconsent.installed_undo", "object", quoteAll(dropped), "seq, sql, why, object", undo, how),
		in.plan.privileges.store(given, how), drifts,
	) {
		if err := r.exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// fingerprints stores what was made, to notice drift.
func (r *run) fingerprints(ctx context.Context) ([]Statement, error) {
	now, err := objects(ctx, r.tx)
	if err != nil {
		return nil, err
	}
	then, err := storedFingerprints(ctx, r.tx)
	if err != nil {
		return nil, err
	}
	var outdated []string
	var rows [][]string
	for _, identity := range slices.Sorted(maps.Keys(then)) {
		if now[identity] != then[identity] {
			outdated = append(outdated, identity)
		}
	}
	for _, identity := range slices.Sorted(maps.Keys(now)) {
		if was, ok := then[identity]; !ok || was != now[identity] {
			rows = append(rows, []string{quoteLiteral(identity), quoteLiteral(now[identity])})
		}
	}
	return replaceRows("pgconsent.installed_object", "identity", quoteAll(outdated), "identity, fingerprint", rows,
		"Remember what was made, to notice drift."), nil
}

// replaceRows deletes the rows of one of our tables that have one of these keys, and inserts others.
func replaceRows(table, key string, keys []string, columns string, rows [][]string, why string) []Statement {
	var out []Statement
	if len(keys) > 0 {
		out = append(out, Statement{"DELETE FROM " + table + " WHERE " + key + " IN (" + strings.Join(keys, ", ") + ")", why})
	}
	values := make([]string, len(rows))
	for i, row := range rows {
		values[i] = "(" + strings.Join(row, ", ") + ")"
	}
	if len(rows) > 0 {
		out = append(out, Statement{"INSERT INTO " + table + " (" + columns + ") VALUES\n" + strings.Join(values, ",\n"), why})
	}
	return out
}

func quoteAll(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = quoteLiteral(v)
	}
	return out
}

func quoteArray(values []string) string {
	if len(values) == 0 {
		return "'{}'"
	}
	return "ARRAY[" + strings.Join(quoteAll(values), ", ") + "]"
}
