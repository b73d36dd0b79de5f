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

// nextTurn seals the open turn of ana in this session and opens another.
func (b *beheard) nextTurn(t *testing.T) {
	t.Helper()
	b.now(t, `UPDATE "Turn" SET "sealedAt" = now() WHERE "sessionId" = 'ses-1-4' AND "userId" = 'user-ana' AND "sealedAt" IS NULL`)
	b.now(t, `INSERT INTO "Turn" (id, "sessionId", "userId", message) SELECT 'turn ' || count(*), 'ses-1-4', 'user-ana', 'hello' FROM "Turn"`)
}

// SYSTEMS.md 3 g: minimal is five rows a turn, whatever statements, messages and connections they are asked for with.
// seeds/002:387-412.
func TestBeheardG_RowsPerTurn(t *testing.T) {
	b := startBeheard(t)
	b.stage(t, "1")
	const at = "contract intent, intent emotional_validation: at most 5 rows per turn, and "
	events := func(n int) string { return fmt.Sprintf(`SELECT id FROM "UserEvent" ORDER BY id LIMIT %d`, n) }
	rows := func(c *pgconn.PgConn, sql string, want int) {
		t.Helper()
		if got := oneText(c, sql); len(strings.Fields(got)) != want {
			t.Errorf("%s: %q, want %d rows", sql, got, want)
		}
	}
	rows(b.agent, events(3), 3)
	b.denied(t, events(3), at+"fewer are left")
	b.denied(t, events(1)+"; "+events(2), at+"fewer are left") // two statements of one message
	other := b.as(t, "ana", "ses-1-4")
	rows(other, events(2), 2)
	b.denied(t, events(1), at+"they have been taken")
	b.denied(t, `SELECT name FROM "Need" LIMIT 1`, at+"they have been taken")
	if got := b.answer(t, events(0)+"; "+`SELECT 1`); got != "" {
		t.Errorf("what returns no row of the contract: %s", got)
	}
	if got := oneText(b.as(t, "ben", "ses-1-4"), events(5)); strings.Count(got, "\n") != 4 {
		t.Errorf("ben has a turn of his own: %s", got)
	}

	b.nextTurn(t)
	rows(b.agent, `SELECT id FROM "UserEvent" WHERE id = 'nothing' LIMIT 5`, 0)
	rows(b.agent, events(5), 5) // rows that were not returned are given back to the limit

	b.nextTurn(t) // executed by name
	rows(b.agent, "PREPARE p AS "+events(3), 0)
	rows(b.agent, "EXECUTE p", 3)
	b.denied(t, "EXECUTE p", at+"fewer are left")
	b.nextTurn(t)
	rows(b.agent, "EXECUTE p", 3) // counted in the turn in which it runs

	b.nextTurn(t) // fetched from a cursor in parts
	rows(b.agent, "BEGIN; DECLARE c CURSOR FOR "+events(5), 0)
	rows(b.agent, "FETCH 2 FROM c", 2)
	rows(b.agent, "FETCH 2 FROM c", 2)
	rows(b.agent, "FETCH 2 FROM c", 1)
	b.denied(t, "FETCH BACKWARD 1 FROM c", at+"they have been taken")
	rows(b.agent, "ROLLBACK", 0)
	b.denied(t, events(1), at+"they have been taken") // a rollback takes nothing back
	b.nextTurn(t)
	rows(b.agent, "BEGIN; DECLARE c CURSOR FOR "+events(5), 0)
	rows(b.agent, "FETCH 3 FROM c", 3)
	rows(b.agent, "MOVE BACKWARD ALL IN c", 0)
	b.denied(t, "FETCH ALL FROM c", at+"they have been taken") // after two rows
	rows(b.agent, "ROLLBACK", 0)
	b.denied(t, events(1), at+"they have been taken")

	b.nextTurn(t) // the extended protocol
	if r := b.agent.ExecParams(t.Context(), events(4), nil, nil, nil, nil).Read(); r.Err != nil || len(r.Rows) != 4 {
		t.Errorf("%d rows: %v", len(r.Rows), r.Err)
	}
	if r := b.agent.ExecParams(t.Context(), events(4), nil, nil, nil, nil).Read(); r.Err == nil ||
		!strings.Contains(r.Err.Error(), at+"fewer are left") {
		t.Errorf("%d rows: %v", len(r.Rows), r.Err)
	}

	b.turn(t, `"sealedAt" = now()`)
	b.denied(t, events(1), "the session has no") // without a turn no rows are granted
	b.proxy.Tap().RequireNoMarker(t)
}

// SYSTEMS.md 3 g: sessions beside each other have five rows together.
func TestBeheardG_RowsPerTurnBesideEachOther(t *testing.T) {
	tier.All(t)
	b := startBeheard(t)
	b.stage(t, "1")
	for range 5 {
		b.nextTurn(t)
		var got atomic.Int64
		var all sync.WaitGroup
		for range 6 {
			c := b.as(t, "ana", "ses-1-4")
			all.Go(func() {
				for range 5 {
					r := c.ExecParams(context.Background(), `SELECT id FROM "UserEvent" LIMIT 2`, nil, nil, nil, nil).Read()
					got.Add(int64(len(r.Rows)))
				}
			})
		}
		all.Wait()
		if got.Load() > 5 {
			t.Errorf("%d rows in a turn", got.Load())
		}
		if got.Load() < 4 {
			t.Errorf("%d rows in a turn: the others were given nothing", got.Load())
		}
	}
}
