package rls_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/oracle"
	"github.com/pgconsent/pgconsent/test/tier"
)

// installedStateQuery reads everything that migrate makes or changes, without OIDs. If two databases return the same,
// the same policy is installed in both.
const installedStateQuery = `SELECT string_agg(x, E'\n' ORDER BY x COLLATE "C") FROM (
	SELECT concat('schema ', n.nspname, pg_get_userbyid(n.nspowner),
	  ARRAY(SELECT a::text FROM aclexplode(COALESCE(n.nspacl, acldefault('n', n.nspowner))) AS a ORDER BY 1))
	  FROM pg_namespace AS n WHERE n.nspname !~ '^pg_'
	UNION ALL SELECT concat('class ', c.oid::regclass, c.relkind, c.relrowsecurity, c.relforcerowsecurity, pg_get_userbyid(c.relowner), c.reloptions,
	    ARRAY(SELECT a::text FROM aclexplode(COALESCE(c.relacl, acldefault(CASE WHEN c.relkind = 'S' THEN 's' ELSE 'r' END::"char", c.relowner))) AS a ORDER BY 1),
	    CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END)
	  FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
	UNION ALL SELECT concat('column ', a.attrelid::regclass, ' ', a.attname, ARRAY(SELECT x::text FROM aclexplode(a.attacl) AS x ORDER BY 1))
	  FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
	  WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND a.attnum > 0 AND NOT a.attisdropped
	UNION ALL SELECT concat('function ', p.oid::regprocedure, pg_get_userbyid(p.proowner), pg_get_functiondef(p.oid),
	  ARRAY(SELECT a::text FROM aclexplode(COALESCE(p.proacl, acldefault('f', p.proowner))) AS a ORDER BY 1))
	  FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
	  WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND p.prokind IN ('f', 'p')
	UNION ALL SELECT concat('policy ', p.polname, p.polrelid::regclass, p.polcmd, p.polpermissive,
	  ARRAY(SELECT pg_get_userbyid(r) FROM unnest(p.polroles) AS r ORDER BY 1),
	    pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)) FROM pg_policy AS p
	UNION ALL SELECT concat('trigger ', pg_get_triggerdef(t.oid), t.tgenabled) FROM pg_trigger AS t WHERE NOT t.tgisinternal
	UNION ALL SELECT concat('default ', d.adrelid::regclass, d.adnum, pg_get_expr(d.adbin, d.adrelid)) FROM pg_attrdef AS d
	UNION ALL SELECT concat('event trigger ', evtname, evtenabled) FROM pg_event_trigger
	UNION ALL SELECT concat('database ', ARRAY(SELECT a::text FROM aclexplode(COALESCE(d.datacl, acldefault('d', d.datdba))) AS a ORDER BY 1))
	  FROM pg_database AS d WHERE d.datname = current_database()
	UNION ALL SELECT concat('member ', m.roleid::regrole, m.member::regrole) FROM pg_auth_members AS m
) AS y (x)`

// recordedPlanQuery reads what migrate has recorded about the installed plan.
const recordedPlanQuery = `SELECT string_agg(x, E'\n' ORDER BY x COLLATE "C") FROM (
	SELECT concat('plan ', p.identity, CASE WHEN p.identity !~ 'DATABASE' THEN p.made END, p.tables, p.revokes) FROM pgconsent.installed_plan AS p
	UNION ALL SELECT concat('undo ', u.object, u.sql) FROM pgconsent.installed_undo AS u
	UNION ALL SELECT concat('privilege ', p::text) FROM pgconsent.installed_privilege AS p -- on what is not dropped before it is given back
	  WHERE NOT EXISTS (SELECT FROM pgconsent.installed_undo AS u WHERE strpos(u.sql, split_part(split_part(p.object, ' ', 2), '(', 1)) > 0)
	UNION ALL SELECT concat('object ', o.identity) FROM pgconsent.installed_object AS o
	UNION ALL SELECT concat('materialized ', k.name, k.relation) FROM pgconsent.materialized AS k
	UNION ALL SELECT concat('installed ', i.hash, i.policy_version) FROM pgconsent.installed AS i
) AS y (x)`

// sequence is a database in which several policies are installed one after the other.
type sequence struct {
	t      *testing.T
	conn   *pgx.Conn
	schema oracle.Schema
}

func newSequence(t *testing.T, s oracle.Schema) sequence {
	t.Helper()
	text, err := os.ReadFile("../test/oracle/testdata/" + s.Name + "/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	q := sequence{t, pgtest.Database(t).Connect(t, "postgres"), s}
	if err := makeRoles(context.Background(), q.conn); err != nil {
		t.Fatal(err)
	}
	q.exec(string(text))
	return q
}

func (q sequence) exec(sql string) {
	q.t.Helper()
	if _, err := q.conn.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
		q.t.Fatalf("%.200s: %v", sql, err)
	}
}

func (q sequence) dump(sql string) []string {
	q.t.Helper()
	got, err := query(q.conn, sql)
	if err != nil {
		q.t.Fatal(err)
	}
	return strings.Split(strings.ReplaceAll(got, q.conn.Config().Database, "DATABASE"), "\n")
}

// plan returns the plan of a policy, or the error if the policy does not compile.
func (q sequence) plan(doc map[string]any, o rls.Options) (*rls.Plan, error) {
	q.t.Helper()
	text, err := yaml.Marshal(doc)
	if err != nil {
		q.t.Fatal(err)
	}
	parsed, err := policy.Parse("policy.yaml", text)
	if err != nil {
		return nil, err
	}
	snap, err := pgcatalog.Load(context.Background(), q.conn, q.schema.SearchPath)
	if err != nil {
		q.t.Fatal(err)
	}
	p, err := policy.Compile(parsed, snap, policy.WithViews(rewrite.RewriteViewQuery))
	if err != nil {
		return nil, err
	}
	return rls.Generate(p, snap, o), nil
}

