package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// restSchema is what an agent sees; restHidden adds what is hidden from it.
const (
	restSchema = `CREATE TYPE mood AS ENUM ('glad', 'sad');
CREATE DOMAIN title AS text CHECK (VALUE <> '');
CREATE TABLE profiles (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE folders (id int PRIMARY KEY, user_id int NOT NULL REFERENCES profiles, title title NOT NULL);
CREATE TABLE notes (id serial PRIMARY KEY, user_id int NOT NULL REFERENCES profiles, folder int REFERENCES folders, body varchar(200) NOT NULL,
	mood mood, extra jsonb, at timestamptz);
CREATE TABLE tags (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE note_tags (note int REFERENCES notes, tag int REFERENCES tags, PRIMARY KEY (note, tag));
CREATE FUNCTION notes_with(word text) RETURNS SETOF notes LANGUAGE sql STABLE AS $$ SELECT * FROM notes WHERE body LIKE '%' || word || '%' $$;
CREATE FUNCTION count_with(word text) RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT count(*) FROM notes WHERE body LIKE '%' || word || '%' $$;
CREATE FUNCTION asks() RETURNS text LANGUAGE sql STABLE AS $$
	SELECT concat(current_setting('request.jwt.claims', true), current_setting('request.method', true)) $$;
`
	restHidden = `ALTER TABLE profiles ADD secret text;
CREATE TABLE keys (id int PRIMARY KEY, profile int REFERENCES profiles, value mood);
CREATE FUNCTION hidden_notes() RETURNS SETOF notes LANGUAGE sql SECURITY DEFINER AS 'SELECT * FROM notes';
CREATE VIEW everything AS SELECT n.id, n.body, p.name FROM notes AS n JOIN profiles AS p ON p.id = n.user_id;
COMMENT ON TABLE notes IS 'of secret people';
`
	restRows = `INSERT INTO profiles (id, name) SELECT u, 'user ' || u FROM generate_series(1, 3) AS u;
INSERT INTO folders SELECT 10 * u, u, 'folder of ' || u FROM generate_series(1, 3) AS u;
INSERT INTO notes (id, user_id, folder, body, mood, extra) SELECT 10 * u + n, u, CASE WHEN n > 1 THEN 10 * u END,
	CASE WHEN n = 1 THEN 'plays chess' ELSE 'note ' || n END, CASE WHEN n < 3 THEN 'glad'::mood END, '{"colour": "blue"}'
	FROM generate_series(1, 3) AS u, generate_series(1, 3) AS n;
SELECT setval('notes_id_seq', 1000);
INSERT INTO tags VALUES (1, 'red'), (2, 'green');
INSERT INTO note_tags SELECT id, 1 + id % 2 FROM notes;
`
	// The policy's rules as row policies written by hand, for the copy without pgconsent.
	restByHand = `ALTER TABLE profiles ENABLE ROW LEVEL SECURITY; ALTER TABLE folders ENABLE ROW LEVEL SECURITY;
ALTER TABLE notes ENABLE ROW LEVEL SECURITY; ALTER TABLE note_tags ENABLE ROW LEVEL SECURITY;
CREATE SCHEMA hidden; GRANT USAGE ON SCHEMA hidden TO postgrest_twin; COMMENT ON SCHEMA public IS NULL;
CREATE FUNCTION hidden.asker() RETURNS int LANGUAGE sql STABLE AS $$ SELECT (nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub')::int $$;
CREATE POLICY p ON profiles USING (id = hidden.asker()); CREATE POLICY p ON folders USING (user_id = hidden.asker());
CREATE POLICY p ON notes USING (user_id = hidden.asker());
CREATE POLICY p ON note_tags USING (EXISTS (SELECT FROM notes WHERE id = note));
GRANT ALL ON ALL TABLES IN SCHEMA public TO postgrest_twin; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO postgrest_twin;
`
	restPolicy = `version: 1
attributes: { user: { type: integer, source: credential } }
channels: [pgrst]
tables:
  profiles: { columns: { id: allow, name: allow }, rows: [ own: { column: id, is: user } ] }
  folders: { rows: [ own: { column: user_id, is: user } ] }
  notes: { rows: [ own: { column: user_id, is: user } ], write: { commands: [insert, update, delete], accept: [sequences] } }
  tags: { rows: [ open: true ] }
  note_tags: { rows: [ visible: { notes: { id: note } } ] }
functions: { notes_with: {}, count_with: {}, asks: {} }
`
)

