package proxy

// seenTexts remembers the hashes of texts that occurred once. It takes little memory for a session with few texts.
type seenTexts struct {
	hashes []uint32 // hash table, without chains
	used   int      // how many of them are set
}

// The least and the greatest size of the table.
const (
	minSeenTexts = 8
	maxSeenTexts = 128
)

// add remembers the hash of a text, and reports whether it was remembered already. Another text with the same hash, or
// the same place in the table, may make the answer wrong.
func (t *seenTexts) add(hash uint64) (wasThere bool) {
	h := max(uint32(hash>>32), 1) // zero stands for no hash
	if t.used*2 >= len(t.hashes) && len(t.hashes) < maxSeenTexts {
		t.grow()
	}
	slot := t.slot(h)
	if *slot == h {
		return true
	}
	if *slot == 0 {
		t.used++
	}
	*slot = h
	return false
}

func (t *seenTexts) slot(h uint32) *uint32 { return &t.hashes[h%uint32(len(t.hashes))] }

func (t *seenTexts) grow() {
	before := t.hashes
	t.hashes, t.used = make([]uint32, max(2*len(before), minSeenTexts)), 0
	for _, h := range before {
		if h != 0 {
			*t.slot(h), t.used = h, t.used+1
		}
	}
}
