package doctor

import (
	"context"
	"slices"

	"github.com/pgconsent/pgconsent/rewrite"
)

// checkReachableFunctions finds functions of other roles that an agent could run by name, through a cast or through a
// domain's check. The rewriter refuses such statements, so these findings are warnings: only the database layer lacks a
// check. A function that runs without being named, with its owner's rights, passes both layers and is unsafe.
func checkReachableFunctions(ctx context.Context, x *examination) ([]Finding, error) {
	if !x.rolesExist() {
		return rolesMissing, nil
	}
	extensions, err := x.knownExtensions(ctx)
	if err != nil {
		return nil, err
	}
	listedOIDs := x.listedFunctions()
	// Statements cannot call trigger functions, and can call procedures only with CALL.
	const otherFunctions = `p.oid <> ALL ($2::pg_catalog.oid[])
		AND pn.nspname NOT IN ('pg_catalog', 'information_schema', 'pgconsent', 'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows')
		AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
			WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid = p.oid AND d.deptype = 'e'
			  AND d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND e.extname = ANY ($3::pg_catalog.name[]))`
	const foreignFunctions = otherFunctions + ` AND pg_catalog.has_function_privilege($1, p.oid, 'EXECUTE')`
	const castsOf = `SELECT pg_catalog.format('%s AS %s', pg_catalog.format_type(k.castsource, NULL),
		pg_catalog.format_type(k.casttarget, NULL)) FROM pg_catalog.pg_cast k
		JOIN pg_catalog.pg_proc p ON p.oid = k.castfunc JOIN pg_catalog.pg_namespace pn ON pn.oid = p.pronamespace
		WHERE NOT (p.prosrc = 'multirange_constructor1' AND p.prolang = (SELECT l.oid
			FROM pg_catalog.pg_language l WHERE l.lanname = 'internal')) AND `
	var found []Finding
	for _, q := range []struct {
		finding Finding
		sql     string
		path    bool
	}{
		{Finding{"reachable_definer", SeverityWarning,
			"the agent role may execute SECURITY DEFINER functions that the policy does not list; only the rewriter refuses them: ",
			"REVOKE EXECUTE ON FUNCTION … FROM PUBLIC, and grant it to the roles that need it."},
			`SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text FROM pg_catalog.pg_proc p
			 JOIN pg_catalog.pg_namespace pn ON pn.oid = p.pronamespace
			 WHERE p.prosecdef AND p.prorettype NOT IN ('pg_catalog.trigger'::pg_catalog.regtype, 'pg_catalog.event_trigger'::pg_catalog.regtype)
			   AND pg_catalog.has_schema_privilege($1, pn.oid, 'USAGE') AND ` + foreignFunctions + ` ORDER BY 1`, false},
		{Finding{"reachable_function", SeverityWarning,
			"the agent role may execute functions in its search path that the policy does not list; only the " +
				"rewriter refuses them: ",
			"REVOKE EXECUTE ON FUNCTION … FROM PUBLIC, and grant it to the roles that need it; or list them in the policy."},
			`SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text FROM pg_catalog.pg_proc p
			 JOIN pg_catalog.pg_namespace pn ON pn.oid = p.pronamespace
			 WHERE NOT p.prosecdef AND p.prorettype NOT IN ('pg_catalog.trigger'::pg_catalog.regtype, 'pg_catalog.event_trigger'::pg_catalog.regtype)
			   AND pn.nspname = ANY ($4::pg_catalog.name[]) AND ` + foreignFunctions + ` ORDER BY 1`, true},
		{Finding{"reachable_operator", SeverityWarning,
			"the search path has operators of others; the rewriter refuses their names, for everybody's operators too: ",
			"Move them to a schema that agents do not have in their path, or REVOKE EXECUTE on their functions FROM PUBLIC."},
			`SELECT o.oid::pg_catalog.regoperator::pg_catalog.text FROM pg_catalog.pg_operator o
			 JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace
			 JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode JOIN pg_catalog.pg_namespace pn ON pn.oid = p.pronamespace
			 WHERE n.nspname = ANY ($4::pg_catalog.name[]) AND ` + foreignFunctions + ` ORDER BY 1`, true},
		{Finding{"reachable_cast", SeverityWarning,
			"casts run functions of others, wherever these are, in agents' statements: ",
			"DROP CAST, or REVOKE EXECUTE on its function FROM PUBLIC."},
			castsOf + `NOT p.prosecdef AND ` + foreignFunctions + ` ORDER BY 1`, false},
		{Finding{"definer_cast", SeverityUnsafe,
			"casts run functions with their owner's rights, wherever these are, in agents' statements: ",
			"DROP CAST, or REVOKE EXECUTE on its function FROM PUBLIC."},
			castsOf + `p.prosecdef AND ` + foreignFunctions + ` ORDER BY 1`, false},
		{Finding{"definer_check", SeverityUnsafe,
			"checks of domains run functions with their owner's rights, on values that agents choose: ",
			"REVOKE EXECUTE on the function FROM PUBLIC, or make it SECURITY INVOKER."},
			`SELECT DISTINCT pg_catalog.format_type(k.contypid, NULL) FROM pg_catalog.pg_constraint k
			 JOIN pg_catalog.pg_depend u ON u.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND u.objid = k.oid
			 LEFT JOIN pg_catalog.pg_operator o ON u.refclassid = 'pg_catalog.pg_operator'::pg_catalog.regclass AND o.oid = u.refobjid
			 JOIN pg_catalog.pg_proc p ON p.oid = COALESCE(o.oprcode::pg_catalog.oid, u.refobjid)
			 JOIN pg_catalog.pg_namespace pn ON pn.oid = p.pronamespace
			 WHERE k.contypid <> 0 AND u.refclassid IN ('pg_catalog.pg_proc'::pg_catalog.regclass, 'pg_catalog.pg_operator'::pg_catalog.regclass)
			   AND p.prosecdef AND ` + foreignFunctions + ` ORDER BY 1`, false},
		{Finding{"definer_order", SeverityUnsafe,
			"values are compared, hashed or rounded with the rights of a function's owner, by ORDER BY, GROUP BY " +
				"and the like, which ask for no right to it: ",
			"ALTER FUNCTION … SECURITY INVOKER."},
			`SELECT DISTINCT pg_catalog.format_type(k.type, NULL) FROM (
			   SELECT c.opcintype, s.amproc::pg_catalog.oid FROM pg_catalog.pg_opclass c JOIN pg_catalog.pg_amproc s ON s.amprocfamily = c.opcfamily
			   UNION ALL SELECT c.opcintype, o.oprcode::pg_catalog.oid FROM pg_catalog.pg_opclass c
			     JOIN pg_catalog.pg_amop m ON m.amopfamily = c.opcfamily JOIN pg_catalog.pg_operator o ON o.oid = m.amopopr
			   UNION ALL SELECT r.rngtypid, f.oid FROM pg_catalog.pg_range r
			     CROSS JOIN LATERAL (VALUES (r.rngcanonical::pg_catalog.oid), (r.rngsubdiff::pg_catalog.oid)) f (oid)) k (type, function)
			 JOIN pg_catalog.pg_proc p ON p.oid = k.function JOIN pg_catalog.pg_namespace pn ON pn.oid = p.pronamespace
			 WHERE p.prosecdef AND $1::pg_catalog.text IS NOT NULL AND ` + otherFunctions + ` ORDER BY 1`, false},
	} {
		args := []any{x.AgentRole, listedOIDs, extensions}
		if q.path {
			args = append(args, x.Snapshot.SearchPath())
		}
		names, err := x.queryStrings(ctx, q.sql, args...)
		if err != nil {
			return found, err
		}
		if len(names) > 0 {
			f := q.finding
			f.Problem += nameList(names)
			found = append(found, f)
		}
	}
	return found, nil
}

// knownExtensions returns the extensions of the database whose functions agents may call.
func (x *examination) knownExtensions(ctx context.Context) ([]string, error) {
	extensions, err := x.queryStrings(ctx, "SELECT e.extname::pg_catalog.text FROM pg_catalog.pg_extension e")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(extensions, func(name string) bool { return !rewrite.IsKnownExtension(name) }), nil
}

// listedFunctions returns the OIDs of the functions that the policy lists.
func (x *examination) listedFunctions() []uint32 {
	oids := []uint32{}
	for _, f := range x.Policy.Functions() {
		for _, o := range f.Overloads {
			oids = append(oids, o.OID)
		}
	}
	return oids
}
