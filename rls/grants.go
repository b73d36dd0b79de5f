package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
)

// revocations revokes from PUBLIC the rights by which an agent could create objects. With a domain, for example, an
// agent could run code of its own inside a function that verifies seals. The roles in KeepRoles get by name the rights
// that PUBLIC loses.
type revocations struct{ *planFacts }

func (f revocations) objects() []Object {
	var out []Object
	for _, privilege := range f.foundState.PublicOnDatabase {
		out = append(out, f.revocation(privilege, "DATABASE", f.foundState.Database))
	}
	for _, schema := range f.foundState.PublicCreate {
		out = append(out, f.revocation("CREATE", "SCHEMA", schema))
	}
	if !f.foundState.PublicConnect && f.foundState.Database != "" {
		out = append(out, rightsObject("CONNECT", rightsOn("DATABASE", listOf(catalog.QuoteIdent(f.foundState.Database)),
			[]string{f.agent, f.control}, "PUBLIC may not connect here.", "CONNECT")))
	}
	return out
}

// revocation returns an object that revokes a privilege from PUBLIC. The object has no DropStatements, since package
// migrations restores privileges by itself.
func (f revocations) revocation(privilege, kind, name string) Object {
	o := newObject(fmt.Sprintf("no %s for PUBLIC on %s %s", privilege, kind, name),
		"An agent must not make objects, temporary ones included. PUBLIC loses the right; the roles "+
			"there are keep it by name, and a role made later needs a grant.")
	name = catalog.QuoteIdent(name)
	o.create(fmt.Sprintf("REVOKE %s ON %s %s FROM PUBLIC", privilege, kind, name))
	if keepRoles := quoteAll(f.foundState.KeepRoles); len(keepRoles) > 0 {
		o.grant(rightsOn(kind, listOf(name), keepRoles, "The roles that had the right through PUBLIC keep it.", privilege))
	}
	return o.Object
}

// schemaRights grants the agent role and the reader role USAGE on the schemas whose objects they read.
type schemaRights struct{ *planFacts }

func (f schemaRights) objects() []Object {
	agentSchemas, readerSchemas := map[string]bool{}, map[string]bool{}
	for _, s := range f.snap.SearchPath() {
		if f.isSchema(s) {
			agentSchemas[s] = true
		}
	}
	for _, t := range f.policy.Tables() {
		agentSchemas[t.Relation.Name.Schema] = true
	}
	for _, c := range f.children {
		if c.ReadableByName {
			agentSchemas[c.Relation.Name.Schema] = true
		}
	}
	for _, fn := range f.policy.Functions() {
		agentSchemas[fn.Name.Schema] = true
	}
	for _, h := range f.lookupTables {
		readerSchemas[h.Relation.Name.Schema] = true
	}
	readerSchemas[predicate.SignedSchema] = true
	for _, s := range f.signedTables {
		readerSchemas[s.table.Relation.Name.Schema] = true
	}
	out := f.schemaUsage(agentSchemas, f.agent, "The agent's role names the tables and functions of the policy.")
	out = append(out, f.schemaUsage(readerSchemas, f.reader,
		"The reader's views read the tables that predicates need.")...)
	return append(out,
		rightsObject("schemas of ours", rightsOn("SCHEMA", []string{predicate.SignedSchema, catalog.ShadowSchema},
			listOf(f.agent),
			"Rewritten statements name signed views and the shadows of the catalogs.", "USAGE")),
		rightsObject("functions of row policies", rightsOn("FUNCTION", policyFunctions, f.callers(),
			"Policies and signed views call these with the agent's rights.", "EXECUTE")))
}

// policyFunctions are the functions that row policies and signed views call.
var policyFunctions = []string{
	"pgconsent_signed.attr(pg_catalog.text)", "pgconsent_signed.sealed()", "pgconsent_signed.text_is_signed()",
	"pgconsent_signed.plan_time()", "pgconsent_signed.plan_attr(pg_catalog.text)", "pgconsent_signed.plan_seal()",
	"pgconsent_signed.use_hash()", "pgconsent_signed.use_index()",
	"pgconsent_signed.estimate_rows(pg_catalog.text)", "pgconsent_signed.harden_plan()",
	"pgconsent_signed.set_config(pg_catalog.text, pg_catalog.text, pg_catalog.bool)",
	"pgconsent_signed.lock_key(pg_catalog.text, pg_catalog.bool)", "pgconsent_signed.last_number()",
	"pgconsent_signed.number_or_error(pg_catalog.int8)", "pgconsent_signed.drawn_number(pg_catalog.oid)",
	"pgconsent_signed.sequence_named(pg_catalog.text)",
	"pgconsent_signed.current_catalog()", "pgconsent_signed.row_is_current(pg_catalog.xid, pg_catalog.bool)",
	"pgconsent_signed.json_grants(pg_catalog.text, pg_catalog.text[])", "pgconsent_signed.json_ids(pg_catalog.text)",
	"pgconsent_signed.jsonb_ids(pg_catalog.jsonb)",
}

