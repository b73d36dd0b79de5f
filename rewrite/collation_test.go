package rewrite

import (
	"context"
	"slices"
	"testing"
)

// A statement that compares two collations is refused where the table hides rows. TestDifferentCollationsAreRefused in e2e shows
// what the error would leak.
func TestCollations(t *testing.T) {
	r := rewriter(t, InjectedMode)
	for sql, refused := range map[string]bool{
		`SELECT title COLLATE "C" FROM memories ORDER BY title COLLATE "C"`:                                              false,
		`SELECT title FROM memories ORDER BY title COLLATE pg_catalog."C", body COLLATE pg_catalog."default"`:            false,
		`SELECT title FROM memories ORDER BY title COLLATE "en-x-icu"`:                                                   false,
		`SELECT 1 FROM (SELECT title COLLATE "C" AS a, body COLLATE "POSIX" AS b FROM memories) x WHERE a > b`:           true,
		`SELECT 1 FROM memories, (SELECT 'a' COLLATE "C" AS a, 'b' COLLATE "POSIX" AS b OFFSET 0) x WHERE a > b`:         true,
		`SELECT 1 FROM (SELECT title COLLATE "POSIX" AS a FROM memories) x WHERE a > current_user`:                       true,
		`SELECT 1 FROM (SELECT title COLLATE "POSIX" AS a FROM memories) x WHERE a > 'x'::name`:                          true,
		`SELECT 1 FROM (SELECT title COLLATE "POSIX" AS a FROM memories) x WHERE a > current_database()`:                 true,
		`SELECT 1 FROM (SELECT title COLLATE "POSIX" AS a FROM memories) x, pg_class WHERE a > relname`:                  true,
		`SELECT 1 FROM memories, jsonb_to_record(metadata) AS x(a text COLLATE "C", b text COLLATE "POSIX") WHERE a > b`: true,
		`SELECT 1 FROM (SELECT title COLLATE "C" AS a FROM memories) x WHERE a > 'x'::exact`:                             true,
		`SELECT 1 FROM (SELECT title COLLATE "C" AS a FROM memories) x WHERE a > exact('x')`:                             true,
		`SELECT 1 FROM (SELECT title COLLATE "C" AS a FROM memories) x WHERE a > (x.a).exact`:                            true,
		`SELECT 1 FROM (SELECT title COLLATE "C" AS a FROM memories) x WHERE a > ('(x,1)'::coded).code`:                  true,
		`SELECT 1 FROM (SELECT title COLLATE "C" AS a FROM memories) x, unnest('{}'::coded[]) AS y (b, n) WHERE a > b`:   true,
		`SELECT 1 FROM (SELECT title COLLATE "C" AS a FROM memories) x WHERE a > (decoded()).code`:                       true,
		`SELECT 1 FROM (SELECT title COLLATE "C" AS a FROM memories) x WHERE a > 'x'::information_schema.character_data`: false,
		`SELECT 1 FROM (SELECT title COLLATE "POSIX" AS a FROM memories) x WHERE a > 'x'::information_schema.yes_or_no`:  true,
		`SELECT title FROM memories WHERE title > 'x'::exact`:                                                            false,
		`SELECT 1 FROM (SELECT body COLLATE "C" AS a, body COLLATE "POSIX" AS b FROM notes) x WHERE a > b`:               false, // every row of notes is visible
		`SELECT 1 FROM memories WHERE starts_with(title COLLATE "C", 'a')`:                                               false,
		`SELECT 1 FROM memories WHERE starts_with(title COLLATE "en-x-icu", 'a')`:                                        true,
		`SELECT 1 FROM memories WHERE starts_with(title COLLATE public.odd, 'a')`:                                        true,
	} {
		_, err := r.Rewrite(sql, false)
		if (err != nil) != refused {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// Functions that return type name count as having the collation "C".
func TestFunctionsThatGiveNames(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	rows, err := conn.Query(context.Background(), `SELECT DISTINCT p.proname FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace
		AND (p.prorettype IN ('name'::regtype, 'name[]'::regtype) OR 'name'::regtype = ANY (p.proallargtypes)) AND p.prokind = 'f'`)
	if err != nil {
		t.Fatal(err)
	}
	var name string
	for rows.Next() {
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if c := catalogFunctions[name]; c.class == classAllow && !slices.Contains(nameFunctions, name) {
			t.Errorf("%s gives values of type name", name)
		}
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
}
