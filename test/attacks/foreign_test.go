package attacks

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A foreign server shows one snapshot to a whole transaction, also in READ COMMITTED. If a consent is withdrawn there,
// a later statement of the transaction must not show its rows. So a transaction may read a foreign table in one
// statement only.
func TestForeignTablesAreReadInOneStatementOnly(t *testing.T) {
	tier.All(t)
	if _, err := pgtest.Database(t).Connect(t, "postgres").Exec(context.Background(),
		"LOAD 'postgres_fdw'"); err != nil && strings.Contains(err.Error(), "could not load library") {
		t.Skipf("NOT TESTED: this server cannot load postgres_fdw: %v", err)
	}
	for _, mode := range modesOf(instance.Auto, instance.Both) {
		db := pgtest.Database(t)
		instance.Exec(t, db, fmt.Sprintf(`CREATE EXTENSION postgres_fdw;
CREATE TABLE base (id int PRIMARY KEY, owner text, status text, note text); INSERT INTO base VALUES (1, 'me', 'ok', 'gone'), (2, 'me', 'ok', 'left');
CREATE SERVER loop FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%d', dbname '%s', use_remote_estimate 'true');
CREATE USER MAPPING FOR PUBLIC SERVER loop OPTIONS (user 'postgres', password_required 'false');
CREATE FOREIGN TABLE far (id int, owner text, status text, note text) SERVER loop OPTIONS (table_name 'base');
CREATE TABLE near (id int PRIMARY KEY, owner text); INSERT INTO near VALUES (1, 'me'); CREATE VIEW seen AS SELECT note FROM far;
CREATE FUNCTION said() RETURNS text LANGUAGE sql STABLE AS 'SELECT ''anything''::text'`, db.SocketDir, db.Port, db.Name))
		d := instance.Database{Name: "pair", DB: db, SearchPath: []string{"public"}, Policy: `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  far: { rows: [ { own: { column: owner, is: user } }, { status: { column: status, is: ok } } ] }
  near: { rows: [ { own: { column: owner, is: user } } ] }
views: { seen: {} }
functions: { said: {} }
`}
		proxy := instance.Start(t, mode, d, map[string]string{"user": "me"})
		c := proxy.Agent(t, "agent", "pair")
		const far = "SELECT note FROM far"
		for _, s := range []struct {
			sql     string
			refused bool
		}{
			{far, false}, {far, false}, // each statement is a transaction of its own
			{"BEGIN", false}, {far, false}, {"SELECT id FROM near", false}, {"COMMIT", false},
			{"BEGIN", false}, {"SELECT id FROM near", false}, {"SELECT note FROM seen", false}, {
				"COPY (SELECT note FROM far) TO STDOUT", true}, {"ROLLBACK", false},
			{"BEGIN", false}, {"SELECT said()", false}, {far, true}, {"ROLLBACK", false},
			{"BEGIN", false}, {"SAVEPOINT s", false}, {far, false}, {"ROLLBACK TO s", false}, {"SELECT * FROM seen", true}, {"ROLLBACK", false},
			{"PREPARE p AS SELECT note FROM far", false}, {"BEGIN", false}, {"EXECUTE p", false}, {
				"EXECUTE p", true}, {"ROLLBACK", false}, {"EXECUTE p", false},
			{"BEGIN; " + far + "; COMMIT", false}, {far, false}, {far + "; SELECT id FROM near", false},
			{far + "; " + far, true}, {"BEGIN; EXECUTE p; " + far + "; COMMIT", true}, {"ROLLBACK", false},
		} {
			got := instance.Ask(c, s.sql)
			if refused := strings.Contains(got.SortedString(), "in one statement only"); refused != s.refused ||
				!refused && strings.Contains(got.SortedString(), "ERROR") {
				t.Errorf("%s, %s: %s", mode.Name, s.sql, got)
			}
		}
		for _, extended := range []bool{false, true} {
			send := func(sql string) string {
				if extended {
					return instance.AskExtended(c, sql).SortedString()
				}
				return instance.Ask(c, sql).SortedString()
			}
			send("BEGIN")
			rowsBefore := send(far)
			instance.Exec(t, db, "UPDATE base SET status = 'withdrawn' WHERE id = 1")
			rowsAfter := send(far)
			send("COMMIT")
			send("BEGIN")
			rowsInNext := send(far)
			send("COMMIT")
			instance.Exec(t, db, "UPDATE base SET status = 'ok' WHERE id = 1")
			if !strings.Contains(rowsBefore, "gone") || strings.Contains(rowsAfter, "gone") ||
				strings.Contains(rowsInNext, "gone") || !strings.Contains(rowsInNext, "left") {
				t.Errorf("%s: before %s\nwithdrawn, in the transaction: %s\nin the next: %s", mode.Name, rowsBefore, rowsAfter, rowsInNext)
			}
		}
		// the same without waiting for answers
		read := []pgproto3.FrontendMessage{&pgproto3.Parse{Query: far}, &pgproto3.Bind{}, &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{}}
		sync, query := pgproto3.FrontendMessage(&pgproto3.Sync{}), func(sql string) pgproto3.FrontendMessage { return &pgproto3.Query{String: sql} }
		sequence := func(parts ...any) (out []pgproto3.FrontendMessage) {
			for _, p := range parts {
				switch p := p.(type) {
				case []pgproto3.FrontendMessage:
					out = append(out, p...)
				case pgproto3.FrontendMessage:
					out = append(out, p)
				}
			}
			return out
		}
		for i, s := range []struct {
			messages []pgproto3.FrontendMessage
			refused  bool
			rows     int
		}{
			{sequence(read, sync, read, sync), false, 4},
			{sequence(read, read, sync), true, 2},
			{sequence(query("BEGIN"), read, sync, read, sync), true, 2},
			{sequence(query("BEGIN"), query(far), query("COMMIT"), query("BEGIN"), read, sync, query("COMMIT")), false, 4},
			{sequence(query("BEGIN"), read, sync, query(far)), true, 2},
			{sequence(query(far), query(far), query(far)), false, 6},
			{sequence(read, query(far)), true, 2},
		} {
			got := converse(t, proxy, "pair", s.messages)
			if refused := strings.Contains(got, "in one statement only"); refused != s.refused || strings.Count(got, "\n\"D") != s.rows {
				t.Errorf("%s, %d: refused %v, %s", mode.Name, i, refused, got)
			}
		}
	}
}
