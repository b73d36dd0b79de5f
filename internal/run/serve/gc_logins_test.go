package serve

import (
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgconsent/pgconsent/internal/run/metrics"
	"github.com/pgconsent/pgconsent/test/tier"
)

func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}

// Garbage is collected after every so many logins, and after a share of the open sessions where that is more.
// Connections that were refused do not count.
func TestGarbageOfLoginsIsCollected(t *testing.T) {
	t.Setenv("GOGC", "")
	c := collectAtLogins(metrics.New(prometheus.NewRegistry())).(*loginCollector)
	logIn := func(n int, kind metrics.SessionKind) {
		for range n {
			c.SessionOpened(kind)
		}
	}
	waitForCollection := func(before uint32) {
		t.Helper()
		for end := time.Now().Add(tier.Patience); c.isCollecting.Load() || collections() == before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("nothing was collected")
			}
		}
	}
	for range 3 {
		before := collections()
		logIn(minCollectedLogins-1, metrics.Agent)
		if got := c.uncollected.Load(); got != minCollectedLogins-1 || c.isCollecting.Load() {
			t.Fatalf("%d logins count", got)
		}
		logIn(100, metrics.Refused)
		if got := c.uncollected.Load(); got != minCollectedLogins-1 {
			t.Fatalf("%d logins count after refused ones", got)
		}
		logIn(1, metrics.Owner)
		waitForCollection(before)
		if got := c.uncollected.Load(); got != 0 {
			t.Errorf("%d logins count after a collection", got)
		}
	}
	c.open.Store(100 * collectedShare)
	c.uncollected.Store(minCollectedLogins)
	logIn(30, metrics.Agent)
	if c.isCollecting.Load() || c.uncollected.Load() != minCollectedLogins+30 {
		t.Error("there are many sessions, and few logins have caused a collection")
	}
	before := collections()
	logIn(10, metrics.Agent)
	waitForCollection(before)
	for range 10 {
		c.SessionClosed(metrics.Agent)
		c.SessionClosed(metrics.Refused)
	}
	if got := c.open.Load(); got != 100*collectedShare+30 {
		t.Errorf("%d sessions are open", got)
	}
}

func TestNoCollectionsAtLoginsWithGOGC(t *testing.T) {
	t.Setenv("GOGC", "70")
	m := metrics.New(prometheus.NewRegistry())
	if got := collectAtLogins(m); got != m {
		t.Errorf("%T", got)
	}
}
