package enforce

import (
	"testing"
	"time"
)

// Catalog fingerprints are read again at once after DDL that the database reports. They are read again after five
// seconds if the statistics count a write to the catalogs, and after a minute in any case.
func TestLifetimeOfFingerprints(t *testing.T) {
	for _, c := range []struct {
		version, writes int64
		age             time.Duration
		kept            bool
	}{
		{7, 100, 0, true}, {7, 100, 50 * time.Second, true}, {7, 100, 2 * time.Minute, false},
		{7, 101, time.Second, true}, {7, 101, 6 * time.Second, false}, {7, 0, 6 * time.Second, false},
		{8, 100, 0, false}, {8, 101, 0, false},
	} {
		f := fingerprints{catalogVersion: 7, writeCount: 100, readAt: time.Now().Add(-c.age)}
		if kept := f.areCurrent(c.version, c.writes); kept != c.kept {
			t.Errorf("%+v: kept %t", c, kept)
		}
	}
}
