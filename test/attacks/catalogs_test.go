package attacks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// nameColumns are the columns of system catalogs that hold a name.
var nameColumns = []string{
	"pg_class.relname", "pg_type.typname", "pg_constraint.conname", "pg_attribute.attname", "pg_proc.proname", "pg_namespace.nspname",
	"pg_tables.tablename", "pg_views.viewname", "pg_indexes.tablename", "pg_indexes.indexname", "pg_sequences.sequencename",
	"information_schema.tables.table_name", "information_schema.columns.table_name", "information_schema.columns.column_name",
	"information_schema.views.table_name", "information_schema.sequences.sequence_name", "information_schema.routines.routine_name",
	"information_schema.table_constraints.table_name", "information_schema.table_constraints.constraint_name",
	"information_schema.key_column_usage.table_name", "information_schema.key_column_usage.column_name",
	"information_schema.constraint_column_usage.table_name", "information_schema.constraint_table_usage.table_name",
	"information_schema.referential_constraints.constraint_name", "information_schema.table_privileges.table_name",
	"information_schema.column_privileges.column_name", "information_schema.column_udt_usage.table_name",
}

// The twins differ in tables, views and functions that the policy does not list. An agent sends conditions on the
// catalogs that fail for those objects' names. No condition may be evaluated for a hidden catalog row, so the answers
// must be equal.
func TestConditionsOnCatalogs(t *testing.T) {
	const policy = policyHead + "  note: { rows: [ own: { column: owner, is: user } ], columns: { id: allow, owner: allow, v: allow } }\n"
	names := []string{"salaries", "salaries_pkey", "salaries_id_seq", "payable", "paid", "pay", "amount"}
	var statements []string
	cases := 0
	add := func(relation, condition string) {
		if cases++; tier.IsPicked(cases, 10) {
			statements = append(statements, fmt.Sprintf("SELECT count(*) FROM %s AS c WHERE %s", relation, condition))
		}
	}
	for _, catalogColumn := range nameColumns {
		dot := strings.LastIndex(catalogColumn, ".")
		relation, column := catalogColumn[:dot], "c."+catalogColumn[dot+1:]
		for _, condition := range []string{
			"1 / (CASE WHEN #::text IN (?) THEN 0 ELSE 1 END) = 7", "#::text IN (?) AND #::text::int = 5",
			"# COLLATE \"C\" IN (?) AND 1 / (length(#::text) - length(#::text)) = 1",
		} {
			condition = strings.ReplaceAll(condition, "?", "'"+strings.Join(names, "', '")+"'")
			add(relation, strings.ReplaceAll(condition, "#", column))
		}
		for _, name := range names[:6] {
			for _, failing := range []string{
				"# = (SELECT (1 / (count(*) - count(*)))::text FROM note)", "# = (SELECT max(v::int)::text FROM note)",
				"length(#::text) = (SELECT 1 / (count(*) - count(*)) FROM note)",
			} {
				add(relation, fmt.Sprintf("%s = '%s' AND %s", column, name, strings.ReplaceAll(failing, "#", column)))
			}
		}
	}
	for _, mode := range modesOf(instance.Auto, instance.InjectedOnly) {
		var got [2][]string
		for i, sql := range []string{`CREATE SCHEMA pay; CREATE TABLE pay.salaries (id int PRIMARY KEY);
			CREATE TABLE salaries (id serial PRIMARY KEY, amount int REFERENCES salaries, at int[]);
			CREATE VIEW paid AS SELECT amount FROM salaries; CREATE FUNCTION payable(amount int) RETURNS int LANGUAGE sql AS 'SELECT 1'`,
			"SELECT 1"} {
			db := pgtest.Database(t)
			instance.Exec(t, db, "CREATE TABLE note (id int PRIMARY KEY, owner text NOT NULL, v text, zsecret text); INSERT INTO note VALUES (1, 'me', 'a')")
			instance.Exec(t, db, sql)
			instance.Exec(t, db, "ANALYZE")
			c := instance.Start(t, mode, instance.Database{
				Name: "pair", DB: db, Policy: policy, SearchPath: []string{"public"}}, map[string]string{"user": "me"}).Agent(t, "agent", "pair")
			for _, s := range statements {
				got[i] = append(got[i], strings.ReplaceAll(instance.AskCopy(c, s).SortedString(), db.Name, "DATABASE"))
			}
		}
		executed := 0
		for k, s := range statements {
			if got[0][k] != got[1][k] {
				t.Errorf("%s: %s\n   %s\n   %s", mode.Name, s, instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
			}
			if !strings.Contains(got[0][k], "42") {
				executed++
			}
		}
		if executed < len(statements)*9/10 {
			t.Errorf("%s: only %d of %d statements run", mode.Name, executed, len(statements))
		}
	}
}
