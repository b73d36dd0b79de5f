package enforce

import (
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/air"
	"github.com/pgconsent/pgconsent/policy"
)

// reminder decides when the client gets reminders for the user and the channel that its session names. The decision
// does not depend on statements, rows or the attributes of other sessions.
type reminder struct {
	mu            sync.Mutex
	active        bool
	key           air.SessionKey // the user's session of interactions, without the field RecordedBy
	seenReminders uint64         // how many reminders the tracker had given when this key was last checked
	isUnchecked   bool           // this key has not been checked yet
	// the sessions of interactions whose reminder the client has received, with the times at which they began
	remindedKeys map[air.SessionKey]time.Time
}

// isReminderAttribute reports whether an attribute names the user or the channel for which reminders are given.
func isReminderAttribute(p *policy.Policy, attribute string) bool {
	a := p.ReminderAttributes()
	return a != nil && (a.User == attribute || a.Channel == attribute)
}

// setReminderKey sets the user and the channel for which reminders are given, from these attributes.
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

// NextNotice returns the next reminder for the session's user and channel, each only once for a connection. Reminders
// are for interactions that the application and the user record, and for those that this agent records.
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
		r.isUnchecked = true // The reminder for the other recorder may be due as well.
		return text
	}
	return ""
}

// maxRemindedKeys is how many reminders a connection remembers: its client may name one channel after another.
const maxRemindedKeys = 64
