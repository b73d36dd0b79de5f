package rewrite

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// Statements that drivers send on their own, as recorded in measured/clients, are all answered.
func TestStatementsOfClients(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	r := rewriter(t, InjectedMode)
	for client, statements := range map[string][]string{
		"pings": {"", ";", "-- ping", "/* DBD::Pg ping test v3.16.0 */", "SELECT 1", "SELECT 1 LIMIT 1"},
		"transactions": {"BEGIN", "begin", "BEGIN;", "COMMIT", "ROLLBACK", "rollback", "BEGIN READ WRITE", "BEGIN READ ONLY", "BEGIN TRANSACTION READ ONLY",
			"start transaction", "SAVEPOINT pg_psql_temporary_savepoint", "RELEASE pg_psql_temporary_savepoint", `SAVEPOINT "_pg3_2"`, `ROLLBACK TO "_pg3_2"`,
			`RELEASE "_pg3_2"`, "savepoint sp_1", "rollback to savepoint sp_1", "release savepoint sp_1", "SAVEPOINT JDBC_SAVEPOINT_0",
			"ROLLBACK TO SAVEPOINT JDBC_SAVEPOINT_0", "RELEASE SAVEPOINT JDBC_SAVEPOINT_0", "SAVEPOINT PGJDBC_AUTOSAVE"},
		"settings": {"SET extra_float_digits = 3", "SET application_name = 'PostgreSQL JDBC Driver'",
			"SET SESSION search_path TO 'public'", "set client_encoding to 'UTF8'",
			"SET TIME ZONE 'UTC'", "set intervalstyle = iso_8601", "SET SESSION timezone TO 'UTC'",
			"SET standard_conforming_strings = ON", "SET client_min_messages TO warning",
			"SET DateStyle = 'ISO'", "set datestyle to ISO", "SHOW TRANSACTION ISOLATION LEVEL",
			"show standard_conforming_strings", "SHOW SERVER_VERSION", "SHOW server_version_num",
			"SHOW max_identifier_length", "SHOW search_path", "SHOW TIME ZONE", "SHOW client_encoding", `set search_path to "public"`},
		"values": {"select version()", "SELECT pg_catalog.version()", "select current_schema()",
			"SELECT * FROM current_schema()", "SELECT current_database()", "SELECT current_user",
			"SELECT current_setting('server_version_num')", "SELECT current_schemas(true)",
			"SELECT * FROM unnest(current_schemas(true))", "SELECT current_setting('crdb_version', true)"},
		"pgx": {"select $1::text::regtype::oid;", "select typtype::text, typbasetype from pg_type where oid=$1",
			`WITH RECURSIVE -- find the OIDs in pg_class which match one of the provided type names
selected_classes(oid,reltype) AS (
    -- this query uses the namespace search path, so will match type names without a schema prefix
    SELECT pg_class.oid, pg_class.reltype
    FROM pg_catalog.pg_class
    LEFT JOIN pg_catalog.pg_namespace n ON n.oid = pg_class.relnamespace
    WHERE pg_catalog.pg_table_is_visible(pg_class.oid) AND relname = ANY($1::text[]))
SELECT selected_classes.oid, max(selected_classes.reltype) FROM selected_classes GROUP BY 1`},
		"psycopg": {"SELECT name, oid, array_oid, array_agg(label) AS labels FROM ( SELECT t.typname AS name, " +
			"t.oid AS oid, t.typarray AS array_oid, e.enumlabel AS label FROM pg_type t LEFT JOIN pg_enum e ON " +
			"e.enumtypid = t.oid WHERE t.oid = $1::regtype ORDER BY e.enumsortorder ) x GROUP BY name, oid, array_oid",
			"SELECT typname AS name, oid, typarray AS array_oid, oid::regtype::text AS regtype, typdelim AS " +
				"delimiter FROM pg_type t WHERE t.oid = $1::regtype ORDER BY t.oid",
			"SELECT column_name,data_type FROM information_schema.columns WHERE table_schema=$1 AND table_name=$2 ORDER BY ordinal_position"},
		"postgres.js": {
			"select b.oid, b.typarray from pg_catalog.pg_type a left join pg_catalog.pg_type b on b.oid = " +
				"a.typelem where a.typcategory = 'A' group by b.oid, b.typarray order by b.oid"},
		"jdbc": {"SELECT pg_type.oid, typname FROM pg_catalog.pg_type LEFT JOIN (select ns.oid as nspoid, " +
			"ns.nspname, r.r from pg_namespace as ns join ( select s.r, (current_schemas(false))[s.r] as nspname " +
			"from generate_series(1, array_upper(current_schemas(false), 1)) as s(r) ) as r using ( nspname ) ) " +
			"as sp ON sp.nspoid = typnamespace WHERE typname = $1 ORDER BY sp.r, pg_type.oid DESC LIMIT 1",
			"SELECT n.nspname = ANY(current_schemas(true)), n.nspname, t.typname FROM pg_catalog.pg_type t JOIN " +
				"pg_catalog.pg_namespace n ON t.typnamespace = n.oid WHERE t.oid = $1",
			"SELECT typinput='pg_catalog.array_in'::regproc as is_array, typtype, typname, pg_type.oid FROM " +
				"pg_catalog.pg_type LEFT JOIN (select ns.oid as nspoid, ns.nspname, r.r from pg_namespace as ns " +
				"join ( select s.r, (current_schemas(false))[s.r] as nspname from generate_series(1, " +
				"array_upper(current_schemas(false), 1)) as s(r) ) as r using ( nspname ) ) as sp ON sp.nspoid = " +
				"typnamespace WHERE pg_type.oid = $1 ORDER BY sp.r, pg_type.oid DESC",
			"SELECT setting FROM pg_catalog.pg_settings WHERE name='max_index_keys'",
			"SELECT nspname AS TABLE_SCHEM, NULL AS TABLE_CATALOG FROM pg_catalog.pg_namespace WHERE nspname <> " +
				"'pg_toast' AND (nspname !~ '^pg_temp_' OR nspname = (pg_catalog.current_schemas(true))[1]) AND " +
				"(nspname !~ '^pg_toast_temp_' OR nspname = replace((pg_catalog.current_schemas(true))[1], 'pg_temp_', 'pg_toast_temp_')) ORDER BY TABLE_SCHEM",
			"SELECT result.TABLE_CAT, result.TABLE_SCHEM, result.TABLE_NAME, result.COLUMN_NAME, result.KEY_SEQ, " +
				"result.PK_NAME FROM (SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, ct.relname AS " +
				"TABLE_NAME, a.attname AS COLUMN_NAME, (information_schema._pg_expandarray(i.indkey)).n AS " +
				"KEY_SEQ, ci.relname AS PK_NAME, information_schema._pg_expandarray(i.indkey) AS KEYS, a.attnum " +
				"AS A_ATTNUM FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid) " +
				"JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid) JOIN pg_catalog.pg_index i ON ( " +
				"a.attrelid = i.indrelid) JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid) WHERE true AND n.nspname = 'public' AND ct.relname = 'memories' " +
				"AND i.indisprimary ) result where result.A_ATTNUM = (result.KEYS).x ORDER BY result.table_name, result.pk_name, result.key_seq",
			"SELECT n.nspname,c.relname,r.rolname,c.relacl FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c, " +
				"pg_catalog.pg_roles r WHERE c.relnamespace = n.oid AND c.relowner = r.oid AND c.relkind IN " +
				"('r','p','v','m','f') AND n.nspname LIKE 'public' AND c.relname LIKE 'memories' ORDER BY nspname, relname",
			"SELECT t.typname,t.oid FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON (t.typnamespace = " +
				"n.oid) WHERE n.nspname != 'pg_toast' AND (t.typrelid = 0 OR (SELECT c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid))",
			"SELECT c.oid, a.attnum, a.attname, c.relname, n.nspname, a.attnotnull OR (t.typtype = 'd' AND " +
				"t.typnotnull), a.attidentity != '' OR pg_catalog.pg_get_expr(d.adbin, d.adrelid) LIKE " +
				"'%nextval(%' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON (c.relnamespace = " +
				"n.oid) JOIN pg_catalog.pg_attribute a ON (c.oid = a.attrelid) JOIN pg_catalog.pg_type t ON " +
				"(a.atttypid = t.oid) LEFT JOIN pg_catalog.pg_attrdef d ON (d.adrelid = a.attrelid AND d.adnum = " +
				"a.attnum) JOIN (SELECT 16385 AS oid , 1 AS attnum) vals ON (c.oid = vals.oid AND a.attnum = vals.attnum)"},
		"psql": {`SELECT name AS "Column", pg_catalog.format_type(tp, tpm) AS "Type" FROM (VALUES ('id', '20'::pg_catalog.oid, -1)) s(name, tp, tpm)`,
			"SELECT c.relname, NULL::pg_catalog.text FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'S', " +
				"'v', 'm', 'f', 'p') AND (c.relname) LIKE 'mem%' AND pg_catalog.pg_table_is_visible(c.oid) AND " +
				"c.relnamespace <> (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'pg_catalog') UNION " +
				"ALL SELECT NULL::pg_catalog.text, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE " +
				"'mem%' AND n.nspname NOT LIKE E'pg\\\\_%' LIMIT 1000",
			"SELECT pg_catalog.lower(name) FROM pg_catalog.pg_settings WHERE context IN ('user', 'superuser') AND " +
				"pg_catalog.lower(name) LIKE pg_catalog.lower('sta%') LIMIT 1000"},
	} {
		for _, text := range statements {
			result, refusal := r.Rewrite(text, true)
			if refusal != nil {
				t.Errorf("%s: %.200s: %v (%s)", client, text, refusal, refusal.Hint)
				continue
			}
			if _, err := conn.Prepare(context.Background(), "", result.Text); err != nil {
				t.Errorf("%s: %.200s: PostgreSQL: %v\n%s", client, text, err, result.Text)
			}
		}
	}
}

