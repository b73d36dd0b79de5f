package consent

import (
	"strings"
	"time"
)

// grant gives, modifies or renews a consent. It gives the streams TEMPORARY and ANONYMOUS at once; for PARTNERED it
// only requests a partnership.
func (d *decision) grant() error {
	command := d.command
	switch {
	case command.Stream == "":
		return d.grantWithoutStream()
	case !command.Stream.isKnown():
		return newValidationError("there is no stream %q", command.Stream).hint("Streams: %s.", streamNames())
	case !d.hasStream():
		return newValidationError("a consent with a stream is to everybody and about everything").
			hint("Leave the stream out to consent to one grantee or scope.")
	case command.Duration != 0:
		return newValidationError("the duration of %s is a setting",
			command.Stream).hint("default_duration_days of the configuration.")
	case command.Stream == StreamPartnered:
		return d.requestPartnership()
	case d.hasRecord && d.current.Stream == "":
		return mixedCategoriesError()
	}
	categories, err := command.Stream.checkCategories(command.Categories)
	if err != nil {
		return err
	}
	purposes := d.requestedPurposes()
	switch {
	case d.current.State != StateGiven:
		d.startConsent(command.Stream, categories, purposes)
		d.addStep(EventGiven)
	case d.current.Stream != command.Stream:
		return d.degrade()
	case equalSets(d.current.Categories, categories) && equalSets(d.current.Purposes, purposes):
		if command.Stream == StreamTemporary {
			d.renew(d.TemporaryDuration)
		}
	default:
		d.current.Categories, d.current.Purposes = categories, purposes
		if command.Stream == StreamTemporary {
			d.current.ExpiresAt, d.current.WarnedAt = d.now.Add(d.TemporaryDuration), time.Time{}
		}
		d.addStep(EventModified)
	}
	return nil
}

// grantWithoutStream gives a consent to one grantee or for one scope. The application defines its purposes and
// categories.
func (d *decision) grantWithoutStream() error {
	command := d.command
	if d.hasRecord && d.current.Stream != "" {
		return mixedCategoriesError()
	}
	categories, purposes := sortedUnique(command.Categories), d.requestedPurposes()
	switch {
	case d.current.State != StateGiven:
		d.startConsent("", categories, purposes)
		d.setExpiry(command.Duration)
		d.addStep(EventGiven)
	case !equalSets(d.current.Categories, categories) || !equalSets(d.current.Purposes, purposes) ||
		command.Duration == 0 &&
			!d.current.ExpiresAt.IsZero():
		d.current.Categories, d.current.Purposes = categories, purposes
		d.setExpiry(command.Duration)
		d.addStep(EventModified)
	case command.Duration != 0:
		d.renew(command.Duration)
	}
	return nil
}

// requestedPurposes returns the purposes of the command or, if it has none, those of the present consent.
func (d *decision) requestedPurposes() []string {
	if len(d.command.Purposes) == 0 && d.current.State == StateGiven {
		return d.current.Purposes
	}
	return sortedUnique(d.command.Purposes)
}

func (d *decision) setExpiry(duration time.Duration) {
	d.current.ExpiresAt, d.current.WarnedAt = time.Time{}, time.Time{}
	if duration != 0 {
		d.current.ExpiresAt = d.now.Add(duration)
	}
}

// renew sets the expiry to now plus duration. It adds no step if the expiry is that already, so that two calls at the
// same time make one record.
func (d *decision) renew(duration time.Duration) {
	expiresAt := d.now.Add(duration)
	if d.current.ExpiresAt.Equal(expiresAt) {
		return
	}
	d.current.ExpiresAt, d.current.WarnedAt = expiresAt, time.Time{}
	d.addStep(EventRenewed)
}

func mixedCategoriesError() error {
	return newValidationError("a subject's consent to everybody about everything keeps having a stream, or none")
}

func streamNames() string {
	words := make([]string, len(Streams))
	for i, s := range Streams {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}
