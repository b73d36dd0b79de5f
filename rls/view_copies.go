package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// viewCopies makes copies of the owner's views that the policy lists. The copies are security_invoker views: they run
// with the rights of the agent, and not with the owner's. A copy is created after the copies and catalog shadows that
// it reads.
type viewCopies struct{ *planFacts }

func (f viewCopies) objects() []Object {
	var out []Object
	writtenNames := f.writtenViews()
	for _, v := range f.policy.Views() {
		name := v.Relation.Name
		o := newObject(rowViewIdentity(name),
			"A copy of a view that the policy lists, or that such a view reads. The original runs with its "+
				"owner's rights, past row security.")
		o.NeededObjects = f.objectsBelow(v)
		columns := columnList(v.Relation)
		checkOption := ""
		if v.Relation.CheckOption != "" && v.Write != nil {
			checkOption = ", check_option = " + v.Relation.CheckOption
		}
		for _, c := range []struct {
			name           catalog.Name
			options, query string
		}{{predicate.RowView(name), checkOption, v.Query}, {predicate.FilteredRowView(name), "", v.FilteredQuery}} {
			o.create(fmt.Sprintf("CREATE VIEW %s%s WITH (security_invoker = true%s) AS\n%s", c.name.SQL(), columns, c.options,
				c.query))
			o.create(fmt.Sprintf("GRANT SELECT ON %s TO %s", c.name.SQL(), f.agent))
		}
		if f.isSignedView(v) { // the copy runs with the agent's rights, the signed views in it with their owner's
			view := predicate.SignedView(name).SQL()
			why := o.why
			o.why = "Signed statements read the view here, over the signed views of its tables."
			o.create(fmt.Sprintf("CREATE VIEW %s%s WITH (security_invoker = true) AS\n%s", view, columns, v.SignedQuery))
			o.create(fmt.Sprintf("GRANT SELECT ON %s TO %s", view, f.agent))
			o.why = why
			o.drop("Take the signed views away.", "DROP VIEW IF EXISTS "+view)
		}
		if writtenNames[name] && f.mode == Enforce {
			for _, g := range writeGrants(predicate.RowView(name), v.Write, f.agent,
				"PostgreSQL writes through the view with the agent's rights, under the row policies of its table.") {
				o.MakeStatements = append(o.MakeStatements, g.GrantStatement())
			}
		}
		o.drop("Take the copies of views away.", fmt.Sprintf("DROP VIEW IF EXISTS %s, %s",
			predicate.FilteredRowView(name).SQL(), predicate.RowView(name).SQL()))
		out = append(out, o.Object)
	}
	return out
}

// columnList returns the column list of CREATE VIEW, with a space in front.
func columnList(r *catalog.Relation) string {
	if len(r.Columns) == 0 { // a view may have no columns, but an empty list is a syntax error
		return ""
	}
	columns := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		columns[i] = catalog.QuoteIdent(c.Name)
	}
	return " (" + strings.Join(columns, ", ") + ")"
}

// objectsBelow returns the identities of the plan's objects that the copies of a view may read.
func (f viewCopies) objectsBelow(v *policy.View) []string {
	out := listOf(shadowsIdentity)
	addViews := func(name catalog.Name) { out = append(out, rowViewIdentity(name), signedIdentity(name)) }
	for _, r := range v.Relation.Reads {
		addViews(r.Relation)
	}
	for _, name := range v.Tables {
		addViews(name)
		if t, ok := f.policy.Table(name); ok {
			out = append(out, f.objectsRead(conditionsOf(t)...)...)
		}
	}
	return out
}

// writtenViews returns the views through which agents may write, and the views below these, on which PostgreSQL
// requires the same rights. These rights allow agents no more than those on the table.
func (f viewCopies) writtenViews() map[catalog.Name]bool {
	out := map[catalog.Name]bool{}
	for _, v := range slices.Backward(f.policy.Views()) { // a view comes after the views that it reads
		if v.Write == nil || !v.Listed && !out[v.Relation.Name] {
			continue
		}
		out[v.Relation.Name] = true
		if innerView, isView := f.policy.View(v.Relation.Reads[0].Relation); isView {
			out[innerView.Relation.Name] = true
		}
	}
	return out
}

// isSignedView reports whether the view has a copy over signed views, for signed statements.
func (f viewCopies) isSignedView(v *policy.View) bool {
	return len(f.signedTables) > 0 && v.SignedQuery != ""
}
