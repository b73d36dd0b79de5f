package air

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Tracker counts the interactions of sessions. It is safe for concurrent use.
type Tracker struct {
	config Config
	secret [32]byte

	remindersGiven atomic.Uint64 // number of reminders, which callers read without a lock

	mu                sync.Mutex
	epoch             time.Time     // the time that the internal times count from
	now               time.Duration // the latest time that a caller has passed: it never goes back
	slotByDigest      map[keyDigest]slot
	sessions          sessionStore
	oldestSlot        slot // the two ends of the list in the order of the last interaction
	newestSlot        slot
	shareIndexByAgent map[[2]string]int32 // the index of an agent's share, by database and agent
	sessionsByAgent   []int               // number of sessions of each agent
	// number of sessions that users have begun themselves, in counters that a keyed hash of the user selects
	sessionsByUserToken [1 << 16]uint16
	counts              Counts
}

// keyDigest identifies a [SessionKey]. It is keyed with a secret of the process, so that nobody can construct
// collisions.
type keyDigest [16]byte

// maxSessionsByUserToken is the largest number of sessions that may be begun with a user's own token. Nobody talks in
// as many channels; a user who invents channels only takes room from the few users with the same counter.
const maxSessionsByUserToken = 1000

// agentShareDivisor limits the sessions of one agent to 1/agentShareDivisor of MaxSessions, so that no agent can fill
// the memory that the application needs.
const agentShareDivisor = 10

// New makes an empty tracker.
func New(c Config) *Tracker {
	t := &Tracker{config: c.withDefaults(), shareIndexByAgent: map[[2]string]int32{}}
	if _, err := rand.Read(t.secret[:]); err != nil {
		panic("air: no randomness: " + err.Error())
	}
	t.reset()
	return t
}

func (t *Tracker) reset() {
	t.slotByDigest, t.sessions = map[keyDigest]slot{}, sessionStore{ringSize: t.config.MaxMessages}
	t.oldestSlot, t.newestSlot = noSlot, noSlot
}

// Track records an interaction, and returns the reminder if it is due now, else "". A channel whose type, by
// channelType or its id, is not [APIChannel] is not tracked. The errors are PC422 for invalid ids, and 53400 if there
// is no room for another session: then nothing was recorded.
func (t *Tracker) Track(now time.Time, k SessionKey, channelType string) (string, error) {
	if err := k.check(); err != nil {
		return "", err
	}
	if channelType == "" {
		channelType = ChannelType(k.Channel)
	}
	if channelType != APIChannel {
		return "", nil
	}
	d := t.digestOf(k)
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.advanceClock(now)
	t.removeIdle(t.config.KeepFor)
	id, ok := t.slotByDigest[d]
	if ok && at-t.sessions.sessionAt(id).lastInteraction > t.config.SessionGap {
		t.remove(id)
		ok = false
	}
	if !ok {
		if id, ok = t.beginSession(d, k, at); !ok {
			t.counts.RefusedInteractions++
			return "", trackerFullError()
		}
	}
	return t.addInteraction(id, at), nil
}

// addInteraction counts an interaction of a session, and returns the reminder if it is due.
func (t *Tracker) addInteraction(id slot, at time.Duration) string {
	s := t.sessions.sessionAt(id)
	t.removeFromList(id)
	s.lastInteraction = at
	t.appendToList(id)
	t.counts.Interactions++
	messages := t.sessions.addTime(id, at, t.config.Window)
	if s.isReminded {
		return ""
	}
	switch {
	case at-s.started >= t.config.ReminderAfter:
		t.counts.RemindersByTime++
	case messages >= t.config.MaxMessages:
		t.counts.RemindersByMessages++
	default:
		return ""
	}
	s.isReminded, s.remindedMessages = true, uint16(messages)
	t.remindersGiven.Add(1)
	return t.config.reminderText(messages)
}

// beginSession makes a session if there is room. To make room, it drops only a session that has been idle so long that
// its next interaction would begin a new session.
func (t *Tracker) beginSession(d keyDigest, k SessionKey, at time.Duration) (slot, bool) {
	shareIndex, user := t.shareIndex(k), uint16(0)
	if k.RecordedByUser {
		userDigest := t.digestOf(SessionKey{Database: k.Database, User: k.User})
		user = binary.BigEndian.Uint16(userDigest[:])
	}
	share := max(1, t.config.MaxSessions/agentShareDivisor)
	room := func() bool {
		return len(t.slotByDigest) < t.config.MaxSessions && (shareIndex < 0 || t.sessionsByAgent[shareIndex] < share) &&
			(!k.RecordedByUser || int(t.sessionsByUserToken[user]) < min(maxSessionsByUserToken, share))
	}
	if !room() {
		t.removeIdle(t.config.SessionGap)
		if !room() {
			return noSlot, false
		}
	}
	id := t.sessions.takeSlot()
	*t.sessions.sessionAt(id) = session{key: d, started: at, lastInteraction: at, agentShareIndex: shareIndex,
		isByUserToken: k.RecordedByUser, userCounter: user, newerSlot: noSlot,
		olderSlot: noSlot}
	if k.RecordedByUser {
		t.sessionsByUserToken[user]++
	}
	if shareIndex >= 0 {
		t.sessionsByAgent[shareIndex]++
	}
	t.slotByDigest[d] = id
	t.appendToList(id)
	return id, true
}

// shareIndex returns the index of the share of the agent that records. There are as many shares as the configuration
// has agents.
func (t *Tracker) shareIndex(k SessionKey) int32 {
	if k.RecordedBy == "" {
		return -1
	}
	agentKey := [2]string{k.Database, k.RecordedBy}
	n, ok := t.shareIndexByAgent[agentKey]
	if !ok {
		n = int32(len(t.sessionsByAgent))
		t.shareIndexByAgent[agentKey], t.sessionsByAgent = n, append(t.sessionsByAgent, 0)
	}
	return n
}

