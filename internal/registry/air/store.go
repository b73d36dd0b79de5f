package air

import "time"

// slot is the index of a session in a [sessionStore].
type slot int32

const noSlot slot = -1

// session is a session as a [sessionStore] stores it.
type session struct {
	key                         keyDigest
	started, lastInteraction    time.Duration
	agentShareIndex             int32  // the index into Tracker.sessionsByAgent; -1: no agent records the session
	olderSlot, newerSlot        slot   // the neighbours in the list of sessions, which is sorted by last interaction
	remindedMessages            uint16 // how many messages the reminder of this session names
	nextPosition, usedPositions uint16 // in the ring of times: the next position to write, and how many positions are used
	isReminded                  bool
	isByUserToken               bool // the session was begun with the user's own token
	// if isByUserToken: the index of the user's counter in Tracker.sessionsByUserToken
	userCounter uint16
}

// pageSize is the number of sessions that are allocated at once, so that the store never copies sessions when it grows.
const pageSize = 1024

// sessionStore stores sessions in pages without pointers. For each session it has a ring of the newest message times,
// as many as MaxMessages. Times are milliseconds modulo 2³², about 49 days. Each interaction drops the times that have
// left the window, so compared times are at most a window and a pause apart.
type sessionStore struct {
	ringSize  int // how many times the ring of a session has room for
	pages     []*[pageSize]session
	rings     [][]uint32
	usedSlots int // how many slots were ever used
	freeSlots []slot
}

func (s *sessionStore) sessionAt(id slot) *session { return &s.pages[id/pageSize][id%pageSize] }

func (s *sessionStore) ring(id slot) []uint32 {
	n := int(id%pageSize) * s.ringSize
	return s.rings[id/pageSize][n : n+s.ringSize]
}

// takeSlot returns an unused slot.
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

// freeSlot clears a slot, so that another session can use it.
func (s *sessionStore) freeSlot(id slot) {
	*s.sessionAt(id) = session{}
	clear(s.ring(id))
	s.freeSlots = append(s.freeSlots, id)
}

func milliseconds(d time.Duration) uint32 { return uint32(d.Milliseconds()) }

// addTime writes a time into the ring of a session, over the oldest one if the ring is full. It returns how many times
// are within the window that ends now. A time that is exactly a window old does not count.
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

// messageTimes returns the message times of a session that are within the window ending at the given time, oldest
// first.
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

// ringPosition returns the position in the ring of the n-th used time, counted from the oldest.
func (s *sessionStore) ringPosition(entry *session, n int) int {
	return (int(entry.nextPosition) - int(entry.usedPositions) + n + s.ringSize) % s.ringSize
}

func millisecondsBetween(now, earlier uint32) time.Duration {
	return time.Duration(now-earlier) * time.Millisecond
}
