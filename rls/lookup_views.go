package rls

import (
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// lookupViews makes the views through which predicates read other tables. If a predicate read these tables under the
// agent's own row security, it would not see the people who refused consent, and would show the row.
type lookupViews struct{ *planFacts }

// lookupViewsIdentity returns the identity of a table's lookup views in the record of installed objects. It still has
// an older name of these views: with a new identity, migrate would drop views that it has just made.
func lookupViewsIdentity(r *catalog.Relation) string { return "helper views of " + r.Name.String() }

func (f lookupViews) objects() []Object {
	var out []Object
	for _, h := range f.lookupTables {
		out = append(out, f.readerAccess(h.Relation), f.views(h))
	}
	for _, r := range f.links {
		out = append(out, f.emptyFunction(r), f.readableFunction(r))
	}
	return out
}

// views returns an object with the lookup views of a table: one for row policies, and one for signed statements.
func (f lookupViews) views(table predicate.LookupTable) Object {
	o := newObject(lookupViewsIdentity(table.Relation), "", table.Relation)
	lookup := predicate.LookupView(table.Relation.Name).SQL()
	signed := predicate.SignedLookupView(table.Relation.Name).SQL()
	if !f.policyLookupTables[table.Relation.Name] { // only live attributes read it, with the reader role's rights
		f.addView(o, lookup, table, f.reader, "",
			"Live attributes are worked out from this view. Its schema cannot be named by agents.")
	} else {
		policies := f.agent
		if len(f.restrictedTables()) > 0 {
			policies += ", " + f.rowsRole
		}
		f.addView(o, lookup, table, policies, "", "Policies read this view. Its schema cannot be named by agents.")
		f.addView(o, signed, table, f.agent, "\nWHERE (SELECT pgconsent_signed.text_is_signed())",
			"Signed statements read this view; for any other it raises.")
	}
	o.drop("Take the helper and signed views away.", fmt.Sprintf("DROP VIEW IF EXISTS %s, %s", lookup, signed))
	return o.Object
}

// readerAccess returns an object that lets the reader role read all rows of a table.
func (f *planFacts) readerAccess(r *catalog.Relation) Object {
	o := newObject(policyIdentity(readerPolicy, r), "", r)
	if r.Name == predicate.CurrentConsents { // this view is part of the base migrations
		o.grant(rightsOn("TABLE", listOf(r.Name.SQL()), listOf(f.reader),
			"Predicates read the consent registry with the reader's rights, not the agent's.", "SELECT"))
		return o.Object
	}
	o.grant(rightsOn("TABLE", listOf(r.Name.SQL()), listOf(f.reader),
		"Predicates read this table with the reader's rights, not the agent's.", "SELECT"))
	o.why = "The reader sees every row; and a relation under a policy lets the planner run no operator of " +
		"the agent's on its statistics."
	o.create(fmt.Sprintf("CREATE POLICY %s ON %s FOR SELECT TO %s USING (true)", readerPolicy, r.Name.SQL(), f.reader))
	o.drop("Take the helper and signed views away.", dropPolicy(readerPolicy, r))
	return o.Object
}

// addView adds to o the statements that make a lookup view, which belongs to the reader role. The GRANT comes before
// the change of the owner, after which the migrating role could not grant.
func (f *planFacts) addView(o *objectBuilder, name string, table predicate.LookupTable, roles, where, why string) {
	columns := make([]string, len(table.Columns))
	for i, c := range table.Columns {
		columns[i] = "t." + catalog.QuoteIdent(c)
	}
	o.why = why
	o.create(fmt.Sprintf("CREATE VIEW %s AS\nSELECT %s FROM %s AS t%s", name, strings.Join(columns, ", "),
		table.Relation.Name.SQL(), where))
	o.create(fmt.Sprintf("GRANT SELECT ON %s TO %s", name, roles))
	o.create(fmt.Sprintf("ALTER VIEW %s OWNER TO %s", name, f.reader))
}

func emptyIdentity(r *catalog.Relation) string {
	return "function " + predicate.EmptyFunction(r.Name).String()
}

// emptyFunction makes the function that tells whether a link table has no rows at all. It is called if the lookup view
// is empty: a view that is empty only because of FORCE ROW LEVEL SECURITY or another owner must not show every row. The
// function reads the table as its owner, and returns false if row security applies to the owner.
func (f lookupViews) emptyFunction(r *catalog.Relation) Object {
	name := predicate.EmptyFunction(r.Name).SQL()
	o := newObject(emptyIdentity(r),
		"No link is no refusal only if there is none: a link table that merely looks empty hides the rows.", r)
	o.create(fmt.Sprintf(`CREATE FUNCTION %s() RETURNS pg_catalog.bool
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $pgconsent$
BEGIN
  RETURN NOT pg_catalog.row_security_active(%s::pg_catalog.regclass::pg_catalog.oid) AND NOT EXISTS (SELECT 1 FROM %s);
END $pgconsent$`, name, catalog.QuoteLiteral(r.Name.SQL()), r.Name.SQL()))
	o.create(fmt.Sprintf("REVOKE ALL ON FUNCTION %s() FROM PUBLIC", name))
	o.create(fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s() TO %s", name, f.reader))
	o.drop("Take the helper and signed views away.", fmt.Sprintf("DROP FUNCTION IF EXISTS %s()", name))
	return o.Object
}

func readableIdentity(r *catalog.Relation) string {
	return "function " + predicate.ReadableFunction(r.Name).String()
}

// readableIdentities returns the identities of the functions of this kind that conditions call.
func readableIdentities(conditions predicate.All) []string {
	var out []string
	for _, r := range predicate.TablesThatShowWhenEmpty(conditions) {
		out = append(out, readableIdentity(r))
	}
	return out
}

// readableFunction makes the function by which row policies ask whether predicates can read a link table. It belongs to
// the reader role, and reads the lookup view as they do. It raises no error: if the view has another owner, it counts
// as empty.
func (f lookupViews) readableFunction(r *catalog.Relation) Object {
	view, signature := predicate.LookupView(r.Name).SQL(), predicate.ReadableFunction(r.Name).SQL()+"(pg_catalog.timestamptz)"
	o := newObject(readableIdentity(r), "The planner asks once whether there are links, and policies need not.", r)
	o.NeededObjects = []string{lookupViewsIdentity(r), emptyIdentity(r)}
	o.grant(rightsOn("SCHEMA", listOf(predicate.OwnSchema), listOf(f.reader), "", "USAGE"))
	o.create(fmt.Sprintf(`CREATE FUNCTION %s RETURNS pg_catalog.bool
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $pgconsent$
BEGIN
  IF pg_catalog.has_table_privilege(%s::pg_catalog.regclass::pg_catalog.oid, 'SELECT') THEN
    IF EXISTS (SELECT 1 FROM %s) THEN
      RETURN true;
    END IF;
  END IF;
  RETURN %s();
END $pgconsent$`, signature, catalog.QuoteLiteral(view), view, predicate.EmptyFunction(r.Name).SQL()))
	o.create(fmt.Sprintf("REVOKE ALL ON FUNCTION %s FROM PUBLIC", signature))
	o.create(fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s TO %s", signature, strings.Join(f.callers(), ", ")))
	o.create(fmt.Sprintf("ALTER FUNCTION %s OWNER TO %s", signature, f.reader))
	o.drop("Take the helper and signed views away.", fmt.Sprintf("DROP FUNCTION IF EXISTS %s", signature))
	return o.Object
}
