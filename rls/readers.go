package rls

import (
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
)

// Names of policies. Everything of ours on a customer's table begins with pgconsent_.
const (
	selectPolicy = "pgconsent_select"
	insertPolicy = "pgconsent_insert"
	updatePolicy = "pgconsent_update"
	deletePolicy = "pgconsent_delete"
	nonePolicy   = "pgconsent_none"
	openPolicy   = "pgconsent_open"
	readerPolicy = "pgconsent_reader"
	freshPolicy  = "pgconsent_current"
)

// readers makes the views that predicates read: a predicate that read through the agent's own row security would not
// see the people who refused, and let the row out.
func (p *Plan) readers(migrations.Found) []Statement {
	var out []Statement
	for _, h := range p.helpers {
		out = append(out, p.readable(h.Relation)...)
		helper, gate := predicate.HelperView(h.Relation.Name).SQL(), predicate.SignedHelperView(h.Relation.Name).SQL()
		policies := p.agent
		if len(p.narrowed()) > 0 {
			policies += ", " + p.rowsRole
		}
		if !p.gated[h.Relation.Name] { // live attributes alone, as the reader
			out = append(out, p.view(helper, h, p.reader, "",
				"Live attributes are worked out from this view. Its schema cannot be named by agents.")...)
			continue
		}
		out = append(out, p.view(helper, h, policies, "", "Policies read this view. Its schema cannot be named by agents.")...)
		out = append(out, p.view(gate, h, p.agent, "\nWHERE (SELECT pgconsent_gate.vetted())",
			"Signed statements read this view; for any other it raises.")...)
	}
	for _, r := range p.links {
		out = append(out, p.empty(r)...)
	}
	return out
}

// readable lets the reader read all of a table.
func (p *Plan) readable(r *catalog.Relation) []Statement {
	if r.Name == predicate.RegistryTable { // as migrate installs it: verify finds what is added. Agents cannot name it
		return []Statement{{
			SQL: fmt.Sprintf("GRANT SELECT ON TABLE %s TO %s", r.Name.SQL(), p.reader),
			Why: "Predicates read the consent registry with the reader's rights, not the agent's.",
		}}
	}
	return []Statement{
		{
			SQL: fmt.Sprintf("GRANT SELECT ON TABLE %s TO %s", r.Name.SQL(), p.reader),
			Why: "Predicates read this table with the reader's rights, not the agent's.",
		},
		{
			SQL: fmt.Sprintf("CREATE POLICY %s ON %s FOR SELECT TO %s USING (true)", readerPolicy, r.Name.SQL(), p.reader),
			Why: "The reader sees every row; and a relation under a policy lets the planner run no operator of " +
				"the agent's on its statistics.",
		},
	}
}

// view makes a view that belongs to the reader. Rights are given before the view is.
func (p *Plan) view(name string, h predicate.Helper, roles, where, why string) []Statement {
	columns := make([]string, len(h.Columns))
	for i, c := range h.Columns {
		columns[i] = "t." + catalog.QuoteIdent(c)
	}
	return []Statement{
		{
			SQL: fmt.Sprintf("CREATE VIEW %s AS\nSELECT %s FROM %s AS t%s", name, strings.Join(columns, ", "),
				h.Relation.Name.SQL(), where),
			Why: why,
		},
		{SQL: fmt.Sprintf("GRANT SELECT ON %s TO %s", name, roles), Why: why},
		{SQL: fmt.Sprintf("ALTER VIEW %s OWNER TO %s", name, p.reader), Why: why},
	}
}

// empty makes the function that says that a link table has no rows at all. A policy asks it where the helper view shows
// none: under NOT EXISTS a view that merely lost its rows, to FORCE or to another owner, would show every row. It looks
// at the table as the owner, whom row security does not concern, and believes nothing where it does.
func (p *Plan) empty(r *catalog.Relation) []Statement {
	name := predicate.EmptyFunction(r.Name).SQL()
	const why = "No link is no refusal only if there is none: a link table that merely looks empty hides the rows."
	create := fmt.Sprintf(`CREATE FUNCTION %s() RETURNS pg_catalog.bool
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $pgconsent$
BEGIN
  RETURN NOT pg_catalog.row_security_active(%s::pg_catalog.regclass::pg_catalog.oid) AND NOT EXISTS (SELECT 1 FROM %s);
END $pgconsent$`, name, catalog.QuoteLiteral(r.Name.SQL()), r.Name.SQL())
	return []Statement{
		{SQL: create, Why: why},
		{SQL: fmt.Sprintf("REVOKE ALL ON FUNCTION %s() FROM PUBLIC", name), Why: why},
		{SQL: fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s() TO %s", name, p.callers()), Why: why},
	}
}

func (p *Plan) dropReaders() []Statement {
	const why = "Take the helper and gate views away."
	var out []Statement
	for _, r := range p.links {
		out = append(out, Statement{
			SQL: fmt.Sprintf("DROP FUNCTION IF EXISTS %s()", predicate.EmptyFunction(r.Name).SQL()),
			Why: why,
		})
	}
	for _, h := range p.helpers {
		out = append(out,
			Statement{
				SQL: fmt.Sprintf("DROP VIEW IF EXISTS %s, %s", predicate.HelperView(h.Relation.Name).SQL(),
					predicate.SignedHelperView(h.Relation.Name).SQL()),
				Why: why,
			},
		)
		if h.Relation.Name != predicate.RegistryTable {
			out = append(out, Statement{SQL: fmt.Sprintf("DROP POLICY IF EXISTS %s ON %s", readerPolicy,
				h.Relation.Name.SQL()), Why: why})
		}
	}
	return out
}
