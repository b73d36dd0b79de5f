package enforce

import (
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/air"
	"github.com/pgconsent/pgconsent/policy"
)

// reminder decides when a session's client gets the reminders of the user and channel that the session names. It
// depends on no statement, on no row and on no other session's attributes.
type reminder struct {
	mu            sync.Mutex
	active        bool
	key           air.SessionKey // key of the session of interactions, without the field By
	seenReminders uint64         // the tracker's number of reminders when this key was checked last
	isUnchecked   bool           // this key was not checked yet
	// the sessions of interactions whose reminder the client has got, with their beginnings
	remindedKeys map[air.SessionKey]time.Time
}

// isReminderAttribute reports whether an attribute is the user or the channel of a session.
func isReminderAttribute(p *policy.Policy, attribute string) bool {
	a := p.ReminderAttributes()
	return a != nil && (a.User == attribute || a.Channel == attribute)
}

// setReminderKey sets the user and the channel that the session names by these attributes.
func (s *session) setReminderKey(p *policy.Policy, attributes map[string]string) {
	if s.enforcer.cfg.Reminders == nil {
		return
	}
	key, ok := air.SessionKey{Database: s.db.cfg.Name}, false
	if a := p.ReminderAttributes(); a != nil {
		key.User, key.Channel = attributes[a.User], attributes[a.Channel]
		ok = key.User != "" && key.Channel != ""
	}
	r := &s.reminder
	r.mu.Lock()
	defer r.mu.Unlock()
	if ok != r.active || key != r.key {
		r.active, r.key, r.isUnchecked = ok, key, true
	}
}

// NextNotice returns the reminder of the session's user in its channel, once for a connection. It is the reminder for
// interactions that the application and the user record, or for those that this agent records.
func (s *session) NextNotice() string {
	r, tracker := &s.reminder, s.enforcer.cfg.Reminders
	if tracker == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	remindersGiven := tracker.RemindersGiven()
	if !r.active || !r.isUnchecked && remindersGiven == r.seenReminders {
		return ""
	}
	r.isUnchecked, r.seenReminders = false, remindersGiven
	for _, recorder := range []string{"", s.agent.Name} {
		key := r.key
		key.RecordedBy = recorder
		text, startedAt := tracker.ReminderOfSession(time.Now(), key)
		if text == "" || r.remindedKeys[key].Equal(startedAt) {
			continue
		}
		if r.remindedKeys == nil || len(r.remindedKeys) >= maxRemindedKeys {
			r.remindedKeys = map[air.SessionKey]time.Time{}
		}
		r.remindedKeys[key] = startedAt
		r.isUnchecked = true // The other reminder may be due as well.
		return text
	}
	return ""
}

// maxRemindedKeys is how many reminders a connection remembers: it may name one channel after the other.
const maxRemindedKeys = 64
