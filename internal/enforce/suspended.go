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

// suspended are relations that are not as they were when the policy was installed, or not safe, and what depends on
// them: statements about these are refused, and no others. The zero value suspends nothing.
type suspended struct {
	roots
	relations map[catalog.Name]bool // these, and those whose rules or views look into them
	writes    map[catalog.Name]bool // those that a foreign key connects with these, or with one another
	functions map[string]bool       // which may read any of them
}

// roots are what is suspended by itself.
type roots struct {
	altered, unfit []catalog.Name // relations, by the catalogs; by Check
	replaced       []catalog.Name // functions that nothing in the database depends on
}

func (r roots) none() bool { return len(r.altered) == 0 && len(r.unfit) == 0 && len(r.replaced) == 0 }

func (r roots) equal(o roots) bool {
	return slices.Equal(r.altered, o.altered) && slices.Equal(r.unfit, o.unfit) && slices.Equal(r.replaced, o.replaced)
}

// String names what is suspended at its root: what began under another suspension ends.
func (r roots) String() string { return fmt.Sprint(r.altered, r.unfit, r.replaced) }

// suspend finds what depends on relations that have changed, or are not safe. It is false where that is everything:
// attributes of agents are worked out from them.
func suspend(p *policy.Policy, snap *catalog.Snapshot, of roots) (suspended, bool) {
	u := suspended{roots: of, functions: map[string]bool{}, relations: map[catalog.Name]bool{},
		writes: map[catalog.Name]bool{}}
	if len(u.altered)+len(u.unfit) > 0 {
		u.functions = mayRead(p)
	}
	names := map[string]bool{}
	for _, name := range slices.Concat(u.altered, u.unfit) {
		u.relations[name], names[name.Name] = true, true
	}
	if len(u.unfit) > 0 { // a view runs functions of its own, which may read what is not protected
		for _, v := range p.Views() {
			u.relations[v.Relation.Name] = true
		}
	}
	u.spread(p, snap, names)
	for _, l := range p.Live() {
		for _, h := range predicate.Helpers(l.Node()) {
			if u.relations[h.Relation.Name] {
				return u, false
			}
		}
	}
	u.spreadWrites(snap)
	return u, true
}

// spread adds to the relations what looks into one of them: by rules, through views, as a parent or a child, and what
// has one of the names, which may be what a statement means by it now.
func (u suspended) spread(p *policy.Policy, snap *catalog.Snapshot, names map[string]bool) {
	add := func(name catalog.Name, depends bool) bool {
		added := depends && !u.relations[name]
		if added {
			u.relations[name] = true
		}
		return added
	}
	is := func(name catalog.Name) bool { return u.relations[name] }
	for more := true; more; {
		more = false
		for _, t := range p.Tables() {
			looks := slices.ContainsFunc(rls.LooksInto(t), func(r *catalog.Relation) bool { return is(r.Name) })
			more = add(t.Relation.Name, looks || names[t.Relation.Name.Name]) || more
		}
		for _, v := range p.Views() {
			more = add(v.Relation.Name, slices.ContainsFunc(v.Tables, is) || names[v.Relation.Name.Name]) || more
		}
		for _, r := range snap.Relations() {
			for _, parent := range r.Parents {
				more = add(r.Name, is(parent)) || more
				more = add(parent, is(r.Name)) || more
			}
		}
	}
}

// spreadWrites finds what foreign keys connect, in either direction.
func (u suspended) spreadWrites(snap *catalog.Snapshot) {
	reached := func(name catalog.Name) bool { return u.relations[name] || u.writes[name] }
	for more := true; more; {
		more = false
		for _, r := range snap.Relations() {
			for _, k := range r.ForeignKeys {
				for _, pair := range [][2]catalog.Name{{r.Name, k.Target}, {k.Target, r.Name}} {
					if reached(pair[0]) && !reached(pair[1]) {
						u.writes[pair[1]], more = true, true
					}
				}
			}
		}
	}
}

// in refuses what a text has to do with a suspended relation. A write is refused as well where a trigger may read one
// that is not protected.
func (u suspended) in(p *policy.Policy, res *rewrite.Result) *sqlstate.Error {
	if u.none() {
		return nil
	}
	for _, a := range res.Accesses {
		name := a.Relation
		switch {
		case slices.Contains(u.altered, name):
			return suspendedError("%s is suspended: its definition has changed since pgconsent migrate", name)
		case slices.Contains(u.unfit, name):
			return suspendedError(
				"%s is suspended: its row security, policies or rights are not as pgconsent migrate left them", name)
		case u.relations[name]:
			return suspendedError("%s is suspended: it may depend on %s", name, u.origin(p))
		case a.Written && u.writes[name]:
			return suspendedError("%s takes no writes: a foreign key connects it with %s", name, u.origin(p))
		case a.Written && len(u.unfit) > 0:
			return suspendedError("%s takes no writes: a trigger of it may read %s", name, u.origin(p))
		}
	}
	for _, f := range res.Functions {
		switch {
		case slices.ContainsFunc(u.replaced, func(name catalog.Name) bool { return name.String() == f }):
			return suspendedError("function %s is suspended: its definition has changed since pgconsent migrate", f)
		case u.functions[f]:
			return suspendedError("function %s is suspended: it may read %s", f, u.origin(p))
		}
	}
	return nil
}

