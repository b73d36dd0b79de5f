package rls_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
)

// refusedCatalogs are the catalog relations that agents do not get at all: credentials, statistics, files of the server,
// activity. A relation that is neither here nor has a shadow fails the test below.
var refusedCatalogs = map[string]bool{
	// of PostgreSQL 16 to 18
	"pg_catalog.pg_aios": true, "pg_catalog.pg_shmem_allocations_numa": true, "pg_catalog.pg_stat_checkpointer": true,
	"pg_catalog.pg_stat_io": true, "pg_catalog.pg_wait_events": true,
}

// catalogsSince16 is the number of refused catalogs that PostgreSQL 15 does not have.
const catalogsSince16 = 5

func init() {
	for _, name := range strings.Fields(`
		pg_authid pg_shadow pg_group pg_user_mapping pg_statistic pg_statistic_ext_data pg_stats_ext_exprs pg_largeobject
		pg_replication_origin pg_available_extensions pg_available_extension_versions pg_backend_memory_contexts pg_config
		pg_cursors pg_file_settings pg_hba_file_rules pg_ident_file_mappings pg_prepared_statements
		pg_replication_origin_status pg_replication_slots pg_shmem_allocations
		pg_stat_archiver pg_stat_bgwriter pg_stat_database_conflicts pg_stat_gssapi pg_stat_progress_analyze
		pg_stat_progress_basebackup pg_stat_progress_cluster pg_stat_progress_copy pg_stat_progress_create_index
		pg_stat_progress_vacuum pg_stat_recovery_prefetch pg_stat_replication pg_stat_replication_slots pg_stat_slru
		pg_stat_ssl pg_stat_subscription pg_stat_subscription_stats pg_stat_sys_indexes pg_stat_sys_tables
		pg_stat_user_functions pg_stat_wal pg_stat_wal_receiver pg_stat_xact_all_tables pg_stat_xact_sys_tables
		pg_stat_xact_user_functions pg_stat_xact_user_tables pg_statio_all_sequences pg_statio_sys_indexes
		pg_statio_sys_sequences pg_statio_sys_tables pg_statio_user_sequences`) {
		refusedCatalogs["pg_catalog."+name] = true
	}
	for _, name := range strings.Fields(`
		_pg_foreign_data_wrappers _pg_foreign_servers _pg_foreign_table_columns _pg_foreign_tables _pg_user_mappings
		administrable_role_authorizations attributes collation_character_set_applicability column_column_usage column_options
		data_type_privileges domain_constraints domain_udt_usage foreign_data_wrapper_options foreign_data_wrappers
		foreign_server_options foreign_servers foreign_table_options foreign_tables role_routine_grants role_udt_grants
		role_usage_grants routine_column_usage routine_privileges routine_routine_usage routine_sequence_usage
		routine_table_usage sql_features sql_implementation_info sql_parts sql_sizing transforms udt_privileges
		usage_privileges user_defined_types user_mapping_options user_mappings`) {
		refusedCatalogs["information_schema."+name] = true
	}
}

func TestEveryCatalogRelationIsClassified(t *testing.T) {
	w := newWorld(t)
	existingNames := map[string]bool{}
	for _, r := range w.snap.Relations() {
		if r.Name.Schema != "pg_catalog" && r.Name.Schema != "information_schema" {
			continue
		}
		existingNames[r.Name.String()] = true
		if _, ok := catalog.ShadowRelation(r.Name); ok == refusedCatalogs[r.Name.String()] {
			t.Errorf("%s: has a shadow: %v, is refused: %v", r.Name, ok, refusedCatalogs[r.Name.String()])
		}
	}
	if w.snap.ServerVersion()/10000 != 15 {
		return // the lists below are of PostgreSQL 15
	}
	missingCount := 0
	for name := range refusedCatalogs {
		if !existingNames[name] {
			missingCount++
		}
	}
	if missingCount != catalogsSince16 {
		t.Errorf("%d refused catalogs do not exist", missingCount)
	}
	for _, s := range catalog.Shadows() {
		if !existingNames[s.Source.String()] {
			t.Errorf("%s does not exist", s.Source)
		}
		r, ok := w.snap.Relation(s.Source)
		if !ok {
			continue
		}
		for _, replaced := range []map[string]string{s.ReplacedColumns, s.MaskedColumns} {
			for column := range replaced {
				if r.Column(column) == nil {
					t.Errorf("%s has no column %s", s.Source, column)
				}
			}
		}
	}
}

