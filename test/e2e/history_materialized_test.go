package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/test/tier"
)

// materializedHistory is a policy that materializes, with each memory, whether all its participants have consented.
const materializedHistory = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  people: { rows: [ own: { column: user_id, is: user } ] }
  memories: { rows: [ own: { column: user_id, is: user },
    consent: { every: [ memory_participants: { memory_id: id }, people: { id: person_id } ], status: consent_status, is: granted, materialize: true } ] }
`

// withdrawals are ways to end the one consent that the memory depends on. After the last two, the materialized values
// are not used until they are filled in again.
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

// TestHistoryOfMaterializedConsents plays the histories with materialized consents. Some withdrawals update the
// materialized value, and others make it unusable.
func TestHistoryOfMaterializedConsents(t *testing.T) {
	tier.All(t)
	trials, seed := tier.Count(1, 3, 100), tier.Seed()
	t.Logf("%d trials, seed %d", trials, seed)
	firstProxy := start(t, options{afterMigrate: historySetup, policy: materializedHistory})
	secondProxy := serveOn(t, firstProxy.db, options{policy: materializedHistory})
	super, owners := firstProxy.db.Connect(t, "postgres"), []*pgx.Conn{firstProxy.ownerConn(t), secondProxy.ownerConn(t)}
	fills := fillsOf(t, super, materializedHistory)
	ignoreProgress := func(migrations.Fill, int64) {}
	nextWithdrawal, fillCount := int(seed%uint64(len(withdrawals))), 0
	setConsent := func(o int, isGranted bool) error {
		sql := withdrawals[nextWithdrawal%len(withdrawals)]
		if isGranted {
			nextWithdrawal++
			sql = `INSERT INTO people (id, user_id, name, consent_status) VALUES ($person, '` + user1 +
				`', 'Of the history', 'granted') ON CONFLICT (id) DO UPDATE SET consent_status = 'granted'; ` +
				`DELETE FROM memory_participants WHERE memory_id = $memory AND person_id <> $person`
		}
		sql = strings.NewReplacer("$person", "'"+historyPerson+"'", "$memory", "'"+historyID+"'").Replace(sql)
		if _, err := owners[o].PgConn().Exec(context.Background(), sql).ReadAll(); err != nil || !isGranted {
			return err
		}
		var isReady bool
		if err := super.QueryRow(context.Background(), "SELECT ready FROM pgconsent.materialized").Scan(&isReady); err != nil || isReady {
			return err
		}
		fillCount++
		return migrations.FillAll(context.Background(), super, fills, ignoreProgress)
	}
	historyCount, lateReads := 0, 0
	for name := range readingWays {
		lateReads += compareHistories(t, firstProxy, secondProxy, name, trials, seed, &historyCount, setConsent)
	}
	if lateReads > 0 {
		t.Errorf("%d late disclosures", lateReads)
	}
	if fillCount == 0 {
		t.Error("what is kept counted throughout")
	}
	t.Logf("%d histories, %d late, filled in %d times", historyCount, lateReads, fillCount)
}
