package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
)

// revocations take from PUBLIC what would let an agent make objects: a domain of its own once ran its code inside a
// verifier. Roles that had the right through PUBLIC keep it by name.
func (p *Plan) revocations(f migrations.Found) []Statement {
	var out []Statement
	take := func(privilege, object string) {
		out = append(out, Statement{
			SQL: fmt.Sprintf("REVOKE %s ON %s FROM PUBLIC", privilege, object),
			Why: "An agent must not make objects, temporary ones included. PUBLIC loses the right; the roles " +
				"there are keep it by name, and a role made later needs a grant.",
		})
		if keep := quoteAll(f.KeepRoles); len(keep) > 0 {
			out = append(out, Statement{
				SQL: fmt.Sprintf("GRANT %s ON %s TO %s", privilege, object, strings.Join(keep, ", ")),
				Why: "The roles that had the right through PUBLIC keep it.",
			})
		}
	}
	for _, privilege := range f.PublicOnDatabase {
		take(privilege, "DATABASE "+catalog.QuoteIdent(f.Database))
	}
	for _, schema := range f.PublicCreate {
		take("CREATE", "SCHEMA "+catalog.QuoteIdent(schema))
	}
	if !f.PublicConnect && f.Database != "" {
		out = append(out, Statement{
			SQL: fmt.Sprintf("GRANT CONNECT ON DATABASE %s TO %s, %s", catalog.QuoteIdent(f.Database), p.agent, p.control),
			Why: "PUBLIC may not connect here.",
		})
	}
	return out
}

// schemas lets the agent and the reader name what they read.
func (p *Plan) schemas(f migrations.Found) []Statement {
	agent, reader := map[string]bool{}, map[string]bool{}
	for _, s := range p.snap.SearchPath() {
		if p.hasSchema(s) {
			agent[s] = true
		}
	}
	for _, t := range p.policy.Tables() {
		agent[t.Relation.Name.Schema] = true
	}
	for _, c := range p.children {
		if c.ReadableByName {
			agent[c.Relation.Name.Schema] = true
		}
	}
	for _, fn := range p.policy.Functions() {
		agent[fn.Name.Schema] = true
	}
	for _, h := range p.helpers {
		reader[h.Relation.Name.Schema] = true
	}
	reader[predicate.GateSchema] = true
	for _, d := range p.doors {
		reader[d.table.Relation.Name.Schema] = true
	}
	var out []Statement
	grant := func(schemas map[string]bool, role, why string) {
		for _, s := range sortedKeys(schemas) {
			if !f.PublicUsage[s] {
				out = append(out, Statement{
					SQL: fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", catalog.QuoteIdent(s), role),
					Why: why,
				})
			}
		}
	}
	grant(agent, p.agent, "The agent's role names the tables and functions of the policy.")
	grant(reader, p.reader, "The reader's views read the tables that predicates need.")
	return append(out,
		Statement{
			SQL: fmt.Sprintf("GRANT USAGE ON SCHEMA %s, %s TO %s", predicate.GateSchema, catalog.ShadowSchema, p.agent),
			Why: "Rewritten statements name the gate and the shadows of the catalogs.",
		},

		Statement{
			SQL: fmt.Sprintf(
				"GRANT EXECUTE ON FUNCTION pgconsent_gate.attr(pg_catalog.text), pgconsent_gate.sealed(), "+
					"pgconsent_gate.vetted(), pgconsent_gate.scan(), pgconsent_gate.seek(), "+
					"pgconsent_gate.few(pg_catalog.text), pgconsent_gate.care(), "+
					"pgconsent_gate.current_catalog(), pgconsent_gate.unmoved(pg_catalog.xid, pg_catalog.bool), "+
					"pgconsent_gate.json_grants(pg_catalog.text, pg_catalog.text[]), "+
					"pgconsent_gate.json_ids(pg_catalog.text), pgconsent_gate.jsonb_ids(pg_catalog.jsonb) TO %s", p.callers()),
			Why: "Policies and gate views call these with the agent's rights.",
		},
	)
}

