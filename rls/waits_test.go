package rls_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

// TestMigrateMakesNobodyQueue: a transaction holds a lock that migrate needs. Meanwhile other sessions read the table,
// and migrate reports the transaction it waits for. Migrate continues when that transaction ends. If migrate is
// interrupted, it has changed nothing.
func TestMigrateMakesNobodyQueue(t *testing.T) {
	w := newWorld(t).migrate()
	before := w.state()
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	holder, reader := w.db.Connect(t, "app_owner"), w.db.Connect(t, "postgres")
	if _, err := holder.Exec(ctx, "BEGIN; SELECT FROM people LIMIT 1"); err != nil {
		t.Fatal(err)
	}
	w.compile("testdata/policy.yaml", rls.Options{Mode: rls.SealOnly})
	holderTexts := make(chan string, 100)
	migrate := func(ctx context.Context) chan error {
		done := make(chan error, 1)
		go func() {
			done <- migrations.Up(ctx, w.owner, migrations.Options{OnWait: func(holders []migrations.Holder) {
				text := ""
				for _, h := range holders {
					text += h.String() + "\n"
				}
				select {
				case holderTexts <- text:
				default:
				}
			}}, w.plan)
		}()
		return done
	}
	stoppable, stop := context.WithCancel(ctx)
	done := migrate(stoppable)
	for range 3 {
		if holderText := <-holderTexts; !strings.Contains(holderText, "idle in transaction") ||
			!strings.Contains(holderText, "SELECT FROM people") {
			t.Errorf("it waits for %q", holderText)
		}
		if _, err := reader.Exec(ctx, "SELECT count(*) FROM people"); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-done; err == nil {
		t.Error("it was interrupted, and says nothing")
	}
	if w.state() != before {
		t.Error("what was interrupted has changed something")
	}
	w.owner = w.db.Connect(t, w.owner.Config().User) // a cancelled context closes a connection in the middle of a statement
	done = migrate(ctx)
	<-holderTexts
	if _, err := holder.Exec(ctx, "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if w.state() == before {
		t.Error("nothing was installed")
	}
}
