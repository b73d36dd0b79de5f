package rls

import (
	"fmt"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// The canary is a table of pgconsent's on which doctor tests whether enforcement works: its first row shows, its second
// is hidden by a rule that reads another table, as consent does.
var (
	canary = &catalog.Relation{
		Name: catalog.Name{Schema: predicate.SignedSchema, Name: "canary"}, Kind: catalog.Table,
		Columns: []catalog.Column{
			{Name: "id", Type: "integer", TypeOID: 23, NotNull: true},
			{Name: "consent", Type: "text", TypeOID: 25, NotNull: true},
			{Name: "secret", Type: "text", TypeOID: 25, NotNull: true},
		},
		PrimaryKey: []string{"id"},
	}
	canaryRows = predicate.Consent{
		Steps: []predicate.Step{{Relation: canary, Column: "id", From: "id"}}, Required: true,
		Status: "consent", Is: "granted",
	}
)

// Canary and CanarySignedView are the names of what the probes read, as SQL.
func Canary() string           { return canary.Name.SQL() }
func CanarySignedView() string { return predicate.SignedView(canary.Name).SQL() }

// canaries put the canary under row security and make its views, as for the policy's tables.
type canaries struct{ *facts }

func (f canaries) objects() []Object {
	const why = "The probes try on the canary whether row security works on this server."
	o := newObject("what is over the canary", why, canary)
	read := f.readable(canary)
	o.Make, o.Grants = read.Make, read.Grants
	for _, h := range predicate.Helpers(canaryRows) {
		f.view(o, predicate.HelperView(canary.Name).SQL(), h, f.agent, "", why)
	}
	o.create(fmt.Sprintf("CREATE POLICY %s ON %s AS PERMISSIVE FOR SELECT TO %s USING (true)", openPolicy,
		Canary(), f.agent))
	o.create(fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR SELECT TO %s USING (%s)", selectPolicy,
		Canary(), f.agent, predicate.Policy(canaryRows, canary)))
	o.grant(rightsOn("TABLE", one(Canary()), one(f.agent), "", "SELECT"))
	if len(f.signed) > 0 {
		rows, _ := predicate.Flat(canaryRows, canary, signedAlias)
		f.signedView(o, &policy.Table{Relation: canary}, rows)
	}
	const whyDrop = "Take what is over the canary away."
	for _, name := range []string{selectPolicy, openPolicy, readerPolicy} {
		o.drop(whyDrop, dropPolicy(name, canary))
	}
	for _, view := range []string{CanarySignedView(), predicate.HelperView(canary.Name).SQL()} {
		o.drop(whyDrop, "DROP VIEW IF EXISTS "+view)
	}
	return []Object{o.Object}
}

// HasSignedViews tells whether the plan makes signed views.
func (p *Plan) HasSignedViews() bool { return len(p.facts.signed) > 0 }
