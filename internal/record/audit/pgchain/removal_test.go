package pgchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/record/audit"
)

// expiredChain returns a chain with a checkpoint for the expired records, none of which is removed yet. through is the
// newest expired record.
func expiredChain(t *testing.T) (b *bench, through uint64) {
	t.Helper()
	b = begin(t)
	log := b.log(func(c *audit.Config) { c.Retention, c.Store = 24*time.Hour, storeWithoutRemoval{b.store("one")} })
	for i := range 30 {
		if err := run(log, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	b.pass(log, 25*time.Hour)
	for i := range 20 {
		if err := run(log, fmt.Sprint("new ", i)); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, log)
	report, err := b.verify(func(r audit.Record) error {
		if r.Kind != audit.KindCheckpoint {
			return nil
		}
		var cp audit.Checkpoint
		if err := json.Unmarshal(r.Line, &cp); err != nil {
			return err
		}
		through = cp.RemovedSegments[0].Seq
		return nil
	})
	if err != nil || report.FirstSeq != 1 || report.Checkpoints != 1 || through < 40 {
		t.Fatalf("%+v, the time of %d is over, %v", report, through, err)
	}
	return b, through
}

// storeWithoutRemoval is a store that removes no record, as if its process were killed just before.
type storeWithoutRemoval struct{ *Store }

func (storeWithoutRemoval) Remove(uint64) error { return nil }

// retire removes up to n of the oldest records, the newest of them at most through.
func (b *bench) retire(conn *pgx.Conn, through uint64, n int) {
	b.t.Helper()
	if _, err := conn.Exec(context.Background(), "SELECT pgconsent.audit_retire('one', $1, $2)", int64(through), n); err != nil {
		b.t.Fatal(err)
	}
}

// A removal takes several transactions. After an interruption at any point, the checkpoint covers exactly the removed
// records, and the next removal continues.
func TestRemovalInterrupted(t *testing.T) {
	b, through := expiredChain(t)
	head, err := audit.ReadAnchor(b.anchor, b.key)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(conn *pgx.Conn) (audit.Report, error) {
		return audit.VerifyOptions{Key: b.key, Heads: []audit.RecordHead{head}}.Read(NewReader(t.Context(), conn, "app", "one"), nil)
	}
	for removedCount := uint64(1); removedCount <= through+2; removedCount++ {
		tx, err := b.dba.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.retire(tx.Conn(), max(through, removedCount), int(removedCount))
		report, err := verify(tx.Conn())
		var chainError *audit.ChainError
		switch {
		case removedCount <= through && (err != nil || report.FirstSeq != removedCount+1):
			t.Errorf("%d of %d records are removed: %+v, %v", removedCount, through, report, err)
		case removedCount > through && !errors.As(err, &chainError):
			t.Errorf("%d records are removed where %d might be: %+v, %v", removedCount, through, report, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.retire(b.dba, through, 10)
	// Without a retention time nothing more is removed, and the chain verifies.
	log := b.log(nil)
	if err := run(log, "without retention"); err != nil {
		t.Fatal(err)
	}
	closed(t, log)
	if report, _, _ := b.records(); report.FirstSeq != 11 {
		t.Errorf("%+v", report)
	}
	log = b.log(func(c *audit.Config) { c.Retention = 24 * time.Hour })
	if err := run(log, "with retention"); err != nil {
		t.Fatal(err)
	}
	closed(t, log)
	if report, _, _ := b.records(); report.FirstSeq <= through {
		t.Errorf("%+v", report)
	}
}

// A verification in one snapshot finds all records that existed when it began, whatever is removed meanwhile.
func TestVerifyWhileRecordsAreRemoved(t *testing.T) {
	b, through := expiredChain(t)
	reader := NewReader(t.Context(), b.db.Connect(t, "pgconsent_control"), "app", "one")
	if err := reader.InSnapshot(func(from audit.Source) error {
		report, err := audit.VerifyOptions{Key: b.key}.Read(from, func(audit.Record) error {
			b.retire(b.dba, through, 3) // the removal overtakes the reader
			return nil
		})
		if err == nil && report.FirstSeq != 1 {
			t.Errorf("%+v", report)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if report, _, _ := b.records(); report.FirstSeq != through+1 {
		t.Errorf("%+v", report)
	}
}

// After a process is killed, the server may go on with its removal for a while. A new writer still finds the end of the
// chain.
func TestBeginWhileRecordsAreRemoved(t *testing.T) {
	b, through := expiredChain(t)
	removedCount := 0
	store := b.store("one")
	dial := store.config.DialFunc
	store.config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &sender{Conn: conn, before: func() { b.retire(b.dba, through, 1); removedCount++ }}, err
	}
	log, err := b.open(func(c *audit.Config) { c.Store = store })
	if err != nil {
		t.Fatal(err)
	}
	if err := run(log, "again"); err != nil {
		t.Error(err)
	}
	closed(t, log)
	report, _, sessions := b.records()
	if !sessions["again"] || report.FirstSeq != min(uint64(removedCount), through)+1 {
		t.Errorf("%+v %v", report, sessions)
	}
}

// sender calls before ahead of each message to the server.
type sender struct {
	net.Conn
	before func()
}

func (s *sender) Write(b []byte) (int, error) {
	s.before()
	return s.Conn.Write(b)
}
