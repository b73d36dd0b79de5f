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

// Tracker keeps the sessions. It is safe for concurrent use.
type Tracker struct {
	config Config
	secret [32]byte

	given atomic.Uint64 // number of reminders, which callers read without a lock

	mu       sync.Mutex
	epoch    time.Time     // zero of the internal times
	now      time.Duration // the latest time that was passed: it never goes back
	index    map[digest]slot
	sessions store
	oldest   slot // ends of the list in the order of the last interaction
	newest   slot
	agents   map[[2]string]int32 // database and agent → index of its share
	shares   []int               // number of sessions of each agent
	own      [1 << 16]uint16     // number of sessions that users have begun themselves, in counters that a keyed hash of the user selects
	counts   Counts
}

// digest identifies a [Key]. It is keyed with a secret of the process, so that nobody can construct collisions.
type digest [16]byte

// maxOwnSessions is how many sessions may be begun with a user's own token. Nobody talks in as many channels; a user
// who invents channels only takes room from the few users with the same counter.
const maxOwnSessions = 1000

// agentShare: an agent's sessions may take one in agentShare of the room, so that agents cannot crowd out the
// application.
const agentShare = 10

// New makes an empty tracker.
func New(c Config) *Tracker {
	t := &Tracker{config: c.withDefaults(), agents: map[[2]string]int32{}}
	if _, err := rand.Read(t.secret[:]); err != nil {
		panic("air: no randomness: " + err.Error())
	}
	t.empty()
	return t
}

func (t *Tracker) empty() {
	t.index, t.sessions, t.oldest, t.newest = map[digest]slot{}, store{window: t.config.Messages}, noSlot, noSlot
}

// Track records an interaction, and returns the reminder if it is due now, else "". A channel whose type, by
// channelType or its id, is not [API] is not tracked. The errors are PC422 for invalid ids, and 53400 if there is no
// room for another session: then nothing was recorded.
func (t *Tracker) Track(now time.Time, k Key, channelType string) (string, error) {
	if err := k.check(); err != nil {
		return "", err
	}
	if channelType == "" {
		channelType = TypeOf(k.Channel)
	}
	if channelType != API {
		return "", nil
	}
	d := t.digest(k)
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.advance(now)
	t.forget(t.config.Keep)
	id, ok := t.index[d]
	if ok && at-t.sessions.at(id).last > t.config.Idle {
		t.remove(id)
		ok = false
	}
	if !ok {
		if id, ok = t.begin(d, k, at); !ok {
			t.counts.Refused++
			return "", full()
		}
	}
	return t.interact(id, at), nil
}

// interact counts an interaction of a session.
func (t *Tracker) interact(id slot, at time.Duration) string {
	s := t.sessions.at(id)
	t.unlink(id)
	s.last = at
	t.link(id)
	t.counts.Interactions++
	messages := t.sessions.add(id, at, t.config.Window)
	if s.reminded {
		return ""
	}
	switch {
	case at-s.started >= t.config.After:
		t.counts.ByTime++
	case messages >= t.config.Messages:
		t.counts.ByMessages++
	default:
		return ""
	}
	s.reminded, s.figure = true, uint16(messages)
	t.given.Add(1)
	return t.config.text(messages)
}

// begin makes a session if there is room. Only a session that has been idle so long that its next interaction would
// begin a new one makes room.
func (t *Tracker) begin(d digest, k Key, at time.Duration) (slot, bool) {
	by, user := t.share(k), uint16(0)
	if k.Self {
		place := t.digest(Key{Database: k.Database, User: k.User})
		user = binary.BigEndian.Uint16(place[:])
	}
	share := max(1, t.config.Sessions/agentShare)
	room := func() bool {
		return len(t.index) < t.config.Sessions && (by < 0 || t.shares[by] < share) &&
			(!k.Self || int(t.own[user]) < min(maxOwnSessions, share))
	}
	if !room() {
		t.forget(t.config.Idle)
		if !room() {
			return noSlot, false
		}
	}
	id := t.sessions.take()
	*t.sessions.at(id) = session{key: d, started: at, last: at, by: by, self: k.Self, user: user, newer: noSlot, older: noSlot}
	if k.Self {
		t.own[user]++
	}
	if by >= 0 {
		t.shares[by]++
	}
	t.index[d] = id
	t.link(id)
	return id, true
}

