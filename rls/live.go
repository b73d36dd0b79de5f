package rls

import (
	"fmt"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// liveSignature is the signature of the SQL function that computes live attributes: those that the database, and not a
// credential, provides.
const liveSignature = predicate.LiveFunction + "(pg_catalog.text, pg_catalog.text[], pg_catalog.text[])"

// liveAttributes makes the function that computes live attributes. The function belongs to the reader role, so it reads
// the tables that predicates read, without the agent's row security, and no others. Since a caller could ask for
// anybody's attributes, only the owner of the function attr, which verifies seals, and the control role may call it.
type liveAttributes struct{ *planFacts }

func (f liveAttributes) objects() []Object {
	attributes := f.policy.LiveAttributes()
	if len(attributes) == 0 {
		return nil
	}
	o := newObject("function "+liveSignature,
		"The database works out the attributes that no credential gives, at each statement.")
	o.create("DROP FUNCTION IF EXISTS " + liveSignature)
	o.create(fmt.Sprintf("CREATE FUNCTION %s(name pg_catalog.text, claims pg_catalog.text[], settings pg_catalog.text[]) "+
		`RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $pgconsent_live$
%s $pgconsent_live$`, predicate.LiveFunction, predicate.LiveFunctionBody(attributes)))
	o.create("REVOKE ALL ON FUNCTION " + liveSignature + " FROM PUBLIC")
	o.grant(rightsOn("SCHEMA", listOf(predicate.OwnSchema), listOf(f.reader), "", "USAGE"))
	o.grant(rightsOn("FUNCTION", []string{
		"pgconsent.claim(pg_catalog.text, pg_catalog.text[])",
		"pgconsent_signed.json_grants(pg_catalog.text, pg_catalog.text[])",
		"pgconsent_signed.json_ids(pg_catalog.text)", "pgconsent_signed.jsonb_ids(pg_catalog.jsonb)",
	}, listOf(f.reader), "", "EXECUTE"))
	o.NeededObjects = append(o.NeededObjects, readableIdentities(liveNodes(f.policy))...)
	o.create("ALTER FUNCTION " + liveSignature + " OWNER TO " + f.reader)
	o.why = "attr has verified a seal; the proxy asks before it judges a statement."
	o.create(fmt.Sprintf("DO $$ BEGIN EXECUTE (SELECT pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO %%I, %%I', "+
		`pg_catalog.pg_get_userbyid(p.proowner), %s)
  FROM pg_catalog.pg_proc AS p WHERE p.oid OPERATOR(pg_catalog.=) `+
		`'pgconsent_signed.attr(pg_catalog.text)'::pg_catalog.regprocedure); END $$`,
		liveSignature, catalog.QuoteLiteral(f.controlName)))

	const why = "Take the function that works attributes out away."
	o.drop(why, "DROP FUNCTION IF EXISTS "+liveSignature)
	o.drop(why, fmt.Sprintf("CREATE FUNCTION %s(name pg_catalog.text, claims pg_catalog.text[], settings "+
		"pg_catalog.text[]) RETURNS pg_catalog.text\n"+
		"LANGUAGE sql STABLE PARALLEL RESTRICTED\nRETURN NULL::pg_catalog.text", predicate.LiveFunction))
	o.drop(why, "REVOKE ALL ON FUNCTION "+liveSignature+" FROM PUBLIC")
	return []Object{o.Object}
}

// liveNodes returns the conditions from which the database computes live attributes.
func liveNodes(p *policy.Policy) predicate.All {
	var out predicate.All
	for _, l := range p.LiveAttributes() {
		out = append(out, l.Node())
	}
	return out
}
