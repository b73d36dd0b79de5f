package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/rewrite"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// signedWorld adds one hidden memory to the visible ones, with columns for each attack.
const signedWorld = `
ALTER TABLE people ADD nick text COLLATE "C";
ALTER TABLE memories ADD mark text COLLATE "POSIX" DEFAULT 'x', ADD docs json[], ADD tsv tsvector GENERATED ALWAYS AS (to_tsvector('english', title)) STORED;
INSERT INTO people (user_id, name, consent_status) VALUES
  ('11111111-1111-4111-8111-111111111111', 'HIDDENMARK twin', 'granted'), ('11111111-1111-4111-8111-111111111111', 'HIDDENMARK twin', 'granted'),
  ('11111111-1111-4111-8111-111111111111', 'HIDDENMARK refuses', 'revoked');
INSERT INTO memories (id, user_id, title, body, metadata, occurred_at, docs) VALUES
  ('eeeeeeee-0000-4000-8000-000000000001', '11111111-1111-4111-8111-111111111111', 'HIDDENMARK twin', repeat('x', 3000),
  '{"n": "not a number"}', '294276-12-01', '{"{}"}');
INSERT INTO memory_participants SELECT 'eeeeeeee-0000-4000-8000-000000000001', id FROM people WHERE name = 'HIDDENMARK refuses';
UPDATE people SET nick = 'x' WHERE name = 'HIDDENMARK twin';
CREATE FUNCTION noisy(t text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN RAISE NOTICE 'saw %', t; RETURN true; END $$;`

// forcedSession is a connection as the agents' role, past the proxy. It signs every text without a leak check, like a
// faulty build of pgconsent.
type forcedSession struct {
	conn *pgconn.PgConn
	key  seal.Key
}

