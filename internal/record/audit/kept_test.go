package audit

import (
	"path/filepath"
	"testing"
	"time"
)

// No record is removed before its time, even if it shares a segment with older ones. Expired segments are removed.
func TestRetentionRemovesNothingEarly(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cfg := Config{
		Dir: filepath.Join(t.TempDir(), "audit"), Key: testKey(t,
			'k'), MaxSegmentAge: 7 * day, Retention: 10 * day, Clock: func() time.Time { return now }, Log: quiet(), ReleaseTimeout: time.Hour,
	}
	writeTimes := map[uint64]time.Time{}
	removedCount := uint64(0)
	for range 60 {
		writeDecisions(t, cfg, 2)
		if _, err := Walk(cfg.Dir, func(r Record) error { writeTimes[r.Seq] = r.Time; return nil }); err != nil {
			t.Fatal(err)
		}
		report, err := Walk(cfg.Dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		for ; removedCount+1 < report.FirstSeq; removedCount++ {
			if age := now.Sub(writeTimes[removedCount+1]); age < cfg.Retention {
				t.Fatalf("record %d is gone after %v", removedCount+1, age)
			}
		}
		now = now.Add(day)
	}
	if removedCount < 30 {
		t.Errorf("%d records are gone of %d", removedCount, len(writeTimes))
	}
}

// Commitments differ if the session, the table, a part of the key, or the division into parts differs.
func TestCommitmentsDiffer(t *testing.T) {
	key := testKey(t, 'k')
	inputByCommitment := map[string]string{}
	for name, c := range map[string]string{
		"":              key.Commit("s", "t", "a", "bc"),
		"session":       key.Commit("s2", "t", "a", "bc"),
		"table":         key.Commit("s", "t2", "a", "bc"),
		"first part":    key.Commit("s", "t", "b", "bc"),
		"last part":     key.Commit("s", "t", "a", "bd"),
		"parts":         key.Commit("s", "t", "ab", "c"),
		"one part":      key.Commit("s", "t", "abc"),
		"a part more":   key.Commit("s", "t", "a", "bc", ""),
		"key":           testKey(t, 'l').Commit("s", "t", "a", "bc"),
		"order":         key.Commit("s", "t", "bc", "a"),
		"table's place": key.Commit("t", "s", "a", "bc"),
	} {
		if otherInput, ok := inputByCommitment[c]; ok {
			t.Errorf("another %q and another %q have one commitment", name, otherInput)
		}
		inputByCommitment[c] = name
	}
}
