package enforce

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/test/tier"
)

// If a probe has switched off the signed path, it stays off, and agents are served nevertheless.
func TestSignedPathIsSwitchedOff(t *testing.T) {
	var off syncFlag
	w := startWith(t, signedRules, func(w *world) {
		w.cfg.RewriteMode = rewrite.AlwaysSignedMode
		w.cfg.Check = func(context.Context, *pgx.Conn, Target) error {
			if off.get() {
				return SignedPathOff{"a probe"}
			}
			return nil
		}
	})
	c := w.client("caregiver")
	path := func(sql string) verdict.Path { return c.Decide(t.Context(), sql, verdict.Simple).Path }
	eventually(t, "the signed path", func() bool { return path(titles) == verdict.PathSigned })
	c.want(titles, "lake", "sea")
	off.set(true)
	w.exec("CREATE INDEX another ON public.people (name)")
	eventually(t, "row security", func() bool { return path(titles) == verdict.PathRowSecurity })
	c.want(titles, "lake", "sea")
	if !strings.Contains(w.log.String(), "level=ERROR msg=\"the signed path is off") {
		t.Error("the path shut quietly")
	}
	off.set(false)
	w.exec("DROP INDEX public.another")
	eventually(t, "the signed path again", func() bool { return path(titles) == verdict.PathSigned })
	c.want(titles, "lake", "sea")
}

// TestSignedPathStaysOff: reading the policy again does not switch the signed path on. If the path is switched off
// without another change, this also applies to statements that were decided before.
func TestSignedPathStaysOff(t *testing.T) {
	tier.All(t)
	var off syncFlag
	w := startWith(t, signedRules, func(w *world) {
		w.cfg.RewriteMode, w.cfg.ProbeInterval = rewrite.AlwaysSignedMode, time.Hour
		w.cfg.Check = func(context.Context, *pgx.Conn, Target) error {
			if off.get() {
				return SignedPathOff{"a probe"}
			}
			return nil
		}
	})
	c := w.client("caregiver")
	path := func() verdict.Path {
		c.seal() // with the present rights
		return c.Decide(t.Context(), titles, verdict.Simple).Path
	}
	if got := path(); got != verdict.PathSigned {
		t.Fatalf("it takes the path %v", got)
	}
	off.set(true)
	w.write(strings.Replace(rules, "\ntables:", "\nlimits: [ { per: agent, statements: 1000 } ]\ntables:", 1))
	if err := w.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := path(); got != verdict.PathRowSecurity {
		t.Errorf("after a reload it takes the path %v", got)
	}

	d := w.databases["memories"]
	d.stopListening(t)
	look := func(want verdict.Path) {
		t.Helper()
		d.mu.Lock()
		d.checkedAt = time.Time{}
		d.mu.Unlock()
		if err := d.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := path(); got != want {
			t.Errorf("shut %v: it takes the path %v", off.get(), got)
		}
	}
	off.set(false)
	look(verdict.PathSigned)
	off.set(true)
	look(verdict.PathRowSecurity)
}

