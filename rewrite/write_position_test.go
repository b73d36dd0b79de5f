package rewrite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

const thingsSchema = `CREATE TYPE spot AS (city text, street text);
	CREATE TABLE things (title text, tags text[], at spot, made date, id integer PRIMARY KEY, owner text, marks text[], home spot);
	CREATE TABLE notes (n integer PRIMARY KEY, body text)`

// insertsOf, updatesOf and deletes are statements of one kind each; {} stands for the column that they set.
var (
	insertsOf = []string{
		"INSERT INTO things ({}) VALUES (NULL)",
		"INSERT INTO things AS t ({}) SELECT NULL FROM notes",
		"INSERT INTO things ({}) VALUES (NULL) ON CONFLICT DO NOTHING RETURNING 1",
		"WITH w AS (INSERT INTO things ({}) VALUES (NULL) RETURNING 1) SELECT 1",
		"COPY (INSERT INTO things ({}) VALUES (NULL) RETURNING 1) TO STDOUT",
		"PREPARE p AS INSERT INTO things ({}) VALUES (NULL)",
		"MERGE INTO things t USING notes n ON n.n = 1 WHEN NOT MATCHED THEN INSERT ({}) VALUES (NULL)",
		"MERGE INTO things t USING notes n ON n.n = 1 WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED AND n.n > 3 THEN INSERT ({}) VALUES (NULL)",
	}
	updatesOf = []string{
		"UPDATE things SET {} = NULL",
		"UPDATE things AS t SET {} = DEFAULT FROM notes n WHERE n.n = 1",
		"UPDATE things SET ({}) = ROW(NULL) RETURNING 1",
		"UPDATE things SET ({}) = (SELECT NULL FROM notes)",
		"WITH w AS (UPDATE things SET {} = NULL RETURNING 1) SELECT 1",
		"PREPARE p AS UPDATE things SET {} = NULL",
		"MERGE INTO things t USING notes n ON n.n = 1 WHEN MATCHED THEN UPDATE SET {} = NULL",
		"MERGE INTO things t USING notes n ON n.n = 1 WHEN NOT MATCHED THEN DO NOTHING WHEN MATCHED AND n.n > 3 THEN UPDATE SET {} = NULL",
	}
	deletes = []string{
		"DELETE FROM things",
		"DELETE FROM things AS t USING notes n WHERE n.n = 1 RETURNING 1",
		"WITH w AS (DELETE FROM things RETURNING 1) SELECT 1",
		"PREPARE p AS DELETE FROM things",
		"MERGE INTO things t USING notes n ON n.n = 1 WHEN MATCHED THEN DELETE",
	}
	copies = []string{"COPY things ({}) FROM STDIN", "COPY things (title, {}) FROM STDIN WHERE title IS NULL"}
)

