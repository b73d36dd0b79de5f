package doctor

import (
	"context"

	"github.com/pgconsent/pgconsent/policy"
)

// checkCreatePrivileges finds every schema or database where the agent role may create an object. Names in pgconsent's
// own functions could otherwise resolve to a type or function of the agent.
func checkCreatePrivileges(ctx context.Context, x *examination) ([]Finding, error) {
	agent := x.AgentRole
	if !x.rolesExist() {
		return rolesMissing, nil
	}
	return collectFindings(
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"agent_temp", SeverityUnsafe,
				"the role " + agent + " may create temporary objects in database %s, by itself or through PUBLIC",
				"REVOKE TEMPORARY ON DATABASE %s FROM PUBLIC, " + quoteIdent(agent) +
					", and grant it by name to the roles that need it (pgconsent migrate does)"},
				`SELECT pg_catalog.quote_ident(pg_catalog.current_database())
					WHERE pg_catalog.has_database_privilege($1, pg_catalog.current_database(), 'TEMPORARY')`, agent)
		},
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"agent_create_database",
				SeverityUnsafe, "the role " + agent + " may create schemas in database %s, by itself or through PUBLIC",
				"REVOKE CREATE ON DATABASE %s FROM PUBLIC, " + quoteIdent(agent)},
				`SELECT pg_catalog.quote_ident(pg_catalog.current_database())
					WHERE pg_catalog.has_database_privilege($1, pg_catalog.current_database(), 'CREATE')`, agent)
		},
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"agent_create_schema",
				SeverityUnsafe, "the role " + agent + " may create objects in schema %s, by itself or through PUBLIC",
				"REVOKE CREATE ON SCHEMA %s FROM PUBLIC, " + quoteIdent(agent)},
				`SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_namespace n
				 WHERE pg_catalog.has_schema_privilege($1, n.oid, 'CREATE') ORDER BY 1`, agent)
		},
	)
}

// checkPrivileges compares the agent role's rights with those that the policy gives it.
func checkPrivileges(ctx context.Context, x *examination) ([]Finding, error) {
	agent := x.AgentRole
	if !x.rolesExist() {
		return rolesMissing, nil
	}
	var listedTables, tablesWithColumnRights []uint32
	// rights are those of the agent role; rightsOfRowsRole are those of the role that owns the row views.
	rights, rightsOfRowsRole := []writeRights{}, []writeRights{}
	for _, table := range x.Policy.Tables() {
		listedTables = append(listedTables, table.Relation.OID)
		if table.Columns == nil {
			rights = append(rights, rightsOf(table))
			continue
		}
		tablesWithColumnRights = append(tablesWithColumnRights, table.Relation.OID)
		rightsOfRowsRole = append(rightsOfRowsRole, rightsOf(table))
		rights = append(rights, rightsOf(&policy.Table{Relation: table.Relation}))
	}
	var newTables []string
	for _, c := range x.Policy.Children() {
		if c.Relation.HasOurPolicy {
			listedTables = append(listedTables, c.Relation.OID)
			rights = append(rights, rightsOf(&policy.Table{Relation: c.Relation}))
		} else if c.ReadableByName {
			newTables = append(newTables, c.Relation.Name.String())
		}
	}
	return collectFindings(
		func() ([]Finding, error) {
			if len(newTables) == 0 {
				return nil, nil
			}
			return []Finding{{"new_part", SeverityWarning,
					"parts of listed tables that agents cannot read by name yet: " + nameList(newTables), "Run pgconsent migrate."}},
				nil
		},
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"agent_usage", SeverityUnsafe,
				"the role " + agent + " has USAGE on schema %s, where keys and lookup views are",
				"REVOKE ALL ON SCHEMA %s FROM PUBLIC, " + quoteIdent(agent)},
				`SELECT n.nspname FROM pg_catalog.pg_namespace n
					WHERE n.nspname = 'pgconsent' AND pg_catalog.has_schema_privilege($1, n.oid, 'USAGE')`, agent)
		},
		func() ([]Finding, error) {
			return x.findingsWithTable(ctx, Finding{"agent_write", SeverityUnsafe,
				"the role " + agent + " may change more of %s than the policy says, by itself or through PUBLIC",
				"REVOKE INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON %s FROM PUBLIC, " + quoteIdent(agent) +
					", and run pgconsent migrate"},
				excessRightsQuery, agent, rights)
		},
		func() ([]Finding, error) {
			return x.findingsWithTable(ctx, Finding{"agent_narrowed",
				SeverityUnsafe, "the role " + agent +
					" may read %s, of which the policy hides columns, by itself or through PUBLIC",
				"REVOKE SELECT ON %s FROM PUBLIC, " + quoteIdent(agent) + ", and grant it by name to the roles that need it"},
				`SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), c.oid FROM pg_catalog.pg_class c
				 JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
				 WHERE c.oid = ANY ($2::pg_catalog.oid[]) AND pg_catalog.has_any_column_privilege($1, c.oid, 'SELECT') ORDER BY 1`,
				agent, tablesWithColumnRights)
		},
		func() ([]Finding, error) {
			return x.findingsWithTable(ctx, Finding{"rows_write", SeverityUnsafe,
				"the role " + x.RowsRole + " may change more of %s than the policy says, by itself or through PUBLIC",
				"REVOKE INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON %s FROM PUBLIC, " +
					quoteIdent(x.RowsRole) + ", and run pgconsent migrate"},
				excessRightsQuery, x.RowsRole, rightsOfRowsRole)
		},
		func() ([]Finding, error) {
			return x.findingsOfQuery(ctx, Finding{"agent_unlisted", SeverityWarning,
				"the role " + agent + " may read or change %s, which the policy does not list: only the rewriter refuses it",
				"REVOKE ALL ON %s FROM PUBLIC, " + quoteIdent(agent) + ", or list it in the policy"},
				`SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c
				 JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
				 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.oid <> ALL ($2::pg_catalog.oid[])
				   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast', 'pgconsent',
				     'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows')
				   AND pg_catalog.has_schema_privilege($1, n.oid, 'USAGE')
				   AND (pg_catalog.has_any_column_privilege($1, c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')
				     OR pg_catalog.has_table_privilege($1, c.oid, 'DELETE, TRUNCATE, TRIGGER'))
				 ORDER BY 1`, agent, listedTables)
		},
	)
}

