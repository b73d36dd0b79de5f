package rewrite

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestAccesses(t *testing.T) {
	r := rewriter(t, InjectedMode)
	for _, c := range []struct {
		sql, accesses string
		functions     []string
	}{
		{"SELECT 1", "", nil},
		{"SELECT count(*) FROM memories", "memories metadata()", []string{"pg_catalog.count"}},
		{"SELECT title FROM memories WHERE body = 'x'", "memories structured(title, body) out", nil},
		{"SELECT m.title FROM memories m, people p", "memories AS m structured(title) out; people AS p metadata()", nil},
		{"SELECT * FROM memories", "memories vector(*) out", nil},
		{"SELECT p.* FROM memories m, people p", "memories AS m metadata(); people AS p structured(*) out", nil},
		{"SELECT m FROM memories m", "memories AS m vector(*) out", nil},
		{"SELECT 1 FROM memories NATURAL JOIN people", "memories structured(id, user_id) joined; people structured(id, user_id) joined", nil},
		{"SELECT 1 FROM memories JOIN people USING (id)", "memories structured(id) joined; people structured(id) joined", nil},
		{"SELECT a FROM memories AS m(a)", "memories AS m structured(id) out", nil},
		{"COPY people TO STDOUT", "people structured(*) out", nil},
		{"COPY people (name) TO STDOUT", "people structured(name) out", nil},
		{"SELECT title FROM memories; SELECT body FROM memories", "memories structured(title, body) out", nil},
		{"SELECT relname FROM pg_class", "pg_catalog.pg_class structured(relname) out", nil},
		{"SELECT lower(upper('x')), 'a' LIKE 'b' ESCAPE 'c', plain_listed(1), obj_description(1)", "",
			[]string{"pg_catalog.like_escape", "pg_catalog.lower", "pg_catalog.obj_description", "pg_catalog.upper", "public.plain_listed"}},
	} {
		result, refusal := r.Rewrite(c.sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", c.sql, refusal)
			continue
		}
		if got := oneLine(result.Accesses); got != c.accesses {
			t.Errorf("%s:\n got %s\nwant %s", c.sql, got, c.accesses)
		}
		if diff := cmp.Diff(c.functions, result.Functions); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.sql, diff)
		}
	}
}

