package proxy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// TestErrors: the proxy relays no parts of an error that may reveal hidden rows. It relays the parts that help the
// client.
func TestErrors(t *testing.T) {
	p := startProxy(t)
	if _, err := p.db.Connect(t, "postgres").Exec(t.Context(), `
		CREATE TABLE keyed (id int PRIMARY KEY, t text CHECK (t <> 'bad'));
		INSERT INTO keyed VALUES (1, 'MARKER');
		CREATE TABLE pointing (id int REFERENCES keyed);
		INSERT INTO pointing VALUES (1);
		CREATE TABLE excluding (r int4range, EXCLUDE USING gist (r WITH &&));
		INSERT INTO excluding VALUES ('[1,3]');
		CREATE VIEW checked_view AS SELECT * FROM keyed WHERE id < 10 WITH CHECK OPTION;
		CREATE TABLE guarded (id int, t text);
		ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
		CREATE POLICY pgconsent_guard ON guarded FOR INSERT WITH CHECK (id > 1);
		CREATE TABLE triggered (t text);
		CREATE TABLE secret (t text);
		CREATE TABLE mine (t text);
		CREATE TABLE limited (t varchar(3));
		CREATE TABLE locked AS SELECT 1 AS id;
		CREATE SCHEMA pgconsent_catalog;
		GRANT USAGE ON SCHEMA pgconsent_catalog TO wire_agent;
		INSERT INTO mine VALUES ('seen');
		CREATE DOMAIN positive AS int CHECK (VALUE > 0);
		CREATE TABLE deferred (id int UNIQUE DEFERRABLE, marker int);
		INSERT INTO deferred VALUES (1);
		GRANT ALL ON deferred, keyed, pointing, excluding, checked_view, guarded, triggered, mine, limited, locked TO wire_agent;
		CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM t::int FROM keyed; RETURN NEW; END $$;
		CREATE TRIGGER fires BEFORE INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION fires();
		CREATE FUNCTION fails_inside() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN t::int FROM keyed; END';
		CREATE FUNCTION sql_inside() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT t::int FROM keyed';
		CREATE FUNCTION lies(code text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
			RAISE EXCEPTION 'MARKER' USING ERRCODE = code, DETAIL = 'MARKER', HINT = 'MARKER', TABLE = 'MARKER', CONSTRAINT = 'MARKER'; END $$;
		CREATE SCHEMA pgconsent;
		CREATE TABLE pgconsent.keys (secret text);
		CREATE FUNCTION tell() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
			RAISE NOTICE 'MARKER'; RAISE WARNING 'MARKER'; RAISE EXCEPTION 'MARKER' USING DETAIL = 'MARKER', HINT = 'MARKER'; END $$;
		CREATE FUNCTION deny() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
			RAISE EXCEPTION 'no' USING ERRCODE = '42501', DETAIL = 'detail', HINT = 'hint', TABLE = 'MARKER', COLUMN = 'MARKER',
			  SCHEMA = 'MARKER', CONSTRAINT = 'MARKER', DATATYPE = 'MARKER'; END $$;
		CREATE FUNCTION division() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / 0; EXCEPTION WHEN others THEN
			RAISE EXCEPTION 'odd' USING ERRCODE = 'ZZ999'; END $$`); err != nil {
		t.Fatal(err)
	}
	blocker := p.db.Connect(t, "postgres")
	if _, err := blocker.Exec(t.Context(), "BEGIN; SELECT * FROM locked FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	c := p.connectRaw(t)
	type relayedError struct{ code, message, detail, hint string }
	const withheldMessage = withheldText
	const heldHint = withheldHint
	deferrable := relayedError{"55000", "ON CONFLICT does not support deferrable unique constraints", "",
		"A key of the table is DEFERRABLE, which only its owner can change. Name the columns of another key behind ON CONFLICT, or leave it out."}
	noSchema := relayedError{"3F000", `schema "nowhere" does not exist`, "", ""}
	if pgtest.Binaries().Major >= 16 {
		noSchema = relayedError{"42P01", `relation "nowhere.t" does not exist`, "", ""}
	}
	for text, want := range map[string]relayedError{
		// classes 23 and 44: the values that collide are not relayed
		"INSERT INTO keyed VALUES (1, 'x')":   {"23505", "the row collides with another one", "", errorRuleFor("23505", "").hint},
		"INSERT INTO keyed VALUES (2, 'bad')": {"23514", "the row violates a check of the database", "", errorRuleFor("23514", "").hint},
		"INSERT INTO keyed VALUES (NULL, 'x')": {
			"23502", "a column that must have a value would have none", "", errorRuleFor("23502", "").hint},
		"INSERT INTO pointing VALUES (5)":           {"23503", "a foreign key would be violated", "", errorRuleFor("23503", "").hint},
		"DELETE FROM keyed":                         {"23503", "a foreign key would be violated", "", errorRuleFor("23503", "").hint},
		"INSERT INTO excluding VALUES ('[2,5]')":    {"23P01", "the row collides with another one", "", errorRuleFor("23P01", "").hint},
		"INSERT INTO checked_view VALUES (50, 'x')": {"44000", rowText, "", "The view allows only rows that it would show afterwards."},
		"INSERT INTO guarded VALUES (1, 'MARKER')": {
			"42501", rowText, "", errorRuleFor("42501", "new row violates row-level security policy \"x\"").hint},
		"SELECT 'x'::positive":                                   {"22P02", `invalid input syntax for type integer: "x"`, "", ""},
		"SELECT '-1'::positive":                                  {"23514", "the row violates a check of the database", "", errorRuleFor("23514", "").hint},
		"INSERT INTO deferred VALUES (1) ON CONFLICT DO NOTHING": deferrable,
		"INSERT INTO deferred VALUES (2) ON CONFLICT DO NOTHING": deferrable, // independent of the rows in the table
		"INSERT INTO deferred VALUES (2) ON CONFLICT ON CONSTRAINT deferred_id_key DO UPDATE SET marker = 1": deferrable,
		// errors that a function or a trigger raises
		"SELECT tell()":     {"P0001", withheldMessage, "", heldHint},
		"SELECT deny()":     {"42501", "permission denied", "", errorRuleFor("42501", "").hint},
		"SELECT division()": {"ZZ999", withheldMessage, "", heldHint},
		"SELECT 'MARKER'::text FROM (SELECT fails_inside()) x": {"22P02", withheldMessage, "", heldHint},
		"SELECT sql_inside()":                {"22P02", withheldMessage, "", heldHint},
		"INSERT INTO triggered VALUES ('x')": {"22P02", withheldMessage, "", heldHint},
		"SELECT lies('40001')":               {"40001", "could not serialize access", "", "The transaction might succeed if retried."},
		"SELECT lies('57014')":               {"57014", "canceling statement", "", "Try again later."},
		"SELECT lies('53100')":               {"53100", resourcesText, "", resourcesHint},
		"SELECT lies('55P03')":               {"55P03", "could not obtain a lock", "", "Try again later."},
		"SELECT lies('42601')":               {"42601", withheldMessage, "", heldHint},
		"SELECT lies('XX000')":               {"XX000", withheldMessage, "", heldHint},
		// errors about rights
		"SELECT extract('x', 1)": {"42601", `syntax error at or near ","`, "", ""},
		"SELECT pg_catalog.lower(1)": {
			"42883", "function pg_catalog.lower(integer) does not exist",
			"", "No function matches the given name and argument types. You might need to add explicit type casts."},
		"SELECT extract(day from 1)": {
			"42883", "function pg_catalog.extract(unknown, integer) does not exist",
			"", "No function matches the given name and argument types. You might need to add explicit type casts."},
		"SELECT * FROM secret":                  {"42501", "permission denied", "", errorRuleFor("42501", "").hint},
		"SELECT * FROM pgconsent.keys":          {"42501", "permission denied", "", errorRuleFor("42501", "").hint},
		"SELECT * FROM pgconsent_rows.memories": {"42P01", withheldMessage, "", heldHint},
		// errors about the client's own text and values
		"SELECT 'x'::int":         {"22P02", `invalid input syntax for type integer: "x"`, "", ""},
		"SELECT t::int FROM mine": {"22P02", `invalid input syntax for type integer: "seen"`, "", ""},
		"SELECT 'x'::uuid":        {"22P02", `invalid input syntax for type uuid: "x"`, "", ""},
		"SELECT '{\"a\"'::json":   {"22P02", "invalid input syntax for type json", "The input string ended unexpectedly.", ""},
		"SELECT 1/0":              {"22012", "division by zero", "", ""},
		// errors about values that are computed while a row is written; values in the text are relayed
		"INSERT INTO mine SELECT t::int FROM mine":                              {"22P02", computedText, "", computedHint},
		"UPDATE mine SET t = (t || 'x')::int":                                   {"22P02", computedText, "", computedHint},
		"WITH x AS (DELETE FROM mine RETURNING t) SELECT t::int FROM x":         {"22P02", computedText, "", computedHint},
		"INSERT INTO mine SELECT (t || '{')::json FROM mine":                    {"22P02", computedText, "", computedHint},
		"INSERT INTO mine SELECT (length(t) || '99999999999')::int FROM mine":   {"22003", computedText, "", computedHint},
		"UPDATE mine SET t = (t || 'tomorow')::date":                            {"22007", computedText, "", computedHint},
		"UPDATE mine SET t = '' WHERE ('2020-01-4' || length(t))::date < now()": {"22008", computedText, "", computedHint},
		"SELECT (length(t) || '99999999999')::int FROM mine":                    {"22003", `value "499999999999" is out of range for type integer`, "", ""},
		"UPDATE mine SET t = 'seen' WHERE t::int = 1":                           {"22P02", `invalid input syntax for type integer: "seen"`, "", ""},
		"INSERT INTO mine SELECT substr('abc', 2)::int":                         {"22P02", `invalid input syntax for type integer: "bc"`, "", ""},
		"INSERT INTO mine VALUES ('x'::int)":                                    {"22P02", `invalid input syntax for type integer: "x"`, "", ""},
		"UPDATE mine SET t = t::varchar(2)::int / 0":                            {"22P02", computedText, "", computedHint},
		"UPDATE mine SET t = length(t) / 0":                                     {"22012", "division by zero", "", ""},
		"INSERT INTO limited VALUES (repeat('x', 9))":                           {"22001", "value too long for type character varying(3)", "", ""},
		"SELECT 2147483647 + 1":                                                 {"22003", "integer out of range", "", ""},
		"SELECT 12345::numeric(3)": {
			"22003", "numeric field overflow", "A field with precision 3, scale 0 must round to an absolute value less than 10^3.", ""},
		"SELECT regexp_match('a', '(')": {
			"2201B", "invalid regular expression: parentheses () not balanced", "", ""},
		"SELECT to_date('x', 'YYYY')": {"22007", `invalid value "x" for "YYYY"`, "Value must be an integer.", ""},
		"SELECT 'tomorow'::date":      {"22007", `invalid input syntax for type date: "tomorow"`, "", ""},
		"SELECT '2024-02-30'::date":   {"22008", `date/time field value out of range: "2024-02-30"`, "", ""},
		"SELECT ln(-1)":               {"2201E", "cannot take logarithm of a negative number", "", ""},
		"SELECT lengh('x')": {
			"42883", "function lengh(unknown) does not exist",
			"", "No function matches the given name and argument types. You might need to add explicit type casts."},
		"SELECT tt FROM mine": {
			"42703", `column "tt" does not exist`, "", `Perhaps you meant to reference the column "mine.t".`},
		"SELECT (SELECT i FROM generate_series(1,2) i)": {
			"21000", "more than one row returned by a subquery used as an expression", "", ""},
		"SELECT * FROM keyed AS k, LATERAL (SELECT kk.id) x": {"42P01", `missing FROM-clause entry for table "kk"`, "", ""},
		"SELECT id, count(*) FROM keyed": {
			"42803", `column "keyed.id" must appear in the GROUP BY clause or be used in an aggregate function`, "", ""},
		"SELECT 1 + true": {
			"42883", "operator does not exist: integer + boolean",
			"", "No operator matches the given name and argument types. You might need to add explicit type casts."},
		"SELECT 'a'::nosuchtype":       {"42704", `type "nosuchtype" does not exist`, "", ""},
		"SELEC 1":                      {"42601", `syntax error at or near "SELEC"`, "", ""},
		"SELECT 'nowhere.t'::regclass": noSchema,
		"RELEASE SAVEPOINT x": {
			"25P01", "RELEASE SAVEPOINT can only be used in transaction blocks", "", ""},
		"CLOSE nosuch":   {"34000", `cursor "nosuch" does not exist`, "", ""},
		"EXECUTE nosuch": {"26000", `prepared statement "nosuch" does not exist`, "", ""},
		"SELECT array_fill(0, ARRAY[2000000000])": {"54000", "array size exceeds the maximum allowed (134217727)", "", ""},
		"SELECT count(*) FROM pgconsent_catalog.nope(1)": {
			"42883", "function nope(integer) does not exist",
			"", "No function matches the given name and argument types. You might need to add explicit type casts."},
		"SET statement_timeout = 1; SELECT pg_sleep(5)":                      {"57014", "canceling statement due to statement timeout", "", ""},
		"SET lock_timeout = 1; SET statement_timeout = 0; LOCK TABLE locked": {"55P03", "canceling statement due to lock timeout", "", ""},
		"SELECT * FROM locked FOR UPDATE NOWAIT":                             {"55P03", "could not obtain a lock", "", "Try again later."},
	} {
		rounds := [][]pgx3.FrontendMessage{{q(text)}}
		if !strings.Contains(text, ";") {
			rounds = append(rounds, []pgx3.FrontendMessage{pa("s", text), bi("p", "s"), ex("p", 0), sy})
		}
		for _, messages := range rounds {
			c.send(t, messages...)
			var e *pgx3.ErrorResponse
			for isReady := false; !isReady; {
				m, err := c.frontend.Receive()
				if err != nil {
					t.Fatal(err)
				}
				switch m := m.(type) {
				case *pgx3.NoticeResponse:
					t.Errorf("%s: notice %s", text, m.Message)
				case *pgx3.ErrorResponse:
					response := *m
					e = &response
				case *pgx3.ReadyForQuery:
					isReady = true
				}
			}
			c.play(t, []round{upToReady(1, cl('S', "s"), sy)})
			if e == nil {
				t.Errorf("%s: no error", text)
				continue
			}
			if got := (relayedError{e.Code, e.Message, e.Detail, e.Hint}); got != want {
				t.Errorf("%s:\n got %+v\nwant %+v", text, got, want)
			}
			if e.Where+e.SchemaName+e.TableName+e.ColumnName+e.DataTypeName+e.ConstraintName+e.File+e.Routine+
				e.InternalQuery != "" || e.Line+e.InternalPosition != 0 || len(e.UnknownFields) > 0 {
				t.Errorf("%s: fields that say too much: %+v", text, e)
			}
		}
	}
}

// TestWritesByName: an error of a write that EXECUTE runs is treated like that of a direct write.
func TestWritesByName(t *testing.T) {
	c := startProxy(t).connectRaw(t)
	c.play(t, []round{upToReady(1, q("CREATE TEMP TABLE named (t text)")),
		upToReady(1, q("INSERT INTO named VALUES ('seen')")), upToReady(1,
			pa("w", "UPDATE named SET t = (t || 'x')::int"), pa("r", "SELECT t::int FROM named"), sy)})
	for _, text := range []string{"UPDATE named SET t = (t || 'x')::int", "EXECUTE w"} {
		c.send(t, q(text))
		if e := c.readError(t); e == nil || e.Message != computedText {
			t.Errorf("%s: %+v", text, e)
		}
	}
	c.send(t, q("EXECUTE r"))
	if e := c.readError(t); e == nil || !strings.Contains(e.Message, `"seen"`) {
		t.Errorf("what only reads: %+v", e)
	}
}

// readError returns the last error before ReadyForQuery.
func (p *peer) readError(t *testing.T) *pgx3.ErrorResponse {
	t.Helper()
	var lastResponse *pgx3.ErrorResponse
	for {
		m, err := p.frontend.Receive()
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *pgx3.ErrorResponse:
			response := *m
			lastResponse = &response
		case *pgx3.ReadyForQuery:
			return lastResponse
		}
	}
}