// The types that a Parse message declares for parameters decide whether the statement may use the signed path.
func TestDeclaredTypesAndTheSignedPath(t *testing.T) {
	tier.All(t)
	w := startWith(t, signedRules, func(w *world) { w.cfg.RewriteMode = rewrite.AlwaysSignedMode })
	c := w.client("caregiver")
	for _, q := range []struct {
		sql   string
		types []uint32
		path  verdict.Path
	}{
		{"SELECT title FROM memories WHERE id = $1", nil, verdict.PathSigned},
		{"SELECT title FROM memories WHERE id = $1", []uint32{0}, verdict.PathSigned},
		{"SELECT title FROM memories WHERE id = $1", []uint32{23}, verdict.PathSigned},
		{"SELECT title FROM memories WHERE id = $1", []uint32{1700}, verdict.PathRowSecurity},    // the column is converted
		{"SELECT title FROM memories WHERE id = $1::int", []uint32{25}, verdict.PathRowSecurity}, // converted for each row
		{"SELECT title FROM memories WHERE user_id = $1::uuid AND title = $2", []uint32{2950, 25}, verdict.PathSigned},
		{"SELECT title FROM memories WHERE user_id = $1::uuid AND title = $2", []uint32{2950, 19}, verdict.PathRowSecurity},
		{"SELECT title FROM memories WHERE title LIKE $1", nil, verdict.PathSigned},
		{"SELECT title FROM memories WHERE title LIKE $1", []uint32{1043}, verdict.PathSigned},
		{"SELECT title FROM memories WHERE title LIKE $1", []uint32{1042}, verdict.PathRowSecurity},
		{"SELECT title FROM memories WHERE left(title, $1) = 'a'", nil, verdict.PathRowSecurity},
		{"SELECT title FROM memories LIMIT $1", []uint32{20}, verdict.PathSigned},
		{"SELECT title FROM memories WHERE EXISTS (SELECT FROM people LIMIT $1)", nil, verdict.PathSigned}, // value checked
		{"SELECT title FROM memories WHERE EXISTS (SELECT FROM people LIMIT $1)", []uint32{25}, verdict.PathRowSecurity},
		{"SELECT title FROM memories WHERE EXISTS (SELECT FROM people LIMIT $1 + 1)", nil, verdict.PathRowSecurity},
		{"SELECT title FROM memories WHERE id = ANY ($1)", []uint32{1016}, verdict.PathSigned},
		{"SELECT title FROM memories WHERE title = ANY ($1::text[])", []uint32{1009}, verdict.PathSigned},
		{"SELECT title FROM memories WHERE id = $1::int4", []uint32{23}, verdict.PathSigned},
		{"SELECT title FROM memories WHERE id = $1::int4", []uint32{20}, verdict.PathRowSecurity}, // narrowed for each row
		{"SELECT title FROM memories WHERE id = $1 AND title = $1", nil, verdict.PathRowSecurity},
	} {
		v := c.Decide(t.Context(), q.sql, verdict.Extended)
		if !v.IsAllowed() {
			t.Fatalf("%s: %v", q.sql, v.Refusal)
		}
		if len(q.types) > 0 {
			v = c.DeclareParameters(t.Context(), v, q.types)
		}
		if !v.IsAllowed() || v.Path != q.path {
			t.Errorf("%s with %v: path %s, want %s (%v)", q.sql, q.types, v.Path, q.path, v.Refusal)
		}
		if again := c.Recheck(t.Context(), v); again.Text != v.Text {
			t.Errorf("%s with %v: judged again it takes the other path", q.sql, q.types)
		}
	}
}

// TestDeclaredTypesOfAnyParameter: a declared type that agents may not use is refused. A type with which the statement
// is not leak-safe on the signed path leads to row security. This holds for each parameter, with other parameters
// declared or not, on both paths.
func TestDeclaredTypesOfAnyParameter(t *testing.T) {
	tier.All(t)
	w := startWith(t, signedRules, func(w *world) { w.cfg.RewriteMode = rewrite.AlwaysSignedMode })
	c := w.client("caregiver")
	const xid8, nothing, xid, numeric = 5069, 4_000_000_000, 28, 1700
	for sql, path := range map[string]verdict.Path{
		"SELECT title FROM memories WHERE id = $1 AND id > $2 AND id < $3 AND id = $4":                     verdict.PathSigned,
		"SELECT title FROM memories WHERE id = $1 AND id > $2 AND id < $3 AND id = $4 AND title ~ '(?=a)'": verdict.PathRowSecurity,
	} {
		for _, others := range []uint32{0, 20, 23} {
			for at := range 4 {
				for n := at + 1; n <= 4; n++ {
					types := slices.Repeat([]uint32{others}, n)
					v := c.Decide(t.Context(), sql, verdict.Extended)
					if now := c.DeclareParameters(t.Context(), v, types); !now.IsAllowed() || v.Path != path || now.Path != path {
						t.Fatalf("%s with %v: path %s, %v", sql, types, now.Path, now.Refusal)
					}
					for _, odd := range []uint32{xid8, nothing, xid, numeric} {
						types[at] = odd
						now := c.DeclareParameters(t.Context(), v, types)
						if now.IsAllowed() != (odd == numeric || odd == xid) || now.IsAllowed() && now.Path != verdict.PathRowSecurity {
							t.Errorf("%s (path %s) with %v: path %s, %v", sql, path, types, now.Path, now.Refusal)
						}
					}
				}
			}
		}
	}
}

