package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	harness "github.com/pgconsent/pgconsent/test/instance"
)

// Besides cursors and portals of a SELECT, the server keeps two kinds of results between messages. One is the whole
// result of an EXECUTE or FETCH, which is returned row by row. The other is a portal that was bound without a Sync.

// readInParts opens a portal for a statement and reads one row; each later call reads one more. If usesSync is true,
// each message group ends with Sync, in a transaction; otherwise with Flush.
func readInParts(beginSQL, text string, usesSync bool, firstRows uint32) func(testing.TB, *pgconn.PgConn) reader {
	return func(t testing.TB, c *pgconn.PgConn) reader {
		ctx, frontend := context.Background(), c.Frontend()
		for _, sql := range []string{beginSQL, "BEGIN"} {
			if a := harness.Ask(c, sql); a.Err != "" && sql != "" {
				return func() (bool, error) { return false, fmt.Errorf("%s", a.Err) }
			}
		}
		// sendGroup sends messages and reads until the last of them is answered.
		sendGroup := func(until func(pgproto3.BackendMessage) bool, messages ...pgproto3.FrontendMessage) (isShown bool, err error) {
			for _, m := range messages {
				frontend.Send(m)
			}
			if usesSync {
				frontend.Send(&pgproto3.Sync{})
			} else {
				frontend.Send(&pgproto3.Flush{})
			}
			if err := frontend.Flush(); err != nil {
				return false, err
			}
			for {
				m, readErr := c.ReceiveMessage(ctx)
				if readErr != nil {
					return isShown, readErr
				}
				switch m := m.(type) {
				case *pgproto3.DataRow:
					isShown = true
				case *pgproto3.ErrorResponse:
					err = fmt.Errorf("ERROR %s: %s", m.Code, m.Message)
					if !usesSync {
						frontend.Send(&pgproto3.Sync{})
						if e := frontend.Flush(); e != nil {
							return isShown, e
						}
						usesSync = true // from now on, errors of this reader end with Sync
					}
				case *pgproto3.ReadyForQuery:
					return isShown, err
				}
				if !usesSync && until(m) {
					return isShown, err
				}
			}
		}
		isExecuted := func(m pgproto3.BackendMessage) bool {
			switch m.(type) {
			case *pgproto3.PortalSuspended, *pgproto3.CommandComplete, *pgproto3.EmptyQueryResponse:
				return true
			}
			return false
		}
		isBound := func(m pgproto3.BackendMessage) bool { _, ok := m.(*pgproto3.BindComplete); return ok }
		messages, until := []pgproto3.FrontendMessage{&pgproto3.Parse{Query: text}, &pgproto3.Bind{DestinationPortal: "hh"}}, isBound
		if firstRows > 0 {
			messages, until = append(messages, &pgproto3.Execute{Portal: "hh", MaxRows: firstRows}), isExecuted
		}
		if _, err := sendGroup(until, messages...); err != nil {
			return func() (bool, error) { return false, err }
		}
		return func() (bool, error) { return sendGroup(isExecuted, &pgproto3.Execute{Portal: "hh", MaxRows: 1}) }
	}
}

// waysThatFail are ways of reading that end with 40001, since they would return rows from before the withdrawal.
var waysThatFail = map[string]bool{}

func init() {
	for name, readerOf := range map[string]func(testing.TB, *pgconn.PgConn) reader{
		"fetched in parts":   readInParts("DECLARE hw CURSOR WITH HOLD FOR "+historyQuery, "FETCH 100 FROM hw", true, 1),
		"executed in parts":  readInParts("PREPARE hx AS "+historyQuery, "EXECUTE hx", true, 1),
		"unsynced portal":    readInParts("", historyQuery, false, 1),
		"unsynced and bound": readInParts("", historyQuery, false, 0),
		"unsynced fetch":     readInParts("DECLARE hw CURSOR WITH HOLD FOR "+historyQuery, "FETCH 100 FROM hw", false, 1),
		"unsynced execute":   readInParts("PREPARE hx AS "+historyQuery, "EXECUTE hx", false, 1),
		"savepoint": readSimply("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1; SAVEPOINT s; DECLARE h SCROLL CURSOR FOR "+historyQuery+"; SAVEPOINT u",
			"ROLLBACK TO s; "+historyQuery+" LIMIT 1"),
		"deferrable":    readSimply("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE; SELECT count(*) FROM memories", historyQuery+" LIMIT 1"),
		"binary cursor": readSimply("BEGIN; DECLARE h BINARY INSENSITIVE SCROLL CURSOR FOR "+historyQuery, "FETCH LAST FROM h"),
	} {
		readingWays[name], waysThatFail[name] = readerOf, true
	}
}

// All other ways to keep a result for later, or to share it with another session, are refused.
func TestOtherWaysToKeepResultsAreRefused(t *testing.T) {
	in := start(t, options{afterMigrate: historySetup})
	c := in.agent(t)
	for _, sql := range []string{
		"SELECT pg_export_snapshot()", "SET TRANSACTION SNAPSHOT '00000003-0000001B-1'",
		"BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '00000003-0000001B-1'",
		"LISTEN x", "NOTIFY x", "SELECT pg_notify('x', 'y')", "SELECT pg_notification_queue_usage()",
		"SELECT lo_create(0)", "SELECT lo_from_bytea(0, 'x')", "SELECT lo_get(1)", "SELECT lowrite(1, 'x')",
		"CREATE TEMP TABLE h AS SELECT * FROM memories", "SELECT * INTO TEMP h FROM memories",
		"CREATE TABLE h AS SELECT 1", "CREATE TEMP VIEW h AS SELECT * FROM memories", "CREATE MATERIALIZED VIEW h AS SELECT 1",
		"LOCK memories IN ACCESS SHARE MODE", "SELECT pg_sleep(1)",
		"PREPARE TRANSACTION 'h'", "SELECT cursor_to_xml('h', 1, true, true, '')", "SELECT query_to_xml('SELECT 1', true, true, '')",
		"SELECT dblink('', '')", "DO 'BEGIN END'",
		"SELECT set_config('pgconsent.h', (SELECT title FROM memories LIMIT 1), false)", "SELECT pg_current_snapshot()", "SELECT txid_current_snapshot()",
	} {
		a := harness.Ask(c, sql)
		if a.Err == "" {
			t.Errorf("%s is answered: %v", sql, a.Results)
		}
		if !strings.Contains(a.Err, "25P02") {
			_ = harness.Ask(c, "ROLLBACK")
		}
	}
}
