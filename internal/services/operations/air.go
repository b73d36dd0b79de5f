package operations

import (
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/air"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// RecordInteraction counts an interaction of a user in a channel, and returns the text of the reminder if one is due.
// The call is not recorded in the audit.
func (d *Service) RecordInteraction(c identity.Caller, user, channel, channelType string) (string, error) {
	k, err := d.sessionOf(c, user, channel)
	if err != nil {
		return "", err
	}
	return d.Reminders.Track(time.Now(), k, channelType)
}

// Interactions returns the session of interactions of a user in a channel.
func (d *Service) Interactions(c identity.Caller, user, channel string) (air.Session, error) {
	k, err := d.sessionOf(c, user, channel)
	if err != nil {
		return air.Session{}, err
	}
	s, ok := d.Reminders.Session(time.Now(), k)
	if !ok {
		return s, newNotTrackedError()
	}
	return s, nil
}

// EndInteractions deletes the session of interactions of a user in a channel.
func (d *Service) EndInteractions(c identity.Caller, user, channel string) error {
	k, err := d.sessionOf(c, user, channel)
	if err == nil && !d.Reminders.EndSession(time.Now(), k) {
		err = newNotTrackedError()
	}
	return err
}

func (d *Service) sessionOf(c identity.Caller, user, channel string) (air.SessionKey, error) {
	if user == "" && c.Role == identity.Subject {
		user = c.Subject
	}
	return air.Caller{Role: string(c.Role), Subject: c.Subject, Agent: c.Agent, Database: c.Database}.SessionKey(user,
		channel)
}

func newNotTrackedError() error {
	return sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonConsent,
		"there is no session of interactions of this user in this channel").
		WithHint("Sessions are kept in memory, and end after an hour without interactions (air.keep). Only " +
			"API channels have sessions.")
}
