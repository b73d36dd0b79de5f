package doctor

import (
	"context"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// protectedTables returns the OIDs of the policy's tables that have row security. With withLookupTables it adds the
// tables that the rules read.
func (x *examination) protectedTables(withLookupTables bool) []uint32 {
	var oids []uint32
	for _, table := range x.Policy.Tables() {
		if !table.LacksRowSecurity() {
			oids = append(oids, table.Relation.OID)
		}
		if withLookupTables {
			for _, h := range predicate.LookupTables(table.VisibilityRules()) {
				oids = append(oids, h.Relation.OID)
			}
		}
	}
	if withLookupTables {
		for _, l := range x.Policy.LiveAttributes() {
			for _, h := range predicate.LookupTables(l.Node()) {
				oids = append(oids, h.Relation.OID)
			}
		}
	}
	for _, c := range x.Policy.Children() {
		if c.Relation.HasOurPolicy {
			oids = append(oids, c.Relation.OID)
		}
	}
	return oids
}

// exactSearchTables returns the tables with row security for which the policy does not accept that an approximate index
// omits rows.
func (x *examination) exactSearchTables() []uint32 {
	var oids []uint32
	for _, t := range x.Policy.Tables() {
		if !t.LacksRowSecurity() && !t.Approximate {
			oids = append(oids, t.Relation.OID)
		}
	}
	return oids
}

func checkRowSecurity(ctx context.Context, x *examination) ([]Finding, error) {
	const table = `SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), c.oid FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY ($1::pg_catalog.oid[])`
	found, err := collectFindings(
		func() ([]Finding, error) {
			return x.findingsWithTable(ctx, Finding{"rls_off", SeverityUnsafe, "row security is off for the protected table %s",
				"ALTER TABLE %s ENABLE ROW LEVEL SECURITY"},
				table+` AND NOT c.relrowsecurity ORDER BY 1`, x.protectedTables(false))
		},
		func() ([]Finding, error) {
			return x.findingsWithTable(ctx, Finding{"force_rls", SeverityUnsafe,
				"FORCE ROW LEVEL SECURITY is on for %s: it binds the owner, whose jobs then see other rows",
				"ALTER TABLE %s NO FORCE ROW LEVEL SECURITY"},
				table+` AND c.relforcerowsecurity ORDER BY 1`, x.protectedTables(true))
		},
	)
	if err != nil {
		return found, err
	}
	var exists int
	if err := x.conn.QueryRow(ctx, "SELECT pg_catalog.count(*) FROM ("+table+") t", x.protectedTables(false)).
		Scan(&exists); err != nil {
		return found, err
	}
	if exists != len(x.protectedTables(false)) {
		found = append(found, Finding{"table_missing", SeverityUnsafe, "a protected table does not exist any more",
			"Adapt the policy and run pgconsent migrate."})
	}
	return found, nil
}

// checkPolicies finds row policies of others that apply to pgconsent's roles. A permissive one for PUBLIC changes
// nothing: pgconsent's policy for the agent role is restrictive, and the reader role sees all rows anyway. A
// restrictive one for PUBLIC hides rows from the reader, so that a rule about rows that must not exist finds none.
// checkDrift compares policies whose names begin with pgconsent_ with the record of pgconsent migrate.
func checkPolicies(ctx context.Context, x *examination) ([]Finding, error) {
	if !x.rolesExist() {
		return rolesMissing, nil
	}
	const policy = `SELECT pg_catalog.format('%I on %I.%I', p.polname, n.nspname, c.relname), c.oid FROM pg_catalog.pg_policy p
		JOIN pg_catalog.pg_class c ON c.oid = p.polrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE p.polname NOT LIKE 'pgconsent\_%'`
	return collectFindings(
		func() ([]Finding, error) {
			return x.findingsWithTable(ctx, Finding{"foreign_policy",
				SeverityUnsafe, "the row policy %s is not ours and names one of our roles",
				"DROP POLICY %s, or ALTER POLICY … TO other roles"},
				policy+` AND p.polroles && $1::pg_catalog.oid[] ORDER BY 1`, []uint32{
					x.roles[x.AgentRole].OID, x.roles[x.ReaderRole].OID, x.roles[x.RowsRole].OID})
		},
		func() ([]Finding, error) {
			return x.findingsWithTable(ctx, Finding{"foreign_restrictive", SeverityUnsafe,
				"the restrictive row policy %s applies to PUBLIC, and so to " + x.ReaderRole + ": rules would miss rows that it hides",
				"ALTER POLICY %s TO the roles it is meant for"},
				policy+` AND NOT p.polpermissive AND 0 = ANY (p.polroles) AND p.polcmd IN ('*', 'r') AND c.oid = ANY ($1::pg_catalog.oid[])
				  AND pg_catalog.pg_get_expr(p.polqual, p.polrelid) IS DISTINCT FROM 'true' ORDER BY 1`, x.protectedTables(true))
		},
	)
}

// checkViews checks pgconsent's views that read a customer's tables. Views that read only catalogs may have any owner.
func checkViews(ctx context.Context, x *examination) ([]Finding, error) {
	viewsReading := func(schemas, kinds string) string {
		return `SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'v' AND n.nspname IN (` + schemas + `) AND EXISTS (
			SELECT 1 FROM pg_catalog.pg_rewrite r
			JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid
			JOIN pg_catalog.pg_class t ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND t.oid = d.refobjid
			JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
			WHERE r.ev_class = c.oid AND t.relkind IN (` + kinds + `)
			  AND tn.nspname NOT IN ('pg_catalog', 'information_schema', 'pgconsent', 'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows'))`
	}
	const (
		readsAsInvoker = ` AND EXISTS (SELECT 1 FROM pg_catalog.unnest(c.reloptions) o WHERE o ~* '^security_invoker=(t|on|y|1)')`
		definer        = ` AND NOT EXISTS (SELECT 1 FROM pg_catalog.unnest(c.reloptions) o WHERE o ~* '^security_invoker=(t|on|y|1)')`
		relationKinds  = `'r', 'p', 'v', 'm', 'f'`
		ownSchemas     = `'pgconsent', 'pgconsent_signed', 'pgconsent_catalog'`
	)
	owner := func(role string) Finding {
		return Finding{"view_owner", SeverityUnsafe, "the view %s does not belong to " + role +
			": it shows what its owner may see", "ALTER VIEW %s OWNER TO " + quoteIdent(role)}
	}
	return collectFindings(
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, owner(x.ReaderRole),
				viewsReading(ownSchemas, relationKinds)+` AND pg_catalog.pg_get_userbyid(c.relowner) <> $1 ORDER BY 1`, x.ReaderRole)
		},
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"view_invoker", SeverityUnsafe,
				"the view %s is a security_invoker view: it shows what the agent may see, not what the rule must",
				"ALTER VIEW %s RESET (security_invoker)"},
				viewsReading(ownSchemas, relationKinds)+readsAsInvoker+` ORDER BY 1`)
		},
		// Row security must apply inside the views of tables. It does not apply to the reader, so the rows role must own
		// them.
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, owner(x.RowsRole),
				viewsReading(`'pgconsent_rows'`, `'r', 'p'`)+definer+
					` AND pg_catalog.pg_get_userbyid(c.relowner) <> $1 ORDER BY 1`, x.RowsRole)
		},
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, owner(x.ReaderRole),
				viewsReading(`'pgconsent_rows'`, `'v', 'm', 'f'`)+definer+
					` AND pg_catalog.pg_get_userbyid(c.relowner) <> $1 ORDER BY 1`, x.ReaderRole)
		},
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"rows_exempt", SeverityUnsafe,
				"the role " + x.RowsRole +
					", as which views of tables with hidden columns read, owns %s: row policies do not bind an owner",
				"ALTER TABLE %s OWNER TO another role"},
				`SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c
				 JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
				 WHERE pg_catalog.pg_get_userbyid(c.relowner) = $1 AND n.nspname <> 'pgconsent_rows'
				 AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') ORDER BY 1`, x.RowsRole)
		},
	)
}