// columnTypes returns the names and types of a relation's columns, in order.
func columnTypes(t *testing.T, conn *pgx.Conn, relation string) []string {
	t.Helper()
	rows, err := conn.Query(context.Background(),
		"SELECT a.attname || ' ' || format_type(a.atttypid, a.atttypmod) FROM pg_attribute AS a WHERE a.attrelid "+
			"= $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum", relation)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestShadowsHaveTheColumnsOfTheOriginals(t *testing.T) {
	w := migrated(t)
	for _, s := range catalog.Shadows() {
		want, got := columnTypes(t, w.super, s.Source.SQL()), columnTypes(t, w.super, s.View().SQL())
		for i := range want {
			want[i] = strings.Replace(want[i], " anyarray", " text[]", 1) // a view cannot have the pseudo-type
		}
		if fmt.Sprint(want) != fmt.Sprint(got) {
			t.Errorf("%s:\nwant %v\n got %v", s.Source, want, got)
		}
	}
	for _, f := range catalog.ShadowFunctions() {
		if f.Name == "to_regtypemod" && pgtest.Binaries().Major < 17 {
			continue
		}
		if f.Name == "currval" && f.Args[0] == "pg_catalog.text" { // an argument more than the original, so that no name is looked up
			continue
		}
		args, originalName := strings.ReplaceAll(strings.Join(f.Args, ","), "pg_catalog.", ""), "pg_catalog."+f.Name
		originalArgs := args
		if f.InformationSchema { // it takes rows of the catalogs, its replacement rows of the shadows
			originalName, originalArgs = "information_schema."+f.Name, strings.ReplaceAll(args, "pgconsent_catalog.", "pg_catalog.")
		}
		w.want(w.super, fmt.Sprintf(
			"SELECT p.prorettype = s.prorettype FROM pg_proc AS p, pg_proc AS s WHERE p.oid = "+
				"'%s(%s)'::regprocedure AND s.oid = 'pgconsent_catalog.%s(%s)'::regprocedure", originalName, originalArgs, f.Name, args), "t")
	}
}

// The parts of pg_class, pg_type and pg_constraint that their shadows add up are what shows, each row once: PostgreSQL's
// own, composite types, and what the policy lists. Other shadows agree about which relations show.
func TestPartsOfShadowsAreWhole(t *testing.T) {
	w := newWorld(t, "CREATE SCHEMA other; CREATE TYPE pair AS (a int, b text); CREATE TYPE other.pair AS (a int)",
		"CREATE TYPE mood AS ENUM ('calm'); CREATE TYPE other.mood AS ENUM ('glad'); CREATE DOMAIN short AS text CHECK (VALUE <> 'x')",
		"CREATE TABLE hidden_table (id serial PRIMARY KEY, body text, person uuid REFERENCES people (id))",
		"CREATE VIEW hidden_view AS SELECT 1 AS a",
		"ALTER TABLE memories ADD COLUMN hidden_one int REFERENCES hidden_table (id)",
		"CREATE VIEW information_schema.made_later AS SELECT 1 AS a").migrate()
	const (
		shown = `SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE n.nspname IN ('pg_catalog', 'information_schema') OR c.relkind = 'c' AND n.nspname !~ '^pgconsent'
		OR c.oid IN (SELECT l.oid FROM pgconsent.listed_relations() AS l (oid))`
		shownTypes = `SELECT t.oid FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace LEFT JOIN pg_type AS e ON e.oid = t.typelem
		WHERE n.nspname !~ '^pgconsent' AND (t.typrelid = 0 OR t.typrelid IN (` + shown + `))
		AND (COALESCE(e.typrelid, 0) = 0 OR e.typrelid IN (` + shown + `))`
		shownConstraints = `SELECT k.oid FROM pg_constraint AS k WHERE k.contype IN ('p', 'u', 'f', 'n') AND k.conrelid IN (` + shown + `)
		AND (k.confrelid = 0 OR k.confrelid IN (` + shown + `))`
		oids = "SELECT string_agg(oid::text, ' ' ORDER BY oid) FROM "
	)
	for sql, want := range map[string]string{
		oids + "pgconsent_catalog.pg_class":      oids + "(" + shown + ") AS s",
		oids + "pgconsent_catalog.pg_type":       oids + "(" + shownTypes + ") AS s",
		oids + "pgconsent_catalog.pg_constraint": oids + "(" + shownConstraints + ") AS s",
		"SELECT string_agg(enumlabel, ' ' ORDER BY enumlabel) FROM pgconsent_catalog.pg_enum " +
			"WHERE enumlabel IN ('calm', 'glad')": "SELECT 'calm glad'",
		"SELECT count(*) FROM pgconsent_catalog.pg_range WHERE rngtypid = 'int4range'::regtype": "SELECT 1",
		"SELECT string_agg(DISTINCT attrelid::text, ' ') FROM pgconsent_catalog.pg_attribute": "SELECT string_agg(DISTINCT " +
			"attrelid::text, ' ') FROM pg_attribute WHERE attrelid IN (" + shown + ")",
		"SELECT string_agg(indexrelid::text, ' ' ORDER BY indexrelid) FROM pgconsent_catalog.pg_index": "SELECT " +
			"string_agg(indexrelid::text, ' ' ORDER BY indexrelid) FROM pg_index WHERE indexrelid IN (" + shown + ")",
		"SELECT count(*) FROM pgconsent_catalog.pg_class WHERE oid IN ('pair'::regclass, 'other.pair'::regclass, " +
			"'information_schema.made_later'::regclass, 'memories'::regclass, 'memories_pkey'::regclass, 'pg_class'::regclass)": "SELECT 6",
		"SELECT count(*) FROM pgconsent_catalog.pg_class WHERE relname IN ('hidden_table', 'hidden_view', 'hidden_table_pkey', " +
			"'hidden_table_id_seq')": "SELECT 0",
		"SELECT count(*) FROM pgconsent_catalog.pg_type " +
			"WHERE typname IN ('mood', '_mood', 'short', 'pair', '_pair', 'memories', '_memories')": "SELECT 11",
		"SELECT count(*) FROM pgconsent_catalog.pg_type WHERE typname ~ 'hidden'":                                  "SELECT 0",
		"SELECT count(*) FROM pgconsent_catalog.pg_constraint WHERE conname ~ 'hidden' OR conname = 'short_check'": "SELECT 0",
	} {
		expected, err := query(w.super, want)
		if err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		w.want(w.super, sql, expected)
	}
}

// A session keeps lists of what shows. It uses none that was made before a change of the catalogs, or for another
// policy, and nobody sees that it keeps them: neither a transaction that is rolled back, nor one that PostgreSQL would run
// in parallel.
func TestKeptListsFollowTheCatalogs(t *testing.T) {
	for name, isSuperuser := range map[string]bool{"with event triggers": true, "without event triggers": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "CREATE TABLE hidden_table (id int)")
			migrating := w.owner
			if isSuperuser {
				migrating = w.super
			}
			if err := migrations.Up(t.Context(), migrating, migrations.Options{}, w.plan); err != nil {
				t.Fatal(err)
			}
			testKeptLists(t, w)

			// An empty list is used only if it is of this version. All statements of one Query have the same time.
			const (
				count = "SELECT count(*) FROM pgconsent_catalog.pg_class WHERE relname = 'memories'"
				empty = "SELECT set_config('pgconsent.listed_relations', " +
					"%s || split_part(current_setting('pgconsent.listed_relations'), ' ', 1) || ' {}', false) <> ''"
			)
			keptCount := map[bool]string{true: "0", false: "1"}[isSuperuser]
			w.want(w.agent(user1), strings.Join([]string{count, fmt.Sprintf(empty, "''"), count}, ";"), "1,t,"+keptCount)
			w.want(w.agent(user1), strings.Join([]string{count, fmt.Sprintf(empty, "'other'"), count}, ";"), "1,t,1")
		})
	}
}

