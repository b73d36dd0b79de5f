package pgrows

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/record/dsar"
	harness "github.com/pgconsent/pgconsent/test/instance"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	ada = "aaaaaaaa-0000-4000-8000-000000000001"
	bob = "bbbbbbbb-0000-4000-8000-000000000002"
)

// The report finds each row that the policy assigns to a person, and no other. The rows belong to the person by lists,
// composite keys, the lifecycle, or categories of columns by key. Others derive from such rows, over long chains.
func TestEveryRowIsFound(t *testing.T) {
	var schema, rules, want strings.Builder
	table := func(name, columns, rows, rule string, keys ...string) {
		fmt.Fprintf(&schema, "CREATE TABLE %s (%s);\n", name, columns)
		if rows != "" {
			fmt.Fprintf(&schema, "INSERT INTO %s VALUES %s;\n", name, rows)
		}
		if rule != "" {
			fmt.Fprintf(&rules, "  %s: { %s }\n", name, rule)
		}
		if len(keys) > 0 {
			fmt.Fprintf(&want, "public.%s: %s\n", name, strings.Join(keys, " "))
		}
	}
	consentRule := func(subjects string) string { return "rows: [ consent: { " + subjects + ", registry: {} } ]" }
	lists := "(1, '{A}'), (2, '{B}'), (3, '{A,B}'), (4, NULL), (5, '{}'), (6, '{B,A,NULL}')"
	json := `(1, '["A"]'), (2, '["B"]'), (3, '["B", "A"]'), (4, NULL), (5, '[]'), (6, '{"A": "A"}'), (7, '["A ", "a"]'), (8, '["A", 7, null]')`
	withIDs := strings.NewReplacer("A", ada, "B", bob)
	table("arrays", "id int PRIMARY KEY, who text[]", withIDs.Replace(lists), consentRule("subjects: who"), "1", "3", "6")
	table("uuids", "id int PRIMARY KEY, who uuid[]", withIDs.Replace(lists), consentRule("subjects: who"), "1", "3", "6")
	table("documents", "id int PRIMARY KEY, who jsonb", withIDs.Replace(json), consentRule("subjects: who"), "1", "3", "8")
	table("texts", "id int PRIMARY KEY, who text", withIDs.Replace(json)+", (9, 'no list'), (10, '"+ada+"')", consentRule("subjects: who"), "1", "3", "8")

	// Composite keys, of the rows and of the rows that they refer to.
	table("rooms", "site text, room int, who uuid, PRIMARY KEY (site, room)",
		fmt.Sprintf("('s', 1, '%s'), ('s', 2, '%s'), ('t', 1, '%[2]s'), ('it''s; \"x\"', 1, '%[1]s')",
			ada, bob), consentRule("subject: who"), `it's; "x"|1`, "s|1")
	table("beds", "site text, room int, bed int, PRIMARY KEY (site, room, bed)",
		"('s', 1, 1), ('s', 1, 2), ('s', 2, 1), ('t', 1, 1), ('t', 2, 3)", "rows: [ visible: { rooms: { site: site, room: room } } ]", "s|1|1", "s|1|2")

	// Rows with a lifecycle, and rows with a category on columns that exist by key.
	table("lives", "id int PRIMARY KEY, who text, at timestamptz",
		fmt.Sprintf("(1, '%s', now()), (2, '%s', now()), (3, 'anonymous-%[1]s', now())",
			ada, bob), "rows: [ consent: { subject: who, registry: { since: at } } ], lifecycle: { subject: who, at: at }", "1")
	table("keyed", "id int PRIMARY KEY, by text, said text", fmt.Sprintf("(1, '%s', 'x'), (2, '%s', 'y')", ada, bob),
		"rows: open, consent: { subject: by, registry: {} }, columns: { id: allow, said: { category: ESSENTIAL, by_key: { key: [id] } } }", "1")

	// Nine tables, each derived from the one before: by a column, a link table, or a list of keys in capitals.
	table("made0", "id uuid PRIMARY KEY, who uuid", fmt.Sprintf("('%s', '%[1]s'), ('%s', '%[2]s')", ada, bob), consentRule("subject: who"),
		ada)
	for i := 1; i < 10; i++ {
		name, before := fmt.Sprintf("made%d", i), fmt.Sprintf("made%d", i-1)
		switch i % 3 {
		case 0:
			table(name, "id uuid PRIMARY KEY, source uuid", fmt.Sprintf("('%s', '%[1]s'), ('%s', '%[2]s')", ada, bob),
				"rows: [ derived: { from: { "+before+": { id: source } } } ]", ada)
		case 1:
			table("link"+name, "product uuid, source uuid", fmt.Sprintf("('%s', '%[1]s'), ('%s', '%[2]s')", ada, bob), "")
			table(name, "id uuid PRIMARY KEY", fmt.Sprintf("('%s'), ('%s')", ada, bob),
				"rows: [ derived: { from: [ link"+name+": { product: id }, "+before+": { id: source } ] } ]", ada)
		default:
			table(name, "id uuid PRIMARY KEY, sources jsonb",
				fmt.Sprintf(`('%s', '["%s"]'), ('%s', '["%s"]')`, ada, strings.ToUpper(ada), bob,
					bob), "rows: [ derived: { sources: sources, of: "+before+" } ]", ada)
		}
	}

	// Rows that derive from each other in two ways, in a circle too, and rows that derive from those.
	table("parts", "product int, source int",
		"(2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 6), (8, 7), (9, 8), (13, 12), (14, 15), (15, 14), (15, 9)", "")
	table("chain", "id int PRIMARY KEY, who uuid, first boolean, sources int[]",
		fmt.Sprintf("(1, '%s', true, NULL), (2, NULL, false, NULL), (3, NULL, false, NULL), (4, NULL, false, "+
			"NULL), (5, NULL, false, NULL), (6, NULL, false, NULL), "+
			"(7, NULL, false, NULL), (8, NULL, false, NULL), (9, NULL, false, NULL), (10, NULL, false, '{9}'), (11, "+
			"NULL, true, '{9}'), (12, '%s', true, NULL), (13, NULL, false, NULL), (14, NULL, false, NULL), (15, NULL, false, NULL)", ada, bob),
		"rows: [ consent: { subject: who, registry: {} }, derived: { from: [ parts: { product: id }, chain: { id: "+
			"source } ], unless: [ status: { column: first, is: \"true\" } ] }, "+
			"derived: { sources: sources, of: chain, unless: [ status: { column: first, is: \"true\" } ] } ]",
		"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "14", "15")
	table("ends", "id int PRIMARY KEY, of int", "(1, 10), (2, 13), (3, 11), (4, NULL)", "rows: [ derived: { from: { chain: { id: of } } } ]", "1")

	// The source table is not listed as such; its rule is in the block of the derived table.
	table("hidden", "id int PRIMARY KEY, who text", fmt.Sprintf("(1, '%s'), (2, '%s')", ada, bob), "", "1")
	table("shown", "id int PRIMARY KEY, of int", "(1, 1), (2, 2)",
		"rows: [ derived: { from: { hidden: { id: of } }, where: [ consent: { subject: who, registry: {} } ] } ]", "1")
	table("anybody", "id int PRIMARY KEY", "(1)", "rows: open")

	db := pgtest.Database(t)
	harness.Exec(t, db, schema.String())
	m := harness.Migrate(t, harness.Database{Name: "app", DB: db,
		Policy: "version: 1\nattributes: {}\ntables:\n" + rules.String(), SearchPath: []string{"public"}}, harness.Auto)
	rows, err := ReadRows(t.Context(), db.Connect(t, "postgres"), dsar.SubjectTables(m.Policy), ada, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		line := r.Table.Relation.Name.String() + ":"
		for _, key := range r.Keys {
			line += " " + strings.Join(key, "|")
		}
		if len(r.Copy) != len(r.Keys) {
			t.Errorf("%s: %d copies", line, len(r.Copy))
		}
		got = append(got, line)
	}
	wantLines := strings.Split(strings.TrimSpace(want.String()), "\n")
	slices.Sort(wantLines)
	slices.Sort(got)
	if !slices.Equal(got, wantLines) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wantLines, "\n"))
	}
}
