package predicate_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The sizes of each random schema: rows in a table, and policies.
const (
	schemaRows     = 40
	schemaPolicies = 2
)

// schemaCallers is how many callers use each policy. It is larger in the nightly run, since creating a schema costs
// more than querying it.
var schemaCallers = 8

// TestTriples compares all SQL forms of rules with the model on random schemas. For each (row, caller, clock), a form
// must show the row exactly if predicate.Eval does. The forms are row security as the agent's role (with both forms of
// sub-selects), the injected condition, and that of signed views. "make triples N=1000000" runs more.
func TestTriples(t *testing.T) {
	wantedCount, seed := tier.Count(2_000, 10_000, 1_000_000), tier.Seed()
	if tier.IsNightly() {
		schemaCallers = 30
	}
	t.Logf("seed %d", seed)
	r := newTriples(t)
	startedAt, reportedAt := time.Now(), time.Now()
	for number := 0; r.rowCount < wantedCount; number++ {
		if number > 0 && number%10 == 0 { // dropped schemas leave bloat in catalogs and caches, which slows down later ones
			r.openDatabase()
		}
		r.checkSchema(newSchema(seed, number, schemaRows))
		if t.Failed() {
			t.Fatalf("schema %d of seed %d", number, seed)
		}
		if tier.IsNightly() && time.Since(reportedAt) > 5*time.Second {
			reportedAt = time.Now()
			fmt.Fprintf(os.Stderr, "triples: %d of %d (%d %%), %.0f/s, %d schemas, %.0f %% of rows shown, seed %d\n", r.rowCount,
				wantedCount, 100*r.rowCount/wantedCount,
				float64(r.rowCount)/time.Since(startedAt).Seconds(), number+1, 100*float64(r.shownCount)/float64(max(r.rowCount, 1)), seed)
		}
	}
	t.Logf("%d triples, %d of them shown, %d compared with an emptied lookup table, in %s", r.rowCount, r.shownCount, r.emptiedCount,
		time.Since(startedAt).Round(time.Second))
	t.Logf("%d consents are materialized", r.materializedCount)
	t.Logf("%d live attributes, %d of them known", r.attributeCount, r.knownCount)
	if r.knownCount < r.attributeCount/10 || r.knownCount > r.attributeCount*9/10 {
		t.Errorf("%d of %d live attributes are known: the sample says little", r.knownCount, r.attributeCount)
	}
	if r.shownCount < r.rowCount/50 || r.shownCount > r.rowCount*9/10 || r.emptiedCount == 0 || r.flatCount == 0 {
		t.Errorf("%d of %d triples show, %d were compared with an emptied lookup table: the sample says little", r.shownCount, r.rowCount,
			r.emptiedCount)
	}
}

// triples is a database with two connections: one of the agent's role, and one of a superuser, to whom row security
// does not apply.
type triples struct {
	*testing.T
	super, agent                       *pgx.Conn
	db                                 *pgtest.DB
	lastSchema                         string // schema
	key                                seal.Key
	rowCount, shownCount, emptiedCount int
	flatCount                          int // comparisons with the form of signed views
	materializedCount                  int // consents whose answers are stored
	attributeCount, knownCount         int // live attributes
}

func newTriples(t *testing.T) *triples {
	r := &triples{T: t}
	r.openDatabase()
	return r
}

// openDatabase creates a new database and connects to it.
func (r *triples) openDatabase() {
	for _, conn := range []*pgx.Conn{r.super, r.agent} {
		if conn != nil {
			_ = conn.Close(context.Background())
		}
	}
	r.db, r.agent, r.lastSchema = pgtest.Database(r.T), nil, ""
	r.super = r.db.Connect(r.T, "postgres")
	r.run(r.super, "CREATE TYPE public.mood AS ENUM ('granted', 'refused', 'none', 'a', 'b')")
}

func (r *triples) run(conn *pgx.Conn, sql string) {
	r.Helper()
	if _, err := conn.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
		r.Fatalf("%v\n%.4000s", err, sql)
	}
}

func (r *triples) checkSchema(s *schema) {
	r.run(r.super, s.sql())
	for range schemaPolicies {
		pol := r.migrate(s, s.policy())
		for range schemaCallers {
			r.checkCaller(s, pol, s.caller())
			if r.Failed() {
				return
			}
		}
	}
}