// things returns a function that makes a rewriter for a table and the commands that agents may use. Agents may set
// title, tags and at, and made only in an INSERT.
func things(t *testing.T) func(commands ...string) *Rewriter {
	t.Helper()
	conn := pgtest.Database(t).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(context.Background(), thingsSchema).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(context.Background(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	return func(commands ...string) *Rewriter {
		t.Helper()
		writeRule := ""
		if len(commands) > 0 {
			writeRule = fmt.Sprintf(
				", write: { commands: [%s], columns: [title, tags, at, made], immutable: [made], lists: { tags: { "+
					"from: [ { ids: [title] } ] } } }", strings.ToLower(strings.Join(commands, ", ")))
		}
		doc, err := policy.Parse("policy.yaml",
			[]byte("version: 1\nattributes: {}\ntables:\n  things: { rows: [ open ]"+writeRule+" }\n  notes: { rows: [ open ] }\n"))
		if err != nil {
			t.Fatal(err)
		}
		pol, err := policy.Compile(doc, snap, policy.WithViews(RewriteViewQuery))
		if err != nil {
			t.Fatal(err)
		}
		return New(snap, pol, InjectedMode)
	}
}

// Agents may run only the commands that the policy lists for a table. The test tries each form of each command, and
// their combinations in one statement, under each set of commands.
func TestOnlyListedCommands(t *testing.T) {
	rewriters := things(t)
	type statement struct {
		sql            string
		neededCommands []string
	}
	var statements []statement
	add := func(list []string, neededCommands ...string) {
		for _, sql := range list {
			statements = append(statements, statement{strings.ReplaceAll(strings.Replace(sql, "(title, {})", "(title, at)", 1), "{}", "title"), neededCommands})
		}
	}
	add(insertsOf, "INSERT")
	add(copies, "INSERT")
	add(updatesOf, "UPDATE")
	add(deletes, "DELETE")
	add([]string{"INSERT INTO things (title) VALUES ('a') ON CONFLICT (id) DO UPDATE SET title = 'b'"}, "INSERT", "UPDATE")
	actions := map[string]string{
		"INSERT": "WHEN NOT MATCHED AND n.n > 1 THEN INSERT (title) VALUES ('a') ",
		"UPDATE": "WHEN MATCHED AND n.n > 1 THEN UPDATE SET title = 'a' ", "DELETE": "WHEN MATCHED AND n.n > 2 THEN DELETE ",
	}
	for _, neededCommands := range [][]string{{"INSERT", "UPDATE"}, {"UPDATE", "INSERT"}, {"INSERT", "DELETE"},
		{"DELETE", "INSERT"}, {"UPDATE", "DELETE"}, {"DELETE", "UPDATE"},
		{"INSERT", "UPDATE", "DELETE"}, {"DELETE", "UPDATE", "INSERT"}, {"UPDATE", "INSERT", "DELETE"}} {
		sql := "MERGE INTO things t USING notes n ON n.n = 1 "
		for _, action := range neededCommands {
			sql += actions[action]
		}
		add([]string{sql}, neededCommands...)
	}
	allCommands := []string{"INSERT", "UPDATE", "DELETE"}
	for setCount := range 8 {
		var commands []string
		for i, command := range allCommands {
			if setCount&(1<<i) != 0 {
				commands = append(commands, command)
			}
		}
		r := rewriters(commands...)
		for _, s := range statements {
			isAllowed := !slices.ContainsFunc(s.neededCommands, func(command string) bool { return !slices.Contains(commands, command) })
			_, refusal := r.Rewrite(s.sql, false)
			if (refusal == nil) != isAllowed || refusal != nil && refusal.Code != sqlstate.InsufficientPrivilege {
				t.Errorf("with %v: %s: %v", commands, s.sql, refusal)
			}
		}
	}
}

// A column may be set only where the policy says so, whichever statement sets it, in whole or in part, with or without
// a column list.
func TestOnlyListedColumns(t *testing.T) {
	r := things(t)("INSERT", "UPDATE", "DELETE")
	relation, _ := r.snap.Relation(catalog.Name{Schema: "public", Name: "things"})
	insertable, updatable := []string{"title", "tags", "at", "made"}, []string{"title", "tags", "at"}
	check := func(sql string, isAllowed bool) {
		t.Helper()
		_, refusal := r.Rewrite(sql, false)
		if (refusal == nil) != isAllowed || refusal != nil && refusal.Code != sqlstate.InsufficientPrivilege {
			t.Errorf("%s: %v", sql, refusal)
		}
	}
	for _, c := range relation.Columns {
		targets := []string{c.Name}
		switch c.Name {
		case "tags", "marks":
			targets = append(targets, c.Name+"[1]", c.Name+"[1:2]")
		case "at", "home":
			targets = append(targets, c.Name+".city")
		}
		for _, target := range targets {
			for _, sql := range insertsOf {
				check(strings.ReplaceAll(sql, "{}", target), slices.Contains(insertable, c.Name))
				check(strings.ReplaceAll(strings.ReplaceAll(sql, "({})", "(title, {})"), "{}", target), slices.Contains(insertable, c.Name))
			}
			for _, sql := range append([]string{
				"INSERT INTO things (title) VALUES ('a') ON CONFLICT (id) DO UPDATE SET {} = NULL",
				"INSERT INTO things (title) VALUES ('a') ON CONFLICT (id) DO UPDATE SET title = 'b', ({}) = ROW(NULL)"}, updatesOf...) {
				check(strings.ReplaceAll(sql, "{}", target), slices.Contains(updatable, c.Name))
				check(strings.ReplaceAll(strings.Replace(sql, "SET {} =", "SET title = 'a', {} =", 1), "{}", target),
					slices.Contains(updatable, c.Name))
			}
		}
		for _, sql := range copies {
			check(strings.ReplaceAll(sql, "{}", c.Name), slices.Contains(insertable, c.Name))
		}
	}
	// In an INSERT without a column list, the values are for the first columns.
	for sql, isAllowed := range map[string]bool{
		"INSERT INTO things DEFAULT VALUES":                                                                                                  true,
		"INSERT INTO things VALUES ('a', NULL, NULL, NULL)":                                                                                  true,
		"INSERT INTO things SELECT 'a', NULL, NULL, NULL FROM notes":                                                                         true,
		"INSERT INTO things SELECT 'a', NULL UNION ALL SELECT body, NULL FROM notes":                                                         true,
		"INSERT INTO things VALUES ('a', NULL, NULL, NULL, 5)":                                                                               false,
		"INSERT INTO things VALUES ('a', NULL, NULL, NULL, DEFAULT)":                                                                         false,
		"INSERT INTO things SELECT 'a', NULL, NULL, NULL, 5 FROM notes":                                                                      false,
		"INSERT INTO things SELECT 'a', NULL, NULL, NULL, 5 UNION SELECT 'a', NULL, NULL, NULL, 5":                                           false,
		"INSERT INTO things (SELECT 'a', NULL, NULL, NULL, 5 UNION SELECT 'a', NULL, NULL, NULL, 5) UNION VALUES ('a', NULL, NULL, NULL, 5)": false,
		"INSERT INTO things SELECT * FROM things":                                                                                            false,
		"INSERT INTO things TABLE things":                                                                                                    false,
		"INSERT INTO things SELECT t.* FROM things t":                                                                                        false,
		"INSERT INTO things SELECT (t).* FROM things t":                                                                                      false,
		"INSERT INTO things SELECT 'a', x.* FROM (SELECT NULL, NULL, NULL, 5) AS x":                                                          false,
		"INSERT INTO things VALUES ('a'), ('b')":                                                                                             true,
		"WITH w AS (INSERT INTO things VALUES ('a', NULL, NULL, NULL, 5)) SELECT 1":                                                          false,
		"MERGE INTO things t USING notes n ON n.n = 1 WHEN NOT MATCHED THEN INSERT VALUES ('a')":                                             true,
		"MERGE INTO things t USING notes n ON n.n = 1 WHEN NOT MATCHED THEN INSERT VALUES ('a', NULL, NULL, NULL, 5)":                        false,
		"COPY things FROM STDIN":                                                                  false,
		"INSERT INTO things (title, id) VALUES ('a', DEFAULT)":                                    true, // the column gets its default
		"INSERT INTO things (title, id) VALUES ('a', DEFAULT), ('b', 5)":                          false,
		"INSERT INTO things (title, id) VALUES ('a', 5), ('b', DEFAULT)":                          false,
		"INSERT INTO things (title, id) SELECT 'a', 5":                                            false,
		"INSERT INTO things (id) VALUES (DEFAULT)":                                                false,
		"INSERT INTO things (title) VALUES ('a') ON CONFLICT (title COLLATE \"C\") DO NOTHING":    false,
		"INSERT INTO things (title) VALUES ('a') ON CONFLICT (title text_pattern_ops) DO NOTHING": false,
		"INSERT INTO things (title) VALUES ('a') ON CONFLICT (id) DO NOTHING":                     true,
	} {
		if _, refusal := r.Rewrite(sql, false); (refusal == nil) != isAllowed {
			t.Errorf("%s: %v", sql, refusal)
		}
	}
}

// The policy fills a column of a list if an INSERT leaves it out, in each way to write that.
func TestListsThatAreLeftOut(t *testing.T) {
	r := things(t)("INSERT", "UPDATE", "DELETE")
	omittedMark := predicate.OmittedColumnComment(catalog.Name{Schema: "public", Name: "things"}, "tags")
	for sql, isOmitted := range map[string]bool{
		"INSERT INTO things (title) VALUES ('a')":                                                                    true,
		"INSERT INTO things (title, tags) VALUES ('a', DEFAULT)":                                                     true,
		"INSERT INTO things (tags, title) VALUES (DEFAULT, 'a'), (DEFAULT, 'b')":                                     true,
		"INSERT INTO things (title) SELECT body FROM notes":                                                          true,
		"INSERT INTO things VALUES ('a')":                                                                            true,
		"INSERT INTO things SELECT body FROM notes":                                                                  true,
		"INSERT INTO things DEFAULT VALUES":                                                                          true,
		"WITH w AS (INSERT INTO things (title) VALUES ('a')) INSERT INTO things (at) VALUES (NULL)":                  true,
		"PREPARE p AS INSERT INTO things (title) VALUES ($1)":                                                        true,
		"INSERT INTO things (title, tags) VALUES ('a', '{}')":                                                        false,
		"INSERT INTO things (tags, title) VALUES ('{}', 'a')":                                                        false,
		"INSERT INTO things (tags) VALUES (NULL)":                                                                    false,
		"INSERT INTO things (title, tags) VALUES ('a', DEFAULT), ('b', '{}')":                                        false,
		"INSERT INTO things (title, tags) VALUES ('a', '{}'), ('b', DEFAULT)":                                        false,
		"INSERT INTO things (title, tags) SELECT 'a', NULL":                                                          false,
		"INSERT INTO things VALUES ('a', '{}')":                                                                      false,
		"INSERT INTO things SELECT 'a', '{}', NULL":                                                                  false,
		"INSERT INTO things (tags[1]) VALUES ('a')":                                                                  false,
		"WITH w AS (INSERT INTO things (tags) VALUES ('{}')) INSERT INTO things (title) VALUES ('a')":                false,
		"WITH w AS (INSERT INTO things (title) VALUES ('a')) INSERT INTO things (tags) VALUES ('{}')":                false,
		"MERGE INTO things t USING notes n ON n.n = 1 WHEN NOT MATCHED THEN INSERT (title) VALUES ('a')":             true,
		"MERGE INTO things t USING notes n ON n.n = 1 WHEN NOT MATCHED THEN INSERT VALUES ('a')":                     true,
		"MERGE INTO things t USING notes n ON n.n = 1 WHEN NOT MATCHED THEN INSERT (title, tags) VALUES ('a', '{}')": false,
		"MERGE INTO things t USING notes n ON n.n = 1 WHEN NOT MATCHED THEN INSERT VALUES ('a', '{}')":               false,
		"MERGE INTO things t USING notes n ON n.n = 1 WHEN NOT MATCHED AND n.n > 1 THEN INSERT (tags) VALUES " +
			"('{}') WHEN NOT MATCHED THEN INSERT (title) VALUES ('a')": false,
		"UPDATE things SET tags = '{}'": false,
		"DELETE FROM things":            false,
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil || strings.Contains(result.Text, omittedMark) != isOmitted {
			t.Errorf("%s: %v, %s", sql, refusal, result.Text)
		}
	}
}
