package rls_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

// state returns everything that migrate could change in a database, by name, with default privileges written out.
func (w *world) state() string {
	w.t.Helper()
	got, err := query(w.super, `SELECT x FROM (
		SELECT 'schema ' || n.nspname || ' ' || pg_get_userbyid(n.nspowner) || ' '
		  || ARRAY(SELECT a::text FROM aclexplode(COALESCE(n.nspacl, acldefault('n', n.nspowner))) AS a ORDER BY 1)::text
		  FROM pg_namespace AS n WHERE n.nspname !~ '^pg_'
		UNION ALL SELECT 'class ' || c.oid::regclass || ' ' || c.relkind::text || c.relrowsecurity || c.relforcerowsecurity || ' ' || pg_get_userbyid(c.relowner)
		  || ' ' || ARRAY(SELECT a::text FROM aclexplode(COALESCE(c.relacl, acldefault('r', c.relowner))) AS a ORDER BY 1)::text
		  FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
		UNION ALL SELECT 'function ' || p.oid::regprocedure
		  || ARRAY(SELECT a::text FROM aclexplode(COALESCE(p.proacl, acldefault('f', p.proowner))) AS a ORDER BY 1)::text
		  FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
		UNION ALL SELECT 'policy ' || polname || polrelid::regclass || pg_get_expr(polqual, polrelid) FROM pg_policy
		UNION ALL SELECT 'database ' || ARRAY(SELECT a::text FROM aclexplode(COALESCE(d.datacl, acldefault('d', d.datdba))) AS a ORDER BY 1)::text
		  FROM pg_database AS d WHERE d.datname = current_database()
		UNION ALL SELECT 'default ' || a::text FROM pg_default_acl AS a
		UNION ALL SELECT 'member ' || m.roleid::regrole || m.member::regrole FROM pg_auth_members AS m
	) AS y (x) ORDER BY 1`)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.ReplaceAll(got, ",class", "\nclass")
}

func TestDownRestoresTheFoundState(t *testing.T) {
	w := newWorld(t,
		"GRANT CREATE ON SCHEMA public TO PUBLIC",
		"ALTER TABLE people ENABLE ROW LEVEL SECURITY",
		"CREATE POLICY everybody ON people TO app_other USING (true)",
		"GRANT TEMP ON DATABASE postgres TO app_other",
		"REVOKE EXECUTE ON FUNCTION match_memories FROM PUBLIC",
	)
	before := w.state()
	w.migrate()
	w.compile("testdata/policy.yaml", rls.Options{Mode: rls.SealOnly})
	w.migrate()
	w.compile("testdata/policy.yaml", rls.Options{})
	w.migrate()
	if w.state() == before {
		t.Fatal("migrate changed nothing")
	}
	script, err := migrations.RenderDown(context.Background(), w.owner, migrations.Options{})
	if err != nil || !strings.Contains(script, "DROP SCHEMA") {
		t.Errorf("RenderDown: %v\n%s", err, script)
	}
	if err := migrations.Down(context.Background(), w.owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, w.state()); diff != "" {
		t.Errorf("--down left something behind (-before +after):\n%s", diff)
	}
	if err := migrations.Down(context.Background(), w.owner, migrations.Options{}); !errors.Is(err, migrations.ErrNotInstalled) {
		t.Errorf("a second down: %v", err)
	}
	w.migrate()
	w.want(w.agent(user1), titlesQuery, visibleTitles)
}

