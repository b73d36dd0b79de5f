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

// installedPlan is the record of the installed plan, read from the database.
type installedPlan struct {
	Installed
	basis      planBasis
	objects    map[string]installedObject // the installed objects by their identities
	privileges privilegeChanges
	firstUndo  int // the lowest number of a statement in pgconsent.installed_undo
}

// installedObject is the record of an object of the installed plan.
type installedObject struct {
	identity, definition string
	tables, revokes      []string
	undoStatements       []Statement
	firstUndoNumber      int // the number of its first undo statement; objects that were made later have lower numbers
}

// planBasis is the part of the state before a plan was installed that is recorded in the database, since the next plan
// depends on it.
type planBasis struct {
	Database string
	Roles    []string

	RowSecurity      map[string]bool // for each table of the plan, whether row security was on
	PublicOnDatabase []string
	PublicCreate     []string
	KeepRoles        []string
}

// newBasis returns the basis to record for a plan with these objects that was made for the state f.
func newBasis(f Found, o Options, objects []Object) planBasis {
	b := planBasis{
		Database: f.Database, Roles: o.roles(), RowSecurity: map[string]bool{},
		PublicOnDatabase: f.PublicOnDatabase, PublicCreate: f.PublicCreate, KeepRoles: f.KeepRoles,
	}
	b.addTables(f, objects)
	return b
}

// addTables adds the row security state of the objects' tables to the basis.
func (b *planBasis) addTables(f Found, objects []Object) {
	for _, o := range objects {
		for _, t := range o.Tables {
			b.RowSecurity[t.String()] = f.RowSecurity[t.String()]
		}
	}
}

func (b planBasis) String() string {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // strings and booleans can always be marshaled
	}
	return string(text)
}

// roles returns the names of pgconsent's four roles.
func (o Options) roles() []string {
	return []string{o.AgentRole, o.ControlRole, o.ReaderRole, o.RowsRole}
}

// stateWithoutPlan returns the state that the database would have now without the installed plan. A plan that replaces
// the installed one is made for this state.
func (r *migrationRun) stateWithoutPlan(ctx context.Context, b planBasis, now Found) (Found, error) {
	maps.Copy(now.RowSecurity, b.RowSecurity)
	now.PublicOnDatabase = b.PublicOnDatabase
	var err error
	if now.PublicCreate, err = r.queryNames(ctx,
		"SELECT n.nspname FROM pg_namespace AS n WHERE n.nspname = ANY ($1::text[]) ORDER BY n.nspname", b.PublicCreate); err != nil {
		return Found{}, fmt.Errorf("migrate: look at the database: %w", err)
	}
	now.KeepRoles = slices.DeleteFunc(slices.Clone(b.KeepRoles), func(role string) bool {
		return !slices.Contains(now.KeepRoles, role) // the role was dropped
	})
	return now, nil
}

// readInstalledPlan reads the record of the installed plan, and returns nil if there is none.
func (r *migrationRun) readInstalledPlan(ctx context.Context) (*installedPlan, error) {
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
		_, err = pgx.ForEachRow(rows, []any{&o.identity, &o.definition, &o.tables, &o.revokes}, func() error {
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
			if o.undoStatements == nil {
				o.firstUndoNumber = seq
			}
			o.undoStatements = append(o.undoStatements, s)
			p.objects[identity] = o
			p.firstUndo = min(p.firstUndo, seq)
			return nil
		})
	}
	if err != nil {
		return fail(err)
	}
	p.privileges, err = r.readPrivilegeChanges(ctx)
	return p, err
}

// undoStatements reads the recorded statements that drop the installed objects, beginning with the object that was made
// last.
func (r *migrationRun) undoStatements(ctx context.Context) ([]Statement, error) {
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

// recordPlan records in the database which objects are installed now, and how to undo the installation.
func (r *migrationRun) recordPlan(ctx context.Context, p Plan, in installedState, d difference) error {
	in.plan.basis.addTables(in.found, d.newObjects)
	if err := r.recordInstalled(ctx, p, in.plan.basis); err != nil {
		return err
	}
	var dropped, outdated []string
	for _, was := range d.dropped {
		dropped, outdated = append(dropped, was.identity), append(outdated, was.identity)
	}
	for _, was := range d.replaced {
		outdated = append(outdated, was.identity)
	}
	var objects, undo [][]string
	seq := in.plan.firstUndo
	for _, s := range d.steps {
		objects = append(objects, []string{quoteLiteral(s.Identity), quoteLiteral(s.makeHash()),
			quoteArray(tableNames(s.Tables)), quoteArray(s.revokes())})
		if s.isReplacement {
			continue
		}
		// statements are numbered downwards, so that undo drops the object made last first
		seq -= len(s.DropStatements)
		for i, u := range s.DropStatements {
			undo = append(undo, []string{strconv.Itoa(seq + i), quoteLiteral(u.SQL), quoteLiteral(u.Why), quoteLiteral(s.Identity)})
		}
	}
	given, err := r.readPrivilegeChanges(ctx)
	if err != nil {
		return err
	}
	drifts, err := r.storeFingerprints(ctx)
	if err != nil {
		return err
	}
	const reason = "Remember how to restore what was found."
	for _, s := range slices.Concat(
		replaceRows("pgconsent.installed_plan", "identity", quoteAll(outdated), "identity, made, tables, revokes", objects,
			"Remember which objects there are: the next migrate changes those that differ."),
		replaceRows("pgconsent.installed_undo", "object", quoteAll(dropped), "seq, sql, why, object", undo, reason),
		in.plan.privileges.storeStatements(given, reason), drifts,
	) {
		if err := r.exec(ctx, s); err != nil {
			return err
		}
	}
	return r.execUnlisted(ctx, storeVersionsSQL)
}

// storeFingerprints returns statements that store the fingerprints of the installed objects. By these [Drift] later
// finds objects that somebody has altered.
func (r *migrationRun) storeFingerprints(ctx context.Context) ([]Statement, error) {
	now, err := currentFingerprints(ctx, r.tx)
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

// replaceRows returns statements that delete the rows with these keys from a table of pgconsent, and insert others.
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