func trackerFullError() error {
	return sqlstate.New(sqlstate.LimitExceeded, sqlstate.ReasonLimit, "there is no room for another session of interactions").
		WithHint("The interaction was not counted. Active sessions are kept; there is room for a new one when " +
			"others have ended, or with a larger air.sessions.")
}

// Session returns what is known about a session; ok is false if there is none.
func (t *Tracker) Session(now time.Time, k SessionKey) (Session, bool) {
	d := t.digestOf(k)
	t.mu.Lock()
	defer t.mu.Unlock()
	trackerTime := t.advanceClock(now)
	t.removeIdle(t.config.KeepFor)
	id, ok := t.slotByDigest[d]
	if !ok {
		return Session{}, false
	}
	s := t.sessions.sessionAt(id)
	out := Session{StartedAt: t.epoch.Add(s.started), LastInteraction: t.epoch.Add(s.lastInteraction),
		IsReminded: s.isReminded}
	for _, m := range t.sessions.messageTimes(id, trackerTime, t.config.Window) {
		out.MessageTimes = append(out.MessageTimes, t.epoch.Add(m))
	}
	return out, true
}

// EndSession forgets a session, and tells whether it existed.
func (t *Tracker) EndSession(now time.Time, k SessionKey) bool {
	d := t.digestOf(k)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advanceClock(now)
	t.removeIdle(t.config.KeepFor)
	id, ok := t.slotByDigest[d]
	if ok {
		t.remove(id)
	}
	return ok
}

// RemindersGiven returns the number of reminders so far, without a lock.
func (t *Tracker) RemindersGiven() uint64 { return t.remindersGiven.Load() }

// ReminderOfSession returns the reminder that a session got, and when the session began, which distinguishes it from an
// earlier session. The reminder is "" if the session got none, or is over.
func (t *Tracker) ReminderOfSession(now time.Time, k SessionKey) (reminder string, session time.Time) {
	d := t.digestOf(k)
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.advanceClock(now)
	id, ok := t.slotByDigest[d]
	if !ok {
		return "", time.Time{}
	}
	s := t.sessions.sessionAt(id)
	if !s.isReminded || at-s.lastInteraction > t.config.SessionGap {
		return "", time.Time{}
	}
	return t.config.reminderText(int(s.remindedMessages)), t.epoch.Add(s.started)
}

// RemoveIdleSessions removes sessions that have been idle for long. It is called from time to time, so that they do not
// stay if nobody calls.
func (t *Tracker) RemoveIdleSessions(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advanceClock(now)
	t.removeIdle(t.config.KeepFor)
}

// Counts returns the totals.
func (t *Tracker) Counts(now time.Time) Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advanceClock(now)
	t.removeIdle(t.config.KeepFor)
	c := t.counts
	c.ActiveSessions = len(t.slotByDigest)
	return c
}

// advanceClock sets the present time, and returns it as an internal time.
func (t *Tracker) advanceClock(now time.Time) time.Duration {
	if t.epoch.IsZero() {
		t.epoch = now
	}
	t.now = max(t.now, now.Sub(t.epoch))
	return t.now
}

// removeIdle removes the sessions that have been idle for longer than the given time; a session that was idle for
// exactly that long is still active.
func (t *Tracker) removeIdle(idleTime time.Duration) {
	for t.oldestSlot != noSlot {
		pause := t.now - t.sessions.sessionAt(t.oldestSlot).lastInteraction
		if pause < idleTime || pause == t.config.SessionGap {
			break
		}
		t.remove(t.oldestSlot)
	}
	if len(t.slotByDigest) == 0 && t.sessions.usedSlots > 0 {
		t.reset() // maps do not shrink, so an empty tracker gets a new one
	}
}

func (t *Tracker) remove(id slot) {
	t.removeFromList(id)
	s := t.sessions.sessionAt(id)
	delete(t.slotByDigest, s.key)
	if s.agentShareIndex >= 0 {
		t.sessionsByAgent[s.agentShareIndex]--
	}
	if s.isByUserToken {
		t.sessionsByUserToken[s.userCounter]--
	}
	t.sessions.freeSlot(id)
}

// appendToList appends a session to the list, as the one with the last interaction.
func (t *Tracker) appendToList(id slot) {
	s := t.sessions.sessionAt(id)
	s.olderSlot, s.newerSlot = t.newestSlot, noSlot
	if t.newestSlot == noSlot {
		t.oldestSlot = id
	} else {
		t.sessions.sessionAt(t.newestSlot).newerSlot = id
	}
	t.newestSlot = id
}

func (t *Tracker) removeFromList(id slot) {
	s := t.sessions.sessionAt(id)
	if s.olderSlot == noSlot {
		t.oldestSlot = s.newerSlot
	} else {
		t.sessions.sessionAt(s.olderSlot).newerSlot = s.newerSlot
	}
	if s.newerSlot == noSlot {
		t.newestSlot = s.olderSlot
	} else {
		t.sessions.sessionAt(s.newerSlot).olderSlot = s.olderSlot
	}
}

// digestOf returns a keyed hash of the parts of a key, each with its length.
func (t *Tracker) digestOf(k SessionKey) keyDigest {
	b := make([]byte, 0, 256)
	b = append(b, t.secret[:]...)
	for _, part := range []string{k.Database, k.RecordedBy, k.User, k.Channel} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	sum := sha256.Sum256(b)
	return keyDigest(sum[:])
}