func testKeptLists(t *testing.T, w *world) {
	t.Helper()
	agent := w.agent(user1)
	const (
		shownNames = "SELECT string_agg(c.relname, ' ' ORDER BY c.relname) FROM pgconsent_catalog.pg_class AS c " +
			"WHERE c.relname ~ '^(memories|hidden)_kept'"
		shownTypes = "SELECT string_agg(t.typname, ' ' ORDER BY t.typname) FROM pgconsent_catalog.pg_type AS t WHERE t.typname ~ '^kept'"
		shownKeys  = "SELECT string_agg(k.conname, ' ' ORDER BY k.conname) FROM pgconsent_catalog.pg_constraint AS k WHERE k.conname ~ '_kept'"
	)
	check := func(relations, types, keys string) {
		t.Helper()
		w.want(agent, shownNames, relations)
		w.want(agent, shownTypes, types)
		w.want(agent, shownKeys, keys)
	}
	check("NULL", "NULL", "NULL")
	w.exec(w.super, "CREATE INDEX memories_kept ON memories (id); CREATE INDEX hidden_kept ON hidden_table (id)")
	check("memories_kept", "NULL", "NULL")
	w.exec(w.super, "CREATE TYPE kept_mood AS ENUM ('calm'); ALTER TABLE memories ADD CONSTRAINT memories_kept_key UNIQUE (id, title)")
	check("memories_kept memories_kept_key", "kept_mood", "memories_kept_key")
	w.exec(w.super, "ALTER TABLE hidden_table ADD CONSTRAINT hidden_kept_key UNIQUE (id); DROP INDEX memories_kept; DROP TYPE kept_mood")
	check("memories_kept_key", "NULL", "memories_kept_key")

	for _, sql := range []string{"BEGIN", "SAVEPOINT s", shownNames, "ROLLBACK TO s", shownNames, "ROLLBACK"} {
		if _, err := agent.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	check("memories_kept_key", "NULL", "memories_kept_key")

	parallel := w.agent(user1)
	setting := "force_parallel_mode"
	if pgtest.Binaries().Major >= 16 {
		setting = "debug_parallel_query"
	}
	if _, err := parallel.Exec(t.Context(), "SET "+setting+" = on"); err != nil {
		t.Fatal(err)
	}
	w.want(parallel, "SELECT pgconsent_catalog.pg_get_indexdef('memories_kept_key'::regclass) LIKE 'CREATE UNIQUE INDEX%'", "t")
	w.want(parallel, "SELECT pgconsent_catalog.to_regclass('hidden_table') IS NULL", "t")
	w.want(parallel, shownNames, "memories_kept_key")
}

// The shadows contain no name of a relation, function or role setting that agents may not see. They contain no free
// text, and no name of pgconsent's objects.
func TestShadowsRevealNoHiddenNames(t *testing.T) {
	w := newWorld(t,
		"CREATE TABLE hidden_table (hidden_column int DEFAULT 42); CREATE INDEX hidden_index ON hidden_table (hidden_column)",
		"CREATE FUNCTION hidden_function() RETURNS int LANGUAGE sql AS 'SELECT 1'",
		"CREATE SEQUENCE hidden_sequence",
		"ALTER TABLE memory_edges ADD hidden_n serial",
		"CREATE VIEW hidden_view AS SELECT 'sekret view' AS a",
		"CREATE SCHEMA hidden_schema",
		"ALTER TABLE memories ADD COLUMN c text DEFAULT 'sekret default', ADD CHECK (title <> 'sekret check')",
		"COMMENT ON COLUMN people.name IS 'sekret comment'",
		"CREATE TRIGGER hidden_trigger BEFORE UPDATE ON memories FOR EACH ROW WHEN (NEW.title = 'sekret trigger') "+
			"EXECUTE FUNCTION suppress_redundant_updates_trigger()",
		"CREATE STATISTICS hidden_statistics ON title, body FROM memories; ANALYZE",
		"ALTER ROLE app_other SET app.setting = 'sekret setting'",
		"CREATE PUBLICATION hidden_publication",
		"GRANT SELECT ON hidden_table, hidden_view TO PUBLIC",
	).migrate()
	t.Cleanup(func() { _, _ = w.super.Exec(context.Background(), "ALTER ROLE app_other RESET ALL") })
	agent := w.agent(user1)
	sealPrefix := w.key().Seal(claims(agent, user1))[:10]
	for _, s := range catalog.Shadows() {
		text, err := query(agent, "SELECT t::pg_catalog.text FROM "+s.View().SQL()+" AS t")
		if err != nil {
			t.Errorf("%s: %v", s.View(), err)
			continue
		}
		for _, word := range []string{"hidden", "sekret", "memory_edges", "pgconsent.", "pgconsent_signed", "pgconsent_catalog", "h_public", sealPrefix} {
			if i := strings.Index(text, word); i >= 0 {
				t.Errorf("%s tells %q: …%s…", s.View(), word, text[max(0, i-60):min(len(text), i+60)])
			}
		}
	}
	for sql, want := range map[string]string{
		"SELECT pg_catalog.concat_ws(' ', pgconsent_catalog.to_regclass('memories'), " +
			"pgconsent_catalog.to_regclass('public.people'), pgconsent_catalog.to_regclass('pg_class'), " +
			"pgconsent_catalog.to_regclass('memories_pkey'))": "memories people pg_class memories_pkey",
		"SELECT pg_catalog.concat_ws(' ', pgconsent_catalog.to_regtype('memories'), " +
			"pgconsent_catalog.to_regtype('integer[]'), pgconsent_catalog.to_regprocedure('lower(text)'), " +
			"pgconsent_catalog.to_regproc('now'), pgconsent_catalog.to_regnamespace('public'))": "memories integer[] lower(text) now public",
		"SELECT pg_catalog.num_nulls(pgconsent_catalog.to_regtype('hidden_table'), " +
			"pgconsent_catalog.to_regtype('_memory_edges'), pgconsent_catalog.to_regtype('nothing'), " +
			"pgconsent_catalog.to_regproc('people_grant_self'), " +
			"pgconsent_catalog.to_regprocedure('people_grant_self()'), pgconsent_catalog.to_regnamespace('pgconsent'))": "6",
		"SELECT pg_catalog.num_nulls(pgconsent_catalog.to_regclass('hidden_table'), " +
			"pgconsent_catalog.to_regclass('memory_edges'), pgconsent_catalog.to_regclass('hidden_view'), " +
			"pgconsent_catalog.to_regclass('hidden_sequence'), pgconsent_catalog.to_regclass('nothing'))": "5",
		"SELECT reltuples || ' ' || relpages FROM pgconsent_catalog.pg_class WHERE relname = 'memories'": "-1 0",
		"SELECT count(*) FROM pgconsent_catalog.pg_class WHERE relname IN ('memories', 'people', " +
			"'memory_participants', 'memories_pkey', 'recent')": "4",
		"SELECT count(*) FROM pgconsent_catalog.pg_index WHERE indexrelid = 'public.recent'::regclass": "0",
		"SELECT pgconsent_catalog.current_setting(name) FROM pgconsent_catalog.pg_settings WHERE name = " +
			"'server_encoding'": "UTF8",
		"SELECT pgconsent_catalog.current_setting('pgconsent.se' || 'al')": "NULL",
		"SELECT pgconsent_catalog.current_setting('PGCONSENT.seal', true)": "NULL",
		"SELECT pgconsent_catalog.pg_tablespace_location(oid) FROM pg_catalog.pg_tablespace WHERE spcname = " +
			"'pg_default'": "NULL",
		"SELECT attname FROM pgconsent_catalog.pg_attribute WHERE attrelid = 'public.people'::regclass AND attnum " +
			"> 0 ORDER BY attnum": "id,user_id,name,is_self,consent_status",
		"SELECT pgconsent_catalog.pg_get_constraintdef(oid) FROM pgconsent_catalog.pg_constraint WHERE conname = " +
			"'memories_pkey'": "PRIMARY KEY (id)",
		"SELECT pgconsent_catalog.pg_get_constraintdef(oid) FROM pg_catalog.pg_constraint WHERE conname = " +
			"'body_length'": "NULL",
		"SELECT pgconsent_catalog.pg_get_indexdef('public.memories_pkey'::regclass)": "CREATE UNIQUE INDEX memories_pkey " +
			"ON public.memories USING btree (id)",
		"SELECT pgconsent_catalog.pg_get_indexdef('public.recent'::regclass)":                         "NULL",
		"SELECT pgconsent_catalog.pg_get_indexdef('public.hidden_index'::regclass)":                   "NULL",
		"SELECT pgconsent_catalog.obj_description('public.memories'::regclass)":                       "NULL",
		"SELECT pgconsent_catalog.pg_table_size('public.memories')":                                   "NULL",
		"SELECT indexname FROM pgconsent_catalog.pg_indexes WHERE tablename = 'people'":               "people_pkey",
		"SELECT table_name FROM pgconsent_catalog.is_tables WHERE table_schema = 'public' ORDER BY 1": "memories,memory_participants,people",
		"SELECT constraint_type FROM pgconsent_catalog.is_table_constraints WHERE table_name = " +
			"'memory_participants' ORDER BY 1": "FOREIGN KEY,UNIQUE",
		"SELECT column_name FROM pgconsent_catalog.is_key_column_usage WHERE constraint_name = 'memories_pkey'": "id",
		"SELECT table_name || '.' || column_name FROM pgconsent_catalog.is_constraint_column_usage WHERE " +
			"constraint_name LIKE '%fkey'": "memories.id",
		"SELECT unique_constraint_name FROM pgconsent_catalog.is_referential_constraints":           "memories_pkey",
		"SELECT proname FROM pgconsent_catalog.pg_proc WHERE pronamespace = 'public'::regnamespace": "match_memories",
		"SELECT parameter_name FROM pgconsent_catalog.is_parameters WHERE specific_schema = 'public' AND " +
			"parameter_mode = 'IN' ORDER BY ordinal_position": "words,match_count,respect_consent",
		"SELECT schema_name FROM pgconsent_catalog.is_schemata WHERE schema_name NOT LIKE 'pg_%'": "public,information_schema",
		"SELECT count(*) FROM pgconsent_catalog.pg_database":                                      "1",
		"SELECT string_agg(a.attname || ' ' || pg_get_expr(d.adbin, d.adrelid), ',' ORDER BY a.attnum) FROM " +
			"pgconsent_catalog.pg_attrdef d JOIN pg_catalog.pg_attribute a ON a.attrelid = d.adrelid AND a.attnum " +
			"= d.adnum WHERE d.adrelid = 'public.memories'::regclass": "body ''::text,occurred_at now()",
		"SELECT string_agg(column_name || ' ' || column_default, ',' ORDER BY ordinal_position) FROM " +
			"pgconsent_catalog.is_columns WHERE table_name = 'memories'": "body ''::text,occurred_at now()",
		"SELECT setting FROM pgconsent_catalog.pg_settings WHERE name = 'server_encoding'": "UTF8",
		"SELECT pgconsent_catalog.current_setting('Plan_cache_MODE') IS NULL":              "t",
		"SELECT count(*) FROM pgconsent_catalog.pg_settings WHERE name LIKE '%.%'":         "0",
	} {
		w.want(agent, sql, want)
	}
	// A hidden name looks like a name that does not exist, whatever follows it, also while the planner evaluates it.
	names := "'hidden_table', '_memory_edges', 'hidden_table(5)', 'hidden_table (5) []', '_memory_edges(5)', " +
		"'public.hidden_table(5)', '\"hidden_table\"(\"a\")', 'hidden_table(''a'')', 'hidden_table((5))', " +
		"'hidden_table/*\"*/(5)/*\"*/', '\"nothing(5)\"', 'nothing(5)'"
	functions := []string{"to_regtype"}
	if pgtest.Binaries().Major >= 17 {
		functions = append(functions, "to_regtypemod")
		w.want(agent, "SELECT pg_catalog.concat_ws(' ', pgconsent_catalog.to_regtypemod('varchar(32)'), "+
			"pgconsent_catalog.to_regtypemod('memories'), pgconsent_catalog.to_regtypemod('integer'))", "36 -1 -1")
	}
	for _, f := range functions {
		w.want(agent, "SELECT count(*) FROM unnest(ARRAY["+names+"]) AS t(t) WHERE pgconsent_catalog."+f+"(t) IS NOT NULL", "0")
		for _, name := range strings.Split(names, ", ") {
			w.want(agent, "SELECT count(*) FROM pg_catalog.pg_type WHERE oid = pgconsent_catalog."+f+"("+name+")::pg_catalog.oid", "0")
		}
	}
	w.want(agent, "SELECT pg_catalog.concat_ws(' ', pgconsent_catalog.to_regtype('numeric(5, 2)'), "+
		"pgconsent_catalog.to_regtype('time (3) with time zone'), pgconsent_catalog.to_regtype('varchar(3)[]'), pgconsent_catalog.to_regtype('\"char\"'))",
		"numeric time with time zone character varying[] \"char\"")
	w.want(agent, "SELECT pg_catalog.num_nulls(pgconsent_catalog.to_regprocedure('now(hidden_table)'), "+
		"pgconsent_catalog.to_regprocedure('now(hidden_table(5))'), pgconsent_catalog.to_regprocedure('now(text, "+
		"nothing)'), pgconsent_catalog.to_regprocedure('now(hidden_table'), pgconsent_catalog.to_regprocedure('now(text)'))", "5")
	w.want(agent, "SELECT pg_catalog.concat_ws(' ', pgconsent_catalog.to_regprocedure('now ( )'), "+
		"pgconsent_catalog.to_regprocedure('pg_catalog.\"substring\"(text, pg_catalog.int4,\"int4\") '))", "now() \"substring\"(text,integer,integer)")
}
