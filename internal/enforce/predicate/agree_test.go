package predicate_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/property"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// testDatabase is a database with the schema of testdata and its lookup and signed views. Its only connection may read
// them all.
type testDatabase struct {
	conn *pgx.Conn
	key  seal.Key
	snap *catalog.Snapshot
}

func newTestDatabase(t *testing.T) *testDatabase {
	t.Helper()
	ctx := context.Background()
	b := &testDatabase{conn: pgtest.Database(t).Connect(t, "postgres")}
	schema, err := os.ReadFile("testdata/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.conn.PgConn().Exec(ctx, string(schema)).ReadAll(); err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Load("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if b.snap, err = pgcatalog.Load(ctx, b.conn, []string{"public"}); err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Compile(doc, b.snap)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(ctx, b.conn, migrations.Options{}, rls.Generate(pol, b.snap, rls.Options{})); err != nil {
		t.Fatal(err)
	}
	ring, err := seal.LoadKeyring(ctx, b.conn)
	if err != nil {
		t.Fatal(err)
	}
	b.key = ring.NewestKey()
	return b
}

func (b *testDatabase) relation(name string) *catalog.Relation {
	r, _ := b.snap.Relation(catalog.Name{Schema: "public", Name: name})
	return r
}

// queryIDs runs one message and returns the first column of its rows, sorted, or the text of the error.
func (b *testDatabase) queryIDs(sql string) string {
	results, err := b.conn.PgConn().Exec(context.Background(), sql).ReadAll()
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, row := range results[len(results)-1].Rows {
		out = append(out, string(row[0]))
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// drawRule draws a predicate over a table, items or parents, of at most the given depth.
func (b *testDatabase) drawRule(t *rapid.T, depth int, table string) predicate.Node {
	kinds := []string{"own", "own", "status", "links", "open"}
	if table == "items" {
		kinds = append(kinds, "roles", "reference", "visible", "pairs", "role pairs")
	}
	if depth > 0 {
		kinds = append(kinds, "all", "any", "all", "any")
		if table == "items" {
			kinds = append(kinds, "alike")
		}
	}
	drawParts := func() []predicate.Node {
		n := rapid.IntRange(0, 3).Draw(t, "parts")
		var out []predicate.Node
		for range n {
			out = append(out, b.drawRule(t, depth-1, table))
		}
		return out
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "own":
		return predicate.Own{Column: "owner", Attribute: rapid.SampledFrom([]string{"user", "other"}).Draw(t, "attribute"), Type: "pg_catalog.int8"}
	case "status":
		if table == "parents" {
			return predicate.Status{Column: "status", Value: "granted"}
		}
		return predicate.Status{Column: "state", Value: "open"}
	case "links":
		firstStep := predicate.Step{Relation: b.relation("links"), Column: "item", FromColumn: "id"}
		if table == "parents" {
			firstStep = predicate.Step{Relation: b.relation("parent_links"), Column: "parent", FromColumn: "id"}
		}
		return predicate.Consent{
			Steps:        []predicate.Step{firstStep, {Relation: b.relation("subjects"), Column: "id", FromColumn: "subject"}},
			StatusColumn: "status", AgreedStatus: "granted",
		}
	case "roles":
		fromColumn := rapid.SampledFrom([]string{"id", "parent"}).Draw(t, "from") // the second may be NULL
		return predicate.Consent{Steps: []predicate.Step{{Relation: b.relation("links"), Column: "item", FromColumn: fromColumn}},
			StatusColumn: "role",
			AgreedStatus: "granted"}
	case "reference":
		return predicate.Consent{
			Steps: []predicate.Step{{Relation: b.relation("subjects"), Column: "id", FromColumn: "subject"}}, FirstRequired: true,
			StatusColumn: "status", AgreedStatus: "granted",
		}
	case "visible":
		return predicate.Visible{Relation: b.relation("parents"), Column: "id", FromColumn: "parent", Rows: b.drawRule(t, depth-1, "parents")}
	case "pairs": // two columns that may be NULL
		return predicate.Visible{Relation: b.relation("parents"), Column: "id", FromColumn: "parent",
			MorePairs: []predicate.ColumnPair{{Column: "owner", FromColumn: "owner"}}, Rows: b.drawRule(t, depth-1, "parents")}
	case "role pairs":
		return predicate.Consent{
			Steps: []predicate.Step{{Relation: b.relation("links"), Column: "item", FromColumn: "parent",
				MorePairs: []predicate.ColumnPair{{Column: "subject", FromColumn: "subject"}}}},
			FirstRequired: rapid.Bool().Draw(t, "required"), StatusColumn: "role", AgreedStatus: "granted"}
	case "alike": // another row of the same table, or this one
		rows := []predicate.Node{
			predicate.Own{Column: "owner", Attribute: rapid.SampledFrom([]string{"user", "other"}).Draw(t, "attribute"), Type: "pg_catalog.int8"},
			predicate.Status{Column: "state", Value: "open"},
		}
		return predicate.Visible{Relation: b.relation("items"), Column: "parent", FromColumn: "parent",
			Rows: rapid.SampledFrom([]predicate.Node{rows[0], rows[1], predicate.All(rows), predicate.Any(rows)}).Draw(t, "rows")}
	case "all":
		return predicate.All(drawParts())
	case "any":
		return predicate.Any(drawParts())
	default:
		return predicate.Open{}
	}
}

// drawRows draws rows of all tables, with NULLs, references to missing rows and empty tables among them.
func (b *testDatabase) drawRows(t *rapid.T) map[catalog.Name][]predicate.Row {
	numberGenerator := rapid.SampledFrom([]string{"", "1", "2", "3"})
	valueGenerators := map[string]*rapid.Generator[string]{
		"status": rapid.SampledFrom([]string{"", "granted", "granted", "revoked"}),
		"role":   rapid.SampledFrom([]string{"", "granted", "granted", "other"}),
		"state":  rapid.SampledFrom([]string{"", "open", "open", "shut"}),
	}
	out := map[catalog.Name][]predicate.Row{}
	for _, name := range []string{"subjects", "items", "links", "parents", "parent_links"} {
		relation := b.relation(name)
		n := rapid.IntRange(0, 4).Draw(t, name)
		for i := range n {
			row := predicate.Row{}
			for _, c := range relation.Columns {
				value := ""
				switch {
				case slices.Equal(relation.PrimaryKey, []string{c.Name}):
					value = fmt.Sprint(i + 1)
				case valueGenerators[c.Name] != nil:
					value = valueGenerators[c.Name].Draw(t, c.Name)
				default:
					value = numberGenerator.Draw(t, c.Name)
				}
				if value != "" {
					row[c.Name] = value
				}
			}
			out[relation.Name] = append(out[relation.Name], row)
		}
	}
	return out
}

// load replaces the rows of all tables, and returns the text of an error.
func (b *testDatabase) load(tables map[catalog.Name][]predicate.Row) string {
	sql := "TRUNCATE subjects, items, links, parents, parent_links;"
	for name, rows := range tables {
		for _, row := range rows {
			var columns, values []string
			for column, value := range row {
				columns = append(columns, column)
				values = append(values, catalog.QuoteLiteral(value))
			}
			if len(columns) == 0 {
				sql += "INSERT INTO " + name.SQL() + " DEFAULT VALUES;"
				continue
			}
			sql += "INSERT INTO " + name.SQL() + " (" + strings.Join(columns, ",") + ") VALUES (" + strings.Join(values, ",") + ");"
		}
	}
	if _, err := b.conn.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
		return err.Error()
	}
	return ""
}

func (b *testDatabase) setSeal(w predicate.World) error {
	value := ""
	if w.Sealed {
		value = b.key.Seal(seal.Claims{PID: b.conn.PgConn().PID(), Expires: time.Now().Add(seal.SealLifetime), Profile: "p",
			Attributes: w.Attributes})
	}
	_, err := b.conn.Exec(context.Background(), "SELECT set_config('pgconsent.seal', $1, false)", value)
	return err
}

// All SQL forms of a rule and predicate.Eval select the same rows, whatever the data are.
func TestFormsAgree(t *testing.T) {
	b := newTestDatabase(t)
	items := b.relation("items")
	property.Check(t, func(t *rapid.T) {
		node := b.drawRule(t, 2, "items")
		w := predicate.World{Tables: b.drawRows(t), Attributes: map[string]string{}, Sealed: rapid.IntRange(0, 9).Draw(t, "sealed") > 0}
		for _, a := range []string{"user", "other"} {
			if value := rapid.SampledFrom([]string{"1", "1", "2", ""}).Draw(t, a); value != "" {
				w.Attributes[a] = value
			}
		}
		if e := b.load(w.Tables); e != "" {
			t.Fatal(e)
		}
		if err := b.setSeal(w); err != nil {
			t.Fatal(err)
		}
		var modelIDs []string
		for _, row := range w.Tables[items.Name] {
			if predicate.Eval(node, row, w) {
				modelIDs = append(modelIDs, row["id"])
			}
		}
		slices.Sort(modelIDs)
		want := strings.Join(modelIDs, ",")

		policySQL := predicate.RowPolicySQL(node, items)
		for _, hint := range []string{"", predicate.UseHashHint, predicate.UseIndexHint} { // they choose the form of sub-selects
			if got := b.queryIDs(hint + "SELECT id FROM public.items WHERE " + policySQL); got != want {
				t.Fatalf("policy form%s: got %q, the model says %q\n%s", hint, got, want, policySQL)
			}
		}
		if flatSQL, ok := predicate.SignedViewCondition(node, items, "items"); ok {
			for _, hint := range []string{"", predicate.UseHashHint, predicate.UseIndexHint} {
				if got := b.queryIDs(hint + "SELECT id FROM public.items WHERE (SELECT pgconsent_signed.sealed()) AND " + flatSQL); got != want {
					t.Fatalf("flat form%s: got %q, the model says %q\n%s", hint, got, want, flatSQL)
				}
			}
		}
		if !w.Sealed {
			return // the injected form does not check the seal
		}
		injectedSQL, needsSignature := predicate.InjectedCondition(node, "pgconsent_row")
		text := "SELECT id FROM public.items AS pgconsent_row WHERE " + injectedSQL
		if needsSignature != strings.Contains(injectedSQL, "pgconsent_signed.public_") {
			t.Fatalf("needsSignature is %v\n%s", needsSignature, injectedSQL)
		}
		if needsSignature {
			text = b.key.Sign("p", text)
		}
		if got := b.queryIDs(text); got != want {
			t.Fatalf("injected form: got %q, the model says %q\n%s", got, want, injectedSQL)
		}
	})
}

// The SQL of the rule in the arcive world, written out so that people can read it.
func TestSQLOfTheArciveWorld(t *testing.T) {
	b := newTestDatabase(t)
	consent := predicate.Consent{
		Steps: []predicate.Step{
			{Relation: b.relation("links"), Column: "item", FromColumn: "id"}, {Relation: b.relation("subjects"), Column: "id", FromColumn: "subject"},
		},
		StatusColumn: "status", AgreedStatus: "granted",
	}
	n := predicate.All{predicate.Own{Column: "owner", Attribute: "user", Type: "pg_catalog.int8"}, consent}
	const owner = `items.owner OPERATOR(pg_catalog.=) (SELECT pgconsent_signed.attr('user'))::pg_catalog.int8`
	const wantPolicy = `CASE WHEN pgconsent_signed.use_index() THEN (CASE WHEN ` + owner + ` THEN true END) IS NOT NULL ELSE ` + owner + ` END` +
		` AND (items.id IS NOT NULL AND CASE WHEN pgconsent.readable_public_links(NULL) THEN true ELSE` +
		` (SELECT pgconsent.readable_public_links(pg_catalog.statement_timestamp())) END` +
		` AND CASE WHEN pgconsent_signed.use_hash() THEN (NOT (items.id OPERATOR(pg_catalog.=) ANY (SELECT r3.item FROM pgconsent.h_public_links AS r3` +
		` WHERE r3.item IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pgconsent.h_public_subjects AS r4` +
		` WHERE r4.id OPERATOR(pg_catalog.=) r3.subject AND (r4.status::pg_catalog.text OPERATOR(pg_catalog.=) 'granted'::pg_catalog.text)))))` +
		` ELSE NOT EXISTS (SELECT 1 FROM pgconsent.h_public_links AS r1 ` +
		`LEFT JOIN LATERAL (SELECT r2.status FROM pgconsent.h_public_subjects AS r2 WHERE r2.id OPERATOR(pg_catalog.=) r1.subject OFFSET 0) AS r2 ON true` +
		` WHERE r1.item OPERATOR(pg_catalog.=) items.id AND (r2.status::pg_catalog.text OPERATOR(pg_catalog.=) 'granted'::pg_catalog.text) IS NOT TRUE OFFSET 0) END)`
	if got := predicate.RowPolicySQL(n, b.relation("items")); got != wantPolicy {
		t.Errorf("policy form:\n got %s\nwant %s", got, wantPolicy)
	}
	const wantInject = `(CASE WHEN (r.owner OPERATOR(pg_catalog.=) (SELECT pgconsent_signed.attr('user'))::pg_catalog.int8 AND (r.id IS NOT NULL` +
		` AND NOT EXISTS (SELECT 1 FROM pgconsent_signed.public_links AS r_1 ` +
		`LEFT JOIN LATERAL (SELECT r_2.status FROM pgconsent_signed.public_subjects AS r_2 WHERE r_2.id OPERATOR(pg_catalog.=) r_1.subject OFFSET 0) AS r_2 ON true` +
		` WHERE r_1.item OPERATOR(pg_catalog.=) r.id AND (r_2.status::pg_catalog.text OPERATOR(pg_catalog.=) 'granted'::pg_catalog.text) IS NOT TRUE OFFSET 0))) ` +
		`THEN true END) IS NOT NULL`
	if got, _ := predicate.InjectedCondition(n, "r"); got != wantInject {
		t.Errorf("injected form:\n got %s\nwant %s", got, wantInject)
	}
	if got, signed := predicate.InjectedCondition(predicate.Open{}, "r"); got != "true" || signed {
		t.Errorf("open: %q, %v", got, signed)
	}
	if got := predicate.RowPolicySQL(predicate.Open{}, b.relation("items")); got != "(SELECT pgconsent_signed.sealed())" {
		t.Errorf("open: %q", got)
	}
}

// Derived names are distinct and at most 63 bytes long.
func TestLookupViewNames(t *testing.T) {
	long := strings.Repeat("x", 60)
	names := []catalog.Name{
		{Schema: "a", Name: "b_c"}, {Schema: "a_b", Name: "c"}, {Schema: "a", Name: long + "1"}, {Schema: "a", Name: long + "2"},
		{Schema: "é_", Name: strings.Repeat("é", 30)}, {Schema: "a", Name: "b.c"}, {Schema: "a", Name: "b"},
	}
	for _, prefix := range []string{"h", "visible", "group", "filtered", "filtered_key", "in", "key", "empty", "readable",
		"stamp", "privacy", "copy"} {
		names = append(names, catalog.Name{Schema: prefix, Name: "a_b"}, catalog.Name{Schema: prefix, Name: "a_b.c"})
	}
	seenNames := map[string]bool{}
	for _, name := range names {
		for _, derived := range []catalog.Name{predicate.LookupView(name), predicate.SignedLookupView(name), predicate.SignedView(name),
			predicate.EmptyFunction(name), predicate.ReadableFunction(name),
			predicate.GroupView(name), predicate.RowView(name), predicate.FilteredRowView(name),
			predicate.KeyedView(name, false), predicate.KeyedView(name,
				true), predicate.CopyView(name), predicate.ChangeStampFunction(name), predicate.PrivacyFunction(name), predicate.CopyFunction(name)} {
			if len(derived.Name) > 63 || seenNames[derived.String()] {
				t.Errorf("%s gives %s", name, derived)
			}
			seenNames[derived.String()] = true
		}
	}
}