func (q sequence) migrate(plan *rls.Plan) (c migrations.Changed) {
	q.t.Helper()
	if err := migrations.Up(context.Background(), q.conn,
		migrations.Options{OnChange: func(report migrations.Changed) { c = report }}, plan); err != nil {
		q.t.Fatal(err)
	}
	return c
}

// withoutSomePart returns the policy without some part: a table, a view, a function, a part of a table, or a condition.
func withoutSomePart(r *rand.Rand, doc map[string]any) map[string]any {
	out := maps.Clone(doc)
	pickKey := func(m map[string]any) string {
		names := slices.Sorted(maps.Keys(m))
		return names[r.IntN(len(names))]
	}
	innerMap := func(name string) map[string]any {
		inner, _ := out[name].(map[string]any)
		inner = maps.Clone(inner)
		if len(inner) > 0 {
			out[name] = inner
		}
		return inner
	}
	if part := []string{"views", "functions", "tables", "tables"}[r.IntN(4)]; r.IntN(3) == 0 {
		if inner := innerMap(part); len(inner) > 0 {
			delete(inner, pickKey(inner))
		}
		return out
	}
	tables := innerMap("tables")
	name := pickKey(tables)
	table, ok := tables[name].(map[string]any)
	if !ok {
		return out
	}
	table = maps.Clone(table)
	tables[name] = table
	switch part := pickKey(table); rows := table[part].(type) {
	case []any:
		if i := r.IntN(len(rows)); len(rows) > 1 {
			table[part] = slices.Delete(slices.Clone(rows), i, i+1)
		}
	default:
		if part != "rows" {
			delete(table, part)
		}
	}
	return out
}

// TestStepwiseMigratesEqualASingleOne: a database is the same after any sequence of migrates as after one migrate with the last
// policy. Each migrate changes only what differs. migrate --down restores the original state.
func TestStepwiseMigratesEqualASingleOne(t *testing.T) {
	seed := tier.Seed()
	for n := range tier.Count(1, 3, 60) {
		s := oracle.Schemas[(int(seed)+n*7)%len(oracle.Schemas)]
		t.Run(fmt.Sprintf("%d %s", n, s.Name), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			text, err := os.ReadFile("../test/oracle/testdata/" + s.Name + "/policy.yaml")
			if err != nil {
				t.Fatal(err)
			}
			var doc map[string]any
			if err := yaml.Unmarshal(text, &doc); err != nil {
				t.Fatal(err)
			}
			stepwise, atOnce := newSequence(t, s), newSequence(t, s)
			var plan *rls.Plan
			partialSteps := 0
			for step := range 5 {
				if step > 0 && r.IntN(2) == 0 {
					sql := "ALTER TABLE " + stepwise.listedTable(r, doc) + fmt.Sprintf(" ADD COLUMN added_%d text", step)
					switch r.IntN(4) {
					case 0:
						sql = "GRANT SELECT, UPDATE ON " + stepwise.listedTable(r, doc) + " TO app_other"
					case 1: // that counts as altered by hand
						sql = "GRANT SELECT ON " + stepwise.listedTable(r, doc) + " TO PUBLIC"
					}
					stepwise.exec(sql)
					atOnce.exec(sql)
				}
				o := rls.Options{SignedViews: r.IntN(4) > 0}
				for attempt := 0; ; attempt++ {
					candidate := doc
					for range r.IntN(4) {
						candidate = withoutSomePart(r, candidate)
					}
					if plan, err = stepwise.plan(candidate, o); err == nil {
						break
					}
					if attempt > 50 {
						t.Fatal(err)
					}
				}
				if c := stepwise.migrate(plan); c.Objects < c.AllObjects {
					partialSteps++
				}
				if c := stepwise.migrate(plan); c.Objects > 0 {
					t.Errorf("a second time: %+v", c)
				}
				if drift, err := migrations.Drift(context.Background(), stepwise.conn); err != nil || len(drift) > 0 {
					t.Errorf("drift: %v, %v", drift, err)
				}
			}
			if partialSteps == 0 {
				t.Error("no step changed less than all")
			}
			before := atOnce.dump(installedStateQuery)
			atOnce.migrate(plan)
			for _, stateQuery := range []string{installedStateQuery, recordedPlanQuery} {
				if diff := cmp.Diff(atOnce.dump(stateQuery), stepwise.dump(stateQuery)); diff != "" {
					t.Errorf("after %d of 5 steps in parts (-whole +parts):\n%s", partialSteps, diff)
				}
			}
			for _, q := range []sequence{stepwise, atOnce} {
				if err := migrations.Down(context.Background(), q.conn, migrations.Options{}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(before, q.dump(installedStateQuery)); diff != "" {
					t.Errorf("after --down (-before +after):\n%s", diff)
				}
			}
		})
	}
}

// listedTable returns a table of the policy that is no partition.
func (q sequence) listedTable(r *rand.Rand, doc map[string]any) string {
	q.t.Helper()
	plan, err := q.plan(doc, rls.Options{})
	if err != nil {
		q.t.Fatal(err)
	}
	got, err := query(q.conn, "SELECT format('%s.%I', relnamespace::regnamespace, relname) FROM pg_class WHERE relispartition")
	if err != nil {
		q.t.Fatal(err)
	}
	var tables []string
	for _, o := range plan.Objects(migrations.Found{}) {
		if strings.HasPrefix(o.Identity, "row security of ") && !slices.Contains(strings.Split(got, ","), o.Tables[0].SQL()) {
			tables = append(tables, o.Tables[0].SQL())
		}
	}
	return tables[r.IntN(len(tables))]
}