// oneLine formats accesses on one line: relation [AS names] source(columns) [by key] [out] [joined] [through].
func oneLine(accesses []policy.Access) string {
	var out []string
	for _, a := range accesses {
		s := strings.TrimPrefix(a.Relation.String(), "public.")
		if len(a.Aliases) > 0 {
			s += " AS " + strings.Join(a.Aliases, "+")
		}
		columns := strings.Join(a.Columns, ", ")
		if a.Columns == nil {
			columns = "*"
		}
		s += " " + a.Source + "(" + columns + ")"
		if a.ByKey {
			s += " by key"
		}
		if a.AffectsOutput {
			s += " out"
		}
		if a.JoinedByKey {
			s += " joined"
		}
		if len(a.Through) > 0 {
			s += " through " + strings.Join(a.Through, "+")
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func TestTagsAndEffects(t *testing.T) {
	r := rewriter(t, InjectedMode)
	readEffect := verdict.Effect{ReadsRows: true, ReturnsRows: true}
	wantNotices := []verdict.Notice{{Code: "00000",
		Message: `column "user_id" of relation "drafts" is set by the policy; the value that was sent is not kept`}}
	reading := &verdict.Verdict{Rewritten: verdict.Rewritten{Effects: []verdict.Effect{readEffect}}}
	for _, c := range []struct {
		sql, tag string
		effects  []verdict.Effect
	}{
		{"", "", nil},
		{"-- ping", "", nil},
		{"SELECT 1", "SELECT", []verdict.Effect{readEffect}},
		{"VALUES (1)", "SELECT", []verdict.Effect{readEffect}},
		{"COPY people TO STDOUT", "COPY", []verdict.Effect{readEffect}},
		{"BEGIN", "BEGIN", []verdict.Effect{{Kind: verdict.EffectBegin}}},
		{"START TRANSACTION READ ONLY", "BEGIN", []verdict.Effect{{Kind: verdict.EffectBegin}}},
		{"END", "COMMIT", []verdict.Effect{{Kind: verdict.EffectEnd}}},
		{"ABORT", "ROLLBACK", []verdict.Effect{{Kind: verdict.EffectEnd, IsRollback: true}}},
		{"SAVEPOINT a", "SAVEPOINT", []verdict.Effect{{Kind: verdict.EffectSavepoint, Name: "a"}}},
		{"ROLLBACK TO a", "ROLLBACK", []verdict.Effect{{Kind: verdict.EffectRollbackTo, Name: "a"}}},
		{"RELEASE a", "RELEASE", []verdict.Effect{{Kind: verdict.EffectRelease, Name: "a"}}},
		{"SET TimeZone = 'UTC'", "SET", []verdict.Effect{{Kind: verdict.EffectSet, Name: "timezone"}}},
		{"RESET datestyle", "RESET", []verdict.Effect{{Kind: verdict.EffectSet, Name: "datestyle"}}},
		{"SHOW datestyle", "SHOW", []verdict.Effect{{ReturnsRows: true}}},
		{"INSERT INTO drafts (title) VALUES ('a')", "INSERT",
			[]verdict.Effect{{ReadsRows: true, WritesRows: true, Notices: wantNotices, HardenedPlan: verdict.HardenedAtBind}}},
		{"DELETE FROM drafts WHERE CURRENT OF c RETURNING id", "DELETE",
			[]verdict.Effect{{ReadsRows: true, WritesRows: true, ReturnsRows: true, Name: "c", HardenedPlan: verdict.HardenedAtBind}}},
		{"WITH d AS (UPDATE drafts SET title = 'a') SELECT 1", "SELECT",
			[]verdict.Effect{{ReadsRows: true, WritesRows: true, ReturnsRows: true, HardenedPlan: verdict.HardenedAtBind}}},
		{"COPY drafts (title) FROM STDIN", "COPY",
			[]verdict.Effect{{Kind: verdict.EffectCopyIn, WritesRows: true, Notices: wantNotices, HardenedPlan: verdict.HardenedAtExecute}}},
		{"COPY (DELETE FROM drafts RETURNING id) TO STDOUT", "COPY", []verdict.Effect{{ReadsRows: true, WritesRows: true, ReturnsRows: true}}},
		{"PREPARE p AS SELECT 1", "PREPARE", []verdict.Effect{
			{Kind: verdict.EffectPrepare, Name: "p", BodyTag: "SELECT", Body: reading}}},
		{"PREPARE p AS DELETE FROM drafts", "PREPARE",
			[]verdict.Effect{{Kind: verdict.EffectPrepare, Name: "p", BodyTag: "DELETE",
				Body: &verdict.Verdict{Rewritten: verdict.Rewritten{Effects: []verdict.Effect{{ReadsRows: true, WritesRows: true}}}}}}},
		{"EXECUTE p (1)", "EXECUTE", []verdict.Effect{{Kind: verdict.EffectExecute, Name: "p", ReturnsRows: true}}},
		{"DEALLOCATE PREPARE p", "DEALLOCATE", []verdict.Effect{{Kind: verdict.EffectDeallocate, Name: "p"}}},
		{"DEALLOCATE ALL", "DEALLOCATE", []verdict.Effect{{Kind: verdict.EffectDeallocate}}},
		{"DECLARE c BINARY CURSOR FOR SELECT 1", "DECLARE",
			[]verdict.Effect{{Kind: verdict.EffectDeclare, Name: "c", Binary: true, BodyTag: "SELECT", Body: reading}}},
		{"DECLARE c CURSOR WITH HOLD FOR SELECT 1", "DECLARE",
			[]verdict.Effect{{Kind: verdict.EffectDeclare, Name: "c", WithHold: true, BodyTag: "SELECT", Body: reading}}},
		{"DECLARE c CURSOR FOR SELECT 1", "DECLARE",
			[]verdict.Effect{{Kind: verdict.EffectDeclare, Name: "c", BodyTag: "SELECT", Body: reading}}},
		{"FETCH 3 FROM c", "FETCH", []verdict.Effect{{Kind: verdict.EffectFetch, Name: "c", ReturnsRows: true}}},
		{"MOVE c", "MOVE", []verdict.Effect{{Kind: verdict.EffectFetch, Name: "c"}}},
		{"CLOSE c", "CLOSE", []verdict.Effect{{Kind: verdict.EffectClose, Name: "c"}}},
		{"CLOSE ALL", "CLOSE", []verdict.Effect{{Kind: verdict.EffectClose}}},
		{"DISCARD ALL", "DISCARD", []verdict.Effect{{Kind: verdict.EffectDiscard}}},
		{"RESET ALL", "RESET", []verdict.Effect{{Kind: verdict.EffectResetAll, ReadsRows: true, CommandTag: "RESET"}}},
		{"BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN", []verdict.Effect{{Kind: verdict.EffectBegin, SnapshotHold: verdict.HoldForTransaction}}},
		{"DELETE FROM drafts; SELECT 1; SELECT 2", "multi", []verdict.Effect{{ReadsRows: true, WritesRows: true}, readEffect, readEffect}},
		{"DELETE FROM drafts WHERE CURRENT OF c; DELETE FROM drafts", "multi",
			[]verdict.Effect{{ReadsRows: true, WritesRows: true, Name: "c", HardenedPlan: verdict.HardenedAtBind}, {ReadsRows: true, WritesRows: true}}},
		{"BEGIN; SELECT 1; COMMIT", "multi", []verdict.Effect{{Kind: verdict.EffectBegin}, readEffect, {Kind: verdict.EffectEnd}}},
	} {
		result, refusal := r.Rewrite(c.sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", c.sql, refusal)
			continue
		}
		if result.Tag != c.tag {
			t.Errorf("%s: tag %q, want %q", c.sql, result.Tag, c.tag)
		}
		if diff := cmp.Diff(c.effects, result.Effects); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.sql, diff)
		}
	}
	// Result.Returns says for each statement whether it may send rows, which are counted and limited.
	for sql, returns := range map[string][]bool{
		"SELECT 1; SELECT 2": {true, true},
		"EXPLAIN SELECT 1":   {true},
		"DECLARE c CURSOR FOR SELECT 1; FETCH c; MOVE c; CLOSE c":     {false, true, false, false},
		"PREPARE p AS SELECT 1; EXECUTE p; DEALLOCATE p; UNLISTEN *":  {false, true, false, false},
		"BEGIN; SET TimeZone = 'UTC'; SAVEPOINT s; RELEASE s; COMMIT": {false, false, false, false, false},
		"DISCARD ALL": {false},
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
			continue
		}
		for i, e := range result.Effects {
			if i < len(returns) && e.ReturnsRows != returns[i] || e.Body != nil && !e.Body.Effects[0].ReturnsRows {
				t.Errorf("%s: statement %d returns rows: %t", sql, i, e.ReturnsRows)
			}
		}
	}
	// A statement that removes the session's seal, such as DISCARD ALL, must be the last of a message and outside
	// transactions. RESET ALL does not remove it.
	for _, lastStatement := range []string{"DISCARD ALL"} {
		for _, sql := range []string{"BEGIN; " + lastStatement, "COMMIT; " + lastStatement, "ROLLBACK; " + lastStatement,
			"BEGIN; COMMIT; " + lastStatement, lastStatement + "; SELECT 1", lastStatement + "; " + lastStatement, "SELECT 1; " + lastStatement +
				"; SELECT 1"} {
			if _, refusal := r.Rewrite(sql, false); refusal == nil {
				t.Errorf("%s is let through", sql)
			}
		}
		if _, refusal := r.Rewrite("SELECT 1; "+lastStatement, false); refusal != nil {
			t.Errorf("%s: %v", lastStatement, refusal)
		}
	}
	// A text that runs a query later is not signed, but EXECUTE of a signed text is.
	for sql, isSigned := range map[string]bool{
		"SELECT title FROM memories": true, "PREPARE p AS SELECT title FROM memories": false,
		"DECLARE c CURSOR FOR SELECT title FROM memories": false, "EXECUTE p": true, "FETCH c": false,
		"SELECT title FROM memories; SELECT 1": false, "EXECUTE p; SELECT 1": false,
	} {
		if result, refusal := r.Rewrite(sql, false); refusal != nil || result.NeedsSignature != isSigned {
			t.Errorf("%s: %v, signed %v", sql, refusal, !isSigned)
		}
	}
	// A refused statement has a command tag, too.
	for sql, tag := range map[string]string{"DELETE FROM people": "DELETE", "EXPLAIN ANALYZE SELECT * FROM people": "EXPLAIN",
		"CREATE TABLE t (a int)": "CREATE", "SELECT pg_sleep(1)": "SELECT", "SELEC": ""} {
		if result, refusal := r.Rewrite(sql, false); refusal == nil || result.Tag != tag {
			t.Errorf("%s: tag %q, want %q (%v)", sql, result.Tag, tag, refusal)
		}
	}
}

