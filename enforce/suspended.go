package enforce

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/predicate"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/sqlstate"
)

// suspended are relations that are not as they were when the policy was installed, and what depends on them: statements about these are refused, and
// no others. The zero value suspends nothing.
type suspended struct {
	changed   []catalog.Name        // sorted
	relations map[catalog.Name]bool // the changed ones, and those whose rules or views look into them
	writes    map[catalog.Name]bool // those that a foreign key connects with these, or with one another
	functions map[string]bool       // which may read any of them
}

func (u suspended) none() bool { return len(u.changed) == 0 }

func (u suspended) equal(o suspended) bool { return slices.Equal(u.changed, o.changed) }

// suspend finds what depends on relations that have changed. It is false where that is everything: attributes of agents are worked out from them.
func suspend(p *policy.Policy, snap *catalog.Snapshot, changed []catalog.Name) (suspended, bool) {
	u := suspended{changed: changed, relations: map[catalog.Name]bool{}, writes: map[catalog.Name]bool{}, functions: mayRead(p)}
	names := map[string]bool{}
	for _, name := range changed {
		u.relations[name], names[name.Name] = true, true
	}
	looks := func(node predicate.Node) bool {
		return slices.ContainsFunc(predicate.Helpers(node), func(h predicate.Helper) bool { return u.relations[h.Relation.Name] })
	}
	for _, l := range p.Live() {
		if looks(l.Node()) {
			return u, false
		}
	}
	add := func(name catalog.Name, depends bool) bool {
		if !depends || u.relations[name] {
			return false
		}
		u.relations[name] = true
		return true
	}
	for more := true; more; {
		more = false
		for _, t := range p.Tables() {
			// A relation of the same name may be what a statement means by it now.
			more = add(t.Relation.Name, names[t.Relation.Name.Name] || looks(t.Decides())) || more
		}
		for _, v := range p.Views() {
			more = add(v.Relation.Name, names[v.Relation.Name.Name] || slices.ContainsFunc(v.Tables, func(n catalog.Name) bool { return u.relations[n] })) || more
		}
		for _, r := range snap.Relations() { // a table is read with its children, and a child by what its parent says
			for _, parent := range r.Parents {
				more = add(r.Name, u.relations[parent]) || more
				more = add(parent, u.relations[r.Name]) || more
			}
		}
	}
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
	return u, true
}

// in refuses what a text has to do with a suspended relation. Of these the policy's own are named; that there are others is nobody's business.
func (u suspended) in(p *policy.Policy, res *rewrite.Result) *sqlstate.Error {
	if u.none() {
		return nil
	}
	for _, a := range res.Accesses {
		switch {
		case slices.Contains(u.changed, a.Relation):
			return suspendedError("%s is suspended: its definition or its protection is not what the policy was installed for", a.Relation)
		case u.relations[a.Relation]:
			return suspendedError("%s is suspended: what it depends on is not what the policy was installed for"+u.listed(p), a.Relation)
		case a.Written && u.writes[a.Relation]:
			return suspendedError("%s takes no writes: a foreign key connects it with what is not what the policy was installed for"+u.listed(p), a.Relation)
		}
	}
	for _, f := range res.Functions {
		if u.functions[f] {
			return suspendedError("function %s is suspended: it may read what is not what the policy was installed for"+u.listed(p), f)
		}
	}
	return nil
}

// listed names, in brackets, what has changed and agents may know of.
func (u suspended) listed(p *policy.Policy) string {
	var names []string
	for _, name := range u.changed {
		if _, is := p.Table(name); is {
			names = append(names, name.String())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.ReplaceAll(strings.Join(names, ", "), "%", "%%") + ")"
}

func suspendedError(message string, what any) *sqlstate.Error {
	return sqlstate.New(sqlstate.ObjectNotInPrerequisiteState, sqlstate.ReasonStale, message, what).
		WithHint("The owner of the database runs pgconsent migrate, or undoes the change. Statements about other tables are answered; try this one again then.")
}

// without makes of the state in force one that serves what has not changed, where the new catalogs do not fit the policy, or give another database half than is
// installed. It is nil where that cannot be told apart from the rest. The caller holds mu.
func (d *database) without(snap *catalog.Snapshot, o observation) *state {
	s := d.state
	if s == nil || o.installed.Hash != s.plan.Hash() {
		return nil
	}
	changed, others := s.snapshot.Differences(snap)
	if others || len(changed) == 0 {
		return nil
	}
	rest := *s
	rest.key, rest.altered, rest.unfit = o.keys.Newest(), changed, nil
	return d.suspending(&rest)
}

// suspending is the state with what depends on what has changed, or is unfit, suspended; nil where that is everything.
func (d *database) suspending(s *state) *state {
	changed := slices.Concat(s.altered, s.unfit)
	slices.SortFunc(changed, func(a, b catalog.Name) int { return strings.Compare(a.String(), b.String()) })
	u, some := suspended{}, true
	if changed = slices.Compact(changed); len(changed) > 0 {
		u, some = suspend(s.policy, s.snapshot, changed)
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
	var unfit Unfit
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
	case slices.Equal(names, s.unfit):
		return s, nil
	}
	other := *s
	other.unfit = names
	if s = d.suspending(&other); s == nil {
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
	if before.equal(now) {
		return
	}
	names := func(u suspended) []string {
		var out []string
		for _, name := range slices.SortedFunc(maps.Keys(u.relations), func(a, b catalog.Name) int { return strings.Compare(a.String(), b.String()) }) {
			out = append(out, name.String())
		}
		return out
	}
	log := d.e.cfg.Log.With("database", d.cfg.Name)
	if now.none() {
		log.Info("suspended tables are served again", "tables", names(before))
		return
	}
	log.Error("tables are suspended: they are not safe, or not as they were when the policy was installed, or depend on one that is not. Statements about others are answered. Run pgconsent migrate, or undo the change",
		"changed", now.changed, "tables", names(now))
}