const postgrestTwin = "postgrest_twin"

// restPair is a database behind a proxy, and a twin with only what the agent sees, protected by row policies written by
// hand.
type restPair struct {
	db, twin *pgtest.DB
	proxy    *harness.Proxy
}

func startPostgREST(t *testing.T, mode harness.Mode) *restPair {
	t.Helper()
	p := &restPair{db: pgtest.Filled(t, restSchema+restHidden+restRows), twin: pgtest.Filled(t, `DO $$ BEGIN
			IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'postgrest_twin') THEN CREATE ROLE postgrest_twin LOGIN; END IF;
		END $$;`+restSchema+restRows+restByHand)}
	d := harness.Database{Name: "rest", DB: p.db, SearchPath: []string{"public"}, Policy: restPolicy}
	harness.Install(t, d, mode)
	p.proxy = harness.Serve(t, mode, []harness.Database{d}, []harness.Agent{
		{Name: "rest", Database: "rest", ActsFor: &enforce.ActsFor{Attributes: []string{"user"}, Setting: "request.jwt.claims",
			Claims: map[string]string{"user": "sub"}}},
		{Name: "one", Database: "rest", Attributes: map[string]string{"user": "1"}},
	})
	return p
}

// hasqlConn is a connection that is used as PostgREST's library hasql does. Each statement is prepared once under a
// numbered name, and its results are binary.
type hasqlConn struct {
	conn     *pgconn.PgConn
	prepared map[string]string
}

func dialHasql(t *testing.T, dsn string) *hasqlConn {
	t.Helper()
	c := &hasqlConn{harness.Connect(t, dsn), map[string]string{}}
	if a := harness.Ask(c.conn, "SET client_encoding = 'UTF8';SET client_min_messages TO WARNING;"); a.Err != "" {
		t.Fatal(a)
	}
	return c
}

// restParameter is a parameter of a statement, with the type that hasql declares for it.
type restParameter struct{ kind, value string }

// run sends a statement and returns its rows, or the error.
func (c *hasqlConn) run(sql string, inBinary bool, parameters ...restParameter) ([]string, *pgconn.PgError) {
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	var types []uint32
	var values [][]byte
	var formats []int16
	for _, p := range parameters {
		value, format := []byte(p.value), int16(1)
		switch p.kind {
		case "unknown":
			types, format = append(types, pgtype.UnknownOID), 0
		case "text":
			types = append(types, pgtype.TextOID)
		case "json":
			types = append(types, pgtype.JSONOID)
		case "text[]":
			types = append(types, pgtype.TextArrayOID)
			var list pgtype.FlatArray[string]
			m := pgtype.NewMap()
			if err := m.Scan(pgtype.TextArrayOID, 0, value, &list); err != nil {
				panic(err)
			}
			value, _ = m.Encode(pgtype.TextArrayOID, 1, list, nil)
		}
		values, formats = append(values, value), append(formats, format)
	}
	key := fmt.Sprint(sql, types)
	name, ok := c.prepared[key]
	if !ok {
		name = fmt.Sprint(len(c.prepared))
		if _, err := c.conn.Prepare(ctx, name, sql, types); err != nil {
			return nil, asPgError(err)
		}
		c.prepared[key] = name
	}
	format := []int16{0}
	if inBinary {
		format[0] = 1
	}
	r := c.conn.ExecPrepared(ctx, name, values, formats, format).Read()
	var rows []string
	for _, row := range r.Rows {
		var list []string
		for _, value := range row {
			if value == nil {
				list = append(list, `\N`)
				continue
			}
			list = append(list, string(value))
		}
		rows = append(rows, strings.Join(list, "\t"))
	}
	return rows, asPgError(r.Err)
}

// asPgError returns the error of the server, or wraps any other error as one.
func asPgError(err error) *pgconn.PgError {
	if err == nil {
		return nil
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e
	}
	return &pgconn.PgError{Code: "client", Message: err.Error()}
}

// restStatement is a statement of testdata/postgrest.
type restStatement struct {
	name, sql  string
	parameters []restParameter
}