// Statements that differ only in literals have the same fingerprint.
func TestFingerprint(t *testing.T) {
	r := rewriter(t, InjectedMode)
	print := func(sql string) string {
		result, _ := r.Rewrite(sql, false)
		return result.Fingerprint
	}
	equalGroups := [][]string{
		{"SELECT title FROM memories WHERE id = 'a'", "select  title\nfrom memories -- x\nwhere id = $1",
			"SELECT title FROM memories WHERE id = $$secret$$"},
		{"SELECT 1 WHERE 1 IN (1)", "SELECT 2 WHERE 3 IN (1, 2, 3.5, 'x')"},
	}
	for _, group := range equalGroups {
		for _, sql := range group[1:] {
			if print(sql) != print(group[0]) {
				t.Errorf("%q and %q differ", sql, group[0])
			}
		}
	}
	if print(equalGroups[0][0]) == print(equalGroups[1][0]) || print(`SELECT a FROM "T"`) == print("SELECT a FROM t") {
		t.Error("different shapes have one fingerprint")
	}
}

// The position in a server error, which is about the rewritten text, is mapped back to the client's text.
func TestPositionOfServerErrors(t *testing.T) {
	r := rewriter(t, InjectedMode)
	for _, sql := range []string{"SELECT 'ä', nothing FROM memories",
		"SELECT count(*), lower(upper(nothing)) FROM memories m JOIN people p ON true", "SELECT title FROM memories WHERE 1 = nothing"} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Fatal(refusal)
		}
		errorPosition := len([]rune(result.Text[:strings.Index(result.Text, "nothing")])) + 1
		if got, want := result.Position(errorPosition), len([]rune(sql[:strings.Index(sql, "nothing")]))+1; got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	r := rewriter(t, InjectedMode)
	sql := "SELECT m.title, count(*) FROM memories m JOIN match_memories('(1)', 2) x ON x.id = m.id GROUP BY 1"
	want, refusal := r.Rewrite(sql, true)
	if refusal != nil {
		t.Fatal(refusal)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				if got, refusal := r.Rewrite(sql, true); refusal != nil || got.Text != want.Text {
					t.Errorf("%v", refusal)
				}
			}
		})
	}
	group.Wait()
}