// migrate installs a policy, and removes the objects of the previous one.
func (r *triples) migrate(s *schema, text string) *policy.Policy {
	ctx := context.Background()
	doc, err := policy.Parse("policy.yaml", []byte(text))
	if err != nil {
		r.Fatalf("%v\n%s", err, text)
	}
	snap, err := pgcatalog.Load(ctx, r.super, []string{"public"})
	if err != nil {
		r.Fatal(err)
	}
	pol, err := policy.Compile(doc, snap)
	if err != nil {
		r.Fatalf("%v\n%s", err, text)
	}
	plan := rls.Generate(pol, snap, rls.Options{})
	if err := migrations.Up(ctx, r.super, migrations.Options{}, plan); err != nil {
		r.Fatalf("%v\n%s", err, text)
	}
	if err := migrations.FillAll(ctx, r.super, plan.Fills(), func(migrations.Fill, int64) {}); err != nil {
		r.Fatalf("%v\n%s", err, text)
	}
	r.materializedCount += len(plan.Fills())
	if r.agent == nil {
		ring, err := seal.LoadKeyring(ctx, r.super)
		if err != nil {
			r.Fatal(err)
		}
		r.key = ring.NewestKey()
		r.agent = r.db.Connect(r.T, migrations.DefaultAgentRole)
		for _, conn := range []*pgx.Conn{r.agent, r.super} {
			r.run(conn, "SET statement_timeout = '20s'; SET jit = off; SET work_mem = '32MB'")
		}
	}
	r.run(r.super, s.registrySQL())
	if r.lastSchema != s.name {
		if r.lastSchema != "" {
			r.run(r.super, "DROP SCHEMA "+catalog.QuoteIdent(r.lastSchema)+" CASCADE")
		}
		r.lastSchema = s.name
	}
	return pol
}

// form is one way to evaluate a rule in SQL.
type form struct {
	name, sql string
	conn      *pgx.Conn
	hint      string
	signed    bool
}

func (r *triples) checkCaller(s *schema, pol *policy.Policy, attributes map[string]string) {
	w := r.world(s, attributes)
	claims := s.claims()
	for _, conn := range []*pgx.Conn{r.super, r.agent} {
		value := r.key.Seal(seal.Claims{PID: conn.PgConn().PID(), Expires: time.Now().Add(seal.SealLifetime), Profile: "p",
			Attributes: attributes})
		if _, err := conn.Exec(context.Background(), "SELECT set_config('pgconsent.seal', $1, false)", value); err != nil {
			r.Fatal(err)
		}
		for _, l := range pol.LiveAttributes() {
			if l.Setting != "" {
				if _, err := conn.Exec(context.Background(), "SELECT set_config($1, $2, false)", l.Setting, claims[l.Name]); err != nil {
					r.Fatal(err)
				}
			}
		}
	}
	w = w.WithLiveAttributes(pol.LiveAttributes(), claims)
	r.checkLiveAttributes(pol, w, claims)
	for _, t := range s.tables {
		compiled, _ := pol.Table(s.relation(t))
		selectSQL := "SELECT " + catalog.QuoteIdent(t.columns[0].name) + " FROM " + s.relation(t).SQL()
		injectedSQL, signed := predicate.InjectedCondition(compiled.Rows, "pgconsent_row")
		forms := []form{
			{"row security, probes", selectSQL, r.agent, "", false},
			{"row security, sets", selectSQL, r.agent, predicate.UseHashHint, false},
			{"injected", selectSQL + " AS pgconsent_row WHERE " + injectedSQL, r.super, "", signed},
			{"direct", selectSQL + " AS pgconsent_row WHERE " + predicate.DirectCondition(compiled.Rows, "pgconsent_row",
				w.Attributes), r.super, "", false},
		}
		if flatSQL, ok := predicate.SignedViewCondition(compiled.Rows, compiled.Relation, "pgconsent_row"); ok {
			r.flatCount++
			forms = append(forms, form{"flat", selectSQL + " AS pgconsent_row WHERE " + flatSQL, r.super, "", false},
				form{"flat, sets", selectSQL + " AS pgconsent_row WHERE " + flatSQL, r.super, predicate.UseHashHint, false})
		}
		for _, form := range forms {
			got, statementTime := r.queryRows(form.conn, form.hint, form.sql, form.signed)
			w.Now = statementTime
			want := r.modelRows(compiled.Rows, t, w)
			if !slices.Equal(got, want) {
				r.Errorf("%s of %s:\n got %v\nwant %v\ncaller %v claims %v at %s\nrule %s\n%s\nrows:\n%s", form.name,
					s.relation(t), got, want, w.Attributes, claims, statementTime,
					predicate.RowPolicySQL(compiled.Rows, compiled.Relation), form.sql, s.describe(t, difference(got, want)))
				return
			}
			if form.name == "injected" {
				r.rowCount += len(t.rows)
				r.shownCount += len(got)
			}
		}
		if s.chance(10) {
			r.checkEmptiedViews(s, t, compiled, selectSQL, w)
		}
	}
}

func (r *triples) world(s *schema, attributes map[string]string) predicate.World {
	w := predicate.World{Tables: map[catalog.Name][]predicate.Row{}, Attributes: attributes, Sealed: true}
	for _, t := range s.tables {
		w.Tables[s.relation(t)] = t.rows
	}
	w.Tables[predicate.CurrentConsents] = s.registry
	return w
}

