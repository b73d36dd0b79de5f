package doctor_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.MainAlone(m) }

const schema = `
CREATE TABLE public.people (id bigint PRIMARY KEY, user_id uuid NOT NULL, name text NOT NULL, consent_status text);
CREATE TABLE public.memories (id bigint PRIMARY KEY, user_id uuid NOT NULL, title text NOT NULL);
CREATE TABLE public.memory_participants (
	memory_id bigint NOT NULL REFERENCES public.memories, person_id bigint NOT NULL REFERENCES public.people, PRIMARY KEY (memory_id, person_id));
CREATE TABLE public.letters (id bigint PRIMARY KEY, user_id uuid, body text);
CREATE VIEW public.letter_list AS SELECT l.id, p.name FROM public.letters l, public.people p;
CREATE FUNCTION public.count_memories(respect_consent boolean DEFAULT false) RETURNS bigint LANGUAGE sql STABLE
	AS 'SELECT count(*) FROM public.memories';
INSERT INTO public.people VALUES (1, '6f1e0000-0000-4000-8000-000000000001', 'Ann', 'granted'), (2, '6f1e0000-0000-4000-8000-000000000001', 'Ben', 'revoked');
INSERT INTO public.memories VALUES (1, '6f1e0000-0000-4000-8000-000000000001', 'lake'), (2, '6f1e0000-0000-4000-8000-000000000001', 'hill');
INSERT INTO public.memory_participants VALUES (1, 1), (2, 2);
`

const rules = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  memories:
    rows:
      - own: { column: user_id, is: user }
      - consent: { every: [ memory_participants: { memory_id: id }, people: { id: person_id } ], status: consent_status, is: granted }
  people: { rows: [ { own: { column: user_id, is: user } }, { status: { column: consent_status, is: granted } } ] }
  memory_participants: { rows: [ { visible: { memories: { id: memory_id } } }, { visible: { people: { id: person_id } } } ] }
  letters: { rows: [ { own: { column: user_id, is: user } } ], columns: { id: allow } }
