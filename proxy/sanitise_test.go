package proxy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/verdict"
)

// TestErrors: what the server says about rows that the client may not see does not pass; what helps does.
func TestErrors(t *testing.T) {
	p := start(t)
	if _, err := p.db.Connect(t, "postgres").Exec(t.Context(), `
		CREATE TABLE keyed (id int PRIMARY KEY, t text CHECK (t <> 'bad'));
		INSERT INTO keyed VALUES (1, 'MARKER');
		GRANT ALL ON keyed TO wire_agent;
		CREATE SCHEMA pgconsent;
		CREATE TABLE pgconsent.keys (secret text);
		CREATE FUNCTION tell() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
			RAISE NOTICE 'MARKER'; RAISE WARNING 'MARKER'; RAISE EXCEPTION 'MARKER' USING DETAIL = 'MARKER', HINT = 'MARKER'; END $$;
		CREATE FUNCTION deny() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
			RAISE EXCEPTION 'no' USING ERRCODE = '42501', DETAIL = 'detail', HINT = 'hint', TABLE = 'MARKER', COLUMN = 'MARKER', SCHEMA = 'MARKER', CONSTRAINT = 'MARKER', DATATYPE = 'MARKER'; END $$;
		CREATE FUNCTION division() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / 0; EXCEPTION WHEN others THEN
			RAISE EXCEPTION 'odd' USING ERRCODE = 'ZZ999'; END $$`); err != nil {
		t.Fatal(err)
	}
	c := p.raw(t)
	type shown struct{ code, message, detail, hint string }
	const held = "the statement failed on the server; its message is withheld"
	const heldHint = "Only messages that cannot tell about hidden rows are passed on; the server's log has the full text."
	const key = "the statement violates a constraint of the database"
	const keyHint = "Which values collide is not told, since they may belong to rows you cannot see."
	for text, want := range map[string]shown{
		"INSERT INTO keyed VALUES (1, 'x')":                  {"23505", key, "", keyHint},
		"INSERT INTO keyed VALUES (2, 'bad')":                {"23514", key, "", keyHint},
		"INSERT INTO keyed VALUES (NULL, 'x')":               {"23502", key, "", keyHint},
		"SELECT tell()":                                      {"P0001", held, "", heldHint},
		"SELECT deny()":                                      {"42501", "no", "detail", "hint"},
		"SELECT division()":                                  {"ZZ999", held, "", heldHint},
		"SELECT * FROM pgconsent.keys":                       {"42501", held, "", heldHint},
		"SELECT * FROM pgconsent_rows.memories":              {"42P01", held, "", heldHint},
		"SELECT 'x'::int":                                    {"22P02", `invalid input syntax for type integer: "x"`, "", ""},
		"SELECT '{\"a\"'::json":                              {"22P02", "invalid input syntax for type json", "The input string ended unexpectedly.", ""},
		"SELECT lengh('x')":                                  {"42883", "function lengh(unknown) does not exist", "", "No function matches the given name and argument types. You might need to add explicit type casts."},
		"SELECT (SELECT i FROM generate_series(1,2) i)":      {"21000", "more than one row returned by a subquery used as an expression", "", ""},
		"SELECT * FROM keyed AS k, LATERAL (SELECT kk.id) x": {"42P01", `missing FROM-clause entry for table "kk"`, "", ""},
		"SET statement_timeout = 1; SELECT pg_sleep(5)":      {"57014", "canceling statement due to statement timeout", "", ""},
	} {
		c.send(t, q(text))
		var e *pgx3.ErrorResponse
		for {
			m, err := c.front.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if n, ok := m.(*pgx3.NoticeResponse); ok {
				t.Errorf("%s: notice %s", text, n.Message)
			}
			if got, ok := m.(*pgx3.ErrorResponse); ok {
				copied := *got
				e = &copied
			}
			if _, ok := m.(*pgx3.ReadyForQuery); ok {
				break
			}
		}
		if e == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		if got := (shown{e.Code, e.Message, e.Detail, e.Hint}); got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", text, got, want)
		}
		if e.Where+e.SchemaName+e.TableName+e.ColumnName+e.DataTypeName+e.ConstraintName+e.File+e.Routine+e.InternalQuery != "" || e.Line+e.InternalPosition != 0 || len(e.UnknownFields) > 0 {
			t.Errorf("%s: fields that say too much: %+v", text, e)
		}
	}
}

func TestNotices(t *testing.T) {
	p := start(t)
	c := p.raw(t)
	long := strings.Repeat("n", 70)
	got := c.play(t, []round{
		upToReady(1, q("ROLLBACK")),
		upToReady(1, q("DO $$ BEGIN RAISE NOTICE 'told'; RAISE WARNING 'told'; END $$")),
		upToReady(1, q("SELECT 1 AS "+long)),
		upToReady(1, q("LISTEN a; NOTIFY a, 'x'")),
	})
	want := []string{"N 25P01", "C ROLLBACK", "Z I", "C DO", "Z I", "N 42622", "T " + long[:63] + ":23:0", `D ["1"]`, "C SELECT 1", "Z I", "C LISTEN", "C NOTIFY", "Z I"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPosition(t *testing.T) {
	v := &verdict.Verdict{Position: func(p int) int { return p - 100 }}
	body := "SERROR\x00VERROR\x00C42703\x00Mno\x00P107\x00\x00"
	f := parseFields([]byte(body))
	for _, c := range []struct {
		e    *entry
		want int32
	}{{&entry{verdict: v}, 7}, {&entry{verdict: &verdict.Verdict{}}, 0}, {&entry{}, 0}, {nil, 0}} {
		b, _ := f.sanitised(c.e)
		var e pgx3.ErrorResponse
		if err := e.Decode(b[5:]); err != nil || e.Position != c.want {
			t.Errorf("%d %v, want %d", e.Position, err, c.want)
		}
	}
}