// checkLiveAttributes compares the value of every live attribute with the model, as the session gets it and as the
// proxy does.
func (r *triples) checkLiveAttributes(pol *policy.Policy, w predicate.World, claims map[string]string) {
	r.Helper()
	claimFields := []string{}
	for name, value := range claims {
		claimFields = append(claimFields, seal.AttributeField(name, value))
	}
	attributeFields := seal.AttributeFields(w.Attributes) // has claims too, which the function must ignore
	for _, l := range pol.LiveAttributes() {
		want, exists := w.Attributes[l.Name]
		var sessionValue, liveValue *string
		err := r.agent.QueryRow(context.Background(), "SELECT pgconsent_signed.attr($1)", l.Name).Scan(&sessionValue)
		if err == nil {
			err = r.super.QueryRow(context.Background(), "SELECT pgconsent.live($1, $2, $3)", l.Name, attributeFields, claimFields).Scan(&liveValue)
		}
		if err != nil {
			r.Fatalf("%s: %v\n%s", l.Name, err, predicate.LiveFunctionBody(pol.LiveAttributes()))
		}
		for _, got := range []*string{sessionValue, liveValue} {
			if (got != nil) != exists || got != nil && *got != want {
				r.Fatalf("attribute %s is %v, the model says %q, %v\nclaims %v\n%s", l.Name, got, want, exists, claims,
					predicate.LiveFunctionBody(pol.LiveAttributes()))
			}
		}
		r.attributeCount++
		if exists {
			r.knownCount++
		}
	}
}

// checkEmptiedViews evaluates a rule with each of its lookup views emptied, one at a time. No further rows may show.
func (r *triples) checkEmptiedViews(s *schema, t *table, compiled *policy.Table, selects string, w predicate.World) {
	for _, h := range predicate.LookupTables(compiled.Rows) {
		view := predicate.LookupView(h.Relation.Name).SQL()
		r.run(r.super, "ALTER VIEW "+view+" RENAME TO hidden_view; CREATE VIEW "+view+
			" AS SELECT * FROM pgconsent.hidden_view WHERE false; GRANT SELECT ON "+view+" TO pgconsent_agent, pgconsent_reader")
		// A policy refers to its views by OID, so it is altered to use the emptied view.
		rule := predicate.RowPolicySQL(compiled.Rows, compiled.Relation)
		r.run(r.super, "ALTER POLICY pgconsent_select ON "+s.relation(t).SQL()+" USING ("+rule+")")
		for _, hint := range []string{"", predicate.UseHashHint, predicate.UseIndexHint} {
			got, statementTime := r.queryRows(r.agent, hint, selects, false)
			w.Now = statementTime
			if differingRows := difference(got, r.modelRows(compiled.Rows, t, w)); len(differingRows) > 0 &&
				slices.ContainsFunc(got, func(rid string) bool {
					return slices.Contains(differingRows, rid) && !slices.Contains(r.modelRows(compiled.Rows, t, w), rid)
				}) {
				r.Errorf("%s emptied shows rows of %s: %v\n%s", h.Relation.Name, s.relation(t), differingRows, rule)
			}
			r.emptiedCount += len(t.rows)
		}
		r.run(r.super, "DROP POLICY pgconsent_select ON "+s.relation(t).SQL()+"; DROP VIEW "+view+
			"; ALTER VIEW pgconsent.hidden_view RENAME TO "+catalog.QuoteIdent(predicate.LookupView(h.Relation.Name).Name)+
			"; CREATE POLICY pgconsent_select ON "+s.relation(t).SQL()+" AS RESTRICTIVE FOR SELECT TO pgconsent_agent USING ("+rule+")")
	}
}

// queryRows runs one statement and returns the ids of its rows and the time at which it ran.
func (r *triples) queryRows(conn *pgx.Conn, hint, sql string, signed bool) ([]string, time.Time) {
	text := hint + "SELECT pg_catalog.to_char(pg_catalog.timezone('UTC', pg_catalog.statement_timestamp()), 'YYYY-MM-DD HH24:MI:SS.US'); " + sql
	if signed {
		text = r.key.Sign("p", text)
	}
	results, err := conn.PgConn().Exec(context.Background(), text).ReadAll()
	if err != nil {
		r.Fatalf("%v\n%s", err, text)
	}
	now, err := time.Parse("2006-01-02 15:04:05.999999", string(results[0].Rows[0][0]))
	if err != nil {
		r.Fatal(err)
	}
	out := make([]string, len(results[1].Rows))
	for i, row := range results[1].Rows {
		out[i] = string(row[0])
	}
	slices.Sort(out)
	return out, now
}

func (r *triples) modelRows(n predicate.Node, t *table, w predicate.World) []string {
	out := []string{}
	for _, row := range t.rows {
		if predicate.Eval(n, row, w) {
			out = append(out, row[t.columns[0].name])
		}
	}
	slices.Sort(out)
	return out
}

func difference(a, b []string) []string {
	var out []string
	for _, x := range a {
		if !slices.Contains(b, x) {
			out = append(out, x)
		}
	}
	for _, x := range b {
		if !slices.Contains(a, x) {
			out = append(out, x)
		}
	}
	return out
}
