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

// Tracker counts the interactions of sessions and decides when a reminder is due. It is safe for concurrent use.
type Tracker struct {
	config Config
	secret [32]byte

	remindersGiven atomic.Uint64 // total number of reminders, read without a lock

	mu                sync.Mutex
	epoch             time.Time     // the first time that a caller passed; internal times are durations since then
	now               time.Duration // the latest time that a caller passed, so that time never goes back
	slotByDigest      map[keyDigest]slot
	sessions          sessionStore
	oldestSlot        slot // the first and last session of the list that is sorted by last interaction
	newestSlot        slot
	shareIndexByAgent map[[2]string]int32 // indexes into sessionsByAgent, by database and agent
	sessionsByAgent   []int               // how many sessions each agent has
	// how many sessions were begun with users' own tokens; a keyed hash of the user selects the counter
	sessionsByUserToken [1 << 16]uint16
	counts              Counts
}

// keyDigest identifies a [SessionKey]. It is keyed with a secret of the process, so that nobody can construct two keys
// with the same digest.
type keyDigest [16]byte

// maxSessionsByUserToken is how many sessions may be begun with a user's own token. Nobody talks in so many channels. A
// user who invents channels takes room only from the few users who share the counter.
const maxSessionsByUserToken = 1000

// agentShareDivisor limits one agent to MaxSessions/agentShareDivisor sessions, so that no agent can fill the memory
// that the application needs.
const agentShareDivisor = 10

// New returns an empty tracker.
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

// Track counts an interaction, and returns the reminder if it is due now, or else "". It ignores channels whose type is
// not [APIChannel]; if channelType is "", the type follows from the channel's id. The error is PC422 for an invalid id,
// and 53400 if there is no room for another session. Then the interaction was not counted.
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

// addInteraction counts an interaction of a session, and returns the reminder if it is due now, or else "".
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

// beginSession begins a session if there is room. To make room it removes only sessions that have been idle so long
// that their next interaction would begin a new session anyway.
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

// shareIndex returns the index in sessionsByAgent for the agent that records, or -1 if no agent does. There are as many
// indexes as agents that have recorded.
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

// Session returns what the tracker knows about a session; ok is false if it knows none.
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

// EndSession forgets a session, and reports whether the tracker knew it.
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

// RemindersGiven returns the total number of reminders, without taking a lock.
func (t *Tracker) RemindersGiven() uint64 { return t.remindersGiven.Load() }

// ReminderOfSession returns the reminder that a session got, and when the session began, which tells it apart from
// earlier sessions with the same key. It returns "" if the session got no reminder or is over.
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

// RemoveIdleSessions removes sessions that have had no interaction for KeepFor. A timer should call it, so that old
// sessions are also removed if no interactions come.
func (t *Tracker) RemoveIdleSessions(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advanceClock(now)
	t.removeIdle(t.config.KeepFor)
}

// Counts returns the totals, and the number of sessions in memory.
func (t *Tracker) Counts(now time.Time) Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advanceClock(now)
	t.removeIdle(t.config.KeepFor)
	c := t.counts
	c.ActiveSessions = len(t.slotByDigest)
	return c
}

// advanceClock sets the tracker's time to now, unless that is earlier, and returns it as an internal time.
func (t *Tracker) advanceClock(now time.Time) time.Duration {
	if t.epoch.IsZero() {
		t.epoch = now
	}
	t.now = max(t.now, now.Sub(t.epoch))
	return t.now
}

// removeIdle removes the sessions that have been idle for at least the given time. A session that has been idle for
// exactly SessionGap is still active.
func (t *Tracker) removeIdle(idleTime time.Duration) {
	for t.oldestSlot != noSlot {
		pause := t.now - t.sessions.sessionAt(t.oldestSlot).lastInteraction
		if pause < idleTime || pause == t.config.SessionGap {
			break
		}
		t.remove(t.oldestSlot)
	}
	if len(t.slotByDigest) == 0 && t.sessions.usedSlots > 0 {
		t.reset() // Go maps never shrink, so an empty tracker gets a new map
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

// appendToList appends a session at the end of the list, as the session with the latest interaction.
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

// digestOf returns a keyed hash of the parts of a key. Each part is hashed with its length, so that parts cannot shift.
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