func restStatements(t *testing.T, file string) []restStatement {
	t.Helper()
	text, err := os.ReadFile("testdata/postgrest/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var out []restStatement
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "--- "); ok {
			out = append(out, restStatement{name: strings.TrimSpace(name)})
			continue
		}
		if len(out) == 0 {
			continue
		}
		s := &out[len(out)-1]
		if parameter, ok := strings.CutPrefix(line, "--: "); ok {
			kind, value, _ := strings.Cut(strings.TrimSuffix(parameter, "\n"), " ")
			s.parameters = append(s.parameters, restParameter{kind, value})
			continue
		}
		s.sql += line
	}
	for i := range out {
		out[i].sql = strings.TrimSpace(out[i].sql)
	}
	return out
}

// runInPools runs a test twice: with one server connection per session, and with sessions that share connections.
func runInPools(t *testing.T, test func(t *testing.T, mode harness.Mode)) {
	for _, pool := range []string{"session", "transaction"} {
		for _, mode := range harness.Modes(harness.Auto, harness.Both, harness.SignedViews, harness.RLS) {
			t.Run(pool+" "+mode.Name, func(t *testing.T) {
				t.Setenv("PGCONSENT_POOL", pool)
				test(t, mode)
			})
		}
	}
}

// At its start, PostgREST reads the same catalogs as in a database with the agent's objects only.
func TestPostgRESTStarts(t *testing.T) {
	runInPools(t, func(t *testing.T, mode harness.Mode) {
		p := startPostgREST(t, mode)
		agent, twin := dialHasql(t, p.proxy.DSN("rest", "rest")), dialHasql(t, p.twin.DSN(postgrestTwin, ""))
		const beginSQL = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"
		for _, s := range restStatements(t, "start.sql") {
			for _, inBinary := range []bool{false, true} {
				var rows [2][]string
				for i, c := range []*hasqlConn{twin, agent} {
					if _, err := c.run(beginSQL, true); err != nil {
						t.Fatal(err)
					}
					// PostgREST empties the search path, so that names have schemas. An agent's search path does not change.
					path := "set local schema ''"
					if i == 0 {
						path = "set local search_path = public"
					}
					if a := harness.Ask(c.conn, path); a.Err != "" {
						t.Fatal(a)
					}
					var err *pgconn.PgError
					if rows[i], err = c.run(s.sql, inBinary, s.parameters...); err != nil {
						t.Errorf("%s, connection %d: %v %s", s.name, i, err, err.Hint)
					}
					if _, err := c.run("COMMIT", true); err != nil {
						t.Fatal(err)
					}
					slices.Sort(rows[i])
				}
				for i, row := range rows[0] { // a default that is an expression is not visible
					rows[0][i] = strings.Replace(row, `\"nextval('notes_id_seq'::regclass)\"`, "", 1)
				}
				if s.name == "openapi_tables" { // agents have rights on a view instead of on a table with hidden columns
					rows[0] = slices.DeleteFunc(rows[0], func(row string) bool { return strings.HasSuffix(row, "\tprofiles") })
				}
				if !inBinary && !slices.Equal(rows[0], rows[1]) {
					t.Errorf("%s:\n%s\nwant\n%s", s.name, strings.Join(rows[1], "\n"), strings.Join(rows[0], "\n"))
				}
				if len(rows[0]) != len(rows[1]) {
					t.Errorf("%s: %d rows, want %d", s.name, len(rows[1]), len(rows[0]))
				}
			}
		}
	})
}

// restPrologue is the statement that PostgREST sends first in each transaction.
const restPrologue = "select set_config('search_path', $1, true), set_config('role', $2, true), set_config('request.jwt.claims', $3, true), " +
	"set_config('request.method', $4, true), set_config('request.path', $5, true), set_config('request.headers', $6, true), " +
	"set_config('request.cookies', $7, true), set_config('timezone', $8, true)"

// begin begins the transaction of a request.
func (c *hasqlConn) begin(role, claims, method, path string) *pgconn.PgError {
	mode := map[bool]string{true: "READ ONLY", false: "READ WRITE"}[method == "GET" || strings.Contains(path, "/rpc/")]
	if _, err := c.run("BEGIN ISOLATION LEVEL READ COMMITTED "+mode, true); err != nil {
		return err
	}
	var parameters []restParameter
	for _, value := range []string{`"public", "public"`, role, claims, method, path, `{"user-agent":"node","accept":"*/*"}`, "{}", "Europe/Vienna"} {
		parameters = append(parameters, restParameter{"unknown", value})
	}
	_, err := c.run(restPrologue, true, parameters...)
	return err
}