// rolesExist reports whether all roles exist; if one is missing, checkRoles has reported that.
func (x *examination) rolesExist() bool { return len(x.roles) == len(x.roleNames()) }

var rolesMissing = []Finding{{"role_missing", SeverityUnsafe, "this could not be checked without the roles",
	"Run pgconsent migrate."}}

// excessRightsQuery finds the tables that a role may change in more ways than the policy allows.
const excessRightsQuery = `SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), c.oid
				 FROM pg_catalog.jsonb_to_recordset($2::pg_catalog.jsonb) AS w (oid oid, insert text[], update text[], delete bool)
				 JOIN pg_catalog.pg_class c ON c.oid = w.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
				 WHERE pg_catalog.has_table_privilege($1, c.oid, 'TRUNCATE, TRIGGER') OR pg_catalog.has_any_column_privilege($1, c.oid, 'REFERENCES')
				    OR NOT w.delete AND pg_catalog.has_table_privilege($1, c.oid, 'DELETE')
				    OR EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
				       AND (a.attname <> ALL (w.insert) AND pg_catalog.has_column_privilege($1, c.oid, a.attnum, 'INSERT')
				         OR a.attname <> ALL (w.update) AND pg_catalog.has_column_privilege($1, c.oid, a.attnum, 'UPDATE')))
				 ORDER BY 1`

// writeRights says how the policy lets the agent role change a table: the columns to insert and update, and DELETE.
type writeRights struct {
	OID    uint32   `json:"oid"`
	Insert []string `json:"insert"`
	Update []string `json:"update"`
	Delete bool     `json:"delete"`
}

func rightsOf(t *policy.Table) writeRights {
	r := writeRights{OID: t.Relation.OID, Insert: []string{}, Update: []string{}}
	if t.Write != nil {
		r.Insert, r.Update, r.Delete = append(r.Insert, t.Write.Insertable...), append(r.Update,
			t.Write.Updatable...), t.Write.Delete
	}
	return r
}
