package air

import "time"

// slot is the index of a session in a [store].
type slot int32

const noSlot slot = -1

// session is a session in a store.
type session struct {
	key           digest
	started, last time.Duration
	by            int32  // index of the agent's share; -1: the application
	older, newer  slot   // neighbours in the order of last
	figure        uint16 // number of messages in the reminder
	next, times   uint16 // next position in the ring, and how many positions are used
	reminded      bool
	self          bool   // begun by a user's own token
	user          uint16 // if self: the index of its counter in Tracker.own
}

// page is how many sessions are allocated at once, so that growing copies nothing.
const page = 1024

// store keeps sessions in pages, without pointers, and for each session a ring of its newest times, as many as the
// threshold. Times are milliseconds modulo 2³², which is 49 days: times that have left the window are dropped at the
// next interaction, so that compared times are at most a window and a pause apart.
type store struct {
	window    int // times kept for each session
	pages     []*[page]session
	rings     [][]uint32
	usedSlots int // number of slots that were ever used
	freeSlots []slot
}

func (s *store) at(id slot) *session { return &s.pages[id/page][id%page] }

func (s *store) ring(id slot) []uint32 {
	n := int(id%page) * s.window
	return s.rings[id/page][n : n+s.window]
}

// take returns a free slot.
func (s *store) take() slot {
	if n := len(s.freeSlots); n > 0 {
		id := s.freeSlots[n-1]
		s.freeSlots = s.freeSlots[:n-1]
		return id
	}
	if s.usedSlots == len(s.pages)*page {
		s.pages = append(s.pages, new([page]session))
		s.rings = append(s.rings, make([]uint32, page*s.window))
	}
	s.usedSlots++
	return slot(s.usedSlots - 1)
}

// free frees a slot and clears its contents.
func (s *store) free(id slot) {
	*s.at(id) = session{}
	clear(s.ring(id))
	s.freeSlots = append(s.freeSlots, id)
}

func milliseconds(d time.Duration) uint32 { return uint32(d.Milliseconds()) }

// add puts a time into the ring of a session, over the oldest if it is full, and returns how many are within the window
// that ends now. A time exactly as old as the window is outside.
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

// times returns the times of a session within the window that ends at that time, oldest first.
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

// nth is the position of the nth used time.
func (s *store) nth(one *session, n int) int {
	return (int(one.next) - int(one.times) + n + s.window) % s.window
}

func age(now, then uint32) time.Duration { return time.Duration(now-then) * time.Millisecond }
