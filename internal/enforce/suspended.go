package enforce

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// suspension has the relations that have changed since the policy was installed or are not safe, and the relations that
// depend on them. Statements on these relations are refused; other statements are answered. The zero value suspends
// nothing.
type suspension struct {
	suspensionCauses
	relations   map[catalog.Name]bool // altered and unsafe relations, and relations whose rules or views read them
	notWritable map[catalog.Name]bool // relations without writes: foreign keys connect them with suspended ones
	functions   map[string]bool       // functions that may read a suspended relation
}

// suspensionCauses has the relations and functions that are suspended because they themselves have changed or are
// unsafe.
type suspensionCauses struct {
	// alteredRelations have changed in the catalogs since pgconsent migrate; unsafeRelations are those that Check finds
	// unsafe.
	alteredRelations, unsafeRelations []catalog.Name
	replacedFunctions                 []catalog.Name // changed functions that no other object of the database uses
}

// isEmpty reports whether nothing is suspended.
func (r suspensionCauses) isEmpty() bool {
	return len(r.alteredRelations) == 0 && len(r.unsafeRelations) == 0 && len(r.replacedFunctions) == 0
}

// equal reports whether both have the same relations and functions.
func (r suspensionCauses) equal(o suspensionCauses) bool {
	return slices.Equal(r.alteredRelations, o.alteredRelations) && slices.Equal(r.unsafeRelations, o.unsafeRelations) &&
		slices.Equal(r.replacedFunctions, o.replacedFunctions)
}

// String returns a text that names the causes. If it changes, reading on in an older transaction snapshot or cursor is
// refused.
func (r suspensionCauses) String() string {
	return fmt.Sprint(r.alteredRelations, r.unsafeRelations, r.replacedFunctions)
}

// newSuspension finds the relations that depend on changed or unsafe relations. It returns false if attributes of
// agents are computed from a suspended relation: then everything depends on it.
func newSuspension(p *policy.Policy, snap *catalog.Snapshot, causes suspensionCauses) (suspension, bool) {
	u := suspension{suspensionCauses: causes, functions: map[string]bool{}, relations: map[catalog.Name]bool{},
		notWritable: map[catalog.Name]bool{}}
	if len(u.alteredRelations)+len(u.unsafeRelations) > 0 {
		u.functions = tableReadingFunctions(p)
	}
	names := map[string]bool{}
	for _, name := range slices.Concat(u.alteredRelations, u.unsafeRelations) {
		u.relations[name], names[name.Name] = true, true
	}
	if len(u.unsafeRelations) > 0 { // A view may call functions that read an unsafe table.
		for _, v := range p.Views() {
			u.relations[v.Relation.Name] = true
		}
	}
	u.addDependents(p, snap, names)
	for _, l := range p.LiveAttributes() {
		for _, h := range predicate.LookupTables(l.Node()) {
			if u.relations[h.Relation.Name] {
				return u, false
			}
		}
	}
	u.addForeignKeyPartners(snap)
	return u, true
}

// addDependents adds the relations that read a suspended relation: by their rules, through views, or as its parent or
// child. It also adds the relations with the same name in other schemas, since a name without a schema may now mean one
// of them.
func (u suspension) addDependents(p *policy.Policy, snap *catalog.Snapshot, names map[string]bool) {
	add := func(name catalog.Name, depends bool) bool {
		added := depends && !u.relations[name]
		if added {
			u.relations[name] = true
		}
		return added
	}
	isSuspended := func(name catalog.Name) bool { return u.relations[name] }
	for more := true; more; {
		more = false
		for _, table := range p.Tables() {
			looks := slices.ContainsFunc(rls.RuleTables(table),
				func(relation *catalog.Relation) bool { return isSuspended(relation.Name) })
			more = add(table.Relation.Name, looks || names[table.Relation.Name.Name]) || more
		}
		for _, v := range p.Views() {
			more = add(v.Relation.Name, slices.ContainsFunc(v.Tables, isSuspended) || names[v.Relation.Name.Name]) || more
		}
		for _, relation := range snap.Relations() {
			for _, parent := range relation.Parents {
				more = add(relation.Name, isSuspended(parent)) || more
				more = add(parent, isSuspended(relation.Name)) || more
			}
		}
	}
}

