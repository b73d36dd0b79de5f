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

// exchange sends messages and reads until Sync is answered, or, where they end with Flush, until the last of them is.
func exchange(c *pgconn.PgConn, last pgproto3.FrontendMessage, until func(pgproto3.BackendMessage) bool,
	messages ...pgproto3.FrontendMessage) (shown bool, err error) {
	front := c.Frontend()
	for _, m := range append(messages, last) {
		front.Send(m)
	}
	if err := front.Flush(); err != nil {
		return false, err
	}
	for {
		m, readErr := c.ReceiveMessage(context.Background())
		if readErr != nil {
			return shown, readErr
		}
		switch m := m.(type) {
		case *pgproto3.DataRow:
			shown = true
		case *pgproto3.ErrorResponse:
			err = fmt.Errorf("ERROR %s: %s", m.Code, m.Message)
			if _, ok := last.(*pgproto3.Flush); ok {
				front.Send(&pgproto3.Sync{})
				if e := front.Flush(); e != nil {
					return shown, e
				}
			}
		case *pgproto3.ReadyForQuery:
			return shown, err
		}
		if err == nil && until != nil && until(m) {
			return shown, nil
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
		if _, err := exchange(c, &pgproto3.Sync{}, nil, &pgproto3.Parse{Name: "ha", Query: text},
			&pgproto3.Bind{PreparedStatement: "ha", DestinationPortal: portal(0)}); err != nil {
			return func() (bool, error) { return false, err }
		}
		n := 0
		return func() (bool, error) {
			n++
			return exchange(c, &pgproto3.Sync{}, nil, &pgproto3.Execute{Portal: portal(n - 1)}, &pgproto3.Close{ObjectType: 'P', Name: portal(n - 1)},
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
		return exchange(c, &pgproto3.Flush{}, complete, &pgproto3.Parse{Query: text}, &pgproto3.Bind{}, &pgproto3.Execute{})
	}
	_, err := run("SELECT 1")
	return func() (bool, error) {
		if err != nil {
			return false, err
		}
		return run(historyQuery + " LIMIT 1")
	}
}

// either are ways that end with 40001 or show nothing: what is read last may have been bound before the withdrawal, or
// after it.
var either = map[string]bool{"bound ahead": true, "execute bound ahead": true}

func init() {
	for name, way := range map[string]func(testing.TB, *pgconn.PgConn) reader{
		"bound ahead":         boundAhead("", historyQuery+" LIMIT 1"),
		"execute bound ahead": boundAhead("PREPARE hx AS "+historyQuery+" LIMIT 1", "EXECUTE hx"),
		"fetch bound ahead":   boundAhead("DECLARE ho SCROLL CURSOR WITH HOLD FOR "+historyQuery, "FETCH FIRST FROM ho"),
		"past an error":       simply("BEGIN; DECLARE h SCROLL CURSOR FOR "+historyQuery+"; SAVEPOINT s", "ROLLBACK TO s; FETCH FIRST FROM h"),
		"characteristics": after("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ",
			simply("BEGIN; SELECT 1", historyQuery+" LIMIT 1")),
		"set transaction": simply("BEGIN; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1", historyQuery+" LIMIT 1"),
		"set local":       simply("BEGIN; SET LOCAL transaction_isolation = 'serializable'; SELECT 1", historyQuery+" LIMIT 1"),
		"without begin":   withoutBegin,
	} {
		ways[name], held[name] = way, !either[name]
	}
}