// origin names the tables of the policy that are suspended by themselves; that there are others is nobody's business.
func (u suspended) origin(p *policy.Policy) string {
	var names []string
	for _, name := range slices.Concat(u.altered, u.unfit) {
		if _, is := p.Table(name); is && !slices.Contains(names, name.String()) {
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

// without makes of the state in force one that serves what has not changed, where the new catalogs do not fit the
// policy, or give another database half than is installed. It is nil where that cannot be told apart from the rest. The
// caller holds mu.
func (d *database) without(ctx context.Context, snap *catalog.Snapshot, o observation) (*state, error) {
	s := d.state
	if s == nil {
		var err error
		if s, err = d.recall(ctx, o); err != nil {
			return nil, err
		}
	}
	if s == nil || o.installed.Hash != s.plan.Hash() {
		return nil, nil
	}
	altered, replaced, others := s.snapshot.Differences(snap)
	if others || len(altered)+len(replaced) == 0 {
		return nil, nil
	}
	listed := func(name catalog.Name) bool {
		return slices.ContainsFunc(s.policy.Functions(), func(f *policy.Function) bool { return f.Name == name })
	}
	if slices.ContainsFunc(replaced, func(name catalog.Name) bool { return !listed(name) }) {
		return nil, nil
	}
	if used, err := d.used(ctx, replaced, s.snapshot, snap); err != nil || used {
		return nil, err
	}
	rest := *s
	rest.key = o.keys.Newest()
	return d.suspending(&rest, roots{altered: altered, replaced: replaced}), nil
}

// used tells whether anything in the database may call one of these functions by itself: a view, a policy, a trigger, a
// type, an index, or by its text a function of ours, in which conditions of the policy stand. That another function of
// the owner's does is as ever: agents call only functions that the policy lists, and these call what their owners want.
func (d *database) used(ctx context.Context, functions []catalog.Name, snaps ...*catalog.Snapshot) (bool, error) {
	var oids []uint32
	for _, snap := range snaps {
		for _, f := range snap.Functions() {
			if slices.Contains(functions, f.Name) {
				oids = append(oids, f.OID)
			}
		}
	}
	if len(oids) == 0 {
		return false, nil
	}
	var used bool
	err := d.conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_depend AS d WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
		AND d.refobjid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.oid[]) AND d.classid OPERATOR(pg_catalog.<>) 'pg_catalog.pg_proc'::pg_catalog.regclass)
		OR EXISTS (SELECT FROM pg_catalog.pg_proc AS f, pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
		WHERE f.oid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.oid[]) AND n.nspname IN ('pgconsent', 'pgconsent_gate', 'pgconsent_catalog', 'pgconsent_rows')
		AND pg_catalog.strpos(p.prosrc, f.proname::pg_catalog.text) OPERATOR(pg_catalog.>) 0)`, oids).Scan(&used)
	return used, err
}

// suspending is the state with what depends on what has changed, or is unfit, suspended; nil where that is everything.
func (d *database) suspending(s *state, of roots) *state {
	u, some := suspended{}, true
	if !of.none() {
		u, some = suspend(s.policy, s.snapshot, of)
	}
	if !some {
		return nil
	}
	s.epoch = d.e.epochs.Add(1)
	s.rights, s.suspended = s.epoch, u
	return s
}

// fit is the state with what Check refuses suspended. The caller holds mu.
func (d *database) fit(ctx context.Context, s *state) (*state, error) {
	err := d.check(ctx, s)
	var unfit UnsafeTables
	if err != nil && !errors.As(err, &unfit) {
		return nil, err
	}
	var names []catalog.Name
	for _, r := range s.snapshot.Relations() {
		if slices.Contains(unfit.Relations, r.OID) {
			names = append(names, r.Name)
		}
	}
	known := len(names) > 0 && !slices.ContainsFunc(unfit.Relations, func(oid uint32) bool {
		return !slices.ContainsFunc(s.snapshot.Relations(), func(r *catalog.Relation) bool { return r.OID == oid })
	})
	switch {
	case err != nil && !known:
		return nil, err
	case slices.Equal(names, s.suspended.unfit):
		return s, nil
	}
	other := *s
	if s = d.suspending(&other, roots{s.suspended.altered, names, s.suspended.replaced}); s == nil {
		return nil, err
	}
	if err != nil {
		d.e.cfg.Log.Error("tables are not safe", "database", d.cfg.Name, "error", err)
	}
	return s, nil
}

// tellSuspended says which tables were suspended, and which are served again.
func (d *database) tellSuspended(before, now suspended) {
	d.e.cfg.Metrics.Suspended(d.cfg.Name, len(now.relations))
	if before.equal(now.roots) {
		return
	}
	names := func(of []catalog.Name) (out []string) {
		for _, name := range of {
			out = append(out, name.String())
		}
		slices.Sort(out)
		return out
	}
	log := d.e.cfg.Log.With("database", d.cfg.Name)
	if now.none() {
		log.Info("what was suspended is served again", "tables", names(slices.Collect(maps.Keys(before.relations))),
			"functions", names(before.replaced))
		return
	}
	log.Error("tables or functions are suspended: statements about them are refused, others are answered. Run "+
		"pgconsent migrate, or undo the change",
		"altered", names(now.altered), "unsafe", names(now.unfit), "tables",
		names(slices.Collect(maps.Keys(now.relations))), "functions", names(now.replaced))
}
