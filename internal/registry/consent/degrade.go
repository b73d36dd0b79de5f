package consent

import "time"

// degrade changes to a stream that shows less, at once and without the other side. Categories of a partnership that
// TEMPORARY does not have end; data of a consent that becomes ANONYMOUS begin to decay.
func (d *decision) degrade() error {
	c := d.command
	switch {
	case !d.hasRecord:
		return newNotFoundError()
	case d.current.State == StateExpired:
		return newExpiredError("the consent has expired")
	case d.current.State != StateGiven:
		return newValidationError("there is no active consent: it is %s", d.current.State)
	case d.current.Stream == "":
		return mixedCategoriesError()
	case c.Stream != StreamTemporary && c.Stream != StreamAnonymous:
		return newValidationError("a relationship is degraded to %s or %s, not to %q", StreamTemporary, StreamAnonymous,
			c.Stream)
	case d.current.Stream == c.Stream, d.current.Stream == StreamAnonymous:
		return newValidationError("%s cannot become %s", d.current.Stream, c.Stream).
			hint("%s becomes %s or %s, %s becomes %s; %s is asked for. A consent that was revoked can be given anew.",
				StreamPartnered, StreamTemporary, StreamAnonymous, StreamTemporary, StreamAnonymous, StreamPartnered)
	}
	categories, err := c.Stream.checkCategories(c.Categories)
	if err != nil {
		return err
	}
	d.current.Purposes, d.current.Categories = d.requestedPurposes(), categories
	d.current.ExpiresAt, d.current.WarnedAt = time.Time{}, time.Time{}
	switch {
	case c.Stream == StreamTemporary:
		d.current.mergeCountdown(d.now, AggregatedFrom)
		d.current.ExpiresAt = d.now.Add(d.TemporaryDuration)
	case !d.NoDecay:
		d.current.DecayFrom = d.now
	}
	d.current.Stream = c.Stream
	d.clearRequest()
	d.addStep(EventDegraded)
	return nil
}