// COPY's code reads a foreign table over a file, and its error quotes a malformed row, even if the row is hidden from
// the client. The proxy does not relay this quote. In a COPY FROM STDIN, the line comes from the client, and the proxy
// relays it.
func TestErrorsOfForeignTables(t *testing.T) {
	p := startProxy(t)
	admin := p.db.Connect(t, "postgres")
	if _, err := admin.Exec(t.Context(), "CREATE EXTENSION file_fdw"); err != nil {
		t.Skipf("NOT TESTED: this server has no file_fdw: %v", err)
	}
	if _, err := admin.Exec(t.Context(), `
		CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
		CREATE FOREIGN TABLE fed (id int, doc json) SERVER files OPTIONS (program $$printf '1\t{}\nMARKER\t{}\n'$$);
		CREATE FOREIGN TABLE documents (id int, doc json) SERVER files OPTIONS (program $$printf '1\t{MARKER\n'$$);
		CREATE TABLE filled (id int);
		GRANT ALL ON fed, documents, filled TO wire_agent`); err != nil {
		t.Fatal(err)
	}
	c := p.connectRaw(t)
	for _, text := range []string{"SELECT * FROM fed", "SELECT * FROM documents",
		"INSERT INTO filled SELECT id FROM fed", "SELECT 1; SELECT * FROM fed", "COPY (SELECT * FROM fed) TO STDOUT"} {
		c.send(t, q(text))
		if e := c.readError(t); e == nil || e.Code != "22P02" || strings.Contains(e.Message+e.Detail+e.Hint+e.Where, "MARKER") || e.Where != "" {
			t.Errorf("%s: %+v", text, e)
		}
	}
	c.send(t, q("COPY filled FROM STDIN; SELECT * FROM fed"), copyData("1\n"), copyDone)
	if e := c.readError(t); e == nil || strings.Contains(e.Message+e.Where, "MARKER") || e.Where != "" {
		t.Errorf("behind a COPY: %+v", e)
	}
	c.send(t, q("COPY filled FROM STDIN"), copyData("1\n"), copyData("mine\n"), copyDone)
	if e := c.readError(t); e == nil || !strings.Contains(e.Message, "mine") || e.Where != "COPY, line 2" {
		t.Errorf("a COPY: %+v", e)
	}
}