func TestMigratingTwiceChangesNothing(t *testing.T) {
	w := newWorld(t).migrate()
	before, hash := w.state(), w.plan.Hash()
	fingerprint, err := pgcatalog.Fingerprint(context.Background(), w.super)
	if err != nil {
		t.Fatal(err)
	}
	w.compile("testdata/policy.yaml", rls.Options{})
	if w.plan.Hash() != hash {
		t.Errorf("the hash of an installed policy is another: %s, %s", hash, w.plan.Hash())
	}
	w.migrate()
	if after := w.state(); after != before {
		t.Error(cmp.Diff(before, after))
	}
	if secondFingerprint, err := pgcatalog.Fingerprint(context.Background(), w.super); err != nil || secondFingerprint != fingerprint {
		t.Errorf("the second migrate touched the catalogs: %s, %s, %v", fingerprint, secondFingerprint, err)
	}
	installed, err := migrations.ReadInstalled(context.Background(), w.db.Connect(t, migrations.DefaultControlRole))
	if want := (migrations.Installed{Base: baseMigrations(t), Hash: hash, PolicyVersion: w.pol.Version()}); err != nil || installed != want {
		t.Errorf("installed %+v, %v; want %+v", installed, err, want)
	}
	drift, err := migrations.Drift(context.Background(), w.db.Connect(t, migrations.DefaultControlRole))
	if err != nil || len(drift) > 0 {
		t.Errorf("drift: %v, %v", drift, err)
	}
}

// A copy of a database has its objects, but not its privileges on the database itself: migrate grants and revokes these
// again.
func TestMigrateRepairsPrivilegesOnTheDatabase(t *testing.T) {
	tier.All(t)
	w := newWorld(t).migrate()
	before := w.state()
	if _, err := w.super.Exec(context.Background(),
		`DO $$BEGIN EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO PUBLIC', current_database()); END$$`); err != nil {
		t.Fatal(err)
	}
	if w.state() == before {
		t.Fatal("the right was there already")
	}
	w.migrate()
	if diff := cmp.Diff(before, w.state()); diff != "" {
		t.Errorf("PUBLIC's right is still there (-before +after):\n%s", diff)
	}
}

// The control role, the owner and a superuser read the same snapshot, so what is installed can be compared by its hash.
func TestEveryRoleReadsTheSameCatalog(t *testing.T) {
	w := migrated(t)
	var versions []string
	for _, role := range []string{"postgres", "app_owner", migrations.DefaultControlRole, migrations.DefaultAgentRole} {
		snap, err := pgcatalog.Load(context.Background(), w.db.Connect(t, role), []string{"public"})
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, snap.Version())
	}
	for _, v := range versions {
		if v != versions[0] {
			t.Errorf("versions differ: %v", versions)
		}
	}
}

func TestDriftIsFoundAndRepaired(t *testing.T) {
	tier.All(t)
	for name, sql := range map[string]string{
		"policy dropped":   "DROP POLICY pgconsent_select ON memories",
		"policy changed":   "ALTER POLICY pgconsent_select ON memories USING (true)",
		"security off":     "ALTER TABLE memories DISABLE ROW LEVEL SECURITY",
		"forced":           "ALTER TABLE memories FORCE ROW LEVEL SECURITY",
		"view owner":       "GRANT CREATE ON SCHEMA pgconsent TO app_owner; ALTER VIEW pgconsent.h_public_people OWNER TO app_owner",
		"view invoker":     "ALTER VIEW pgconsent_signed.public_people SET (security_invoker)",
		"function":         "ALTER FUNCTION pgconsent_signed.text_is_signed() RESET search_path",
		"grant":            "GRANT INSERT ON memories TO pgconsent_agent",
		"foreign function": "CREATE FUNCTION pgconsent_signed.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).migrate()
			w.exec(w.super, sql)
			control := w.db.Connect(t, migrations.DefaultControlRole)
			drift, err := migrations.Drift(context.Background(), control)
			if err != nil || len(drift) == 0 {
				t.Fatalf("drift %v, %v", drift, err)
			}
			if name == "foreign function" || name == "forced" || name == "grant" {
				return // others remove their own objects and grants
			}
			w.migrate()
			w.want(w.agent(user1), titlesQuery, visibleTitles)
			if name == "view owner" {
				return
			}
			if drift, err := migrations.Drift(context.Background(), control); err != nil || len(drift) > 0 {
				t.Errorf("after migrate: %v, %v", drift, err)
			}
		})
	}
}

