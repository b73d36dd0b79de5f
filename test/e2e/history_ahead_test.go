package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	harness "github.com/pgconsent/pgconsent/test/instance"
)

// Portals that are bound in one message group and first run in a later one, and statements after an error. Also
// transactions that come to their isolation level in other ways.

// exchangeMessages sends messages and reads until Sync is answered, or, where they end with Flush, until the last of
// them is.
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

// boundAhead binds a text again and again, and runs each portal in the message group after the one that has bound it.
func boundAhead(begin, text string) func(testing.TB, *pgconn.PgConn) reader {
	return func(t testing.TB, c *pgconn.PgConn) reader {
		for _, sql := range []string{begin, "BEGIN"} {
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

// withoutBegin reads in the one transaction that messages without a Sync make, at a level that is the session's default.
func withoutBegin(t testing.TB, c *pgconn.PgConn) reader {
	if a := harness.Ask(c, "SET default_transaction_isolation = 'repeatable read'"); a.Err != "" {
		return func() (bool, error) { return false, fmt.Errorf("%s", a.Err) }
	}
	complete := func(m pgproto3.BackendMessage) bool { _, ok := m.(*pgproto3.CommandComplete); return ok }
	run := func(text string) (bool, error) {
		return exchangeMessages(c, &pgproto3.Flush{}, complete, &pgproto3.Parse{Query: text}, &pgproto3.Bind{}, &pgproto3.Execute{})
	}
	_, err := run("SELECT 1")
	return func() (bool, error) {
		if err != nil {
			return false, err
		}
		return run(historyQuery + " LIMIT 1")
	}
}

// waysThatMayShowNothing are ways that end with 40001 or show nothing: what is read last may have been bound before the
// withdrawal, or after it.
var waysThatMayShowNothing = map[string]bool{"bound ahead": true, "execute bound ahead": true}

func init() {
	for name, readerOf := range map[string]func(testing.TB, *pgconn.PgConn) reader{
		"bound ahead":         boundAhead("", historyQuery+" LIMIT 1"),
		"execute bound ahead": boundAhead("PREPARE hx AS "+historyQuery+" LIMIT 1", "EXECUTE hx"),
		"fetch bound ahead":   boundAhead("DECLARE ho SCROLL CURSOR WITH HOLD FOR "+historyQuery, "FETCH FIRST FROM ho"),
		"past an error":       readSimply("BEGIN; DECLARE h SCROLL CURSOR FOR "+historyQuery+"; SAVEPOINT s", "ROLLBACK TO s; FETCH FIRST FROM h"),
		"characteristics": readAfter("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ",
			readSimply("BEGIN; SELECT 1", historyQuery+" LIMIT 1")),
		"set transaction": readSimply("BEGIN; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1", historyQuery+" LIMIT 1"),
		"set local":       readSimply("BEGIN; SET LOCAL transaction_isolation = 'serializable'; SELECT 1", historyQuery+" LIMIT 1"),
		"without begin":   withoutBegin,
	} {
		readingWays[name], waysThatFail[name] = readerOf, !waysThatMayShowNothing[name]
	}
}
