package doctor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The doctor compares materialized answers with what they should be. Its other checks do not report the triggers and
// tables that store them.
func TestMaterialized(t *testing.T) {
	tier.All(t)
	ctx := context.Background()
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	run := func(sql string) {
		t.Helper()
		if _, err := super.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	run(`CREATE TABLE people (id int PRIMARY KEY, consent text); CREATE TABLE notes (id int PRIMARY KEY, person int);
		INSERT INTO people VALUES (1, 'granted'), (2, 'refused'); INSERT INTO notes SELECT g, 1 + g % 3 FROM generate_series(1, 9) g`)
	var serveError error
	examine := func(rules string) (string, []migrations.Fill) {
		t.Helper()
		snap, err := pgcatalog.Load(ctx, super, []string{"public"})
		if err != nil {
			t.Fatal(err)
		}
		doc, err := policy.Parse("policy.yaml",
			[]byte("version: 1\nattributes: {}\ntables:\n  notes: { rows: [ consent: { every: [ people: { id: "+
				"person } ], status: consent, is: granted"+rules+" } ] }\n"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.Compile(doc, snap)
		if err != nil {
			t.Fatal(err)
		}
		plan := rls.Generate(p, snap, rls.Options{})
		if err := migrations.Up(ctx, super, migrations.Options{}, plan); err != nil {
			t.Fatal(err)
		}
		control := db.Connect(t, migrations.DefaultControlRole)
		subject := doctor.Target{Policy: p, Snapshot: snap, Plan: plan}
		serveError = doctor.CheckServing(ctx, control, subject)
		found, err := doctor.RunChecks(ctx, control, subject)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, f := range found {
			if f.Severity != doctor.SeverityOK && f.Severity != doctor.SeverityHardening {
				out = append(out, string(f.Severity)+" "+f.ID+": "+f.Problem+" "+f.Fix)
			}
		}
		return strings.Join(out, "\n"), plan.Fills()
	}
	otherFindings, _ := examine("")
	expectKept := func(want string) []migrations.Fill {
		t.Helper()
		got, fills := examine(", materialize: true")
		if newFindings := strings.TrimSpace(strings.ReplaceAll(got, otherFindings, "")); want == "" && got != otherFindings ||
			!strings.Contains(newFindings, want) {
			t.Errorf("got %s\nwant %s\nbesides %s", got, want, otherFindings)
		}
		return fills
	}
	fills := expectKept("warning materialized: the materialized rule of public.notes is not complete")
	fill := func() {
		t.Helper()
		if err := migrations.FillAll(ctx, super, fills, func(migrations.Fill, int64) {}); err != nil {
			t.Fatal(err)
		}
	}
	fill()
	expectKept("")
	run("INSERT INTO pgconsent.materialized_change VALUES ('3', '" + fills[0].Name + "', 1, '[\"1\"]'), ('3', 'another', 1, '[\"1\"]')")
	const unsettled = "the materialized rule of public.notes may be wrong: it depends on 1 changes that were never applied"
	expectKept("unsafe materialized: " + unsettled)
	if serveError == nil || !strings.Contains(serveError.Error(), unsettled) {
		t.Errorf("who serves: %v", serveError)
	}
	fill()
	expectKept("")
	for _, sql := range []string{
		"UPDATE pgconsent.TABLE SET open_until = 'infinity'", "DELETE FROM pgconsent.TABLE WHERE id = 3",
		"ALTER TABLE people DISABLE TRIGGER USER; UPDATE people SET consent = 'refused'; ALTER TABLE people " +
			"ENABLE ALWAYS TRIGGER zz_pgconsent_materialized_NAME_1_update",
	} {
		run(strings.NewReplacer("TABLE SET", "materialized_"+fills[0].Name+" SET", "FROM pgconsent.TABLE",
			"FROM pgconsent.materialized_"+fills[0].Name, "NAME", fills[0].Name).Replace(sql))
		got, _ := examinedOnly(t, db, fills)
		if got == 0 {
			t.Errorf("%s: nothing differs", sql)
		}
		run("SELECT pgconsent.materialized_invalidate('" + fills[0].Name + "')")
		fill()
		if got, _ := examinedOnly(t, db, fills); got != 0 {
			t.Errorf("%s: %d rows differ after the repair", sql, got)
		}
	}
	_, _ = examine(", materialize: true") // the changed trigger differs from the plan's, so that everything is created again
	fill()
	run("UPDATE pgconsent.materialized_" + fills[0].Name + " SET open_until = 'infinity'")
	expectKept("unsafe materialized: the materialized rule of public.notes is wrong for")
	if serveError == nil || !strings.Contains(serveError.Error(), "is wrong for") {
		t.Errorf("who serves: %v", serveError)
	}
	// A running server checks every few seconds, so it does not compare large tables.
	run("INSERT INTO notes SELECT g, 1 FROM generate_series(10, 60000) g")
	expectKept("unsafe materialized: the materialized rule of public.notes is wrong for")
	if serveError != nil && strings.Contains(serveError.Error(), "is wrong for") {
		t.Errorf("who serves: %v", serveError)
	}
}

// examinedOnly returns how many rows differ, as the control role sees it.
func examinedOnly(t *testing.T, db *pgtest.DB, fills []migrations.Fill) (n int64, err error) {
	t.Helper()
	if err := db.Connect(t, migrations.DefaultControlRole).QueryRow(context.Background(),
		fills[0].CountWrong).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n, nil
}
