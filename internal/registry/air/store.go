package air

import "time"

// slot is the index of a session in a [store].
type slot int32

const noSlot slot = -1

// session is a session in a sessionStore.
type session struct {
	key                         keyDigest
	started, lastInteraction    time.Duration
	agentShareIndex             int32  // the index of the agent's share; -1: the application records
	olderSlot, newerSlot        slot   // the neighbours in the order of the last interaction
	remindedMessages            uint16 // the number of messages that the reminder names
	nextPosition, usedPositions uint16 // the next position in the ring, and the number of positions that are used
	isReminded                  bool
	isByUserToken               bool // the session was begun with a user's own token
	// for such a session: the index of the user's counter in Tracker.sessionsByUserToken
	userCounter uint16
}

// pageSize is the number of sessions that are allocated at once, so that growing copies nothing.
const pageSize = 1024

// sessionStore keeps sessions in pages, without pointers, and for each session a ring of its newest times, as many as
// the threshold. Times are milliseconds modulo 2³², which is 49 days. Times that have left the window are dropped at
// the next interaction. So compared times are at most a window and a pause apart.
type sessionStore struct {
	ringSize  int // the number of times that are kept for each session
	pages     []*[pageSize]session
	rings     [][]uint32
	usedSlots int // the number of slots that were ever used
	freeSlots []slot
}

func (s *sessionStore) sessionAt(id slot) *session { return &s.pages[id/pageSize][id%pageSize] }

func (s *sessionStore) ring(id slot) []uint32 {
	n := int(id%pageSize) * s.ringSize
	return s.rings[id/pageSize][n : n+s.ringSize]
}

// takeSlot returns a free slot.
func (s *sessionStore) takeSlot() slot {
	if n := len(s.freeSlots); n > 0 {
		id := s.freeSlots[n-1]
		s.freeSlots = s.freeSlots[:n-1]
		return id
	}
	if s.usedSlots == len(s.pages)*pageSize {
		s.pages = append(s.pages, new([pageSize]session))
		s.rings = append(s.rings, make([]uint32, pageSize*s.ringSize))
	}
	s.usedSlots++
	return slot(s.usedSlots - 1)
}

// freeSlot makes a slot available again and clears its contents.
func (s *sessionStore) freeSlot(id slot) {
	*s.sessionAt(id) = session{}
	clear(s.ring(id))
	s.freeSlots = append(s.freeSlots, id)
}

func milliseconds(d time.Duration) uint32 { return uint32(d.Milliseconds()) }

// addTime writes a time into the ring of a session, over the oldest one if it is full. It returns how many times are
// within the window that ends now. A time exactly as old as the window does not count.
func (s *sessionStore) addTime(id slot, at, window time.Duration) int {
	entry, ring := s.sessionAt(id), s.ring(id)
	now := milliseconds(at)
	for entry.usedPositions > 0 && millisecondsBetween(now, ring[s.ringPosition(entry, 0)]) >= window {
		entry.usedPositions--
	}
	ring[entry.nextPosition] = now
	entry.nextPosition = uint16((int(entry.nextPosition) + 1) % s.ringSize)
	entry.usedPositions = min(entry.usedPositions+1, uint16(s.ringSize))
	return int(entry.usedPositions)
}

// messageTimes returns the times of a session within the window that ends at the given time, oldest first.
func (s *sessionStore) messageTimes(id slot, at, window time.Duration) []time.Duration {
	entry, ring, now := s.sessionAt(id), s.ring(id), milliseconds(at)
	var out []time.Duration
	for i := range int(entry.usedPositions) {
		if a := millisecondsBetween(now, ring[s.ringPosition(entry, i)]); a < window {
			out = append(out, at-a)
		}
	}
	return out
}

// ringPosition returns the position in the ring of the n-th used time.
func (s *sessionStore) ringPosition(entry *session, n int) int {
	return (int(entry.nextPosition) - int(entry.usedPositions) + n + s.ringSize) % s.ringSize
}

func millisecondsBetween(now, earlier uint32) time.Duration {
	return time.Duration(now-earlier) * time.Millisecond
}
