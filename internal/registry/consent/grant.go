package consent

import (
	"strings"
	"time"
)

// grant gives, modifies or renews a consent. Of the streams it gives TEMPORARY and ANONYMOUS; PARTNERED is requested.
func (d *decision) grant() error {
	c := d.command
	switch {
	case c.Stream == "":
		return d.grantTo()
	case !c.Stream.known():
		return invalid("there is no stream %q", c.Stream).hint("Streams: %s.", streams())
	case !d.relationship():
		return invalid("a consent with a stream is to everybody and about everything").
			hint("Leave the stream out to consent to one grantee or scope.")
	case c.For != 0:
		return invalid("the duration of %s is a setting", c.Stream).hint("default_duration_days of the configuration.")
	case c.Stream == Partnered:
		return d.ask()
	case d.recorded && d.current.Stream == "":
		return mixed()
	}
	categories, err := c.Stream.checkCategories(c.Categories)
	if err != nil {
		return err
	}
	purposes := d.purposes()
	switch {
	case d.current.State != Given:
		d.give(c.Stream, categories, purposes)
		d.step(EventGiven)
	case d.current.Stream != c.Stream:
		return d.degrade()
	case sameSet(d.current.Categories, categories) && sameSet(d.current.Purposes, purposes):
		if c.Stream == Temporary {
			d.renew(d.Duration)
		}
	default:
		d.current.Categories, d.current.Purposes = categories, purposes
		if c.Stream == Temporary {
			d.current.ExpiresAt, d.current.WarnedAt = d.now.Add(d.Duration), time.Time{}
		}
		d.step(EventModified)
	}
	return nil
}

// grantTo is a consent without a stream: to a grantee, about a scope, for purposes and categories of the application's
// own.
func (d *decision) grantTo() error {
	c := d.command
	if d.recorded && d.current.Stream != "" {
		return mixed()
	}
	categories, purposes := sortedUnique(c.Categories), d.purposes()
	switch {
	case d.current.State != Given:
		d.give("", categories, purposes)
		d.last(c.For)
		d.step(EventGiven)
	case !sameSet(d.current.Categories, categories) || !sameSet(d.current.Purposes, purposes) || c.For == 0 && !d.current.ExpiresAt.IsZero():
		d.current.Categories, d.current.Purposes = categories, purposes
		d.last(c.For)
		d.step(EventModified)
	case c.For != 0:
		d.renew(c.For)
	}
	return nil
}

// purposes returns those of the command; a grant that names none keeps the present ones.
func (d *decision) purposes() []string {
	if len(d.command.Purposes) == 0 && d.current.State == Given {
		return d.current.Purposes
	}
	return sortedUnique(d.command.Purposes)
}

func (d *decision) last(duration time.Duration) {
	d.current.ExpiresAt, d.current.WarnedAt = time.Time{}, time.Time{}
	if duration != 0 {
		d.current.ExpiresAt = d.now.Add(duration)
	}
}

// renew moves the expiry forward. It changes nothing if it is there already: two calls at the same time make one
// record.
func (d *decision) renew(duration time.Duration) {
	to := d.now.Add(duration)
	if d.current.ExpiresAt.Equal(to) {
		return
	}
	d.current.ExpiresAt, d.current.WarnedAt = to, time.Time{}
	d.step(EventRenewed)
}

func mixed() error {
	return invalid("a subject's consent to everybody about everything keeps having a stream, or none")
}

func streams() string {
	words := make([]string, len(Streams))
	for i, s := range Streams {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}