// Migrate also restores every function and trigger that the base migrations make. It never takes an object that
// somebody else created instead for the installed one.
func TestMigrateRestoresTheBase(t *testing.T) {
	tier.All(t)
	w := newWorld(t).migrate()
	ctx := context.Background()
	control := w.db.Connect(t, migrations.DefaultControlRole)
	baseState := func() string {
		var text string
		if err := w.super.QueryRow(ctx, `SELECT string_agg(x, E'\n' ORDER BY x) FROM (
			SELECT pg_get_functiondef(p.oid) || p.proacl::text FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
			WHERE n.nspname IN ('pgconsent', 'pgconsent_signed')
			UNION ALL SELECT concat(pg_get_triggerdef(t.oid), t.tgenabled) FROM pg_trigger AS t WHERE NOT t.tgisinternal
			UNION ALL SELECT concat('change ', xid) FROM pgconsent.change WHERE xid = '0') AS s (x)`).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := baseState()
	for _, sql := range []string{
		`UPDATE pg_proc SET prosrc = 'BEGIN RETURN true; END', prosqlbody = NULL, prosecdef = false, proconfig = NULL
			WHERE prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql') AND pronamespace IN ('pgconsent'::regnamespace, 'pgconsent_signed'::regnamespace)`,
		"CREATE OR REPLACE FUNCTION pgconsent_signed.sealed() RETURNS bool LANGUAGE sql STABLE AS 'SELECT true'",
		"CREATE OR REPLACE FUNCTION pgconsent.catalog_version() RETURNS int8 LANGUAGE sql STABLE AS 'SELECT 1::int8'",
		"GRANT EXECUTE ON FUNCTION pgconsent.make_key() TO PUBLIC",
		"ALTER TABLE pgconsent.consent_record DISABLE TRIGGER ALL",
		"DROP TRIGGER materialized_settle ON pgconsent.materialized_due",
		"DROP FUNCTION pgconsent.outbox_refuse() CASCADE",
		"SET session_replication_role = replica; TRUNCATE pgconsent.change",
	} {
		w.exec(w.super, sql)
		if baseState() == before {
			t.Fatalf("it changed nothing: %s", sql)
		}
		w.migrate()
		if diff := cmp.Diff(before, baseState()); diff != "" {
			t.Errorf("%s: not as it was (-before +after):\n%s", sql, diff)
		}
		if drift, err := migrations.Drift(ctx, control); err != nil || len(drift) > 0 {
			t.Errorf("%s: %v, %v", sql, drift, err)
		}
	}
}

// Drift is reported if a table of pgconsent has lost its rows, or if another role can influence its values.
func TestDriftOfOurTablesIsFound(t *testing.T) {
	tier.All(t)
	w := newWorld(t).migrate()
	ctx := context.Background()
	w.exec(w.super, "CREATE FUNCTION public.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE DOMAIN public.other AS text")
	control := w.db.Connect(t, migrations.DefaultControlRole)
	for _, change := range []struct{ do, undo string }{
		{"CREATE TRIGGER mine BEFORE INSERT ON pgconsent.change FOR EACH ROW EXECUTE FUNCTION public.nothing()", "DROP TRIGGER mine ON pgconsent.change"},
		{"CREATE RULE mine AS ON INSERT TO pgconsent.change DO INSTEAD NOTHING", "DROP RULE mine ON pgconsent.change"},
		{"ALTER TABLE pgconsent.outbox ALTER subject TYPE public.other", "ALTER TABLE pgconsent.outbox ALTER subject TYPE text"},
		{"ALTER TABLE pgconsent.outbox DROP CONSTRAINT outbox_number_key", "ALTER TABLE pgconsent.outbox ADD UNIQUE (number)"},
		{"ALTER TABLE pgconsent.change SET UNLOGGED", "ALTER TABLE pgconsent.change SET LOGGED"},
		{"ALTER TABLE pgconsent.sweep_note ENABLE ROW LEVEL SECURITY", "ALTER TABLE pgconsent.sweep_note DISABLE ROW LEVEL SECURITY"},
		{"ALTER TABLE pgconsent.outbox RENAME TO was; CREATE TABLE pgconsent.outbox (LIKE pgconsent.was)",
			"DROP TABLE pgconsent.outbox; ALTER TABLE pgconsent.was RENAME TO outbox"},
	} {
		for _, sql := range []string{change.do, change.undo} {
			w.exec(w.super, sql)
			drift, err := migrations.Drift(ctx, control)
			if err != nil {
				t.Fatal(err)
			}
			if hasDrift := len(drift) > 0; hasDrift != (sql == change.do) {
				t.Errorf("%s: %v", sql, drift)
			}
		}
	}
}

func TestDryRunPrintsAndChangesNothing(t *testing.T) {
	tier.All(t)
	w := newWorld(t)
	before := w.state()
	script, err := migrations.Render(context.Background(), w.owner, migrations.Options{AgentPassword: "secret-password"}, w.plan)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, w.state()); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{"CREATE POLICY pgconsent_select ON public.memories AS RESTRICTIVE",
		"REVOKE TEMPORARY ON DATABASE", "-- Row security. It is never FORCEd"} {
		if !strings.Contains(script, want) {
			t.Errorf("the script does not have %q", want)
		}
	}
	for _, unwanted := range []string{"secret-password", "SCRAM-SHA-256$4096"} {
		if strings.Contains(script, unwanted) {
			t.Errorf("the script has %q", unwanted)
		}
	}
	// The printed statements work: a DBA may run them.
	w.exec(w.owner, script)
	w.want(w.agent(user1), titlesQuery, visibleTitles)
	w.migrate()
	if drift, err := migrations.Drift(context.Background(), w.owner); err != nil || len(drift) > 0 {
		t.Errorf("drift: %v, %v", drift, err)
	}
	if err := migrations.Down(context.Background(), w.owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, w.state()); diff != "" {
		t.Error(diff)
	}
}

