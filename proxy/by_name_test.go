package proxy

import (
	"maps"
	"slices"
	"strconv"
	"testing"
)

// A byName does what a map does, with the empty name and with others, also while names are removed on the way.
func TestByName(t *testing.T) {
	var names byName[int]
	want := map[string]*int{}
	check := func(step string) {
		t.Helper()
		if got := maps.Collect(names.all()); !maps.Equal(got, want) || names.len() != len(want) {
			t.Fatalf("%s: %v, length %d, not %v", step, got, names.len(), want)
		}
		for _, name := range []string{"", "0", "1", "never"} {
			if names.get(name) != want[name] {
				t.Fatalf("%s: another value of %q", step, name)
			}
		}
	}
	check("empty")
	names.remove("")
	names.remove("0")
	check("removed from an empty one")
	for _, order := range [][]string{{"", "0", "1"}, {"1", "0", ""}} {
		for _, name := range slices.Concat(order, order) { // The second value replaces the first one.
			value := new(int)
			names.set(name, value)
			want[name] = value
			check("set " + strconv.Quote(name))
		}
		for name := range names.all() {
			names.remove(name)
			delete(want, name)
			check("removed " + strconv.Quote(name))
		}
	}
	names.set("", new(int))
	names.set("0", new(int))
	for range names.all() {
		break // stops at the unnamed one
	}
}

// The last entries of a batch end the time in which messages are handled, and a session is idle only when they have
// been answered as well.
func TestLastEntriesEndStaging(t *testing.T) {
	l := newLedger()
	l.setStaging(true)
	l.push([]entry{&executeEntry{}})
	if l.mu.Lock(); !l.staging {
		t.Error("a part of a batch ended the staging")
	}
	l.mu.Unlock()
	l.pushBatch([]entry{&syncEntry{}}, true)
	if l.drain() {
		t.Error("a session with unanswered messages counts as idle")
	}
	if next := l.succeed(); next != l.head() {
		t.Error("succeed returns another entry than the one that the next answer belongs to")
	}
	if drained, _ := l.ready('I'); !drained {
		t.Error("an answered session does not count as idle")
	}
}