// addForeignKeyPartners adds to notWritable the relations that foreign keys connect with suspended relations, in either
// direction.
func (u suspension) addForeignKeyPartners(snap *catalog.Snapshot) {
	reached := func(name catalog.Name) bool { return u.relations[name] || u.notWritable[name] }
	for more := true; more; {
		more = false
		for _, relation := range snap.Relations() {
			for _, k := range relation.ForeignKeys {
				for _, pair := range [][2]catalog.Name{{relation.Name, k.Target}, {k.Target, relation.Name}} {
					if reached(pair[0]) && !reached(pair[1]) {
						u.notWritable[pair[1]], more = true, true
					}
				}
			}
		}
	}
}

// refusal returns the refusal of a text that uses a suspended relation or function. While a relation is unsafe, every
// write is refused, since a trigger may read that relation.
func (u suspension) refusal(p *policy.Policy, res *rewrite.Result) *sqlstate.Error {
	if u.isEmpty() {
		return nil
	}
	for _, a := range res.Accesses {
		name := a.Relation
		switch {
		case slices.Contains(u.alteredRelations, name):
			return suspendedError("%s is suspended: its definition has changed since pgconsent migrate", name)
		case slices.Contains(u.unsafeRelations, name):
			return suspendedError(
				"%s is suspended: its row security, policies or rights are not as pgconsent migrate left them", name)
		case u.relations[name]:
			return suspendedError("%s is suspended: it may depend on %s", name, u.cause(p))
		case a.Written && u.notWritable[name]:
			return suspendedError("%s takes no writes: a foreign key connects it with %s", name, u.cause(p))
		case a.Written && len(u.unsafeRelations) > 0:
			return suspendedError("%s takes no writes: a trigger of it may read %s", name, u.cause(p))
		}
	}
	for _, f := range res.Functions {
		switch {
		case slices.ContainsFunc(u.replacedFunctions, func(name catalog.Name) bool { return name.String() == f }):
			return suspendedError("function %s is suspended: its definition has changed since pgconsent migrate", f)
		case u.functions[f]:
			return suspendedError("function %s is suspended: it may read %s", f, u.cause(p))
		}
	}
	return nil
}

// cause names the changed and unsafe tables for an agent. It does not name tables that the policy does not list.
func (u suspension) cause(p *policy.Policy) string {
	var names []string
	for _, name := range slices.Concat(u.alteredRelations, u.unsafeRelations) {
		if _, isListed := p.Table(name); isListed && !slices.Contains(names, name.String()) {
			names = append(names, name.String())
		}
	}
	if len(names) == 0 {
		return "a table that has changed since pgconsent migrate"
	}
	return strings.Join(names, ", ") + ", changed since pgconsent migrate"
}

func suspendedError(message string, args ...any) *sqlstate.Error {
	return sqlstate.New(sqlstate.ObjectNotInPrerequisiteState, sqlstate.ReasonStale, message, args...).
		WithHint("The owner of the database runs pgconsent migrate, or undoes the change; then try this again. " +
			"Statements that do not need it are answered.")
}

// suspendChanged makes a state that serves only the relations that have not changed since the active state. It is
// called if the policy does not fit the new catalogs, or needs other database objects for them than the installed ones.
// It returns nil if the changes cannot be attributed to single relations. The caller holds mu.
func (d *database) suspendChanged(ctx context.Context, snap *catalog.Snapshot, o probeResult) (*state, error) {
	s := d.state
	if s == nil {
		var err error
		if s, err = d.stateFromStoredCatalogs(ctx, o); err != nil {
			return nil, err
		}
	}
	if s == nil || o.installedPolicy.Hash != s.plan.Hash() {
		return nil, nil
	}
	found := s.snapshot.Differences(snap)
	if found.OtherObjectsDiffer || len(found.Relations)+len(found.Functions)+len(found.RemovedFunctions) == 0 {
		return nil, nil
	}
	listed := func(name catalog.Name) bool {
		return slices.ContainsFunc(s.policy.Functions(),
			func(function *policy.Function) bool { return function.Name == name })
	}
	if slices.ContainsFunc(found.Functions, func(name catalog.Name) bool { return !listed(name) }) {
		return nil, nil
	}
	if used, err := d.usedInDatabase(ctx, found, s.snapshot, snap); err != nil || used {
		return nil, err
	}
	replaced := slices.Clone(found.Functions)
	for _, name := range found.RemovedFunctions { // Statements that call unlisted functions are refused anyway.
		if listed(name) {
			replaced = append(replaced, name)
		}
	}
	rest := *s
	rest.sealKey = o.keys.NewestKey()
	return d.withSuspension(&rest, suspensionCauses{alteredRelations: found.Relations, replacedFunctions: replaced}), nil
}

