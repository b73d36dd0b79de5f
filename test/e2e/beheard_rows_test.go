package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/test/tier"
)

// startNextTurn seals ana's open turn in the session ses-1-4 and opens another.
func (b *beheard) startNextTurn(t *testing.T) {
	t.Helper()
	b.execAsOwner(t, `UPDATE "Turn" SET "sealedAt" = now() WHERE "sessionId" = 'ses-1-4' AND "userId" = 'user-ana' AND "sealedAt" IS NULL`)
	b.execAsOwner(t,
		`INSERT INTO "Turn" (id, "sessionId", "userId", message) SELECT 'turn ' || count(*), 'ses-1-4', 'user-ana', 'hello' FROM "Turn"`)
}

// SYSTEMS.md 3 g: the plan "minimal" allows five rows per turn, counted over all statements, messages and connections.
// seeds/002:387-412.
func TestBeheardG_RowsPerTurn(t *testing.T) {
	b := startBeheard(t)
	b.setStage(t, "1")
	const limitError = "contract intent, intent emotional_validation: at most 5 rows per turn, and "
	eventsQuery := func(n int) string { return fmt.Sprintf(`SELECT id FROM "UserEvent" ORDER BY id LIMIT %d`, n) }
	rows := func(c *pgconn.PgConn, sql string, want int) {
		t.Helper()
		if got := oneText(c, sql); len(strings.Fields(got)) != want {
			t.Errorf("%s: %q, want %d rows", sql, got, want)
		}
	}
	rows(b.agent, eventsQuery(3), 3)
	b.checkDenied(t, eventsQuery(3), limitError+"fewer are left")
	b.checkDenied(t, eventsQuery(1)+"; "+eventsQuery(2), limitError+"fewer are left") // two statements of one message
	otherConn := b.connectAs(t, "ana", "ses-1-4")
	rows(otherConn, eventsQuery(2), 2)
	b.checkDenied(t, eventsQuery(1), limitError+"they have been taken")
	b.checkDenied(t, `SELECT name FROM "Need" LIMIT 1`, limitError+"they have been taken")
	if got := b.errorMessage(t, eventsQuery(0)+"; "+`SELECT 1`); got != "" {
		t.Errorf("what returns no row of the contract: %s", got)
	}
	if got := oneText(b.connectAs(t, "ben", "ses-1-4"), eventsQuery(5)); strings.Count(got, "\n") != 4 {
		t.Errorf("ben has a turn of his own: %s", got)
	}

	b.startNextTurn(t)
	rows(b.agent, `SELECT id FROM "UserEvent" WHERE id = 'nothing' LIMIT 5`, 0)
	rows(b.agent, eventsQuery(5), 5) // rows that were not returned are given back to the limit

	b.startNextTurn(t) // a prepared statement that is executed by name
	rows(b.agent, "PREPARE p AS "+eventsQuery(3), 0)
	rows(b.agent, "EXECUTE p", 3)
	b.checkDenied(t, "EXECUTE p", limitError+"fewer are left")
	b.startNextTurn(t)
	rows(b.agent, "EXECUTE p", 3) // the rows count in the turn in which the statement is executed

	b.startNextTurn(t) // fetched from a cursor in parts
	rows(b.agent, "BEGIN; DECLARE c CURSOR FOR "+eventsQuery(5), 0)
	rows(b.agent, "FETCH 2 FROM c", 2)
	rows(b.agent, "FETCH 2 FROM c", 2)
	rows(b.agent, "FETCH 2 FROM c", 1)
	b.checkDenied(t, "FETCH BACKWARD 1 FROM c", limitError+"they have been taken")
	rows(b.agent, "ROLLBACK", 0)
	b.checkDenied(t, eventsQuery(1), limitError+"they have been taken") // a rollback does not give rows back
	b.startNextTurn(t)
	rows(b.agent, "BEGIN; DECLARE c CURSOR FOR "+eventsQuery(5), 0)
	rows(b.agent, "FETCH 3 FROM c", 3)
	rows(b.agent, "MOVE BACKWARD ALL IN c", 0)
	b.checkDenied(t, "FETCH ALL FROM c", limitError+"they have been taken") // after two rows
	rows(b.agent, "ROLLBACK", 0)
	b.checkDenied(t, eventsQuery(1), limitError+"they have been taken")

	b.startNextTurn(t) // the extended protocol
	if r := b.agent.ExecParams(t.Context(), eventsQuery(4), nil, nil, nil, nil).Read(); r.Err != nil || len(r.Rows) != 4 {
		t.Errorf("%d rows: %v", len(r.Rows), r.Err)
	}
	if r := b.agent.ExecParams(t.Context(), eventsQuery(4), nil, nil, nil, nil).Read(); r.Err == nil ||
		!strings.Contains(r.Err.Error(), limitError+"fewer are left") {
		t.Errorf("%d rows: %v", len(r.Rows), r.Err)
	}

	b.updateTurn(t, `"sealedAt" = now()`)
	b.checkDenied(t, eventsQuery(1), "the session has no") // without a turn no rows are granted
	b.proxy.Tap().RequireNoMarker(t)
}

// SYSTEMS.md 3 g: sessions that run at the same time share the five rows of the turn.
func TestBeheardG_RowsPerTurnBesideEachOther(t *testing.T) {
	tier.All(t)
	b := startBeheard(t)
	b.setStage(t, "1")
	for range 5 {
		b.startNextTurn(t)
		var got atomic.Int64
		var workers sync.WaitGroup
		for range 6 {
			c := b.connectAs(t, "ana", "ses-1-4")
			workers.Go(func() {
				for range 5 {
					r := c.ExecParams(context.Background(), `SELECT id FROM "UserEvent" LIMIT 2`, nil, nil, nil, nil).Read()
					got.Add(int64(len(r.Rows)))
				}
			})
		}
		workers.Wait()
		if got.Load() > 5 {
			t.Errorf("%d rows in a turn", got.Load())
		}
		if got.Load() < 4 {
			t.Errorf("%d rows in a turn: the others were given nothing", got.Load())
		}
	}
}