// A cast determines the type of its parameter, unless the client declares another type. Then the cast may fail, so that
// the statement gets a hardened plan, also at a recheck.
func TestDeclaredTypesGetHardenedPlans(t *testing.T) {
	w := start(t, nil)
	c := w.client("caregiver")
	const text = 25
	notReloaded := map[*verdict.Verdict]bool{}
	for sql, want := range map[string][2]bool{ // without and with a declared type
		"SELECT title FROM memories WHERE id = $1":                     {false, false},
		"SELECT title FROM memories WHERE id = $1::int":                {false, true},
		"SELECT title FROM memories WHERE id = $1::int + 1":            {true, true},
		"SELECT title FROM memories WHERE id = $1::int AND title = $1": {true, true},
	} {
		v := c.Decide(t.Context(), sql, verdict.Extended)
		for _, types := range [][]uint32{nil, {0}} {
			if now := c.DeclareParameters(t.Context(), v, types); !now.IsAllowed() || now.HasHardenedPlan() != want[0] {
				t.Errorf("%s with %v: %t %v", sql, types, now.HasHardenedPlan(), now.Refusal)
			}
		}
		declared := c.DeclareParameters(t.Context(), v, []uint32{text})
		again := c.Recheck(t.Context(), declared)
		if !declared.IsAllowed() || declared.HasHardenedPlan() != want[1] || again.HasHardenedPlan() != want[1] || v.HasHardenedPlan() != want[0] {
			t.Errorf("%s declared: %t, again %t; without %t; %v", sql, declared.HasHardenedPlan(), again.HasHardenedPlan(), v.HasHardenedPlan(), declared.Refusal)
		}
		notReloaded[v], notReloaded[declared] = want[0], want[1]
	}

	w.exec("CREATE INDEX another ON public.people (name)")
	w.lookAgain(t)
	c.seal()
	for v, want := range notReloaded {
		if again := c.Recheck(t.Context(), v); !again.IsAllowed() || again.HasHardenedPlan() != want {
			t.Errorf("%s under other catalogs: hardened %t, want %t; %v", v.Original, again.HasHardenedPlan(), want, again.Refusal)
		}
	}
}

// A Parse may declare a type that has casts by functions of users. A statement that would call such a cast is refused.
func TestDeclaredTypesWithUserCasts(t *testing.T) {
	w := start(t, func(w *world) {
		w.exec("CREATE TYPE public.gauge AS (n int, unit text); CREATE FUNCTION public.gauged(public.gauge) " +
			"RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE CAST (public.gauge AS int) WITH FUNCTION public.gauged")
	})
	var gauge uint32
	if err := w.dba.QueryRow(t.Context(), "SELECT 'public.gauge'::regtype::oid").Scan(&gauge); err != nil {
		t.Fatal(err)
	}
	c := w.client("caregiver")
	for sql, may := range map[string]bool{"SELECT $1::text": true, "SELECT $1::int": false} {
		v := c.Decide(t.Context(), sql, verdict.Extended)
		if now := c.DeclareParameters(t.Context(), v, []uint32{gauge}); !v.IsAllowed() || now.IsAllowed() != may {
			t.Errorf("%s of a gauge: %v", sql, now.Refusal)
		}
	}
}

// A statement that was decided for row security stays so at a recheck with changed catalogs.
func TestRecheckKeepsTheRowSecurityPath(t *testing.T) {
	tier.All(t)
	w := startWith(t, signedRules, func(w *world) { w.cfg.RewriteMode = rewrite.AlwaysSignedMode })
	c := w.client("caregiver")
	v := c.Decide(t.Context(), titles, verdict.Extended)
	plain := c.UseRowSecurity(t.Context(), v, nil)
	if v.Path != verdict.PathSigned || plain.Path != verdict.PathRowSecurity {
		t.Fatalf("%s takes the path %v, %v when plain", titles, v.Path, plain.Path)
	}
	w.exec("CREATE INDEX another ON public.people (name)")
	w.lookAgain(t)
	c.seal()
	if again := c.Recheck(t.Context(), plain); !again.IsAllowed() || again.Path != verdict.PathRowSecurity {
		t.Errorf("it takes the path %v now; %v", again.Path, again.Refusal)
	}
	c.want(titles, "lake", "sea")
}

// lookAgain waits until the enforcer has refreshed its catalogs.
func (w *world) lookAgain(t *testing.T) {
	t.Helper()
	if err := w.db0(t).refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}
