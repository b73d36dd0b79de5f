package predicate_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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

const (
	referenceSchema = `
CREATE TABLE public.topics (id int, part text, owner uuid, PRIMARY KEY (id, part));
CREATE TABLE public.drafts (id int PRIMARY KEY, topic int, part text, up int REFERENCES public.drafts, title text, owner uuid);`
	referencePolicy = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  topics: { rows: [ { own: { column: owner, is: user } } ] }
  drafts: { rows: [ { own: { column: owner, is: user } } ],
    write: { commands: [insert, update], columns: [topic, part, up, title], stamp: { owner: { attribute: user } }, accept: [conflicts] } }
`
)

// TestReferences compares the SQL condition on foreign keys of new and changed rows with the model, for random rows,
// some of them hidden.
func TestReferences(t *testing.T) {
	tier.All(t)
	ctx, random := context.Background(), tier.Rand(1)
	t.Logf("seed %d", tier.Seed())
	conn := pgtest.Database(t).Connect(t, "postgres")
	run := func(sql string) {
		t.Helper()
		if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatalf("%v\n%s", err, sql)
		}
	}
	users := []string{"6f1e0000-0000-4000-8000-000000000001", "6f1e0000-0000-4000-8000-000000000002"}
	smallNumber := func() string { return strconv.Itoa(random.IntN(4)) }
	keyLetter := func() string { return string(rune('a' + random.IntN(2))) }
	name := func(table string) catalog.Name { return catalog.Name{Schema: "public", Name: table} }
	world := predicate.World{Tables: map[catalog.Name][]predicate.Row{}, Attributes: map[string]string{"user": users[0]}, Sealed: true, Now: time.Now()}

	run(referenceSchema + "ALTER TABLE public.drafts ADD FOREIGN KEY (topic, part) REFERENCES public.topics")
	run("SET session_replication_role = replica") // keys may refer to missing rows
	for id := range 4 {
		for _, part := range []string{"a", "b"} {
			if random.IntN(4) > 0 {
				row := predicate.Row{"id": strconv.Itoa(id), "part": part, "owner": users[random.IntN(2)]}
				world.Tables[name("topics")] = append(world.Tables[name("topics")], row)
				run(insertSQL("topics", row))
			}
		}
		row := predicate.Row{"id": strconv.Itoa(id), "owner": users[random.IntN(2)], "title": "t", "topic": smallNumber(), "part": keyLetter(), "up": smallNumber()}
		for _, column := range []string{"topic", "part", "up"} {
			if random.IntN(5) == 0 {
				delete(row, column)
			}
		}
		switch id { // so that some key refers to a hidden row
		case 0:
			row["owner"], row["up"] = users[0], "3"
		case 3:
			row["owner"] = users[1]
		}
		world.Tables[name("drafts")] = append(world.Tables[name("drafts")], row)
		run(insertSQL("drafts", row))
	}
	run("SET session_replication_role = DEFAULT")

	doc, err := policy.Parse("policy.yaml", []byte(referencePolicy))
	if err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(ctx, conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Compile(doc, snap)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(ctx, conn, migrations.Options{}, rls.Generate(pol, snap, rls.Options{})); err != nil {
		t.Fatal(err)
	}
	ring, err := seal.LoadKeyring(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	value := ring.NewestKey().Seal(seal.Claims{PID: conn.PgConn().PID(), Expires: time.Now().Add(seal.SealLifetime),
		Profile: "p", Attributes: world.Attributes})
	run("SELECT set_config('pgconsent.seal', '" + value + "', false)")

	drafts, _ := pol.Table(name("drafts"))
	answerCounts := map[string]int{}
	for range 300 {
		row := maps.Clone(world.Tables[name("drafts")][random.IntN(4)])
		for _, column := range []string{"topic", "part", "up"} {
			switch random.IntN(4) {
			case 0:
				delete(row, column)
			case 1:
				if row[column] = smallNumber(); column == "part" {
					row[column] = keyLetter()
				}
			}
		}
		for command, check := range map[string]predicate.Node{"insert": drafts.Write.InsertCheck, "update": drafts.Write.UpdateCheck} {
			sql := fmt.Sprintf("SELECT (%s) IS TRUE FROM %s AS drafts", predicate.CheckSQL(check, drafts.Relation), rowQuery(drafts.Relation, row))
			var got bool
			if err := conn.QueryRow(ctx, sql, pgx.QueryExecModeSimpleProtocol).Scan(&got); err != nil {
				t.Fatalf("%v\n%s", err, sql)
			}
			want := predicate.Eval(check, row, world)
			answerCounts[fmt.Sprint(command, " ", want)]++
			if got != want {
				t.Fatalf("%s of %v: %v, by the model %v\n%s\nworld: %v", command, row, got, want, sql, world.Tables)
			}
		}
	}
	t.Log(answerCounts)
	if answerCounts["update true"] <= answerCounts["insert true"] {
		t.Errorf("no key that stays leads to a hidden row: %v", answerCounts)
	}
}

func literal(value string, isSet bool) string {
	if !isSet {
		return "NULL"
	}
	return catalog.QuoteLiteral(value)
}

func insertSQL(table string, row predicate.Row) string {
	columns := slices.Sorted(maps.Keys(row))
	var values []string
	for _, c := range columns {
		values = append(values, literal(row[c], true))
	}
	return fmt.Sprintf("INSERT INTO public.%s (%s) VALUES (%s)", table, strings.Join(columns, ", "), strings.Join(values, ", "))
}

// rowQuery returns a sub-select of one row.
func rowQuery(relation *catalog.Relation, row predicate.Row) string {
	var values []string
	for _, c := range relation.Columns {
		v, isSet := row[c.Name]
		values = append(values, literal(v, isSet)+"::"+c.Type+" AS "+catalog.QuoteIdent(c.Name))
	}
	return "(SELECT " + strings.Join(values, ", ") + ")"
}
