package rls_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

// compileReplaced compiles the policy of testdata after replacing some of its texts.
func (w *world) compileReplaced(o rls.Options, replacements ...string) *world {
	w.t.Helper()
	text, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	file := filepath.Join(w.t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(strings.NewReplacer(replacements...).Replace(string(text))), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.compile(file, o)
	return w
}

// migrateAndReport migrates and returns the changes that migrate reports.
func (w *world) migrateAndReport() (out migrations.Changed) {
	w.t.Helper()
	o := migrations.Options{OnChange: func(c migrations.Changed) { out = c }}
	if err := migrations.Up(context.Background(), w.owner, o, w.plan); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// objectOIDs returns the OIDs of all objects that migrate makes, by name.
func (w *world) objectOIDs() map[string]string {
	w.t.Helper()
	results, err := w.super.PgConn().Exec(context.Background(), `
		SELECT 'policy ' || polname || ' on ' || polrelid::regclass, oid FROM pg_policy
		UNION ALL SELECT 'trigger ' || tgname || ' on ' || tgrelid::regclass, oid FROM pg_trigger WHERE NOT tgisinternal
		UNION ALL SELECT 'relation ' || oid::regclass, oid FROM pg_class WHERE relnamespace::regnamespace::text LIKE 'pgconsent%'
		UNION ALL SELECT 'function ' || oid::regprocedure, oid FROM pg_proc WHERE pronamespace::regnamespace::text LIKE 'pgconsent%'`).ReadAll()
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]string{}
	for _, row := range results[0].Rows {
		out[string(row[0])] = string(row[1])
	}
	return out
}

// changedNames returns the names of the objects that are new, were dropped, or have another OID.
func changedNames(before, after map[string]string) []string {
	var out []string
	for name := range before {
		if after[name] != before[name] {
			out = append(out, name)
		}
	}
	for name := range after {
		if before[name] == "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// statusReplacement changes the rule of people, and so the rule of memory_participants, whose rows are visible if those
// of people are.
var statusReplacement = []string{"{ status: { column: consent_status, is: granted } }", "{ status: { column: consent_status, is: given } }"}

// A change of one rule leaves the policies, views, triggers and functions of other tables as they are, by their OIDs.
func TestMigrateChangesOnlyDifferences(t *testing.T) {
	w := newWorld(t).compileReplaced(rls.Options{SignedViews: true})
	if c := w.migrateAndReport(); c.Objects != c.AllObjects || c.Tables != 3 || c.AllTables != 3 || c.Objects < 20 {
		t.Errorf("the first time: %+v", c)
	}
	if c := w.migrateAndReport(); c.Objects != 0 || c.Tables != 0 || c.AllTables != 3 {
		t.Errorf("the second time: %+v", c)
	}
	before := w.objectOIDs()
	c := w.compileReplaced(rls.Options{SignedViews: true}, statusReplacement...).migrateAndReport()
	if c.Tables != 2 || c.AllTables != 3 || c.Objects >= c.AllObjects/2 {
		t.Errorf("%+v", c)
	}
	want := []string{
		"function pgconsent.set1_public_memory_participants()", "function pgconsent.set2_public_memory_participants()",
		"policy pgconsent_select on memory_participants", "policy pgconsent_select on people",
		"relation pgconsent_signed.visible_public_memory_participants", "relation pgconsent_signed.visible_public_people",
	}
	if diff := cmp.Diff(want, changedNames(before, w.objectOIDs())); diff != "" {
		t.Errorf("other objects (-want +got):\n%s", diff)
	}
	if drift, err := migrations.Drift(context.Background(), w.owner); err != nil || len(drift) > 0 {
		t.Errorf("drift: %v, %v", drift, err)
	}
	if installed, err := migrations.ReadInstalled(context.Background(), w.owner); err != nil || installed.Hash != w.plan.Hash() ||
		installed.PolicyVersion != w.pol.Version() {
		t.Errorf("installed: %+v, %v", installed, err)
	}
}

// An object that needs a replaced object is replaced as well. Here a rule reads another column of people. So the view
// of people changes, by which the rule of memories reads people.
func TestMigrateReplacesDependentObjects(t *testing.T) {
	w := newWorld(t).compileReplaced(rls.Options{SignedViews: true}).migrate()
	before := w.objectOIDs()
	w.compileReplaced(rls.Options{SignedViews: true}, "{ status: { column: consent_status, is: granted } }",
		"{ status: { column: name, is: Ada } }").migrateAndReport()
	got := changedNames(before, w.objectOIDs())
	for _, want := range []string{
		"relation pgconsent.h_public_people", "policy pgconsent_select on memories", "relation pgconsent_signed.visible_public_memories",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is the same; not: %q", want, got)
		}
	}
	for _, unchangedObject := range []string{"policy pgconsent_current on memories", "relation pgconsent.listed_table", "relation pgconsent_catalog.pg_class"} {
		if slices.Contains(got, unchangedObject) {
			t.Errorf("%s is another", unchangedObject)
		}
	}
	w.want(w.agent(user1), titlesQuery, visibleTitles)
}

// After a column was added, migrate replaces the signed view of its table, and nothing else.
func TestMigrateAfterAnotherColumn(t *testing.T) {
	w := newWorld(t).compileReplaced(rls.Options{SignedViews: true}).migrate()
	before := w.objectOIDs()
	w.exec(w.owner, "ALTER TABLE people ADD COLUMN more text")
	c := w.compileReplaced(rls.Options{SignedViews: true}).migrateAndReport()
	if got := changedNames(before, w.objectOIDs()); !slices.Equal(got, []string{"relation pgconsent_signed.visible_public_people"}) ||
		c.Tables != 1 {
		t.Errorf("%+v: %q", c, got)
	}
	if waitingColumns, err := migrations.ReadWaitingColumns(context.Background(), w.owner); err != nil || len(waitingColumns) > 0 {
		t.Errorf("%v, %v", waitingColumns, err)
	}
}

// A transaction that locks a table which migrate does not change does not delay migrate. A transaction that locks a
// changed table does, and migrate reports it.
func TestMigrateWaitsForNoOtherTable(t *testing.T) {
	w := newWorld(t).compileReplaced(rls.Options{SignedViews: true}).migrate()
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	holder, reader := w.db.Connect(t, "app_owner"), w.db.Connect(t, "app_owner")
	if _, err := holder.Exec(ctx, "BEGIN; SELECT FROM memories LIMIT 1"); err != nil {
		t.Fatal(err)
	}
	w.compileReplaced(rls.Options{SignedViews: true}, statusReplacement...)
	reportedHolders := make(chan []migrations.Holder, 1000)
	migrate := func() error {
		return migrations.Up(ctx, w.owner, migrations.Options{OnWait: func(h []migrations.Holder) { reportedHolders <- h }}, w.plan)
	}
	if err := migrate(); err != nil || len(reportedHolders) > 0 {
		t.Fatalf("it waited %d times: %v", len(reportedHolders), err)
	}
	if _, err := reader.Exec(ctx, "BEGIN; SELECT FROM people LIMIT 1"); err != nil {
		t.Fatal(err)
	}
	w.compileReplaced(rls.Options{SignedViews: true})
	done := make(chan error, 1)
	go func() { done <- migrate() }()
	select {
	case holders := <-reportedHolders:
		if len(holders) != 1 || holders[0].PID != int32(reader.PgConn().PID()) {
			t.Errorf("it waits for %v, not for %d alone", holders, reader.PgConn().PID())
		}
	case err := <-done:
		t.Fatalf("it does not wait: %v", err)
	case <-time.After(tier.Patience):
		t.Fatal("it does nothing")
	}
	if _, err := reader.Exec(ctx, "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// If only one table has changed, the printed script has statements for this table only.
func TestDryRunPrintsDifferences(t *testing.T) {
	w := newWorld(t).compileReplaced(rls.Options{SignedViews: true}).migrate()
	before := w.state()
	w.compileReplaced(rls.Options{SignedViews: true}, statusReplacement...)
	script, err := migrations.Render(context.Background(), w.owner, migrations.Options{}, w.plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"DROP POLICY IF EXISTS pgconsent_select ON public.people;\n", "CREATE POLICY pgconsent_select ON public.people",
		"DROP VIEW IF EXISTS pgconsent_signed.visible_public_people;\n",
	} {
		if strings.Count(script, want) != 1 {
			t.Errorf("%q is %d times in the script", want, strings.Count(script, want))
		}
	}
	for _, unwanted := range []string{"public.memories ", "pgconsent_catalog", "pgconsent_current", "REVOKE TEMPORARY", "ROW LEVEL SECURITY"} {
		if strings.Contains(script, unwanted) {
			t.Errorf("the script has %q:\n%s", unwanted, script)
		}
	}
	if w.state() != before {
		t.Error("it changed something")
	}
	w.exec(w.owner, script)
	if c := w.migrateAndReport(); c.Objects != 0 {
		t.Errorf("after the script was run: %+v", c)
	}
	if drift, err := migrations.Drift(context.Background(), w.owner); err != nil || len(drift) > 0 {
		t.Errorf("drift: %v, %v", drift, err)
	}
}

// If an object cannot be dropped because another depends on it without saying so, migrate replaces all objects in the
// same transaction.
func TestMigrateReplacesAllObjectsIfADropFails(t *testing.T) {
	w := newWorld(t).compileReplaced(rls.Options{SignedViews: true}).migrate()
	w.compileReplaced(rls.Options{SignedViews: true}, "{ status: { column: consent_status, is: granted } }", "{ status: { column: name, is: Ada } }")
	before := w.objectOIDs()
	var c migrations.Changed
	o := migrations.Options{OnChange: func(report migrations.Changed) { c = report }}
	if err := migrations.Up(context.Background(), w.owner, o, planWithoutNeeds{w.plan}); err != nil {
		t.Fatal(err)
	}
	if c.Objects != c.AllObjects || !slices.Contains(changedNames(before, w.objectOIDs()), "policy pgconsent_current on memories") {
		t.Errorf("%+v", c)
	}
	if drift, err := migrations.Drift(context.Background(), w.owner); err != nil || len(drift) > 0 {
		t.Errorf("drift: %v, %v", drift, err)
	}
	w.want(w.agent(user1), titlesQuery, visibleTitles)
}

// planWithoutNeeds is a plan whose objects do not say which other objects they need.
type planWithoutNeeds struct{ *rls.Plan }

func (p planWithoutNeeds) Objects(f migrations.Found) []rls.Object {
	out := p.Plan.Objects(f)
	for i := range out {
		out[i].NeededObjects = nil
	}
	return out
}

// Migrate replaces all objects if the roles or the database have other names, or if an object was altered by hand.
func TestMigrateRecreatesAllObjects(t *testing.T) {
	tier.All(t)
	w := newWorld(t).compileReplaced(rls.Options{SignedViews: true}).migrate()
	w.exec(w.super, "ALTER POLICY pgconsent_select ON memories USING (true)")
	if c := w.compileReplaced(rls.Options{SignedViews: true}, statusReplacement...).migrateAndReport(); c.Objects != c.AllObjects {
		t.Errorf("altered: %+v", c)
	}
	names := migrations.Options{AgentRole: "other_agent", ControlRole: "other_control", ReaderRole: "other_reader", RowsRole: "other_rows"}
	t.Cleanup(func() {
		_ = migrations.Down(context.Background(), w.owner, names)
		_, _ = w.super.Exec(context.Background(), "DROP ROLE IF EXISTS other_agent, other_control, other_reader, other_rows")
	})
	w.compileReplaced(rls.Options{AgentRole: names.AgentRole, ControlRole: names.ControlRole, ReaderRole: names.ReaderRole,
		RowsRole: names.RowsRole, SignedViews: true})
	if err := migrations.Up(context.Background(), w.owner, names, w.plan); err != nil {
		t.Fatal(err)
	}
	if drift, err := migrations.Drift(context.Background(), w.owner); err != nil || len(drift) > 0 {
		t.Errorf("drift: %v, %v", drift, err)
	}
	w.want(w.super, "SELECT count(*) FROM pg_policy WHERE 'pgconsent_agent'::regrole = ANY (polroles)", "0")
}

// Rights that others have granted to pgconsent's roles, before or after the first migrate, stay. Rights that PUBLIC
// lost come back.
func TestPrivilegesAfterPartsWereChanged(t *testing.T) {
	w := newWorld(t,
		"GRANT CREATE ON SCHEMA public TO PUBLIC", "DO $$ BEGIN CREATE ROLE pgconsent_agent LOGIN NOINHERIT; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
		"GRANT DELETE, INSERT (name) ON people TO pgconsent_agent", "GRANT SELECT ON memory_edges TO pgconsent_agent")
	before := w.state()
	w.compileReplaced(rls.Options{SignedViews: true}).migrate()
	agentRights := func() string {
		got, err := query(w.super, `SELECT string_agg(x, ' ' ORDER BY x) FROM (SELECT a.privilege_type FROM pg_class, aclexplode(relacl) AS a
			WHERE oid = 'people'::regclass AND a.grantee = 'pgconsent_agent'::regrole
			UNION ALL SELECT attname || ' ' || a.privilege_type FROM pg_attribute, aclexplode(attacl) AS a
			WHERE attrelid = 'people'::regclass AND a.grantee = 'pgconsent_agent'::regrole) AS s (x)`)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	firstRights := agentRights()
	const peopleRule = "people: { rows: [ { own: { column: user_id, is: user } }, { status: { column: consent_status, is: granted } } ]"
	w.compileReplaced(rls.Options{SignedViews: true}, peopleRule,
		peopleRule+", write: { commands: [insert, delete], columns: [id, user_id, name], accept: [conflicts] }").migrate()
	if got := agentRights(); got == firstRights || !strings.Contains(got, "DELETE") || !strings.Contains(got, "user_id INSERT") {
		t.Errorf("rights to write: %s; without: %s", got, firstRights)
	}
	w.compileReplaced(rls.Options{SignedViews: true}).migrate()
	if got := agentRights(); got != firstRights {
		t.Errorf("afterwards: %s; before: %s", got, firstRights)
	}
	if drift, err := migrations.Drift(context.Background(), w.owner); err != nil || len(drift) > 0 {
		t.Errorf("drift: %v, %v", drift, err)
	}
	if err := migrations.Down(context.Background(), w.owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, w.state()); diff != "" {
		t.Errorf("--down left something behind (-before +after):\n%s", diff)
	}
}

// Row security that was enabled before the first migrate stays enabled, also on a table that is added to the policy
// later and removed again.
func TestRowSecurityAfterPartsWereChanged(t *testing.T) {
	w := newWorld(t, "ALTER TABLE people ENABLE ROW LEVEL SECURITY", "CREATE POLICY theirs ON people USING (true)",
		"ALTER TABLE memory_edges ENABLE ROW LEVEL SECURITY")
	before := w.state()
	edgesReplacement := []string{"functions:", "  memory_edges: { rows: open }\nfunctions:"}
	w.compileReplaced(rls.Options{SignedViews: true}).migrate()
	for range 2 {
		w.compileReplaced(rls.Options{SignedViews: true}, append(edgesReplacement, statusReplacement...)...).migrate()
		w.want(w.super, "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relrowsecurity AND relnamespace = 'public'::regnamespace",
			"memories memory_edges memory_participants people")
		w.want(w.super, "SELECT polroles = '{0}' FROM pg_policy WHERE polname = 'pgconsent_open' AND polrelid = 'memory_edges'::regclass", "f")
		w.compileReplaced(rls.Options{SignedViews: true}).migrate()
		w.want(w.super, "SELECT relrowsecurity FROM pg_class WHERE oid = 'memory_edges'::regclass", "t")
	}
	w.compileReplaced(rls.Options{SignedViews: true},
		"  memory_participants: { rows: [ { visible: { memories: { id: memory_id } } }, { visible: { people: { id: person_id } } } ] }\n", "",
		"- consent: { every: [ memory_participants: { memory_id: id }, people: { id: person_id } ], status: consent_status, is: granted }", "").migrate()
	w.want(w.super, "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relrowsecurity AND relnamespace = 'public'::regnamespace",
		"memories memory_edges people")
	if err := migrations.Down(context.Background(), w.owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, w.state()); diff != "" {
		t.Errorf("--down left something behind (-before +after):\n%s", diff)
	}
}

// After a partition was added or dropped, migrate changes no other table.
func TestMigrateAfterAnotherPartition(t *testing.T) {
	w := newWorld(t)
	for _, sql := range []string{"CREATE TABLE events (id int, user_id uuid) PARTITION BY RANGE (id)",
		"CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (0) TO (10)"} {
		w.exec(w.owner, sql)
	}
	eventsReplacement := []string{"functions:", "  events: { rows: [ own: { column: user_id, is: user } ] }\nfunctions:"}
	w.compileReplaced(rls.Options{SignedViews: true}, eventsReplacement...).migrate()
	before := w.objectOIDs()
	w.exec(w.owner, "CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM (10) TO (20)")
	if c := w.compileReplaced(rls.Options{SignedViews: true}, eventsReplacement...).migrateAndReport(); c.Tables != 1 {
		t.Errorf("a partition more: %+v", c)
	}
	w.want(w.super, "SELECT count(*) FROM pg_policy WHERE polrelid = 'events_2'::regclass AND polname = 'pgconsent_select'", "1")
	w.exec(w.owner, "DROP TABLE events_1")
	if c := w.compileReplaced(rls.Options{SignedViews: true}, eventsReplacement...).migrateAndReport(); c.Tables != 1 {
		t.Errorf("a partition less: %+v", c)
	}
	after := w.objectOIDs()
	maps.DeleteFunc(before, func(name, _ string) bool { return strings.HasSuffix(name, " on events_1") })
	maps.DeleteFunc(after, func(name, _ string) bool { return strings.HasSuffix(name, " on events_2") })
	if diff := changedNames(before, after); len(diff) > 0 {
		t.Errorf("others: %q", diff)
	}
	if drift, err := migrations.Drift(context.Background(), w.owner); err != nil || len(drift) > 0 {
		t.Errorf("drift: %v, %v", drift, err)
	}
}