// The roles of one database get no rights by name in another database. They are dropped with the last database that
// uses them, whichever database made them.
func TestRolesOfSeveralDatabases(t *testing.T) {
	defer pgtest.Lock(t, "roles")()
	ctx := context.Background()
	roles := func(prefix string) migrations.Options {
		return migrations.Options{AgentRole: prefix + "_agent", ControlRole: prefix + "_control", ReaderRole: prefix + "_reader", RowsRole: prefix + "_rows"}
	}
	installWith := func(o migrations.Options) *world {
		w := newWorld(t)
		w.exec(w.super, "ALTER ROLE app_owner CREATEROLE")
		w.compile("testdata/policy.yaml", rls.Options{AgentRole: o.AgentRole, ControlRole: o.ControlRole, ReaderRole: o.ReaderRole, RowsRole: o.RowsRole})
		if err := migrations.Up(ctx, w.owner, o, w.plan); err != nil {
			t.Fatal(err)
		}
		return w
	}
	migrateDown := func(w *world, o migrations.Options) {
		if err := migrations.Down(ctx, w.owner, o); err != nil {
			t.Fatal(err)
		}
	}
	firstOptions, secondOptions := roles("several_one"), roles("several_two")
	first := installWith(firstOptions)
	second := installWith(secondOptions)
	third := installWith(firstOptions)
	const countRoles = "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'several\\_%'"
	first.want(first.super, "SELECT count(*) FROM pg_database, aclexplode(datacl) AS x WHERE datname = current_database() AND "+
		"x.grantee::regrole::text LIKE 'several\\_%' AND x.privilege_type <> 'CONNECT'", "0")
	second.want(second.super, "SELECT count(*) FROM pg_database, aclexplode(datacl) AS x WHERE datname = current_database() AND "+
		"x.grantee::regrole::text LIKE 'several\\_one%'", "0")
	first.want(first.super, countRoles, "8")
	migrateDown(second, secondOptions)
	first.want(first.super, countRoles, "4")
	migrateDown(first, firstOptions)
	first.want(first.super, countRoles, "4")
	migrateDown(third, firstOptions)
	first.want(first.super, countRoles, "0")
}