func checkFunctions(ctx context.Context, x *examination) ([]Finding, error) {
	var listedOIDs []uint32
	for _, function := range x.Policy.Functions() {
		for _, o := range function.Overloads {
			listedOIDs = append(listedOIDs, o.OID)
		}
	}
	return collectFindings(
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"function_definer", SeverityUnsafe,
				"the function %s, which the policy lets agents call, itself, in an aggregate or for an argument " +
					"that is left out, is SECURITY DEFINER: it runs past row security",
				"ALTER FUNCTION %s SECURITY INVOKER, or take it out of the policy"},
				`SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text FROM pg_catalog.pg_proc p
				   WHERE p.prosecdef AND (p.oid = ANY ($1::pg_catalog.oid[])
				   OR EXISTS (SELECT 1 FROM pg_catalog.pg_aggregate a
				     WHERE a.aggfnoid = ANY ($1::pg_catalog.oid[]) AND p.oid IN (a.aggtransfn::pg_catalog.oid, a.aggfinalfn::pg_catalog.oid,
				     a.aggcombinefn::pg_catalog.oid, a.aggserialfn::pg_catalog.oid, a.aggdeserialfn::pg_catalog.oid,
				     a.aggmtransfn::pg_catalog.oid, a.aggminvtransfn::pg_catalog.oid,
				     a.aggmfinalfn::pg_catalog.oid))
				   OR EXISTS (SELECT 1 FROM pg_catalog.pg_proc l,
				     pg_catalog.regexp_matches(l.proargdefaults::pg_catalog.text, ':(?:funcid|opfuncid) ([0-9]+)', 'g') k
				     WHERE l.oid = ANY ($1::pg_catalog.oid[]) AND k[1]::pg_catalog.oid = p.oid)) ORDER BY 1`, listedOIDs)
		},
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"function_search", SeverityWarning,
				"the function %s, which the policy lets agents call, may search by an approximate index: by " +
					"hidden rows it returns fewer visible ones, or none", "ALTER FUNCTION %s SET enable_indexscan = off"},
				`SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text FROM pg_catalog.pg_proc p WHERE p.oid = ANY ($1::pg_catalog.oid[])
				   AND pg_catalog.concat(p.prosrc, pg_catalog.pg_get_function_sqlbody(p.oid)) ~ '<->|<#>|<=>|<[+]>|<~>|<%>'
				   AND pg_catalog.concat(p.prosrc, pg_catalog.pg_get_function_sqlbody(p.oid)) !~* 'offset\s+0'
				   AND NOT EXISTS (SELECT 1 FROM pg_catalog.unnest(p.proconfig) o WHERE o IN ('enable_indexscan=off', 'enable_indexscan=false'))
				   AND EXISTS (SELECT 1 FROM pg_catalog.pg_index i
				     JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_am m ON m.oid = c.relam
				     WHERE i.indrelid = ANY ($2::pg_catalog.oid[]) AND m.oid >= 16384 AND m.amname <> 'bloom') ORDER BY 1`,
				listedOIDs,
				x.exactSearchTables())
		},
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"function_path", SeverityUnsafe,
				"our function %s has lost its fixed search_path",
				"Run pgconsent migrate."},
				`SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text FROM pg_catalog.pg_proc p
				 JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
				 WHERE n.nspname IN ('pgconsent', 'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows') AND p.prosecdef
				   AND NOT EXISTS (SELECT 1 FROM pg_catalog.unnest(p.proconfig) o WHERE o LIKE 'search_path=pg_catalog%') ORDER BY 1`)
		},
	)
}

// nameList joins names for a message and shortens long lists.
func nameList(names []string) string {
	const limit = 5
	if len(names) > limit {
		return strings.Join(names[:limit], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