// Very long or deeply nested texts are answered or refused, soon and without much memory.
func TestHostileSizes(t *testing.T) {
	tier.All(t)
	r := rewriter(t, InjectedMode)
	repeat := func(head, opening, sep string, n int, tail string) string {
		var b strings.Builder
		b.WriteString(head)
		for i := range n {
			if i > 0 {
				b.WriteString(sep)
			}
			fmt.Fprintf(&b, opening, i)
		}
		return b.String() + tail
	}
	var stars strings.Builder
	for i := range 26 {
		fmt.Fprintf(&stars, ", s%d AS (SELECT * FROM s%d a, s%d b)", i+1, i, i)
	}
	for name, c := range map[string]struct {
		sql  string
		code sqlstate.Code // "" if allowed
	}{
		"many tables": {repeat("SELECT 1 FROM ", "memories a%d", ", ", 20_000, ""), sqlstate.ProgramLimitExceeded},
		"many items and columns": {"WITH x AS (SELECT 1 AS a) " + repeat("SELECT ", "y%d.a", ", ", 15_000, "") +
			repeat(" FROM ", "x y%d", ", ", 15_000, ""), sqlstate.ProgramLimitExceeded},
		"many columns of one item": {repeat("SELECT ", "a.title AS c%d", ", ", 20_000, " FROM memories a"), ""},
		"many statements":          {repeat("", "SELECT %d FROM memories", "; ", 20_000, ""), ""},
		"many calls":               {repeat("SELECT ", "lower('%d')", ", ", 20_000, ""), ""},
		"plus":                     {"SELECT 1" + strings.Repeat("+1", 200_000), sqlstate.ProgramLimitExceeded},
		"casts":                    {"SELECT 1" + strings.Repeat("::int", 24_000), sqlstate.StatementTooComplex},
		"unions":                   {"SELECT 1" + strings.Repeat(" union select 1", 24_000), sqlstate.StatementTooComplex},
		"joins":                    {"SELECT 1 FROM notes" + strings.Repeat(" join notes on true", 24_000), sqlstate.StatementTooComplex},
		"parentheses":              {strings.Repeat("(", 1<<20), sqlstate.ProgramLimitExceeded},
		"operators":                {"SELECT " + strings.Repeat("+", 400_000) + "1", sqlstate.ProgramLimitExceeded},
		"comments":                 {strings.Repeat("/**/", 200_000), sqlstate.ProgramLimitExceeded},
		"copies of IN": {"SELECT FROM notes WHERE " + strings.Repeat("(", 60) + "id = 1" +
			strings.Repeat(") IN (id = 2, id = 3)", 60), sqlstate.ProgramLimitExceeded},
		"copies of BETWEEN": {"SELECT FROM notes WHERE " + strings.Repeat("(", 60) + "id = 1" +
			strings.Repeat(") BETWEEN false AND true", 60), sqlstate.ProgramLimitExceeded},
		"stars": {"WITH s0 AS (SELECT * FROM memories)" + stars.String() + " SELECT count(*) FROM s26", ""},
		"CASE over CASE": {"SELECT FROM memories WHERE " + strings.Repeat("CASE ", 25) + "length(title)" +
			strings.Repeat(" WHEN 1 THEN 1 WHEN 2 THEN 2 WHEN 3 THEN 3 END", 25) + " = 1", ""},
		"copy with a wrong value": {"COPY notes FROM STDIN (NULL 1)", sqlstate.FeatureNotSupported},
	} {
		start := time.Now()
		_, refusal := r.Rewrite(c.sql, false)
		if c.code == "" {
			_, refusal = rewriter(t, AlwaysSignedMode).Rewrite(c.sql, false)
		}
		if refusal == nil && c.code != "" || refusal != nil && refusal.Code != c.code {
			t.Errorf("%s: %v, want %q", name, refusal, c.code)
		}
		// It takes two seconds on an idle machine, half a minute with the race detector beside other work. Quadratic
		// time would be far longer.
		if elapsed := time.Since(start); elapsed > 5*time.Minute {
			t.Errorf("%s took %v", name, elapsed)
		}
	}
}

