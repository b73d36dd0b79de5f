package enforce

import (
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/air"
	"github.com/pgconsent/pgconsent/policy"
)

// reminder is what a session tells its client of the reminders of the user and channel that it names. It depends on
// nothing else: on no statement and no row, and on no other session's attributes.
type reminder struct {
	mu     sync.Mutex
	named  bool
	key    air.Key               // without By
	looked uint64                // the number of the last reminder that there was when it was looked for this key
	fresh  bool                  // it was not looked for this key yet
	told   map[air.Key]time.Time // whose sessions' reminders the client has, by their beginnings
}

// named tells whether an attribute is the user or the channel of a session.
func named(p *policy.Policy, attribute string) bool {
	a := p.AIR()
	return a != nil && (a.User == attribute || a.Channel == attribute)
}

// reminds takes over whom and which channel the session names by these attributes.
func (s *session) reminds(p *policy.Policy, attributes map[string]string) {
	if s.e.cfg.AIR == nil {
		return
	}
	key, ok := air.Key{Database: s.db.cfg.Name}, false
	if a := p.AIR(); a != nil {
		key.User, key.Channel = attributes[a.User], attributes[a.Channel]
		ok = key.User != "" && key.Channel != ""
	}
	r := &s.reminder
	r.mu.Lock()
	defer r.mu.Unlock()
	if ok != r.named || key != r.key {
		r.named, r.key, r.fresh = ok, key, true
	}
}

// Notice is the reminder of the session's user in its channel, once a connection: of the one that the application and
// the user record, and of the one that this agent does.
func (s *session) Notice() string {
	r, tracker := &s.reminder, s.e.cfg.AIR
	if tracker == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	given := tracker.RemindersGiven()
	if !r.named || !r.fresh && given == r.looked {
		return ""
	}
	r.fresh, r.looked = false, given
	for _, by := range []string{"", s.agent.Name} {
		key := r.key
		key.By = by
		text, began := tracker.Due(time.Now(), key)
		if text == "" || r.told[key].Equal(began) {
			continue
		}
		if r.told == nil || len(r.told) >= maxTold {
			r.told = map[air.Key]time.Time{}
		}
		r.told[key] = began
		r.fresh = true // the other one may be due as well
		return text
	}
	return ""
}

// maxTold bounds what a connection remembers that names one channel after the other.
const maxTold = 64
