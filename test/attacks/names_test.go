package attacks

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

// An agent passes names to functions that look an object up by name. The twins differ in a table and an index that the
// policy does not list, and must answer alike.
func TestNamesOfUnlistedObjects(t *testing.T) {
	const policy = policyHead + "  note: { rows: [ own: { column: owner, is: user } ], columns: { id: allow, owner: allow, v: allow } }\n"
	var statements []string
	for _, name := range []string{"salaries", "public.salaries", "zkey", "salaries_pkey"} {
		for _, call := range []string{
			"pg_relation_is_publishable(?)", "pg_total_relation_size(?)", "pg_table_size(?)", "pg_indexes_size(?)",
			"pg_relation_size(?)", "pg_relation_size(?, 'main')", "pg_relation_size(?, 3)",
			"has_table_privilege('nobody', ?, 'SELECT')", "has_table_privilege(?, lower(1))", "pg_partition_root(?)", "pg_partition_tree(?)",
			"pg_partition_tree(rootrelid => ?)", "pg_partition_ancestors(?)",
			"pg_index_has_property(?, 'clusterable')", "pg_index_column_has_property(?, 1, 'asc')",
			"pg_get_replica_identity_index(?)", "pg_relation_is_updatable(?, true)",
			"pg_column_is_updatable(?, 1::int2, true)", "has_table_privilege(?, 'SELECT')",
			"has_table_privilege(0, ?)", "has_table_privilege(?)",
			"has_any_column_privilege('postgres', ?, 'SELECT')", "has_column_privilege(?, 'id', 'SELECT')",
			"has_type_privilege(?, 'USAGE')", "pg_get_serial_sequence(?, 'id')", "row_security_active(?)",
			"?::regclass", "?::regtype", "to_regclass(?)", "to_regtype(?)", "to_regtype(? || '(5)')", "to_regprocedure('now(' || ? || ')')",
		} {
			statements = append(statements, "SELECT * FROM (SELECT "+strings.Replace(call, "?", "'"+name+"'", 1)+") x")
		}
		statements = append(statements, "SELECT to_regtype('"+name+"(5)')", "SELECT 'now("+name+")'::regprocedure",
			"SELECT '"+name+"(5)'::regtype", "SELECT oid FROM pg_type WHERE oid = to_regtype('"+name+"(5)')")
		if pgtest.Binaries().Major >= 17 {
			statements = append(statements, "SELECT to_regtypemod('"+name+"')", "SELECT to_regtypemod('"+name+"(5)')",
				"SELECT to_regtypemod('"+name+"' || '')", "SELECT pg_basetype('"+name+"')")
		}
	}
	for _, mode := range modesOf(instance.Auto, instance.InjectedOnly) {
		var got [2][]string
		for i, sql := range []string{"CREATE TABLE salaries (id int PRIMARY KEY); CREATE INDEX zkey ON note (zsecret)", "SELECT 1"} {
			db := pgtest.Database(t)
			instance.Exec(t, db, "CREATE TABLE note (id int PRIMARY KEY, owner text NOT NULL, v text, zsecret text); INSERT INTO note VALUES (1, 'me', 'a')")
			instance.Exec(t, db, sql)
			c := instance.Start(t, mode, instance.Database{
				Name: "pair", DB: db, Policy: policy, SearchPath: []string{"public"}}, map[string]string{"user": "me"}).Agent(t, "agent", "pair")
			for _, s := range statements {
				got[i] = append(got[i], strings.ReplaceAll(instance.AskCopy(c, s).SortedString(), db.Name, "DATABASE"))
			}
		}
		for k, s := range statements {
			if got[0][k] != got[1][k] {
				t.Errorf("%s: %s\n   %s\n   %s", mode.Name, s, instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
			}
		}
	}
}