// If a role lacks rights, migrate returns the statements that a superuser has to run.
func TestMissingRightsAreNamed(t *testing.T) {
	tier.All(t)
	w := newWorld(t)
	w.exec(w.super, "DO $$ BEGIN CREATE ROLE app_small LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
	conn := w.db.Connect(t, "app_small")
	o := migrations.Options{AgentRole: "small_agent", ControlRole: "small_control", ReaderRole: "small_reader", RowsRole: "small_rows"}
	w.compile("testdata/policy.yaml", rls.Options{AgentRole: o.AgentRole, ControlRole: o.ControlRole, ReaderRole: o.ReaderRole, RowsRole: o.RowsRole})
	err := migrations.Up(context.Background(), conn, o, w.plan)
	var missingRights *migrations.MissingRightsError
	if !errors.As(err, &missingRights) {
		t.Fatalf("%v", err)
	}
	var names []string
	for _, s := range missingRights.Statements {
		w.exec(w.super, s.SQL)
		names = append(names, s.SQL)
	}
	t.Cleanup(func() {
		for _, role := range []string{"small_agent", "small_control", "small_reader", "small_rows", "app_small"} {
			_, _ = w.super.Exec(context.Background(), "DROP OWNED BY "+role+" CASCADE")
			_, _ = w.super.Exec(context.Background(), "DROP ROLE "+role)
		}
	})
	if len(names) != 7 {
		t.Errorf("statements for the DBA: %q", names)
	}
	// The tables belong to another role, so migrate still fails. The error names the role and the missing right, and
	// nothing was changed.
	var refusal *sqlstate.Error
	if err := migrations.Up(context.Background(), conn, o, w.plan); !errors.As(err, &refusal) || refusal.Code != sqlstate.InsufficientPrivilege ||
		!strings.Contains(refusal.Message, `"app_small"`) || !strings.Contains(refusal.Hint, `TO "app_small"`) {
		t.Errorf("tables of another owner: %v", err)
	} else {
		t.Logf("%s\n%s", refusal.Message, refusal.Hint)
	}
	if _, err := migrations.ReadInstalled(context.Background(), w.super); !errors.Is(err, migrations.ErrNotInstalled) {
		t.Errorf("%v", err)
	}
	w.exec(w.super, "GRANT app_owner TO app_small")
	if err := migrations.Up(context.Background(), conn, o, w.plan); err != nil {
		t.Errorf("with all that was asked for: %v", err)
	}
	w.exec(w.super, "REVOKE app_owner FROM app_small")
}

func TestPasswordsAreSet(t *testing.T) {
	w := newWorld(t)
	const agent, control = "agent_of_one", "control_of_one" // roles that no other database needs
	w.compile("testdata/policy.yaml", rls.Options{AgentRole: agent, ControlRole: control})
	o := migrations.Options{AgentRole: agent, ControlRole: control, AgentPassword: "päss wörd", ControlPassword: "other"}
	if err := migrations.Up(context.Background(), w.owner, o, w.plan); err != nil {
		t.Fatal(err)
	}
	for role, password := range map[string]string{agent: o.AgentPassword, control: o.ControlPassword} {
		conn, err := pgx.Connect(context.Background(), w.db.DSN(role, password))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close(context.Background())
	}
	if _, err := pgx.Connect(context.Background(), w.db.DSN(agent, "wrong")); err == nil {
		t.Error("a wrong password is as good")
	}
}

func TestSealOnlyLeavesTheRowsToTheRewriter(t *testing.T) {
	w := newWorld(t)
	w.compile("testdata/policy.yaml", rls.Options{Mode: rls.SealOnly})
	w.migrate()
	w.want(w.agent(user1), "SELECT count(*) FROM public.memories", "8")
	w.want(w.agent(""), "SELECT count(*) FROM public.memories", "0")
}

// Two policies have the same plan hash if they differ only in settings of the rewriter.
func TestPlanHashIgnoresRewriterSettings(t *testing.T) {
	w := newWorld(t)
	text, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	hashes := func(replacements ...string) (planHash, policyVersion string) {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(file, []byte(strings.NewReplacer(replacements...).Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
		w.compile(file, rls.Options{})
		return w.plan.Hash(), w.pol.Version()
	}
	planHash, policyVersion := hashes()
	if h, v := hashes("{ pin: { respect_consent: true } }", "{}"); h != planHash || v == policyVersion {
		t.Error("a pin is the rewriter's alone")
	}
	if h, v := hashes("is: granted", "is: given"); h == planHash || v == policyVersion {
		t.Error("a predicate is in both halves")
	}
	if h, v := hashes("version: 1", "# a comment\nversion: 1"); h != planHash || v != policyVersion {
		t.Error("a comment changes nothing")
	}
}

// Databases of one cluster share their roles: concurrent migrates of two databases, or of one, must not fail.
func TestMigratingAtTheSameTime(t *testing.T) {
	tier.All(t)
	first, second := newWorld(t), newWorld(t)
	o := migrations.Options{AgentRole: "race_agent", ControlRole: "race_control", ReaderRole: "race_reader", RowsRole: "race_rows", AgentPassword: "a"}
	names := rls.Options{AgentRole: o.AgentRole, ControlRole: o.ControlRole, ReaderRole: o.ReaderRole, RowsRole: o.RowsRole}
	t.Cleanup(func() {
		for _, w := range []*world{first, second} {
			_ = migrations.Down(context.Background(), w.owner, o)
		}
		_, _ = first.super.Exec(context.Background(), "DROP ROLE IF EXISTS race_agent, race_control, race_reader, race_rows")
	})
	errs := make(chan error)
	for _, w := range []*world{first, second, first, second} {
		w.compile("testdata/policy.yaml", names)
		conn, plan := w.db.Connect(t, "app_owner"), w.plan
		go func() { errs <- migrations.Up(context.Background(), conn, o, plan) }()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for _, w := range []*world{first, second} {
		if drift, err := migrations.Drift(context.Background(), w.owner); err != nil || len(drift) > 0 {
			t.Errorf("%v, %v", drift, err)
		}
	}
}

// Databases share their roles with the whole server, so a role that migrate is just about to grant to may go. It is
// renamed here: dropping it would fail if another test's migrate has granted to it as well.
func TestMigrateWhileARoleGoes(t *testing.T) {
	w := newWorld(t)
	role := w.db.Name + "_role"
	w.exec(w.super, "CREATE ROLE "+role)
	w.compile("testdata/policy.yaml", rls.Options{})
	renamed := 0
	plan := observedPlan{w.plan, func(f migrations.Found) {
		if slices.Contains(f.KeepRoles, role) {
			w.exec(w.super, "ALTER ROLE "+role+" RENAME TO "+role+"_renamed")
			renamed++
		}
	}}
	if err := migrations.Up(context.Background(), w.owner, migrations.Options{}, plan); err != nil {
		t.Fatal(err)
	}
	if drift, err := migrations.Drift(context.Background(), w.owner); err != nil || len(drift) > 0 {
		t.Errorf("drift: %v, %v", drift, err)
	}
	if renamed != 1 {
		t.Errorf("the role was renamed %d times, want 1", renamed)
	}
	w.want(w.agent(user1), titlesQuery, visibleTitles)
}

// Short statements are sent several in one message. The error still tells which of them has failed, with its reason, and
// nothing of the others stays.
func TestMigrateNamesTheStatementThatFails(t *testing.T) {
	w := newWorld(t)
	for _, between := range []int{0, 1, 40} {
		plan := brokenPlan{w.plan, between}
		err := migrations.Up(context.Background(), w.owner, migrations.Options{}, plan)
		if err == nil || !strings.Contains(err.Error(), "This one fails.") || strings.Contains(err.Error(), "This one is good.") ||
			!strings.Contains(err.Error(), "42P01") {
			t.Errorf("behind %d others: %v", between, err)
		}
		if got, err := query(w.super, "SELECT count(*)::text FROM pg_namespace WHERE nspname ~ '^(pgconsent|good)'"); err != nil || got != "0" {
			t.Errorf("schemas stay: %v, %v", got, err)
		}
	}
	w.migrate()
	w.want(w.agent(user1), titlesQuery, visibleTitles)
}

// brokenPlan is a plan with further statements behind its own, one of which fails. good is the number of those before
// it.
type brokenPlan struct {
	*rls.Plan
	good int
}

func (p brokenPlan) Objects(f migrations.Found) []rls.Object {
	further := rls.Object{Identity: "further statements"}
	for i := range p.good {
		further.MakeStatements = append(further.MakeStatements,
			migrations.Statement{SQL: fmt.Sprintf("CREATE SCHEMA good%d -- a comment", i), Why: "This one is good."})
	}
	further.MakeStatements = append(further.MakeStatements,
		migrations.Statement{SQL: "GRANT SELECT ON public.nothing TO app_other", Why: "This one fails."},
		migrations.Statement{SQL: "CREATE SCHEMA good_later", Why: "This one is good."})
	return append(p.Plan.Objects(f), further)
}

// observedPlan is a plan that tells a function for which state of the database its objects were made.
type observedPlan struct {
	*rls.Plan
	observe func(migrations.Found)
}

func (p observedPlan) Objects(f migrations.Found) []rls.Object {
	defer p.observe(f)
	return p.Plan.Objects(f)
}

// Roles belong to the whole server: migrating a second database does not change the passwords that the proxy of the
// first uses.
func TestPasswordsOfOthersStay(t *testing.T) {
	tier.All(t)
	first, second, third := newWorld(t), newWorld(t), newWorld(t)
	o := migrations.Options{AgentRole: "served_agent", ControlRole: "served_control", ReaderRole: "served_reader",
		RowsRole: "served_rows", AgentPassword: "one"}
	names := rls.Options{AgentRole: o.AgentRole, ControlRole: o.ControlRole, ReaderRole: o.ReaderRole, RowsRole: o.RowsRole}
	t.Cleanup(func() {
		for _, w := range []*world{first, second, third} {
			_ = migrations.Down(context.Background(), w.super, o)
		}
		_, _ = first.super.Exec(context.Background(), "DROP ROLE IF EXISTS served_agent, served_control, served_reader, served_rows")
	})
	migrateWith := func(w *world, user, password string) error {
		t.Helper()
		w.compile("testdata/policy.yaml", names)
		o := o
		o.AgentPassword = password
		return migrations.Up(context.Background(), w.db.Connect(t, user), o, w.plan)
	}
	checkPassword := func(password string) {
		t.Helper()
		var verifier string
		if err := first.super.QueryRow(context.Background(),
			"SELECT COALESCE(rolpassword, '') FROM pg_authid WHERE rolname = 'served_agent'").Scan(&verifier); err != nil {
			t.Fatal(err)
		}
		if got := config.MatchesPassword(verifier, password); !got {
			t.Errorf("the role's password is not %q", password)
		}
	}
	if err := migrateWith(first, "postgres", "one"); err != nil {
		t.Fatal(err)
	}
	checkPassword("one")
	var refusal *sqlstate.Error
	if err := migrateWith(second, "postgres", "two"); !errors.As(err, &refusal) || refusal.Code != sqlstate.InvalidPassword ||
		!strings.Contains(refusal.Hint, "roles.agent") {
		t.Errorf("another password: %v", err)
	}
	checkPassword("one")
	if err := migrateWith(second, "postgres", "one"); err != nil {
		t.Errorf("the same password: %v", err)
	}
	var version int
	if err := first.super.QueryRow(context.Background(), "SELECT current_setting('server_version_num')::integer").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if version >= 160000 { // CREATEROLE does not let a role join those of others
		var missingRights *migrations.MissingRightsError
		if err := migrateWith(third, "app_owner", "two"); !errors.As(err, &missingRights) || len(missingRights.Statements) != 2 ||
			missingRights.Statements[0].SQL != `GRANT "served_reader" TO app_owner` {
			t.Errorf("as a role that may not join those of others: %v", err)
		}
		first.exec(first.super, "GRANT served_reader, served_rows TO app_owner")
	}
	if err := migrateWith(third, "app_owner", "two"); err != nil { // a role that may not read passwords changes nothing
		t.Errorf("as a role that may not read passwords: %v", err)
	}
	checkPassword("one")
	if err := migrateWith(first, "postgres", "three"); err != nil { // its own roles
		t.Error(err)
	}
	checkPassword("three")
	first.exec(first.super, "ALTER ROLE served_agent PASSWORD NULL")
	if err := migrateWith(second, "postgres", "two"); err != nil {
		t.Errorf("no password yet: %v", err)
	}
	checkPassword("two")
}

// baseMigrations returns the number of base migrations: each has one file for down.
func baseMigrations(t *testing.T) int {
	files, err := filepath.Glob("../migrations/sql/*.down.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("base migrations: %v, %v", files, err)
	}
	return len(files)
}
