package doctor

import (
	"context"
)

// publicFunctions are functions that PostgreSQL grants to PUBLIC and whose grant only a superuser can revoke. The
// rewriter refuses calls of all of them; the revocation matters only if the rewriter fails.
var publicFunctions = []struct{ id, function, why string }{
	{"pg_stat_activity", "pg_catalog.pg_stat_get_activity(integer)", "shows statements of other sessions of the same role"},
	{"pg_terminate_backend", "pg_catalog.pg_terminate_backend(integer, bigint)", "ends other sessions of the same role"},
	{"pg_cancel_backend", "pg_catalog.pg_cancel_backend(integer)", "cancels statements of other sessions of the same role"},
	{"large_objects", "pg_catalog.lo_create(oid)", "stores data that outlives the session"},
	{"large_objects_from", "pg_catalog.lo_from_bytea(oid, bytea)", "stores data that outlives the session"},
}

func checkServerHardening(ctx context.Context, x *examination) ([]Finding, error) {
	if !x.rolesExist() {
		return rolesMissing, nil
	}
	var found []Finding
	for _, o := range publicFunctions {
		var mayExecute bool
		if err := x.conn.QueryRow(ctx, "SELECT pg_catalog.has_function_privilege($1, $2, 'EXECUTE')", x.AgentRole,
			o.function).Scan(&mayExecute); err != nil {
			return found, err
		}
		if mayExecute {
			found = append(found, Finding{o.id, SeverityHardening, "the agent role may execute " + o.function + ", which " +
				o.why,
				"As superuser: REVOKE EXECUTE ON FUNCTION " + o.function + " FROM PUBLIC, and grant it to the roles that need it."})
		}
	}
	moreFindings, err := x.findingsOfQuery(ctx, Finding{"language", SeverityHardening,
		"the agent role may use the language %s, in DO blocks",
		"As superuser: REVOKE USAGE ON LANGUAGE %s FROM PUBLIC; functions that exist go on working."},
		`SELECT pg_catalog.quote_ident(l.lanname) FROM pg_catalog.pg_language l
			WHERE l.lanpltrusted AND pg_catalog.has_language_privilege($1, l.oid, 'USAGE') ORDER BY 1`, x.AgentRole)
	return append(found, moreFindings...), err
}
