package consent

import "time"

// degrade changes to a stream that allows less, at once and without the agent's consent. Categories that TEMPORARY does
// not allow end. If the consent becomes ANONYMOUS, a countdown begins after which the data are anonymous.
func (d *decision) degrade() error {
	command := d.command
	switch {
	case !d.hasRecord:
		return newNotFoundError()
	case d.current.State == StateExpired:
		return newExpiredError("the consent has expired")
	case d.current.State != StateGiven:
		return newValidationError("there is no active consent: it is %s", d.current.State)
	case d.current.Stream == "":
		return mixedCategoriesError()
	case command.Stream != StreamTemporary && command.Stream != StreamAnonymous:
		return newValidationError("a relationship is degraded to %s or %s, not to %q", StreamTemporary, StreamAnonymous,
			command.Stream)
	case d.current.Stream == command.Stream, d.current.Stream == StreamAnonymous:
		return newValidationError("%s cannot become %s", d.current.Stream, command.Stream).
			hint("%s becomes %s or %s, %s becomes %s; %s is asked for. A consent that was revoked can be given anew.",
				StreamPartnered, StreamTemporary, StreamAnonymous, StreamTemporary, StreamAnonymous, StreamPartnered)
	}
	categories, err := command.Stream.checkCategories(command.Categories)
	if err != nil {
		return err
	}
	d.current.Purposes, d.current.Categories = d.requestedPurposes(), categories
	d.current.ExpiresAt, d.current.WarnedAt = time.Time{}, time.Time{}
	switch {
	case command.Stream == StreamTemporary:
		d.current.mergeCountdown(d.now, AggregatedFrom)
		d.current.ExpiresAt = d.now.Add(d.TemporaryDuration)
	case !d.NoDecay:
		d.current.DecayFrom = d.now
	}
	d.current.Stream = command.Stream
	d.clearRequest()
	d.addStep(EventDegraded)
	return nil
}
