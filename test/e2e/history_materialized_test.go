package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/test/tier"
)

// materializedHistory is a policy by which the answer to whether everybody has agreed is kept beside the memory.
const materializedHistory = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  people: { rows: [ own: { column: user_id, is: user } ] }
  memories: { rows: [ own: { column: user_id, is: user },
    consent: { every: [ memory_participants: { memory_id: id }, people: { id: person_id } ], status: consent_status, is: granted, materialize: true } ] }
`

// withdrawals are ways to end the one consent that the memory depends on. After the last ones what is kept does not
// count until it is filled in again.
var withdrawals = []string{
	"UPDATE people SET consent_status = 'refused' WHERE id = $person",
	"DELETE FROM people WHERE id = $person",
	"INSERT INTO memory_participants (memory_id, person_id) VALUES ($memory, 'a11ce000-0000-4000-8000-00000000f1f9')", // a person who does not exist
	"BEGIN; SET CONSTRAINTS ALL IMMEDIATE; UPDATE people SET consent_status = NULL WHERE id = $person; COMMIT",
	"BEGIN; SAVEPOINT a; UPDATE people SET consent_status = 'refused' WHERE id = $person; RELEASE a; SAVEPOINT b; " +
		"UPDATE people SET consent_status = 'granted' WHERE id = $person; ROLLBACK TO b; COMMIT",
	"BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE people SET consent_status = 'refused' WHERE id = $person; COMMIT",
	"BEGIN ISOLATION LEVEL SERIALIZABLE; DELETE FROM people WHERE id = $person; COMMIT",
}

// TestHistoryOfMaterializedConsents plays the same ways where the answer is kept, and withdraws in every way that
// settles it or cannot.
func TestHistoryOfMaterializedConsents(t *testing.T) {
	tier.All(t)
	trials, seed := tier.Count(1, 3, 100), tier.Seed()
	t.Logf("%d trials, seed %d", trials, seed)
	first := start(t, options{after: historySetup, policy: materializedHistory})
	second := serveOn(t, first.db, options{policy: materializedHistory})
	super, owners := first.db.Connect(t, "postgres"), []*pgx.Conn{first.ownerConn(t), second.ownerConn(t)}
	fills := fillsOf(t, super, materializedHistory)
	told := func(migrations.Fill, int64) {}
	next, filled := int(seed%uint64(len(withdrawals))), 0
	change := func(o int, granted bool) error {
		sql := withdrawals[next%len(withdrawals)]
		if granted {
			next++
			sql = `INSERT INTO people (id, user_id, name, consent_status) VALUES ($person, '` + user1 +
				`', 'Of the history', 'granted') ON CONFLICT (id) DO UPDATE SET consent_status = 'granted'; ` +
				`DELETE FROM memory_participants WHERE memory_id = $memory AND person_id <> $person`
		}
		sql = strings.NewReplacer("$person", "'"+historyPerson+"'", "$memory", "'"+historyID+"'").Replace(sql)
		if _, err := owners[o].PgConn().Exec(context.Background(), sql).ReadAll(); err != nil || !granted {
			return err
		}
		var ready bool
		if err := super.QueryRow(context.Background(), "SELECT ready FROM pgconsent.materialized").Scan(&ready); err != nil || ready {
			return err
		}
		filled++
		return migrations.FillAll(context.Background(), super, fills, told)
	}
	total, lateReads := 0, 0
	for name := range readingWays {
		lateReads += compareHistories(t, first, second, name, trials, seed, &total, change)
	}
	if lateReads > 0 {
		t.Errorf("%d late disclosures", lateReads)
	}
	if filled == 0 {
		t.Error("what is kept counted throughout")
	}
	t.Logf("%d histories, %d late, filled in %d times", total, lateReads, filled)
}