// share returns the index of the agent that records; there are as many agents as the configuration has.
func (t *Tracker) share(k Key) int32 {
	if k.By == "" {
		return -1
	}
	by := [2]string{k.Database, k.By}
	n, ok := t.agents[by]
	if !ok {
		n = int32(len(t.shares))
		t.agents[by], t.shares = n, append(t.shares, 0)
	}
	return n
}

func full() error {
	return sqlstate.New(sqlstate.LimitExceeded, sqlstate.ReasonLimit, "there is no room for another session of interactions").
		WithHint("The interaction was not counted. Active sessions are kept; there is room for a new one when " +
			"others have ended, or with a larger air.sessions.")
}

// Session returns what is known of a session; false: there is none.
func (t *Tracker) Session(now time.Time, k Key) (Session, bool) {
	d := t.digest(k)
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.advance(now)
	t.forget(t.config.Keep)
	id, ok := t.index[d]
	if !ok {
		return Session{}, false
	}
	s := t.sessions.at(id)
	out := Session{Started: t.epoch.Add(s.started), Last: t.epoch.Add(s.last), Reminded: s.reminded}
	for _, m := range t.sessions.times(id, at, t.config.Window) {
		out.Messages = append(out.Messages, t.epoch.Add(m))
	}
	return out, true
}

// End forgets a session, and tells whether there was one.
func (t *Tracker) End(now time.Time, k Key) bool {
	d := t.digest(k)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance(now)
	t.forget(t.config.Keep)
	id, ok := t.index[d]
	if ok {
		t.remove(id)
	}
	return ok
}

// RemindersGiven returns the number of reminders so far, without a lock.
func (t *Tracker) RemindersGiven() uint64 { return t.given.Load() }

// Due returns the reminder that a session got, and when the session began, which distinguishes it from an earlier one;
// "" if it got none, or the session is over.
func (t *Tracker) Due(now time.Time, k Key) (reminder string, session time.Time) {
	d := t.digest(k)
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.advance(now)
	id, ok := t.index[d]
	if !ok {
		return "", time.Time{}
	}
	s := t.sessions.at(id)
	if !s.reminded || at-s.last > t.config.Idle {
		return "", time.Time{}
	}
	return t.config.text(int(s.figure)), t.epoch.Add(s.started)
}

// Clean removes sessions that have been idle for long. It is called from time to time, so that they do not stay if
// nobody calls.
func (t *Tracker) Clean(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance(now)
	t.forget(t.config.Keep)
}

// Counts returns what was counted.
func (t *Tracker) Counts(now time.Time) Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance(now)
	t.forget(t.config.Keep)
	c := t.counts
	c.Active = len(t.index)
	return c
}

// advance sets the present time.
func (t *Tracker) advance(now time.Time) time.Duration {
	if t.epoch.IsZero() {
		t.epoch = now
	}
	t.now = max(t.now, now.Sub(t.epoch))
	return t.now
}

// forget removes the sessions that have been idle for longer than that; at exactly Idle a session is still active.
func (t *Tracker) forget(idle time.Duration) {
	for t.oldest != noSlot {
		pause := t.now - t.sessions.at(t.oldest).last
		if pause < idle || pause == t.config.Idle {
			break
		}
		t.remove(t.oldest)
	}
	if len(t.index) == 0 && t.sessions.usedSlots > 0 {
		t.empty() // maps do not shrink
	}
}

func (t *Tracker) remove(id slot) {
	t.unlink(id)
	s := t.sessions.at(id)
	delete(t.index, s.key)
	if s.by >= 0 {
		t.shares[s.by]--
	}
	if s.self {
		t.own[s.user]--
	}
	t.sessions.free(id)
}

// link puts a session at the end of the list: it had the last interaction.
func (t *Tracker) link(id slot) {
	s := t.sessions.at(id)
	s.older, s.newer = t.newest, noSlot
	if t.newest == noSlot {
		t.oldest = id
	} else {
		t.sessions.at(t.newest).newer = id
	}
	t.newest = id
}

func (t *Tracker) unlink(id slot) {
	s := t.sessions.at(id)
	if s.older == noSlot {
		t.oldest = s.newer
	} else {
		t.sessions.at(s.older).newer = s.newer
	}
	if s.newer == noSlot {
		t.newest = s.older
	} else {
		t.sessions.at(s.newer).older = s.older
	}
}

// digest is made of the secret and each part with its length.
func (t *Tracker) digest(k Key) digest {
	b := make([]byte, 0, 256)
	b = append(b, t.secret[:]...)
	for _, part := range []string{k.Database, k.By, k.User, k.Channel} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	sum := sha256.Sum256(b)
	return digest(sum[:])
}
