package rls

import (
	"fmt"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// The canary is a table of ours on which doctor tries the walls: its first row shows, its second is hidden by a rule
// that looks at another table, as consent does.
var (
	canary = &catalog.Relation{
		Name: catalog.Name{Schema: predicate.GateSchema, Name: "canary"}, Kind: catalog.Table,
		Columns: []catalog.Column{
			{Name: "id", Type: "integer", TypeOID: 23, NotNull: true}, {Name: "consent", Type: "text", TypeOID: 25, NotNull: true},
			{Name: "secret", Type: "text", TypeOID: 25, NotNull: true},
		},
		PrimaryKey: []string{"id"},
	}
	canaryRows = predicate.Consent{
		Steps: []predicate.Step{{Relation: canary, Column: "id", From: "id"}}, Required: true, Status: "consent", Is: "granted",
	}
)

// Canary and CanaryDoor are what the probes read, spelled for a statement.
func Canary() string     { return canary.Name.SQL() }
func CanaryDoor() string { return predicate.SignedView(canary.Name).SQL() }

// canaries puts the canary under the walls that the policy's tables are under.
func (p *Plan) canaries() []Statement {
	const why = "The probes try on the canary whether row security works on this server."
	out := p.readable(canary)
	for _, h := range predicate.Helpers(canaryRows) {
		out = append(out, p.view(predicate.HelperView(canary.Name).SQL(), h, p.agent, "", why)...)
	}
	out = append(out,
		Statement{
			SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS PERMISSIVE FOR SELECT TO %s USING (true)", openPolicy, Canary(), p.agent),
			Why: why,
		},
		Statement{
			SQL: fmt.Sprintf("CREATE POLICY %s ON %s AS RESTRICTIVE FOR SELECT TO %s USING (%s)", selectPolicy,
				Canary(), p.agent, predicate.Policy(canaryRows, canary)),
			Why: why,
		},
		Statement{SQL: fmt.Sprintf("GRANT SELECT ON TABLE %s TO %s", Canary(), p.agent), Why: why},
	)
	if len(p.doors) > 0 {
		rows, _ := predicate.Flat(canaryRows, doorAlias)
		out = append(out, p.doorView(&policy.Table{Relation: canary}, rows)...)
	}
	return out
}

func (p *Plan) dropCanaries() []Statement {
	const why = "Take what is over the canary away."
	var out []Statement
	for _, name := range []string{selectPolicy, openPolicy, readerPolicy} {
		out = append(out, Statement{SQL: fmt.Sprintf("DROP POLICY IF EXISTS %s ON %s", name, Canary()), Why: why})
	}
	for _, view := range []string{CanaryDoor(), predicate.HelperView(canary.Name).SQL()} {
		out = append(out, Statement{SQL: "DROP VIEW IF EXISTS " + view, Why: why})
	}
	return out
}

// HasDoors tells whether the plan makes the views of the gate door.
func (p *Plan) HasDoors() bool { return len(p.doors) > 0 }
