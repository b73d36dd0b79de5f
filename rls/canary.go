package rls

import (
	"fmt"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// The canary is a table of pgconsent with which pgconsent doctor tests whether enforcement works. Its rule lets agents
// see the first row and hides the second one, by a lookup as for a consent.
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
	canaryRule = predicate.Consent{
		Steps: []predicate.Step{{Relation: canary, Column: "id", FromColumn: "id"}}, FirstRequired: true,
		StatusColumn: "consent", AgreedStatus: "granted",
	}
)

// CanaryTable and CanarySignedView return the SQL names of the canary's table and signed view, which doctor's probes
// read.
func CanaryTable() string      { return canary.Name.SQL() }
func CanarySignedView() string { return predicate.SignedView(canary.Name).SQL() }

// canaryFeature makes the row policies and views of the canary, like those of a table that the policy lists.
type canaryFeature struct{ *planFacts }

func (f canaryFeature) objects() []Object {
	const why = "The probes try on the canary whether row security works on this server."
	o := newObject("what is over the canary", why, canary)
	access := f.readerAccess(canary)
	o.MakeStatements, o.Grants = access.MakeStatements, access.Grants
	for _, h := range predicate.LookupTables(canaryRule) {
		f.addView(o, predicate.LookupView(canary.Name).SQL(), h, f.agent, "", why)
	}
	o.create(fmt.Sprintf("CREATE POLICY %s ON %s AS PERMISSIVE FOR SELECT TO %s USING (true)", openPolicy,
		CanaryTable(), f.agent))
	o.create(fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR SELECT TO %s USING (%s)", selectPolicy,
		CanaryTable(), f.agent, predicate.RowPolicySQL(canaryRule, canary)))
	o.grant(rightsOn("TABLE", listOf(CanaryTable()), listOf(f.agent), "", "SELECT"))
	if len(f.signedTables) > 0 {
		rows, _ := predicate.SignedViewCondition(canaryRule, canary, signedAlias)
		f.signedView(o, &policy.Table{Relation: canary}, rows)
	}
	const whyDrop = "Take what is over the canary away."
	for _, name := range []string{selectPolicy, openPolicy, readerPolicy} {
		o.drop(whyDrop, dropPolicy(name, canary))
	}
	for _, view := range []string{CanarySignedView(), predicate.LookupView(canary.Name).SQL()} {
		o.drop(whyDrop, "DROP VIEW IF EXISTS "+view)
	}
	return []Object{o.Object}
}

// HasSignedViews reports whether the plan makes signed views.
func (p *Plan) HasSignedViews() bool { return len(p.facts.signedTables) > 0 }