func (in *instance) connectForced(t *testing.T) *forcedSession {
	t.Helper()
	super, err := pgx.Connect(context.Background(), in.db.DSN("postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer super.Close(context.Background())
	keyring, err := seal.LoadKeyring(context.Background(), super)
	if err != nil {
		t.Fatal(err)
	}
	f := &forcedSession{harness.Connect(t, in.db.DSN("pgconsent_agent", rolePassword)), keyring.NewestKey()}
	f.seal(t)
	if a := harness.Ask(f.conn, "SET plan_cache_mode = force_generic_plan"); a.Code != "" {
		t.Fatal(a)
	}
	return f
}

func (f *forcedSession) seal(t *testing.T) {
	value := f.key.Seal(seal.Claims{Nonce: 1, PID: f.conn.PID(), Expires: time.Now().Add(seal.SealLifetime), Profile: "p",
		Attributes: map[string]string{"user": user1}})
	if r := f.conn.ExecParams(context.Background(), "SELECT set_config('pgconsent.seal', $1, false)",
		[][]byte{[]byte(value)}, nil, nil, nil).Read(); r.Err != nil {
		t.Fatal(r.Err)
	}
}

// signedViewNames replaces tables by their signed views.
var signedViewNames = strings.NewReplacer(
	"FROM memories", "FROM pgconsent_signed.visible_public_memories AS memories", "FROM people", "FROM pgconsent_signed.visible_public_people AS people",
	"JOIN people", "JOIN pgconsent_signed.visible_public_people AS people")

func (f *forcedSession) ask(t *testing.T, sql string, args ...string) harness.Answer {
	t.Helper()
	text := f.key.Sign("p", signedViewNames.Replace(sql))
	if len(args) == 0 {
		return harness.Ask(f.conn, text)
	}
	return harness.AskText(f.conn, text, args...)
}

// Signed views return the same rows as row security with rewriting, for every statement of the corpus. Many statements
// use them.
func TestSignedAndUnsignedPathsAgree(t *testing.T) {
	tier.All(t)
	bothPaths, signedInstance := startForReading(t, options{}), start(t, options{mode: rewrite.AlwaysSignedMode})
	a, b := bothPaths.agent(t), signedInstance.agent(t)
	for _, q := range corpusQueries(t) {
		if strings.Contains(q.note, "needs: vector") {
			continue
		}
		want := harness.Ask(a, q.sql)
		if got := harness.Ask(b, q.sql); got.SortedString() != want.SortedString() {
			t.Errorf("%s: signed: %s\nboth:\n%s", q.name, harness.Truncate(got.SortedString()), harness.Truncate(want.SortedString()))
		}
	}
	if n := signedInstance.statementsByPath(t)["signed"]; n < 50 {
		t.Errorf("only %d statements took the signed path", n)
	}
	bothPaths.requireNoMarker(t)
	signedInstance.requireNoMarker(t)
}

// PostgreSQL treats text comparisons as leakproof, although they raise an error for two different collations. With row
// security alone, that error reveals hidden rows. The proxy refuses statements that compare different collations.
func TestDifferentCollationsAreRefused(t *testing.T) {
	tier.All(t)
	in := start(t, options{beforeMigrate: signedWorld})
	forcedConn, agent := in.connectForced(t).conn, in.agent(t)
	for _, condition := range []string{
		`SELECT 1 FROM (SELECT title, title COLLATE "C" AS a, body COLLATE "POSIX" AS b FROM public.memories) x ` +
			`WHERE CASE WHEN title = '%s' THEN a > b ELSE false END`,
		`SELECT 1 FROM public.memories WHERE CASE WHEN title = '%s' THEN mark > (SELECT max(nick) FROM public.people) ELSE false END`,
	} {
		hiddenCondition, absentCondition := strings.ReplaceAll(condition, "%s", "HIDDENMARK twin"), strings.ReplaceAll(condition, "%s",
			"HIDDENMARK tween")
		if a, b := harness.Ask(forcedConn, hiddenCondition), harness.Ask(forcedConn, absentCondition); a.Code != "42P22" || b.Code != "" {
			t.Errorf("row security alone does not tell: the test proves nothing\n%s%s", a, b)
		}
		if a, b := harness.Ask(agent, hiddenCondition), harness.Ask(agent, absentCondition); a.Code != "0A000" || a.String() != b.String() {
			t.Errorf("%s%s", a, b)
		}
	}
	const separateQuery = `SELECT count(*) > 0 FROM public.memories m CROSS JOIN public.people p WHERE m.mark = 'x' AND (p.nick < 'z' OR p.nick IS NULL) ` +
		`AND CASE WHEN p.nick > 'a' THEN m.mark END IS NULL`
	if a := harness.Ask(agent, separateQuery); a.Code != "" || len(a.Results) != 1 ||
		a.Results[0].Rows[0] != harness.Ask(forcedConn, separateQuery).Results[0].Rows[0] {
		t.Errorf("collations that do not meet: %s", a)
	}
}

// Functions similar to each leak-safe one are not on the list, since they could reveal hidden rows before the predicate
// is evaluated. With a signature that the proxy does not give, they do so here. Through the proxy they take the row
// security path or are refused.
func TestNeighboursOfTheLeakSafeList(t *testing.T) {
	tier.All(t)
	in := start(t, options{mode: rewrite.AlwaysSignedMode, beforeMigrate: signedWorld})
	f, agent := in.connectForced(t), in.agent(t)
	const visibleQuery = "SELECT count(*) FROM memories"
	if got := f.ask(t, visibleQuery); got.Code != "" || len(got.Results) != 1 || got.Results[0].Rows[0] != harness.Ask(agent, visibleQuery).Results[0].Rows[0] {
		t.Fatalf("a signed statement over the signed views: %s", got)
	}
	for name, c := range map[string]struct {
		sql  string // it fails for no visible row; PostgreSQL may evaluate conditions joined by AND in any order
		code string // the SQLSTATE that reveals hidden rows; "": a notice does
		args []string
	}{
		"comparison: texts of different collations": {
			"SELECT count(*) FROM memories WHERE title = 'HIDDENMARK twin' AND mark > (SELECT max(nick) FROM people)", "42P22", nil},
		"comparison: an array whose elements have none": {"SELECT count(*) FROM memories WHERE docs = docs", "42883", nil},
		"comparison: a regular expression": {
			"SELECT count(*) FROM memories WHERE CASE WHEN title = 'HIDDENMARK twin' THEN body ~ ('[' || title) END", "2201B", nil},
		"LIKE: a pattern that ends in its escape": {`SELECT count(*) FROM memories WHERE title LIKE E'HIDDENMARK twi\\'`, "22025", nil},
		"LIKE: a pattern from the row": {
			`SELECT count(*) FROM memories WHERE CASE WHEN title = 'HIDDENMARK twin' THEN title LIKE (left(title, 5) || E'\\') END`, "22025", nil},
		"arithmetic: division":                         {"SELECT count(*) FROM memories WHERE 1 / (length(body) - 3000) > 5", "22012", nil},
		"arithmetic: addition":                         {"SELECT count(*) FROM memories WHERE length(body) + 2147480648 > 5", "22003", nil},
		"now and a span: a time of the row and a span": {"SELECT count(*) FROM memories WHERE occurred_at + interval '2 years' > now()", "22008", nil},
		"extract: date_trunc of the row's time zone": {
			"SELECT count(*) FROM memories WHERE CASE WHEN title = 'HIDDENMARK twin' THEN date_trunc('hour', " +
				"occurred_at AT TIME ZONE title) > now() END", "22023", nil},
		"extract: a part that not every time has": {
			"SELECT count(*) FROM memories WHERE CASE WHEN title = 'HIDDENMARK twin' THEN date_part(title, occurred_at) > 5 END", "22023", nil},
		"substr: a length from the row": {
			"SELECT count(*) FROM memories WHERE CASE WHEN title = 'HIDDENMARK twin' THEN substr(title, 1, length(title) - 16) > 'a' END", "22011", nil},
		"cast: text to a number": {"SELECT count(*) FROM memories WHERE (metadata->>'n')::int = 5", "22P02", nil},
		"cast: bigint to int": {
			"SELECT count(*) FROM memories WHERE (extract(epoch from occurred_at)::bigint)::int = 5", "22003", nil},
		"cast: a parameter declared as text": {
			"SELECT count(*) FROM memories WHERE title = 'HIDDENMARK twin' AND id = $1::uuid", "22P02", []string{"no uuid"}},
		"tsquery: from the row": {
			"SELECT count(*) FROM memories WHERE CASE WHEN title = 'HIDDENMARK twin' THEN tsv @@ to_tsquery('english', title) END", "42601", nil},
		"tsvector: of the row": {
			"SELECT count(*) FROM memories WHERE to_tsvector('english', body) @@ plainto_tsquery('english', 'a')", "", nil},
		"json: the length of what is no array": {"SELECT count(*) FROM memories WHERE jsonb_array_length(metadata->'n') = 5", "22023", nil},
		"json: a path": {
			"SELECT count(*) FROM memories WHERE CASE WHEN title = 'HIDDENMARK twin' THEN " +
				"jsonb_path_query_first(metadata, 'strict $.n.x') IS NULL END", "2203A", nil},
		"aggregates: sum in a sub-select": {
			"SELECT count(*) FROM memories WHERE (SELECT sum(1e308::float8) FROM people WHERE name = title) > 5", "22003", nil},
		"sub-selects: one value": {
			"SELECT count(*) FROM memories WHERE (SELECT id FROM people WHERE name = title) IS NOT NULL", "21000", nil},
		"sub-selects: an aggregate of the query outside": {
			"SELECT count(*) FROM memories WHERE title = 'HIDDENMARK twin' AND EXISTS (SELECT FROM people HAVING " +
				"(SELECT max(people.name) FROM memories LIMIT 2) > title)", "21000", nil},
		"LIMIT inside": {
			"SELECT count(*) FROM memories WHERE title = 'HIDDENMARK twin' AND (SELECT count(*) FROM (SELECT 1 " +
				"FROM people LIMIT (length(title) - 100)) x) > 0", "2201W", nil},
		"functions: anybody's": {"SELECT count(*) FROM memories WHERE public.noisy(title)", "", nil},
		"functions: that act": {
			"SELECT count(*) FROM memories WHERE title = 'HIDDENMARK twin' AND set_config('x.y', body, false) IS NOT NULL", "effect", nil},
	} {
		t.Run(name, func(t *testing.T) {
			answer := f.ask(t, c.sql, c.args...)
			switch {
			case c.code == "effect":
				if got := harness.Ask(f.conn, "SELECT length(current_setting('x.y', true))"); got.Results[0].Rows[0] != "3000" {
					t.Errorf("the neighbour does not act on the hidden row: %s%s", answer, got)
				}
			case c.code != "" && answer.Code != c.code:
				t.Errorf("the neighbour tells nothing: the test proves nothing\n%s", harness.Truncate(answer.String()))
			case c.code == "" && len(answer.Notices) == 0:
				t.Errorf("the neighbour prints nothing: the test proves nothing\n%s", harness.Truncate(answer.String()))
			}
			signedCountBefore := in.statementsByPath(t)["signed"]
			var got harness.Answer
			if c.args != nil {
				got = harness.AskText(agent, c.sql, c.args...)
			} else {
				got = harness.Ask(agent, c.sql)
			}
			// An invalid uuid as a parameter causes this error when the statement is planned, whatever the rows are.
			if c.code != "" && got.Code == c.code && c.args == nil || len(got.Notices) > 0 {
				t.Errorf("through the proxy it tells: %s", got)
			}
			if n := in.statementsByPath(t)["signed"] - signedCountBefore; n != 0 {
				t.Errorf("%d statements took the signed path", n)
			}
		})
	}
	in.requireNoMarker(t)
}

// A text search vector that an index stores takes the signed path. PostgreSQL may raise a notice about a hidden row
// there, which does not reach the agent.
func TestIndexedVectorsTellNothing(t *testing.T) {
	tier.All(t)
	const index = "CREATE INDEX ON memories USING gin (to_tsvector('english', title || ' ' || coalesce(body, '')))"
	indexedInstance, plainTwin := start(t, options{mode: rewrite.AlwaysSignedMode, beforeMigrate: signedWorld + index}),
		start(t, options{beforeMigrate: signedWorld})
	f, agent, twinAgent := indexedInstance.connectForced(t), indexedInstance.agent(t), plainTwin.agent(t)
	if a := harness.Ask(f.conn, "SET enable_bitmapscan = off"); a.Code != "" { // so that each row is read
		t.Fatal(a)
	}
	const vectorSQL = "to_tsvector('english', title || ' ' || coalesce(body, ''))"
	if answer := f.ask(t,
		"SELECT count(*) FROM memories WHERE "+vectorSQL+" @@ plainto_tsquery('english', 'twin')"); len(answer.Notices) == 0 {
		t.Errorf("the server says nothing: the test proves nothing\n%s", answer)
	}
	for _, sql := range []string{
		"SELECT title FROM memories WHERE " + vectorSQL + " @@ plainto_tsquery('english', 'twin')",
		"SELECT title FROM memories WHERE NOT " + vectorSQL + " @@ plainto_tsquery('english', 'twin') ORDER BY title",
		"SELECT count(*), count(" + vectorSQL + ") FROM memories",
		"SELECT m.title, count(p.id) FROM memories m LEFT JOIN people p ON to_tsvector('english', m.title || ' ' " +
			"|| coalesce(m.body, '')) @@ plainto_tsquery('english', 'lake') GROUP BY m.title ORDER BY 1",
	} {
		signedCountBefore := indexedInstance.statementsByPath(t)["signed"]
		got, want := harness.Ask(agent, sql), harness.Ask(twinAgent, sql)
		if got.SortedString() != want.SortedString() || got.Code != "" || len(got.Notices) > 0 {
			t.Errorf("%s: %s\nwithout the index, by row security and rewriting: %s", sql, got, want)
		}
		if n := indexedInstance.statementsByPath(t)["signed"] - signedCountBefore; n != 1 {
			t.Errorf("%s: %d statements took the signed path", sql, n)
		}
	}
	indexedInstance.requireNoMarker(t)
}

// statementsByPath returns the number of allowed statements of agents so far, by the path that they took.
func (in *instance) statementsByPath(t testing.TB) map[string]int {
	t.Helper()
	paths := map[string]int{}
	if _, err := audit.Walk(in.audit, func(r audit.Record) error {
		var d audit.Decision
		if err := json.Unmarshal(r.Line, &d); err != nil {
			return err
		}
		if d.Verdict == "allow" {
			paths[d.Path]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return paths
}
