package proxy

import "testing"

// A text is known when it comes again, as long as few others came in between, and the table stays small.
func TestSeenTexts(t *testing.T) {
	var seen seenTexts
	spread := func(n int) uint64 { return uint64(n) * 0x9e3779b97f4a7c15 }
	if seen.add(spread(1)) || !seen.add(spread(1)) || len(seen.hashes) != minSeenTexts {
		t.Errorf("the first text; the table has %d places", len(seen.hashes))
	}
	if seen.add(0) || !seen.add(0) {
		t.Error("a hash of zero")
	}
	known := 0
	for n := range 40 {
		seen.add(spread(1000 + n))
		if seen.add(spread(1000 + n)) {
			known++
		}
	}
	if known != 40 {
		t.Errorf("%d of 40 texts are known at once", known)
	}
	known = 0
	for n := range 40 {
		if seen.add(spread(1000 + n)) {
			known++
		}
	}
	if known < 20 {
		t.Errorf("%d of 40 texts are known after the others", known)
	}
	for n := range 10_000 {
		seen.add(spread(2000 + n))
	}
	if len(seen.hashes) != maxSeenTexts {
		t.Errorf("the table has %d places", len(seen.hashes))
	}
}
