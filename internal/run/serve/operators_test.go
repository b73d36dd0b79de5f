package serve

import (
	"strings"
	"testing"
)

// A pause is begun and ended once, and is reported while it lasts.
func TestPause(t *testing.T) {
	o := operatorLogins{pauses: map[string]*databasePause{"app": {}, "shop": {}}}
	p := o.pauses["shop"]
	if p.resumeSignal() != nil || !p.beganAt().IsZero() || p.end() || len(o.pausedDatabases()) != 0 {
		t.Error("a database is paused from the start")
	}
	if !p.begin() || p.begin() {
		t.Error("a pause does not begin once")
	}
	resumed := p.resumeSignal()
	if pauseMessages := o.pausedDatabases(); len(pauseMessages) != 1 ||
		!strings.HasPrefix(pauseMessages[0], "database shop: paused since "+p.beganAt().UTC().Format("2006-01-02T")) {
		t.Errorf("%q is told", pauseMessages)
	}
	select {
	case <-resumed:
		t.Error("the pause is over")
	default:
	}
	if !p.end() || p.end() {
		t.Error("a pause does not end once")
	}
	<-resumed
	if p.resumeSignal() != nil || len(o.pausedDatabases()) != 0 {
		t.Error("the pause goes on")
	}
}
