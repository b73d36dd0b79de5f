package doctor_test

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// Columns that are added or dropped after pgconsent migrate get warnings. Agents are served without them, and the next
// migrate installs the plan again.
func TestAddedAndDroppedColumns(t *testing.T) {
	db := pgtest.Database(t)
	conn := db.Connect(t, "postgres")
	exec(t, conn, schema)
	doc, err := policy.Parse("policy.yaml", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	readTarget := func(isServed bool) doctor.Target {
		t.Helper()
		snap, err := pgcatalog.Load(t.Context(), conn, []string{"public"})
		if err != nil {
			t.Fatal(err)
		}
		waitingColumns, err := migrations.ReadWaitingColumns(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		if isServed {
			snap, _ = snap.WithoutColumns(waitingColumns)
		}
		p, err := policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
		if err != nil {
			t.Fatal(err)
		}
		return doctor.Target{Policy: p, Snapshot: snap, Plan: rls.Generate(p, snap, rls.Options{SignedViews: true})}
	}
	s := readTarget(false)
	if err := migrations.Up(t.Context(), conn, migrations.Options{}, s.Plan); err != nil {
		t.Fatal(err)
	}
	exec(t, conn, "REVOKE TEMPORARY, CREATE ON DATABASE "+db.Name+" FROM PUBLIC")
	exec(t, conn, "ALTER TABLE public.people ADD COLUMN nick text; ALTER TABLE public.letters ADD COLUMN note "+
		"text; ALTER TABLE public.memories DROP COLUMN title CASCADE")
	s = readTarget(true)
	found := examine(t, db, s)
	for _, want := range []string{"waiting", "drift_signed_view"} {
		if !has(found, want, doctor.SeverityWarning) {
			t.Errorf("no warning %s in %v", want, found)
		}
	}
	if err := doctor.UnsafeError(append(found, probe(t, db, s)...)); err != nil {
		t.Error(err)
	}
	if err := migrations.Up(t.Context(), conn, migrations.Options{}, readTarget(false).Plan); err != nil {
		t.Fatal(err)
	}
	if found := examine(t, db, readTarget(true)); has(found, "waiting", doctor.SeverityWarning) || has(found, "drift_signed_view", doctor.SeverityWarning) {
		t.Errorf("after migrate: %v", found)
	}
}
