package air

import "time"

// slot is the place of a session in a [store].
type slot int32

const noSlot slot = -1

// session is one of a store.
type session struct {
	key           digest
	started, last time.Duration
	by            int32  // the number of its share; -1: of the application
	older, newer  slot   // by last
	figure        uint16 // of the reminder
	next, times   uint16 // where the next time goes in the ring, how many before it are in use
	reminded      bool
	self          bool   // a user's own token has begun it
	user          uint16 // then: where it counts
}

// page is how many sessions are made at once: growing copies nothing.
const page = 1024

// store keeps sessions in pages, without a pointer in them, and beside each session the ring of its last times. Only as
// many as the threshold are of use. They are milliseconds, counted modulo 2³², which is 49 days: what has left the
// window is dropped at the next interaction, so that two that are compared are at most a window and a pause apart.
type store struct {
	window int // times a session
	pages  []*[page]session
	rings  [][]uint32
	used   int // slots taken so far
	unused []slot
}

func (s *store) at(id slot) *session { return &s.pages[id/page][id%page] }

func (s *store) ring(id slot) []uint32 {
	n := int(id%page) * s.window
	return s.rings[id/page][n : n+s.window]
}

// take returns a slot that nobody uses.
func (s *store) take() slot {
	if n := len(s.unused); n > 0 {
		id := s.unused[n-1]
		s.unused = s.unused[:n-1]
		return id
	}
	if s.used == len(s.pages)*page {
		s.pages = append(s.pages, new([page]session))
		s.rings = append(s.rings, make([]uint32, page*s.window))
	}
	s.used++
	return slot(s.used - 1)
}

// free gives a slot back, and nothing of it stays.
func (s *store) free(id slot) {
	*s.at(id) = session{}
	clear(s.ring(id))
	s.unused = append(s.unused, id)
}

func milliseconds(d time.Duration) uint32 { return uint32(d.Milliseconds()) }

// add puts a time into the ring of a session, in place of the oldest if it is full, and returns how many the window
// that ends then has. The window is as long as it says: what is exactly as old is not in it.
func (s *store) add(id slot, at, window time.Duration) int {
	one, ring := s.at(id), s.ring(id)
	now := milliseconds(at)
	for one.times > 0 && age(now, ring[s.nth(one, 0)]) >= window {
		one.times--
	}
	ring[one.next] = now
	one.next = uint16((int(one.next) + 1) % s.window)
	one.times = min(one.times+1, uint16(s.window))
	return int(one.times)
}

// times are those of a session that lie within the window that ends at that time, oldest first.
func (s *store) times(id slot, at, window time.Duration) []time.Duration {
	one, ring, now := s.at(id), s.ring(id), milliseconds(at)
	var out []time.Duration
	for i := range int(one.times) {
		if a := age(now, ring[s.nth(one, i)]); a < window {
			out = append(out, at-a)
		}
	}
	return out
}

// nth is where the nth time in use stands.
func (s *store) nth(one *session, n int) int {
	return (int(one.next) - int(one.times) + n + s.window) % s.window
}

func age(now, then uint32) time.Duration { return time.Duration(now-then) * time.Millisecond }
