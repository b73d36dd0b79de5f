package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	harness "github.com/pgconsent/pgconsent/test/instance"
)

// These ways of reading bind a portal in one message group and first execute it in a later one, or go on after an
// error. Others get their isolation level in unusual ways.

// exchangeMessages sends messages and reads the answers until Sync is answered. If the last message is Flush, it reads
// until the last of the other messages is answered.
func exchangeMessages(c *pgconn.PgConn, lastMessage pgproto3.FrontendMessage, until func(pgproto3.BackendMessage) bool,
	messages ...pgproto3.FrontendMessage) (isShown bool, err error) {
	frontend := c.Frontend()
	for _, m := range append(messages, lastMessage) {
		frontend.Send(m)
	}
	if err := frontend.Flush(); err != nil {
		return false, err
	}
	for {
		m, readErr := c.ReceiveMessage(context.Background())
		if readErr != nil {
			return isShown, readErr
		}
		switch m := m.(type) {
		case *pgproto3.DataRow:
			isShown = true
		case *pgproto3.ErrorResponse:
			err = fmt.Errorf("ERROR %s: %s", m.Code, m.Message)
			if _, ok := lastMessage.(*pgproto3.Flush); ok {
				frontend.Send(&pgproto3.Sync{})
				if e := frontend.Flush(); e != nil {
					return isShown, e
				}
			}
		case *pgproto3.ReadyForQuery:
			return isShown, err
		}
		if err == nil && until != nil && until(m) {
			return isShown, nil
		}
	}
}

// readBoundAhead binds a text again and again. It executes each portal in the message group after the one with its
// Bind.
func readBoundAhead(beginSQL, text string) func(testing.TB, *pgconn.PgConn) reader {
	return func(t testing.TB, c *pgconn.PgConn) reader {
		for _, sql := range []string{beginSQL, "BEGIN"} {
			if a := harness.Ask(c, sql); a.Err != "" && sql != "" {
				return func() (bool, error) { return false, fmt.Errorf("%s", a.Err) }
			}
		}
		portal := func(n int) string { return fmt.Sprintf("ha%d", n%2) }
		if _, err := exchangeMessages(c, &pgproto3.Sync{}, nil, &pgproto3.Parse{Name: "ha", Query: text},
			&pgproto3.Bind{PreparedStatement: "ha", DestinationPortal: portal(0)}); err != nil {
			return func() (bool, error) { return false, err }
		}
		n := 0
		return func() (bool, error) {
			n++
			return exchangeMessages(c, &pgproto3.Sync{}, nil, &pgproto3.Execute{Portal: portal(n - 1)}, &pgproto3.Close{ObjectType: 'P', Name: portal(n - 1)},
				&pgproto3.Bind{PreparedStatement: "ha", DestinationPortal: portal(n)})
		}
	}
}

// readWithoutBegin reads in the implicit transaction of messages without a Sync, whose isolation level is the session's
// default.
func readWithoutBegin(t testing.TB, c *pgconn.PgConn) reader {
	if a := harness.Ask(c, "SET default_transaction_isolation = 'repeatable read'"); a.Err != "" {
		return func() (bool, error) { return false, fmt.Errorf("%s", a.Err) }
	}
	isComplete := func(m pgproto3.BackendMessage) bool { _, ok := m.(*pgproto3.CommandComplete); return ok }
	runStatement := func(text string) (bool, error) {
		return exchangeMessages(c, &pgproto3.Flush{}, isComplete, &pgproto3.Parse{Query: text}, &pgproto3.Bind{}, &pgproto3.Execute{})
	}
	_, err := runStatement("SELECT 1")
	return func() (bool, error) {
		if err != nil {
			return false, err
		}
		return runStatement(historyQuery + " LIMIT 1")
	}
}

// waysThatMayShowNothing are ways of reading that end with 40001 or return no row. The last portal may have been bound
// before the withdrawal or after it.
var waysThatMayShowNothing = map[string]bool{"bound ahead": true, "execute bound ahead": true}

func init() {
	for name, readerOf := range map[string]func(testing.TB, *pgconn.PgConn) reader{
		"bound ahead":         readBoundAhead("", historyQuery+" LIMIT 1"),
		"execute bound ahead": readBoundAhead("PREPARE hx AS "+historyQuery+" LIMIT 1", "EXECUTE hx"),
		"fetch bound ahead":   readBoundAhead("DECLARE ho SCROLL CURSOR WITH HOLD FOR "+historyQuery, "FETCH FIRST FROM ho"),
		"past an error":       readSimply("BEGIN; DECLARE h SCROLL CURSOR FOR "+historyQuery+"; SAVEPOINT s", "ROLLBACK TO s; FETCH FIRST FROM h"),
		"characteristics": readAfter("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ",
			readSimply("BEGIN; SELECT 1", historyQuery+" LIMIT 1")),
		"set transaction": readSimply("BEGIN; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1", historyQuery+" LIMIT 1"),
		"set local":       readSimply("BEGIN; SET LOCAL transaction_isolation = 'serializable'; SELECT 1", historyQuery+" LIMIT 1"),
		"without begin":   readWithoutBegin,
	} {
		readingWays[name], waysThatFail[name] = readerOf, !waysThatMayShowNothing[name]
	}
}