// psql's backslash commands, as the psql of this machine sends them.
func TestStatementsOfPsql(t *testing.T) {
	psql, hasSameVersion := pgtest.ClientProgram(t, "psql")
	db := database(t)
	conn := db.Connect(t, "postgres")
	r := rewriter(t, InjectedMode)
	for _, command := range []string{`\d`, `\dt`, `\dt+`, `\d memories`, `\d people`, `\d memory_participants`,
		`\d+ memories`, `\d notes`, `\d "Mixed Case"`, `\d parents`,
		`\di`, `\dn`, `\dn+`, `\dT`, `\df match_memories`, `\dv`, `\dp`, `\l`, `\du`, `\dx`, `\d pg_class`, `\conninfo`, `\encoding`} {
		out, err := exec.Command(psql, "-X", "-E", "-h", db.SocketDir, "-p", strconv.Itoa(db.Port), "-U", "postgres",
			"-d", db.Name, "-c", command).CombinedOutput()
		if err != nil && !hasSameVersion && strings.Contains(string(out), "does not exist") {
			t.Logf("%s: this psql does not know the server's version", command)
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		sections := strings.Split(string(out), "********* QUERY **********\n")
		for _, section := range sections[1:] {
			text, _, _ := strings.Cut(section, "\n**************************")
			result, refusal := r.Rewrite(text, false)
			if refusal != nil {
				t.Errorf("%s: %v (%s)\n%s", command, refusal, refusal.Hint, text)
				continue
			}
			if _, err := conn.Prepare(context.Background(), "", result.Text); err != nil {
				t.Errorf("%s: PostgreSQL: %v\n%s", command, err, result.Text)
			}
		}
	}
}