// Where an extension overloads a pg_catalog function, a call stays unqualified, so that its arguments decide which
// function is called.
func TestOverloadsOfExtensions(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	ctx := context.Background()
	if _, err := conn.Exec(ctx,
		"CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE FUNCTION public.lower(integer) RETURNS text "+
			"LANGUAGE sql AS $$ SELECT 'x' $$"); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(ctx, conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	rewriter(t, InjectedMode)
	r := New(snap, fixture.pol, RowSecurityMode)
	for sql, want := range map[string]string{
		"SELECT max(replace(title, 'a', 'b')), min(1) FROM memories": "SELECT max(replace(title, 'a', 'b')), min(1) FROM public.memories",
		"SELECT akeys('a=>1'), 'x'::citext, 'a=>1'::hstore -> 'a'":   "SELECT public.akeys('a=>1'), 'x'::citext, 'a=>1'::hstore -> 'a'",
		"SELECT lower('X')":                  "",
		"SELECT pg_catalog.lower('X')":       "SELECT pg_catalog.lower('X')",
		"SELECT hstore_version_diag('a=>1')": "",
	} {
		result, refusal := r.Rewrite(sql, false)
		if (refusal != nil) != (want == "") || refusal == nil && result.Text != want {
			t.Errorf("%s: %q %v", sql, result.Text, refusal)
			continue
		}
		if refusal == nil {
			if _, err := conn.Prepare(ctx, "", result.Text); err != nil {
				t.Errorf("%s: PostgreSQL: %v", result.Text, err)
			}
		}
	}
}