// Requests of several users on one connection get the answers of PostgreSQL with row policies written by hand.
func TestPostgRESTServes(t *testing.T) {
	runInPools(t, func(t *testing.T, mode harness.Mode) {
		p := startPostgREST(t, mode)
		agent, twin := dialHasql(t, p.proxy.DSN("rest", "rest")), dialHasql(t, p.twin.DSN(postgrestTwin, ""))
		requests := restStatements(t, "requests.sql")
		filledAnswers := map[string]int{}
		for _, user := range []string{"1", "2", "", "2", "1"} {
			for _, s := range requests {
				method, target, _ := strings.Cut(s.name, " ")
				path, _, _ := strings.Cut(target, "?")
				var answers [2]string
				for i, c := range []*hasqlConn{twin, agent} {
					role := []string{postgrestTwin, "rest"}[i]
					claims, _ := json.Marshal(map[string]string{"role": role, "sub": user})
					if user == "" {
						claims, _ = json.Marshal(map[string]string{"role": role})
					}
					if err := c.begin(role, string(claims), method, path); err != nil {
						t.Fatalf("connection %d: %v %s", i, err, err.Hint)
					}
					parameters := slices.Clone(s.parameters)
					for i, p := range parameters {
						parameters[i].value = strings.ReplaceAll(p.value, "{user}", cmp.Or(user, "1"))
					}
					rows, err := c.run(s.sql, true, parameters...)
					endCommand := "COMMIT"
					if err != nil {
						answers[i], endCommand = err.Code, "ABORT"
					} else {
						answers[i] = fmt.Sprintf("%q", rows)
					}
					if _, err := c.run(endCommand, true); err != nil {
						t.Fatal(err)
					}
				}
				if answers[0] != answers[1] {
					t.Errorf("user %q, %s:\n%s\nwant\n%s", user, s.name, answers[1], answers[0])
				}
				if len(answers[0]) > 60 {
					filledAnswers[s.name]++
				}
			}
		}
		if len(filledAnswers) < 8 {
			t.Errorf("only %d requests found anything: %v", len(filledAnswers), filledAnswers)
		}
	})
}

// PostgREST listens on its channel for the request to reload the schema.
func TestPostgRESTListens(t *testing.T) {
	runInPools(t, func(t *testing.T, mode harness.Mode) {
		p := startPostgREST(t, mode)
		c := p.proxy.Agent(t, "rest", "rest")
		if a := harness.Ask(c, `LISTEN "pgrst"`); a.Err != "" {
			t.Fatal(a)
		}
		harness.Exec(t, p.db, "NOTIFY pgrst, 'reload schema'")
		ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
		defer cancel()
		if err := c.WaitForNotification(ctx); err != nil {
			t.Error(err)
		}
	})
}