views: { letter_list: {} }
functions: { count_memories: { pin: { respect_consent: true } } }
`

// lookupViewName is one of the views that row policies read.
const lookupViewName = "pgconsent.h_public_people"

// compile compiles the rules against a database.
func compile(ctx context.Context, conn *pgx.Conn) (doctor.Target, error) {
	return compileRules(ctx, conn, rules)
}

func compileRules(ctx context.Context, conn *pgx.Conn, rules string) (doctor.Target, error) {
	doc, err := policy.Parse("policy.yaml", []byte(rules))
	if err != nil {
		return doctor.Target{}, err
	}
	snap, err := pgcatalog.Load(ctx, conn, []string{"public"})
	if err != nil {
		return doctor.Target{}, err
	}
	p, err := policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
	if err != nil {
		return doctor.Target{}, err
	}
	return doctor.Target{Policy: p, Snapshot: snap, Plan: rls.Generate(p, snap, rls.Options{})}, nil
}

// migratedDatabase returns a database in the state after pgconsent migrate.
func migratedDatabase(t *testing.T) *pgtest.DB {
	t.Helper()
	db := pgtest.Template(t, "safe", func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, schema); err != nil {
			return err
		}
		s, err := compile(ctx, conn)
		if err != nil {
			return err
		}
		return migrations.Up(ctx, conn, migrations.Options{}, s.Plan)
	})
	// A copy of a template database does not have the template's database privileges.
	exec(t, db.Connect(t, "postgres"), "REVOKE TEMPORARY, CREATE ON DATABASE "+db.Name+" FROM PUBLIC")
	return db
}

func exec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func examine(t *testing.T, db *pgtest.DB, s doctor.Target) []doctor.Finding {
	t.Helper()
	found, err := doctor.RunChecks(t.Context(), db.Connect(t, "pgconsent_control"), s)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func probe(t *testing.T, db *pgtest.DB, s doctor.Target) []doctor.Finding {
	t.Helper()
	found, err := doctor.RunProbes(t.Context(), db.Connect(t, "pgconsent_control"), db.DSN("pgconsent_agent", ""), s)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func subject(t *testing.T, db *pgtest.DB) doctor.Target {
	t.Helper()
	s, err := compile(t.Context(), db.Connect(t, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func has(found []doctor.Finding, id string, severity doctor.Severity) bool {
	for _, f := range found {
		if f.ID == id && f.Severity == severity {
			return true
		}
	}
	return false
}

// The probe finds a signed path that evaluates an expression before it checks the signature. Agents can still be served
// without the signed path.
func TestSignedPathProbe(t *testing.T) {
	db := migratedDatabase(t)
	s := subject(t, db)
	s.Plan = rls.Generate(s.Policy, s.Snapshot, rls.Options{SignedViews: true})
	conn := db.Connect(t, "postgres")
	if err := migrations.Up(t.Context(), conn, migrations.Options{}, s.Plan); err != nil {
		t.Fatal(err)
	}
	if found := probe(t, db, s); !has(found, doctor.SignedPathProbe, doctor.SeverityOK) || !has(found, "row_security_path", doctor.SeverityOK) {
		t.Errorf("%+v", found)
	}
	for name, condition := range map[string]string{
		"beside each row":    "WHERE pgconsent_signed.text_is_signed() IS NOT DISTINCT FROM (id > 0)",
		"never":              "WHERE id = 1",
		"false in its place": "WHERE (SELECT pgconsent_signed.sealed()) AND false",
	} {
		exec(t, conn, "CREATE OR REPLACE VIEW "+rls.CanarySignedView()+" AS SELECT id, consent, secret FROM pgconsent_signed.canary "+condition)
		found := probe(t, db, s)
		if !has(found, doctor.SignedPathProbe, doctor.SeverityNoSignedPath) {
			t.Errorf("%s: %+v", name, found)
		}
	}
	// A row policy that PostgreSQL evaluates after a statement's own expressions.
	exec(t, conn, "DROP POLICY pgconsent_select ON pgconsent_signed.canary")
	if found := probe(t, db, s); !has(found, "row_security_path", doctor.SeverityUnsafe) {
		t.Errorf("%+v", found)
	}
}

func TestSafeDatabase(t *testing.T) {
	db := migratedDatabase(t)
	s := subject(t, db)
	for _, f := range append(examine(t, db, s), probe(t, db, s)...) {
		switch f.Severity {
		case doctor.SeverityOK, doctor.SeverityHardening:
		default:
			t.Errorf("%s: %s: %s", f.Severity, f.ID, f.Problem)
		}
		if f.Severity != doctor.SeverityOK && f.Fix == "" {
			t.Errorf("%s says no fix", f.ID)
		}
	}
	if err := doctor.CheckServing(t.Context(), db.Connect(t, "pgconsent_control"), s); err != nil {
		t.Error(err)
	}
}

// Each case makes a real database unsafe by SQL. The finding must be reported, and serving refused.
func TestUnsafeDatabases(t *testing.T) {
	for i, tc := range []struct {
		want, sql string
		undo      string // undoes changes that outlive the database
	}{
		{"agent_superuser", "ALTER ROLE pgconsent_agent SUPERUSER", "ALTER ROLE pgconsent_agent NOSUPERUSER"},
		{"agent_bypassrls", "ALTER ROLE pgconsent_agent BYPASSRLS", "ALTER ROLE pgconsent_agent NOBYPASSRLS"},
		{"agent_createrole", "ALTER ROLE pgconsent_agent CREATEROLE", "ALTER ROLE pgconsent_agent NOCREATEROLE"},
		{"agent_createdb", "ALTER ROLE pgconsent_agent CREATEDB", "ALTER ROLE pgconsent_agent NOCREATEDB"},
		{"agent_replication", "ALTER ROLE pgconsent_agent REPLICATION", "ALTER ROLE pgconsent_agent NOREPLICATION"},
		{"agent_member", "CREATE ROLE boss; GRANT boss TO pgconsent_agent", "DROP ROLE boss"},
		{"agent_member", "GRANT pg_read_all_data TO pgconsent_agent", "REVOKE pg_read_all_data FROM pgconsent_agent"},
		{"agent_owner", "ALTER TABLE public.memories OWNER TO pgconsent_agent", ""},
		{"agent_owner", "CREATE TABLE public.mine (); ALTER TABLE public.mine OWNER TO pgconsent_agent", ""},
		{"reader_superuser", "ALTER ROLE pgconsent_reader SUPERUSER", "ALTER ROLE pgconsent_reader NOSUPERUSER"},
		{"reader_login", "ALTER ROLE pgconsent_reader LOGIN", "ALTER ROLE pgconsent_reader NOLOGIN"},
		{"reader_member", "GRANT pgconsent_agent TO pgconsent_reader", "REVOKE pgconsent_agent FROM pgconsent_reader"},
		{"role_missing", "ALTER ROLE pgconsent_reader RENAME TO elsewhere", "ALTER ROLE elsewhere RENAME TO pgconsent_reader"},
		{"role_settings", "ALTER ROLE pgconsent_agent SET pgconsent.seal = 'v1'", "ALTER ROLE pgconsent_agent RESET pgconsent.seal"},
		{"agent_temp", "DO $$ BEGIN EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO PUBLIC', current_database()); END $$", ""},
		{"agent_create_database", "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO pgconsent_agent', current_database()); END $$", ""},
		{"agent_create_schema", "GRANT CREATE ON SCHEMA public TO PUBLIC", ""},
		{"agent_create_schema", "CREATE SCHEMA attic; GRANT CREATE ON SCHEMA attic TO pgconsent_agent", ""},
		{"agent_usage", "GRANT USAGE ON SCHEMA pgconsent TO PUBLIC", ""},
		{"agent_write", "GRANT INSERT ON public.people TO PUBLIC", ""},
		{"agent_write", "GRANT UPDATE (consent_status) ON public.people TO pgconsent_agent", ""},
		{"rls_off", "ALTER TABLE public.memories DISABLE ROW LEVEL SECURITY", ""},
		{"rls_off", "ALTER TABLE public.people DISABLE ROW LEVEL SECURITY", ""},
		{"force_rls", "ALTER TABLE public.people FORCE ROW LEVEL SECURITY", ""},
		{"foreign_policy", "CREATE POLICY ours_not ON public.memories TO pgconsent_agent USING (true)", ""},
		{"foreign_policy", "CREATE POLICY less ON public.people AS RESTRICTIVE TO pgconsent_reader USING (id < 2)", ""},
		{"foreign_policy", "CREATE POLICY less ON public.people AS RESTRICTIVE TO pgconsent_reader, pgconsent_control USING (id < 2)", ""},
		{"foreign_restrictive", "CREATE POLICY less ON public.people AS RESTRICTIVE USING (id < 2)", ""},
		{"foreign_restrictive", "CREATE POLICY less ON public.memory_participants AS RESTRICTIVE FOR SELECT USING (false)", ""},
		{"drift", "CREATE POLICY pgconsent_less ON public.people AS RESTRICTIVE USING (id < 2)", ""},
		{"table_missing", "DROP TABLE public.memory_participants CASCADE", ""},
		{"view_owner", "ALTER VIEW " + lookupViewName + " OWNER TO postgres", ""},
		{"view_invoker", "ALTER VIEW " + lookupViewName + " SET (security_invoker = true)", ""},
		{"view_owner", "ALTER VIEW pgconsent_rows.public_letters OWNER TO pgconsent_reader", ""},
		{"view_owner", "ALTER VIEW pgconsent_rows.filtered_public_letters OWNER TO postgres", ""},
		{"view_owner", "ALTER VIEW pgconsent_rows.public_letter_list RESET (security_invoker)", ""},
		{"drift", "ALTER VIEW pgconsent_rows.filtered_public_letter_list SET (security_invoker = false)", ""},
		{"agent_narrowed", "GRANT SELECT ON public.letters TO PUBLIC", ""},
		{"agent_narrowed", "GRANT SELECT (body) ON public.letters TO pgconsent_agent", ""},
		{"rows_write", "GRANT DELETE ON public.letters TO pgconsent_rows", ""},
		{"rows_exempt", "ALTER TABLE public.letters OWNER TO pgconsent_rows", ""},
		{"rows_bypassrls", "ALTER ROLE pgconsent_rows BYPASSRLS", "ALTER ROLE pgconsent_rows NOBYPASSRLS"},
		{"rows_login", "ALTER ROLE pgconsent_rows LOGIN", "ALTER ROLE pgconsent_rows NOLOGIN"},
		{"rows_member", "GRANT pgconsent_reader TO pgconsent_rows", "REVOKE pgconsent_reader FROM pgconsent_rows"},
		{"rls_off", "ALTER TABLE public.letters DISABLE ROW LEVEL SECURITY", ""},
		{"foreign_policy", "CREATE POLICY ours_not ON public.letters TO pgconsent_rows USING (true)", ""},
		{"function_definer", "ALTER FUNCTION public.count_memories SECURITY DEFINER", ""},
		{"function_definer",
			"CREATE FUNCTION public.everybody() RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT " +
				"count(*) > 5 FROM public.memories'; DO $$ DECLARE f record; BEGIN SELECT pg_get_functiondef(oid) " +
				"AS def INTO f FROM pg_proc WHERE proname = 'count_memories'; EXECUTE regexp_replace(f.def, " +
				"'DEFAULT \\w+', 'DEFAULT public.everybody()'); END $$", ""},
		{"function_path", "ALTER FUNCTION pgconsent_signed.attr RESET ALL", ""},
		{"not_installed", "DROP SCHEMA pgconsent CASCADE", ""},
		{"other_policy", "UPDATE pgconsent.installed SET hash = 'another'", ""},
		{"drift", "CREATE OR REPLACE FUNCTION pgconsent_signed.sealed() RETURNS boolean LANGUAGE sql STABLE " +
			"SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'SELECT true'", ""},
		{"drift", "DO $$ DECLARE p record; BEGIN SELECT * INTO p FROM pg_policies WHERE permissive = " +
			"'RESTRICTIVE' AND tablename = 'memories' LIMIT 1; EXECUTE format('DROP POLICY %I ON public.memories', p.policyname); END $$", ""},
		{"drift", "DO $$ DECLARE p record; BEGIN SELECT * INTO p FROM pg_policies WHERE permissive = " +
			"'RESTRICTIVE' AND tablename = 'memories' LIMIT 1; EXECUTE format('ALTER POLICY %I ON public.memories USING (true)', p.policyname); END $$", ""},
		{"drift", "CREATE POLICY pgconsent_extra ON public.memories TO pgconsent_agent USING (true)", ""},
		{"drift", "CREATE VIEW pgconsent_signed.everything AS SELECT * FROM public.memories", ""},
		{"drift", "ALTER FUNCTION pgconsent_signed.sealed() LEAKPROOF", ""},
		{"planted", "CREATE FUNCTION pg_catalog.sha256(text) RETURNS bytea LANGUAGE sql AS 'SELECT NULL::bytea'", ""},
		{"planted", "CREATE FUNCTION public.f(text) RETURNS uuid LANGUAGE sql AS 'SELECT NULL::uuid'; CREATE CAST " +
			"(text AS uuid) WITH FUNCTION public.f(text)", ""},
		{"leakproof", "ALTER FUNCTION pg_catalog.textlike(text, text) LEAKPROOF", ""},
		{"leakproof", "ALTER FUNCTION public.count_memories LEAKPROOF", ""},
		{"leakproof", "CREATE FUNCTION public.place(text) RETURNS point LANGUAGE sql IMMUTABLE LEAKPROOF AS " +
			"'SELECT NULL::point'; CREATE CAST (text AS point) WITH FUNCTION public.place(text)", ""},
		{"bad_key", "DELETE FROM pgconsent.keys", ""},
		{"key_readable", "GRANT EXECUTE ON FUNCTION pgconsent.seal_key() TO PUBLIC", ""},
		{"key_readable", "GRANT SELECT ON pgconsent.keys TO pgconsent_agent", ""},
	} {
		if !tier.IsPicked(i, 2) || tier.Quick() && i%8 != 0 {
			continue
		}
		t.Run(tc.want, func(t *testing.T) {
			db := migratedDatabase(t)
			s := subject(t, db)
			dba := db.Connect(t, "postgres")
			exec(t, dba, tc.sql)
			if tc.undo != "" {
				t.Cleanup(func() {
					if _, err := pgtestExec(db, tc.undo); err != nil {
						t.Errorf("%s: %v", tc.undo, err)
					}
				})
			}
			found := examine(t, db, s)
			if !has(found, tc.want, doctor.SeverityUnsafe) {
				t.Errorf("after %q: no unsafe finding %s in %v", tc.sql, tc.want, found)
			}
			if doctor.UnsafeError(found) == nil {
				t.Error("serving is not refused")
			}
		})
	}
}

// pgtestExec runs a statement on a connection of its own, after the test's connections are closed.
func pgtestExec(db *pgtest.DB, sql string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, db.DSN("postgres", ""))
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	tag, err := conn.Exec(ctx, sql)
	return tag.String(), err
}

// Changes that customers may make in their own database are not reported as unsafe.
func TestHarmlessChanges(t *testing.T) {
	tier.All(t)
	for name, sql := range map[string]string{
		"an older permissive policy":    "CREATE POLICY older ON public.memories USING (true)",
		"another role's policy":         "CREATE ROLE clerk; CREATE POLICY clerks ON public.people AS RESTRICTIVE TO clerk USING (false)",
		"another role may read":         "CREATE ROLE clerk; GRANT SELECT ON public.memories TO clerk",
		"a new table":                   "CREATE TABLE public.other (id int)",
		"an index":                      "CREATE INDEX ON public.memories (title)",
		"an extension":                  "CREATE EXTENSION pg_trgm SCHEMA public",
		"a policy on an unlisted table": "CREATE TABLE public.other (id int); CREATE POLICY p ON public.other AS RESTRICTIVE USING (false)",
	} {
		t.Run(name, func(t *testing.T) {
			db := migratedDatabase(t)
			s := subject(t, db)
			exec(t, db.Connect(t, "postgres"), sql)
			t.Cleanup(func() { _, _ = pgtestExec(db, "DROP OWNED BY clerk; DROP ROLE clerk") })
			found := examine(t, db, s)
			if err := doctor.UnsafeError(found); err != nil {
				t.Error(err)
			}
			for _, f := range found {
				if strings.HasPrefix(f.ID, "reach") && f.Severity != doctor.SeverityOK {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

func TestEncoding(t *testing.T) {
	db := migratedDatabase(t)
	s := subject(t, db)
	if _, err := pgtestExec(db, "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	latin := &pgtest.DB{Name: "latin", SocketDir: db.SocketDir, Port: db.Port}
	t.Cleanup(func() { _, _ = pgtestExec(db, "DROP DATABASE latin WITH (FORCE)") })
	found, err := doctor.RunChecks(t.Context(), latin.Connect(t, "postgres"), s)
	if err != nil {
		t.Fatal(err)
	}
	if !has(found, "server_encoding", doctor.SeverityUnsafe) {
		t.Errorf("no finding server_encoding in %v", found)
	}
}

func TestWarnings(t *testing.T) {
	changeByFinding := map[string]string{
		// Agents' sessions set these two themselves, so a stored value is no reason to refuse them.
		"standard_conforming_strings": "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET " +
			"standard_conforming_strings = off', current_database()); EXECUTE format('ALTER DATABASE %I SET row_security = off', current_database()); END $$",
		"agent_unlisted":     "CREATE TABLE public.other (id int); GRANT SELECT ON public.other TO PUBLIC",
		"drift_table":        "GRANT SELECT ON public.memories TO PUBLIC",
		"reachable_function": "CREATE FUNCTION public.helps() RETURNS int LANGUAGE sql AS 'SELECT 1'",
		"reachable_definer": "CREATE SCHEMA attic; GRANT USAGE ON SCHEMA attic TO PUBLIC; CREATE " +
			"FUNCTION attic.all() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM public.memories'",
		"reachable_operator": "CREATE SCHEMA attic; CREATE FUNCTION attic.f(int, text) RETURNS bool " +
			"LANGUAGE sql AS 'SELECT true'; CREATE OPERATOR public.= (LEFTARG = int, RIGHTARG = text, FUNCTION = attic.f)",
		"control_members": "GRANT pgconsent_control TO pg_monitor",
		"triggers_off":    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET session_replication_role = replica', current_database()); END $$",
		"reachable_cast": "CREATE SCHEMA attic; CREATE FUNCTION attic.f(text) RETURNS point LANGUAGE " +
			"sql AS 'SELECT NULL::point'; CREATE CAST (text AS point) WITH FUNCTION attic.f(text) AS IMPLICIT",
	}
	for i, want := range slices.Sorted(maps.Keys(changeByFinding)) {
		if !tier.IsPicked(i, 2) {
			continue
		}
		sql := changeByFinding[want]
		t.Run(want, func(t *testing.T) {
			db := migratedDatabase(t)
			s := subject(t, db)
			exec(t, db.Connect(t, "postgres"), sql)
			if want == "control_members" { // a role's membership outlives the database
				t.Cleanup(func() { _, _ = pgtestExec(db, "REVOKE pgconsent_control FROM pg_monitor") })
			}
			found := examine(t, db, s)
			if !has(found, want, doctor.SeverityWarning) {
				t.Errorf("no warning %s in %v", want, found)
			}
			if err := doctor.UnsafeError(append(found, probe(t, db, s)...)); err != nil {
				t.Error(err)
			}
		})
	}
}

// A listed function that searches by distance is reported if an approximate index might serve its query. It is not if
// the function searches exactly.
func TestSearchingFunctions(t *testing.T) {
	db := migratedDatabase(t)
	s := subject(t, db)
	conn := db.Connect(t, "postgres")
	for _, step := range []struct {
		sql  string
		want bool
	}{
		{`CREATE OR REPLACE FUNCTION public.count_memories(respect_consent boolean DEFAULT false) RETURNS bigint LANGUAGE sql STABLE
			AS 'SELECT count(*) FROM (SELECT FROM public.memories ORDER BY point(id, 0) <-> point(0, 0) LIMIT 5) AS n'`, false}, // no such index
		{`CREATE ACCESS METHOD other TYPE INDEX HANDLER gisthandler;
			CREATE OPERATOR CLASS others FOR TYPE box USING other AS OPERATOR 3 &&,
			FUNCTION 1 gist_box_consistent(internal, box, smallint, oid, internal), FUNCTION 2 gist_box_union(internal, internal),
			FUNCTION 5 gist_box_penalty(internal, internal, internal), FUNCTION 6 gist_box_picksplit(internal, internal), FUNCTION 7 gist_box_same(box, box, internal);
			CREATE INDEX ON memories USING other (box(point(0, 0), point(1, 1)) others)`, true},
		{"ALTER FUNCTION count_memories SET enable_indexscan = off", false},
		{"ALTER FUNCTION count_memories RESET enable_indexscan", true},
	} {
		exec(t, conn, step.sql)
		if found := examine(t, db, s); has(found, "function_search", doctor.SeverityWarning) != step.want {
			t.Errorf("%s: %v", step.sql, found)
		}
	}
	// If the policy accepts the index, nothing is reported. An accepted index of another table makes no difference.
	accepted, err := compileRules(t.Context(), conn, strings.Replace(rules, "  memories:\n", "  memories:\n    approximate: accept\n", 1))
	if err != nil {
		t.Fatal(err)
	}
	if found := examine(t, db, accepted); has(found, "function_search", doctor.SeverityWarning) {
		t.Errorf("of a table with approximate: accept: %v", found)
	}
	exec(t, conn, "CREATE INDEX ON people USING other (box(point(0, 0), point(1, 1)) others)")
	if found := examine(t, db, accepted); !has(found, "function_search", doctor.SeverityWarning) {
		t.Errorf("nothing of a table without approximate: accept: %v", found)
	}
}

// Settings in the server's configuration are reported like settings that are stored for a database.
func TestTriggersOffByConfiguration(t *testing.T) {
	db := migratedDatabase(t)
	s := subject(t, db)
	changeAndCheckWarning := func(sql string, want bool) {
		t.Helper()
		for _, sql := range []string{sql, "SELECT pg_reload_conf()"} {
			if _, err := pgtestExec(db, sql); err != nil {
				t.Fatal(err)
			}
		}
		for until := time.Now().Add(tier.Patience); has(examine(t, db, s), "triggers_off", doctor.SeverityWarning) != want; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("after %q: a warning triggers_off: want %v", sql, want)
			}
		}
	}
	defer changeAndCheckWarning("ALTER SYSTEM RESET session_replication_role", false)
	changeAndCheckWarning("ALTER SYSTEM SET session_replication_role = replica", true)
}

// A function that PostgreSQL calls by itself, with its owner's rights, bypasses the proxy's rules and row security.
func TestImplicitSecurityDefiners(t *testing.T) {
	tier.All(t)
	const out = "REVOKE EXECUTE ON FUNCTION attic.f(text) FROM PUBLIC"
	for _, tc := range []struct{ name, want, sql, undo string }{
		{"a cast", "definer_cast",
			"CREATE SCHEMA attic; CREATE FUNCTION attic.f(text) RETURNS point LANGUAGE sql SECURITY DEFINER AS " +
				"'SELECT NULL::point'; CREATE CAST (text AS point) WITH FUNCTION attic.f(text) AS IMPLICIT", out},
		{"a domain", "definer_check",
			"CREATE SCHEMA attic; CREATE FUNCTION attic.f(text) RETURNS bool LANGUAGE sql SECURITY DEFINER AS " +
				"'SELECT true'; CREATE DOMAIN attic.d AS text CHECK (attic.f(VALUE))", out},
		{"an order", "definer_order", `CREATE SCHEMA attic; CREATE TYPE attic.t AS (n text);
			CREATE FUNCTION attic.f(attic.t, attic.t) RETURNS integer LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER AS 'BEGIN RETURN 0; END';
			CREATE OPERATOR CLASS attic.c DEFAULT FOR TYPE attic.t USING btree AS FUNCTION 1 attic.f(attic.t, attic.t)`,
			"ALTER FUNCTION attic.f(attic.t, attic.t) SECURITY INVOKER"},
		{"a range", "definer_order", `CREATE SCHEMA attic;
			CREATE FUNCTION attic.f(time, time) RETURNS float8 LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER AS 'BEGIN RETURN 1.0; END';
			CREATE TYPE attic.s AS RANGE (SUBTYPE = time, SUBTYPE_DIFF = attic.f)`, "ALTER FUNCTION attic.f(time, time) SECURITY INVOKER"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			db := migratedDatabase(t)
			s := subject(t, db)
			exec(t, db.Connect(t, "postgres"), tc.sql)
			found := examine(t, db, s)
			if !has(found, tc.want, doctor.SeverityUnsafe) {
				t.Errorf("no finding %s in %v", tc.want, found)
			}
			if tc.name == "a range" && has(found, "reachable_cast", doctor.SeverityWarning) {
				t.Error("the cast that PostgreSQL makes for a range's own multirange is reported")
			}
			exec(t, db.Connect(t, "postgres"), tc.undo)
			if found := examine(t, db, s); has(found, tc.want, doctor.SeverityUnsafe) {
				t.Errorf("%s is still found after %s", tc.want, tc.undo)
			}
		})
	}
}

func TestHardening(t *testing.T) {
	db := migratedDatabase(t)
	s := subject(t, db)
	if !has(examine(t, db, s), "pg_terminate_backend", doctor.SeverityHardening) {
		t.Error("pg_terminate_backend is not reported")
	}
	exec(t, db.Connect(t, "postgres"), "REVOKE EXECUTE ON FUNCTION pg_catalog.pg_terminate_backend(integer, bigint) FROM PUBLIC")
	if has(examine(t, db, s), "pg_terminate_backend", doctor.SeverityHardening) {
		t.Error("pg_terminate_backend is still reported")
	}
}

// Probes find what the catalogs do not show, by running statements as an agent.
func TestProbes(t *testing.T) {
	for _, tc := range []struct{ name, want, sql string }{
		{"row security off", "leak", "ALTER TABLE public.memories DISABLE ROW LEVEL SECURITY"},
		{"a wall taken down", "leak",
			"DO $$ DECLARE p record; BEGIN FOR p IN SELECT * FROM pg_policies WHERE permissive = 'RESTRICTIVE' " +
				"AND tablename = 'people' LOOP EXECUTE format('DROP POLICY %I ON public.people', p.policyname); END LOOP; END $$"},
		{"a signature that always holds", "unsigned_text",
			"CREATE OR REPLACE FUNCTION pgconsent_signed.text_is_signed() RETURNS boolean LANGUAGE sql STABLE AS 'SELECT true'"},
		{"a signature that never holds", "unsigned_text",
			"CREATE OR REPLACE FUNCTION pgconsent_signed.text_is_signed() RETURNS boolean LANGUAGE sql STABLE AS 'SELECT false'"},
		{"a seal that always holds", "forged_seal",
			"CREATE OR REPLACE FUNCTION pgconsent_signed.sealed() RETURNS boolean LANGUAGE sql STABLE AS 'SELECT true'"},
		{"pads that do not fit the key", "bad_key", "UPDATE pgconsent.keys SET ipad = decode(repeat('36', 64), 'hex')"},
		{"no right to the verifier", "seal", "REVOKE EXECUTE ON FUNCTION pgconsent_signed.sealed() FROM pgconsent_agent"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			db := migratedDatabase(t)
			s := subject(t, db)
			exec(t, db.Connect(t, "postgres"), tc.sql)
			found := probe(t, db, s)
			if !has(found, tc.want, doctor.SeverityUnsafe) {
				t.Errorf("no unsafe finding %s in %v", tc.want, found)
			}
		})
	}
}

// The planner may prove that a view is empty for everybody. Such a view answers without a signature and shows nothing,
// so it is not reported.
func TestAlwaysEmptyViews(t *testing.T) {
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	exec(t, super, "CREATE TABLE public.parts (id int NOT NULL, note text) PARTITION BY RANGE (id); CREATE TABLE "+
		"public.first PARTITION OF public.parts FOR VALUES FROM (1) TO (10); INSERT INTO parts VALUES (1, 'x')")
	s, err := compileRules(t.Context(), super, "version: 1\ntables: { parts: { rows: [ sql: \"id IS NULL\" ] } }\n")
	if err != nil {
		t.Fatal(err)
	}
	s.Plan = rls.Generate(s.Policy, s.Snapshot, rls.Options{SignedViews: true})
	if err := migrations.Up(t.Context(), super, migrations.Options{}, s.Plan); err != nil {
		t.Fatal(err)
	}
	if found := probe(t, db, s); doctor.UnsafeError(found) != nil {
		t.Errorf("an empty table is unsafe: %v", found)
	}
}

// A table whose probe takes too long counts neither as passed nor as failed. The other tables are still probed.
func TestSlowProbe(t *testing.T) {
	tier.All(t)
	db := migratedDatabase(t)
	s := subject(t, db)
	s.ProbeTime = tier.Patience
	if doctor.HasUnfinished(probe(t, db, s)) {
		t.Error("a quick probe was not finished")
	}
	holder := db.Connect(t, "postgres")
	exec(t, db.Connect(t, "postgres"), "ALTER TABLE public.people DISABLE ROW LEVEL SECURITY")
	exec(t, holder, "BEGIN; LOCK TABLE public.memories IN ACCESS EXCLUSIVE MODE")
	s.ProbeTime = 3 * time.Second // long enough for the other tables
	found := probe(t, db, s)
	if !has(found, "probe_timeout", doctor.SeverityWarning) || !doctor.HasUnfinished(found) {
		t.Errorf("no warning probe_timeout in %v", found)
	}
	for _, table := range []string{"public.memories", "public.memory_participants"} {
		extraTime := 0
		for _, f := range found {
			if f.ID == "probe_timeout" && strings.Contains(f.Problem, "reading "+table+" took") {
				extraTime++
			}
		}
		if extraTime > 1 {
			t.Errorf("%s was given up, and tried again %d times", table, extraTime-1)
		}
	}
	if !has(found, "leak", doctor.SeverityUnsafe) {
		t.Errorf("after a table that takes too long the next was not tried: %v", found)
	}
	// The time limit is for all probes together.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	s.ProbeTime = time.Minute
	found, err := doctor.RunProbes(ctx, db.Connect(t, "pgconsent_control"), db.DSN("pgconsent_agent", ""), s)
	if err != nil || !doctor.HasUnfinished(found) || doctor.UnsafeError(found) != nil {
		t.Errorf("%v %v", found, err)
	}
	// When the process is ended, the probes stop, and nothing else is reported.
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	if found, err := doctor.RunProbes(ctx, db.Connect(t, "pgconsent_control"), db.DSN("pgconsent_agent", ""), s); !errors.Is(err, context.Canceled) {
		t.Errorf("%v %v", found, err)
	}
}

func TestPooler(t *testing.T) {
	db := migratedDatabase(t)
	s := subject(t, db)
	addr := pooler(t, filepath.Join(db.SocketDir, fmt.Sprintf(".s.PGSQL.%d", db.Port)))
	found, err := doctor.RunProbes(t.Context(), db.Connect(t, "pgconsent_control"),
		fmt.Sprintf("host=127.0.0.1 port=%d user=pgconsent_agent dbname=%s sslmode=disable", addr.Port, db.Name), s)
	if err != nil {
		t.Fatal(err)
	}
	if !has(found, "pooler", doctor.SeverityUnsafe) {
		t.Errorf("no finding pooler in %v", found)
	}
}

// pooler relays to the server and, as connection poolers do, gives the client an invented process id.
func pooler(t *testing.T, socket string) *net.TCPAddr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		client, err := l.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		server, err := net.Dial("unix", socket)
		if err != nil {
			return
		}
		defer server.Close()
		go func() { _, _ = io.Copy(server, client) }()
		for { // until the BackendKeyData message has passed
			var head [5]byte
			if _, err := io.ReadFull(server, head[:]); err != nil {
				return
			}
			body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
			if _, err := io.ReadFull(server, body); err != nil {
				return
			}
			if head[0] == 'K' {
				body[3]++
			}
			if _, err := client.Write(append(head[:], body...)); err != nil {
				return
			}
			if head[0] == 'Z' {
				break
			}
		}
		_, _ = io.Copy(client, server)
	}()
	return l.Addr().(*net.TCPAddr)
}

// If the connection to the server breaks, the result is an error, and not "no findings".
func TestConnectionLost(t *testing.T) {
	db := migratedDatabase(t)
	s := subject(t, db)
	conn := db.Connect(t, "pgconsent_control")
	_ = conn.Close(t.Context())
	if _, err := doctor.RunChecks(t.Context(), conn, s); err == nil {
		t.Error("a closed connection examined well")
	}
	if err := doctor.CheckServing(t.Context(), conn, s); err == nil {
		t.Error("a closed connection checked well")
	}
	if _, err := doctor.RunProbes(t.Context(), db.Connect(t, "pgconsent_control"), "host="+filepath.Join(os.TempDir(), "nowhere"), s); err == nil {
		t.Error("a server that is not there was probed")
	}
}

// Each finding contains SQL or a command that repairs it, and no row data.
func TestFindingsNameTheFix(t *testing.T) {
	err := doctor.UnsafeError([]doctor.Finding{{ID: "rls_off", Severity: doctor.SeverityUnsafe, Problem: "off",
		Fix: "ALTER TABLE t ENABLE ROW LEVEL SECURITY"}})
	if err == nil || !strings.Contains(err.Error(), "ALTER TABLE t ENABLE") {
		t.Errorf("Refuse: %v", err)
	}
	if err := doctor.UnsafeError([]doctor.Finding{{ID: "x", Severity: doctor.SeverityWarning}}); err != nil {
		t.Errorf("Refuse of a warning: %v", err)
	}
}

// A migrate that runs meanwhile holds locks. A view that is still as migrate made it is not read and so not waited for.
// If a definition must be read, the check says that it could not, so that neither waits until PostgreSQL ends one of
// the two because of a deadlock.
func TestExamineYieldsToMigrate(t *testing.T) {
	tier.All(t)
	db := migratedDatabase(t)
	s := subject(t, db)
	migrate := db.Connect(t, "postgres")
	var view string
	if err := migrate.QueryRow(t.Context(),
		"SELECT oid::regclass::text FROM pg_class WHERE relkind = 'v' AND relnamespace = "+
			"'pgconsent_signed'::regnamespace ORDER BY 1 LIMIT 1").Scan(&view); err != nil {
		t.Fatal(err)
	}
	exec(t, migrate, "BEGIN; ALTER VIEW "+view+" RENAME TO locked")
	if f := find(examine(t, db, s), "drift"); f.Severity != doctor.SeverityOK {
		t.Errorf("while %s, which is unchanged, is locked: %+v", view, f)
	}
	exec(t, migrate, "ROLLBACK")
	exec(t, migrate, "UPDATE pgconsent.installed_object SET version = NULL")
	exec(t, migrate, "BEGIN; ALTER VIEW "+view+" RENAME TO locked")
	if f := find(examine(t, db, s), "drift"); f.Severity != doctor.SeverityUnknown || !strings.Contains(f.Problem, "55P03") {
		t.Errorf("while %s is locked: %+v", view, f)
	}
	exec(t, migrate, "ROLLBACK")
	if f := find(examine(t, db, s), "drift"); f.Severity != doctor.SeverityOK {
		t.Errorf("afterwards: %+v", f)
	}
}

func find(found []doctor.Finding, id string) doctor.Finding {
	for _, f := range found {
		if f.ID == id {
			return f
		}
	}
	return doctor.Finding{}
}