// Large tables make the server use parallel workers. The error text is the same with and without them.
func TestErrorsOfParallelWorkers(t *testing.T) {
	p := startProxy(t)
	if _, err := p.db.Connect(t, "postgres").Exec(t.Context(), `CREATE TABLE wide AS SELECT 'seen' AS t FROM generate_series(1, 5000);
		GRANT SELECT ON wide TO wire_agent;
		CREATE FUNCTION fails_inside(t text) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN RETURN t::int; END'`); err != nil {
		t.Fatal(err)
	}
	const parallel = "SET max_parallel_workers_per_gather = 2; SET min_parallel_table_scan_size = 0; SET " +
		"parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET parallel_leader_participation = off; "
	c := p.connectRaw(t)
	for text, want := range map[string]string{
		"SELECT count(*) FROM wide WHERE t::int > 0":          `invalid input syntax for type integer: "seen"`,
		"SELECT count(*) FROM wide WHERE fails_inside(t) > 0": withheldText} {
		for _, context := range []string{"", parallel} {
			c.send(t, q(context+text))
			if e := c.readError(t); e == nil || e.Message != want {
				t.Errorf("%s%s: %+v", context, text, e)
			}
		}
	}
}

func TestNotices(t *testing.T) {
	p := startProxy(t)
	c := p.connectRaw(t)
	longText := strings.Repeat("n", 70)
	got := c.play(t, []round{
		upToReady(1, q("ROLLBACK")),
		upToReady(1, q("DO $$ BEGIN RAISE NOTICE 'told'; RAISE WARNING 'told'; END $$")),
		upToReady(1, q("SELECT 1 AS "+longText)),
		upToReady(1, q("LISTEN a; NOTIFY a, 'x'; NOTIFY b, 'x'")),
		upToReady(1, q("DO $$ BEGIN EXECUTE 'LISTEN b'; END $$")),
		upToReady(1, q("NOTIFY b, 'x'")),
	})
	want := []string{"N 25P01", "C ROLLBACK", "Z I", "C DO", "Z I", "N 42622", "T " + longText[:63] + ":23:0", `D ["1"]`,
		"C SELECT 1", "Z I", "C LISTEN", "C NOTIFY", "C NOTIFY", "*pgproto3.NotificationResponse", "Z I",
		"C DO", "Z I", "C NOTIFY", "Z I"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func newQueryEntry(v *verdict.Verdict) *queryEntry {
	e := &queryEntry{}
	e.verdict = v
	return e
}

func TestPosition(t *testing.T) {
	v := &verdict.Verdict{Rewritten: verdict.Rewritten{Position: func(p int) int { return p - 100 }}}
	body := "SERROR\x00VERROR\x00C42703\x00Mno\x00P107\x00\x00"
	f := parseFields([]byte(body))
	for _, c := range []struct {
		e    entry
		want int32
	}{{newQueryEntry(v), 7}, {newQueryEntry(&verdict.Verdict{}), 0}, {&queryEntry{}, 0}, {nil, 0}} {
		b, _ := f.sanitisedMessage(c.e)
		var e pgx3.ErrorResponse
		if err := e.Decode(b[5:]); err != nil || e.Position != c.want {
			t.Errorf("%d %v, want %d", e.Position, err, c.want)
		}
	}
}

// TestBytesOfACopyThatAreNoText: for invalid bytes in COPY data PostgreSQL's message is relayed, since the client sent
// them. Invalid bytes that the statement computes are treated as any other value that does not fit.
func TestBytesOfACopyThatAreNoText(t *testing.T) {
	c := startProxy(t).connectRaw(t)
	c.play(t, []round{upToReady(1, q("CREATE TEMP TABLE copied (t text)"))})
	c.send(t, q("COPY copied FROM STDIN"), &pgx3.CopyData{Data: []byte("good\nb\xffd\n")}, &pgx3.CopyDone{})
	if e := c.readError(t); e == nil || e.Code != "22021" || e.Message != `invalid byte sequence for encoding "UTF8": 0xff` ||
		e.Where != "COPY, line 2" {
		t.Errorf("a line that is no text: %+v", e)
	}
	c.send(t, q(`INSERT INTO copied SELECT convert_from('\xff', 'UTF' || 8)`))
	if e := c.readError(t); e == nil || e.Code != "22021" || e.Message != computedText {
		t.Errorf("a value that is computed: %+v", e)
	}
}
