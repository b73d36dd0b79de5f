package rewrite

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// RewriteViewQuery is a [policy.ViewRewriter]. It checks and rewrites the query of a view as if an agent had sent it.
// The result is the query of pgconsent's copy of the view, which reads and calls nothing that an agent could not.
func RewriteViewQuery(p *policy.Policy, snap *catalog.Snapshot, view *catalog.Relation,
	copyKind policy.ViewCopy) (query string,
	bare bool, err error) {
	query = strings.TrimSuffix(strings.TrimSpace(view.Definition), ";")
	if query == "" {
		return "", false, fmt.Errorf("its definition cannot be read")
	}
	mode := map[policy.ViewCopy]Mode{policy.RowCopy: RowSecurityMode, policy.FilteredCopy: InjectedMode,
		policy.SignedCopy: AlwaysSignedMode}[copyKind]
	r := New(snap, p, mode)
	r.isView = true
	r.hasKeyOnlyColumns = false   // columns that exist by key only are never in a view, even if its query fixes the key
	for _, v := range p.Views() { // also those views that only this view reads, and that the policy does not list
		r.fragments[v.Relation.Name] = r.viewFragment(v)
	}
	tables := p.Tables()
	for _, c := range p.Children() { // partitions and child tables that agents may read by name have rules of their own
		if c.ReadableByName {
			t := &policy.Table{Relation: c.Relation, Rows: c.Rows}
			f := newFragment(t, mode)
			f.hasSignedView, f.partOf = false, c.PartOf
			r.fragments[c.Relation.Name] = f
			tables = append(slices.Clip(tables), t)
		}
	}
	if copyKind == policy.FilteredCopy {
		for _, t := range tables {
			if f := r.fragments[t.Relation.Name]; !f.isView() && !f.showsAllRows {
				f.setSubquery(t, "(CASE WHEN "+predicate.RowPolicySQL(t.Rows, t.Relation)+" THEN true END) IS NOT NULL",
					catalog.QuoteIdent(t.Relation.Name.Name))
				f.needsSignature = false // the predicate reads the same views as row policies, which need no signature
			}
		}
	}
	result, refusal := r.Rewrite(query, true)
	switch {
	case copyKind == policy.SignedCopy && (refusal != nil || result.Path != verdict.PathSigned):
		return "", false, nil
	case copyKind == policy.SignedCopy:
		return result.Text, false, nil
	case refusal != nil:
		return "", false, fmt.Errorf("%s (%s)", refusal.Message, refusal.Hint)
	case result.NeedsSignature:
		return "", false, fmt.Errorf("it would need a signature")
	case len(result.Effects) != 1 || !result.Effects[0].ReadsRows:
		return "", false, fmt.Errorf("it is no query")
	}
	return result.Text, result.lacksPredicate, nil
}

// viewFragment returns the fragment of a view: pgconsent's copy, which the rewriter names in place of the view.
func (r *Rewriter) viewFragment(v *policy.View) *fragment {
	f := &fragment{visible: v.Relation, view: rowViewName(v.Relation.Name, r.mode), viewTables: v.Tables,
		lacksPredicate: v.PartlyFiltered,
		hasSignedView:  v.SignedQuery != ""}
	f.materialized = f.hasSignedView && !slices.ContainsFunc(v.Tables,
		func(n catalog.Name) bool { t := r.fragments[n]; return t != nil && t.hasSignedView && !t.materialized })
	f.lacksRowSecurity = slices.ContainsFunc(v.Tables,
		func(n catalog.Name) bool { t := r.fragments[n]; return t != nil && t.lacksRowSecurity })
	return f
}

// rowViewName returns the name of pgconsent's view that the rewriter names in place of a relation.
func rowViewName(n catalog.Name, mode Mode) catalog.Name {
	if mode == InjectedMode || mode == AlwaysInjectedMode {
		return predicate.FilteredRowView(n)
	}
	return predicate.RowView(n)
}

// setSubquery sets the subquery that returns the visible rows of a table, in which the table has the alias row. The
// subquery is parsed only when a statement needs it: each view has a rewriter of its own, which needs few of the
// tables.
func (f *fragment) setSubquery(t *policy.Table, condition, row string) {
	sql := everyColumn + t.Relation.Name.SQL() + " AS " + row + " WHERE " + condition + ")"
	f.sql = sql
	f.subquery = sync.OnceValue(func() *sqltext.Node {
		tree, refusal := sqltext.Parse("SELECT FROM " + sql + " AS x")
		if refusal == nil && len(tree.Stmts) == 1 {
			if from := tree.Stmts[0].GetStmt().GetSelectStmt().GetFromClause(); len(from) == 1 {
				return from[0].GetRangeSubselect().GetSubquery()
			}
		}
		return nil
	})
}