// schemaUsage returns objects that grant a role USAGE on those of the schemas on which PUBLIC has no USAGE.
func (f schemaRights) schemaUsage(schemas map[string]bool, role, why string) []Object {
	var out []Object
	for _, s := range sortedKeys(schemas) {
		if !f.foundState.PublicUsage[s] {
			out = append(out, rightsObject("USAGE on schema "+s+" for "+role,
				rightsOn("SCHEMA", listOf(catalog.QuoteIdent(s)), listOf(role), why, "USAGE")))
		}
	}
	return out
}

// isSchema reports whether the catalog snapshot has an object in a schema. A search path may name a schema that does
// not exist.
func (f schemaRights) isSchema(schema string) bool {
	return slices.ContainsFunc(f.snap.Relations(), func(r *catalog.Relation) bool { return r.Name.Schema == schema }) ||
		slices.ContainsFunc(f.snap.Functions(), func(f *catalog.Function) bool { return f.Name.Schema == schema })
}

// functionRights grants the agent role EXECUTE on the functions that the policy lists.
type functionRights struct{ *planFacts }

func (f functionRights) objects() []Object {
	var out []Object
	for _, function := range f.policy.Functions() {
		for _, o := range function.Overloads {
			signature := fmt.Sprintf("%s(%s)", o.Name.SQL(), strings.Join(o.ArgTypes, ", "))
			out = append(out, rightsObject("EXECUTE on function "+signature,
				rightsOn("FUNCTION", listOf(signature), listOf(f.agent),
					"The policy publishes the function. It runs with the agent's rights, under row security.", "EXECUTE")))
		}
	}
	return out
}

// controlRights grants the control role, as which the proxy connects for itself, the rights to read keys, versions and
// the installed policy.
type controlRights struct{ *planFacts }

func (f controlRights) objects() []Object {
	give := func(kind, right, why string, objects ...string) migrations.Grant {
		return rightsOn(kind, objects, listOf(f.control), why, right)
	}
	o := rightsObject("the control role", slices.Concat([]migrations.Grant{
		give("SCHEMA", "USAGE", "The proxy reads keys and versions.", predicate.OwnSchema),
		give("FUNCTION", "EXECUTE", "The proxy seals with the newest key.", "pgconsent.seal_key()"),
		give("FUNCTION", "EXECUTE", "The proxy hints, by the sizes of tables, how row policies are to be evaluated.",
			"pgconsent.distinct_values(pg_catalog.oid[])"),
		give("FUNCTION", "EXECUTE",
			"The proxy asks whether a snapshot has missed a change, and drops what nobody asks about any more.",
			"pgconsent.changed_since(pg_catalog.pg_snapshot)", "pgconsent.prune_changes()", "pgconsent.prune_keys()"),
		give("FUNCTION", "EXECUTE", "The proxy seals sessions with the version of the catalogs that it has looked at.",
			"pgconsent.catalog_version()", "pgconsent.add_catalog_changes()"),
		give("FUNCTION", "EXECUTE", "The proxy reads the catalogs again when what agents get can depend on a change.",
			"pgconsent.concerned()", "pgconsent.within_reach(pg_catalog.oid)"),
		give("", "SELECT", "A proxy that starts while the schema does not fit the policy tells by it what has changed.",
			"pgconsent.installed_catalog"),
		give("FUNCTION", "EXECUTE", "A proxy keeps the catalogs that the policy fits.",
			"pgconsent.remember_catalog(pg_catalog.text, pg_catalog.text, pg_catalog.bytea)"),
		give("", "SELECT", "The proxy leaves out columns that tables got since pgconsent migrate.", "pgconsent.waiting"),
		give("FUNCTION", "EXECUTE", "Records of the audit name persons by references.",
			"pgconsent.audit_ref(pg_catalog.text)", "pgconsent.audit_forget(pg_catalog.text)"),
		give("", "SELECT", "Reports find a person by the reference.", "pgconsent.audit_subject"),
		give("", "SELECT", "The proxy refuses a database with another policy, and doctor looks for drift.",
			"pgconsent.migration", "pgconsent.installed", "pgconsent.installed_object"),
	}, migrations.ConsentGrants(f.controlName), migrations.AuditGrants(f.controlName),
		migrations.SweepGrants(f.controlName))...)
	o.NeededObjects = listOf(shownIdentity)
	return []Object{o}
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