// hasSchema tells whether something of the snapshot is in the schema: a search path may name one that does not exist.
func (p *Plan) hasSchema(schema string) bool {
	return slices.ContainsFunc(p.snap.Relations(), func(r *catalog.Relation) bool { return r.Name.Schema == schema }) ||
		slices.ContainsFunc(p.snap.Functions(), func(f *catalog.Function) bool { return f.Name.Schema == schema })
}

// functions lets the agent call what the policy publishes.
func (p *Plan) functions() []Statement {
	var out []Statement
	for _, f := range p.policy.Functions() {
		for _, o := range f.Overloads {
			out = append(out, Statement{
				SQL: fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s(%s) TO %s", o.Name.SQL(), strings.Join(o.ArgTypes, ", "), p.agent),
				Why: "The policy publishes the function. It runs with the agent's rights, under row security.",
			})
		}
	}
	return out
}

// controls lets the control role read keys and what is installed.
func (p *Plan) controls() []Statement {
	return append([]Statement{
		{
			SQL: fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", predicate.Schema, p.control),
			Why: "The proxy reads keys and versions.",
		},
		{
			SQL: fmt.Sprintf("GRANT EXECUTE ON FUNCTION pgconsent.seal_key() TO %s", p.control),
			Why: "The proxy seals with the newest key.",
		},
		{
			SQL: fmt.Sprintf("GRANT EXECUTE ON FUNCTION pgconsent.distinct_values(pg_catalog.oid[]) TO %s", p.control),
			Why: "The proxy hints, by the sizes of tables, how row policies are to be evaluated.",
		},
		{
			SQL: fmt.Sprintf(
				"GRANT EXECUTE ON FUNCTION pgconsent.changed_since(pg_catalog.pg_snapshot), "+
					"pgconsent.prune_changes(), pgconsent.prune_keys() TO %s", p.control),
			Why: "The proxy asks whether a snapshot has missed a change, and drops what nobody asks about any more.",
		},
		{
			SQL: fmt.Sprintf(
				"GRANT EXECUTE ON FUNCTION pgconsent.catalog_version(), pgconsent.add_catalog_changes() TO %s", p.control),
			Why: "The proxy seals sessions with the version of the catalogs that it has looked at.",
		},
		{
			SQL: fmt.Sprintf(
				"GRANT EXECUTE ON FUNCTION pgconsent.concerned(), pgconsent.within_reach(pg_catalog.oid) TO %s", p.control),
			Why: "The proxy reads the catalogs again when what agents get can depend on a change.",
		},
		{
			SQL: fmt.Sprintf("GRANT SELECT ON pgconsent.installed_catalog TO %s", p.control),
			Why: "A proxy that starts while the schema does not fit the policy tells by it what has changed.",
		},
		{
			SQL: fmt.Sprintf(
				"GRANT EXECUTE ON FUNCTION pgconsent.remember_catalog(pg_catalog.text, pg_catalog.text, pg_catalog.bytea) TO %s",
				p.control),
			Why: "A proxy keeps the catalogs that the policy fits.",
		},
		{
			SQL: fmt.Sprintf("GRANT SELECT ON pgconsent.waiting TO %s", p.control),
			Why: "The proxy leaves out columns that tables got since pgconsent migrate.",
		},
		{
			SQL: fmt.Sprintf(
				"GRANT EXECUTE ON FUNCTION pgconsent.audit_ref(pg_catalog.text), "+
					"pgconsent.audit_forget(pg_catalog.text) TO %s", p.control),
			Why: "Records of the audit name persons by references.",
		},
		{
			SQL: fmt.Sprintf("GRANT SELECT ON pgconsent.audit_subject TO %s", p.control),
			Why: "Reports find a person by the reference.",
		},
		{
			SQL: fmt.Sprintf(
				"GRANT SELECT ON pgconsent.migration, pgconsent.installed, pgconsent.installed_object TO %s", p.control),
			Why: "The proxy refuses a database with another policy, and doctor looks for drift.",
		},
	}, slices.Concat(migrations.ConsentGrants(p.controlName), migrations.AuditGrants(p.controlName),
		migrations.SweepGrants(p.controlName))...)
}

func quoteAll(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = catalog.QuoteIdent(n)
	}
	return out
}

func sortedKeys(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for k := range set {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