// usedInDatabase reports whether the database may call one of the changed functions although no statement names it.
// Such calls come from a view, a policy, a trigger, a type, an index, or a function of pgconsent with conditions of the
// policy. Calls from other functions of the owner do not count: agents call only functions that the policy lists, and
// the owner is responsible for what these call.
func (d *database) usedInDatabase(ctx context.Context, differences catalog.Differences,
	snaps ...*catalog.Snapshot) (bool, error) {
	if len(differences.Functions)+len(differences.RemovedFunctions) == 0 {
		return false, nil
	}
	var oids []uint32
	for _, snap := range snaps {
		for _, f := range snap.Functions() {
			if slices.Contains(differences.Functions, f.Name) {
				oids = append(oids, f.OID)
			}
		}
	}
	var names []string
	for _, name := range slices.Concat(differences.Functions, differences.RemovedFunctions) {
		names = append(names, name.Name)
	}
	var used bool
	err := d.conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_depend AS d
		WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
		AND d.refobjid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.oid[])
		AND d.classid OPERATOR(pg_catalog.<>) 'pg_catalog.pg_proc'::pg_catalog.regclass)
		OR EXISTS (SELECT FROM pg_catalog.unnest($2::pg_catalog.text[]) AS u (name), pg_catalog.pg_proc AS p
			JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
		WHERE n.nspname IN ('pgconsent', 'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows')
		AND pg_catalog.strpos(p.prosrc, u.name) OPERATOR(pg_catalog.>) 0)`, oids, names).Scan(&used)
	return used, err
}

// withSuspension suspends, in this state, the causes and the relations that depend on them. It returns nil if every
// relation would be suspended.
func (d *database) withSuspension(s *state, causes suspensionCauses) *state {
	u, applies := suspension{}, true
	if !causes.isEmpty() {
		u, applies = newSuspension(s.policy, s.snapshot, causes)
	}
	if !applies {
		return nil
	}
	s.epoch = d.enforcer.epochCounter.Add(1)
	s.rightsEpoch, s.suspension = s.epoch, u
	return s
}

// checkAndSuspend runs Check, and returns the state with the tables suspended that Check finds unsafe. The caller holds
// mu.
func (d *database) checkAndSuspend(ctx context.Context, s *state) (*state, error) {
	err := d.runChecks(ctx, s)
	var unsafe UnsafeTables
	if err != nil && !errors.As(err, &unsafe) {
		return nil, err
	}
	var names []catalog.Name
	for _, relation := range s.snapshot.Relations() {
		if slices.Contains(unsafe.Relations, relation.OID) {
			names = append(names, relation.Name)
		}
	}
	tablesKnown := len(names) > 0 && !slices.ContainsFunc(unsafe.Relations, func(oid uint32) bool {
		return !slices.ContainsFunc(s.snapshot.Relations(),
			func(relation *catalog.Relation) bool { return relation.OID == oid })
	})
	switch {
	case err != nil && !tablesKnown:
		return nil, err
	case slices.Equal(names, s.suspension.unsafeRelations):
		return s, nil
	}
	other := *s
	if s = d.withSuspension(&other, suspensionCauses{s.suspension.alteredRelations, names, s.suspension.replacedFunctions}); s == nil {
		return nil, err
	}
	if err != nil {
		d.enforcer.cfg.Log.Error("tables are not safe", "database", d.cfg.Name, "error", err)
	}
	return s, nil
}

// logSuspension logs which tables and functions have been suspended, and which are served again.
func (d *database) logSuspension(before, now suspension) {
	d.enforcer.cfg.Metrics.SetSuspendedTables(d.cfg.Name, len(now.relations))
	if before.equal(now.suspensionCauses) {
		return
	}
	names := func(relations []catalog.Name) (out []string) {
		for _, name := range relations {
			out = append(out, name.String())
		}
		slices.Sort(out)
		return out
	}
	log := d.enforcer.cfg.Log.With("database", d.cfg.Name)
	if now.isEmpty() {
		log.Info("what was suspended is served again", "tables", names(slices.Collect(maps.Keys(before.relations))),
			"functions", names(before.replacedFunctions))
		return
	}
	log.Error("tables or functions are suspended: statements about them are refused, others are answered. Run "+
		"pgconsent migrate, or undo the change",
		"altered", names(now.alteredRelations), "unsafe", names(now.unsafeRelations), "tables",
		names(slices.Collect(maps.Keys(now.relations))), "functions", names(now.replacedFunctions))
}
