package serve

import (
	"strings"
	"testing"
)

// A pause begins once, ends once, and is told of while it lasts.
func TestPause(t *testing.T) {
	o := operators{pauses: map[string]*pause{"app": {}, "shop": {}}}
	p := o.pauses["shop"]
	if p.resumed() != nil || !p.began().IsZero() || p.end() || len(o.paused()) != 0 {
		t.Error("a database is paused from the start")
	}
	if !p.begin() || p.begin() {
		t.Error("a pause does not begin once")
	}
	resumed := p.resumed()
	if told := o.paused(); len(told) != 1 || !strings.HasPrefix(told[0], "database shop: paused since "+p.began().UTC().Format("2006-01-02T")) {
		t.Errorf("%q is told", told)
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
	if p.resumed() != nil || len(o.paused()) != 0 {
		t.Error("the pause goes on")
	}
}