// An agent can read back its request settings until the transaction ends. Other sessions do not see them.
func TestSettingsOfARequest(t *testing.T) {
	runInPools(t, func(t *testing.T, mode harness.Mode) {
		p := startPostgREST(t, mode)
		c, otherAgent := dialHasql(t, p.proxy.DSN("one", "rest")), p.proxy.Agent(t, "one", "rest")
		const settingsQuery = "SELECT concat(current_setting('request.jwt.claims', true), '|', current_setting('request.method', true)), asks(), " +
			"current_setting('role'), current_setting('search_path'), count(*) FROM notes"
		want := func(c *pgconn.PgConn, want, sql string) {
			t.Helper()
			if got := oneText(c, sql); got != want {
				t.Errorf("%s: %q, want %q", sql, got, want)
			}
		}
		const noSettings = "|\t\tnone\tpublic\t3"
		for _, method := range []string{"GET", "POST"} {
			if err := c.begin("one", `{"sub":"2"}`, method, "/notes"); err != nil {
				t.Fatal(err)
			}
			// The policy does not take the user from these claims.
			want(c.conn, `{"sub":"2"}|`+method+"\t\tnone\t\"public\", \"public\"\t3", settingsQuery)
			want(otherAgent, noSettings, settingsQuery)
			want(c.conn, "", "COMMIT")
			want(c.conn, noSettings, settingsQuery)
			want(otherAgent, noSettings, settingsQuery)
		}
		// Settings for the whole session are kept, whichever server connection runs its transactions.
		want(c.conn, "PUT", "SELECT set_config('request.method', 'PUT', false)")
		want(otherAgent, "", "SET request.method = 'PATCH'")
		for range 3 {
			want(c.conn, "|PUT\t\tnone\tpublic\t3", settingsQuery)
			want(otherAgent, "|PATCH\t\tnone\tpublic\t3", settingsQuery)
			want(p.proxy.Agent(t, "one", "rest"), noSettings, settingsQuery)
		}
		want(c.conn, "DELETE\nPUT", "BEGIN; SET LOCAL request.METHOD = 'DELETE'; SELECT current_setting('Request.Method', true); ROLLBACK; "+
			"SELECT current_setting('request.method', true)")
		want(c.conn, "", "RESET request.method")
		want(c.conn, noSettings, settingsQuery)
		want(otherAgent, "", "DISCARD ALL")
		want(otherAgent, noSettings, settingsQuery)
		// Setting another role is refused, in every form.
		for sql, code := range map[string]string{
			"SET ROLE one": "", `SET LOCAL ROLE "one"`: "", "SET ROLE pgconsent_agent": "", "SET ROLE none": "", "RESET ROLE": "",
			"SET ROLE rest": "42501", "SET ROLE postgres": "42501", "SET ROLE postgrest_twin": "42501", "SET ROLE nobody": "42501",
			"SELECT set_config('role', 'postgres', true)": "42501", "SELECT set_config('pgconsent.client.role', 'one', true)": "42501",
			"SELECT set_config('request.other', 'x', true)": "42501", "SET request.other = 'x'": "42501", "SHOW request.method": "42501",
			"SELECT current_setting('pgconsent.client.request.method', true)": "42501", "SET pgconsent.client.request.method = 'x'": "42501",
			"SELECT set_config(E'request.m\\x65thod', 'x', true)": "42501", `SET request.U&"\006dethod" = 'x'`: "42501",
			"SELECT set_config('request.method', body, true) FROM notes":                      "42501",
			"SELECT set_config('request.method', NULL, true)":                                 "42501",
			"SELECT set_config('request.path', '" + strings.Repeat("x", 1<<16+1) + "', true)": "22023",
		} {
			want(c.conn, code, sql)
		}
		for role, code := range map[string]string{"one": "", "none": "", "pgconsent_agent": "", "rest": "42501", "postgres": "42501", "": "42501"} {
			got := ""
			if err := c.begin(role, "{}", "GET", "/notes"); err != nil {
				got = err.Code
			}
			if got != code {
				t.Errorf("role %q: %q, want %q", role, got, code)
			}
			want(c.conn, "", "ROLLBACK")
		}
	})
}

// EXPLAIN for a planned count is answered without the count. Upserts, and requests that must be rolled back, are
// refused.
func TestPostgRESTDiffers(t *testing.T) {
	p := startPostgREST(t, harness.Auto)
	c := dialHasql(t, p.proxy.DSN("rest", "rest"))
	if c.conn.ParameterStatus("in_hot_standby") != "off" || c.conn.ParameterStatus("default_transaction_read_only") != "off" {
		t.Error("libpq cannot tell that the session may write, as target_session_attrs=read-write asks for")
	}
	for _, s := range []struct{ name, sql, want string }{
		{"Prefer: count=planned", `EXPLAIN (FORMAT JSON) SELECT 1  FROM "public"."notes"`, ""},
		{"Prefer: tx=rollback", "SET CONSTRAINTS ALL IMMEDIATE", "0A000"},
		{"Prefer: resolution=merge-duplicates", `INSERT INTO "public"."notes" ("body", "user_id") SELECT given."body", given."user_id" ` +
			`FROM (SELECT '{"user_id": 1, "body": "x"}'::json AS document) AS sent, ` +
			`LATERAL (SELECT "body", "user_id" FROM json_to_record(sent.document) AS _ ("body" text, "user_id" integer)) AS given ` +
			`WHERE set_config('pgrst.inserted', concat(current_setting('pgrst.inserted', true), '1'), true) <> '0' RETURNING 1`, "42501"},
	} {
		if err := c.begin("rest", `{"sub": 1}`, "POST", "/notes"); err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err := c.run(s.sql, true); err != nil {
			got = err.Code
		}
		if got != s.want {
			t.Errorf("%s: %q, want %q", s.name, got, s.want)
		}
		if _, err := c.run("ABORT", true); err != nil {
			t.Fatal(err)
		}
	}
}
