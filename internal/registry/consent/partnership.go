package consent

import "time"

// requestPartnership requests a partnership. The present consent stays active until the agent's side has decided.
func (d *decision) requestPartnership() error {
	if !d.hasStream() {
		return newValidationError("a partnership is with everybody and about everything").hint("Leave grantee and scope out.")
	}
	if d.hasRecord && d.current.Stream == "" {
		return mixedCategoriesError()
	}
	categories, err := StreamPartnered.checkCategories(d.command.Categories)
	if err != nil {
		return err
	}
	switch {
	case d.current.RequestedCategories != nil && equalSets(d.current.RequestedCategories, categories):
		return nil
	case d.current.RequestedCategories != nil:
		return newValidationError("a partnership with other categories is requested and not decided yet").
			hint("Wait for the decision, or revoke, which also withdraws the request.")
	case d.current.State == StateGiven && d.current.Stream == StreamPartnered && pathsCoverAll(d.current.Categories,
		categories):
		if pathsCoverAll(categories, d.current.Categories) {
			return newValidationError("the subject is %s already", StreamPartnered)
		}
		// The consent is already PARTNERED. Fewer categories need no agreement of the agent's side.
		d.current.Categories = categories
		d.addStep(EventModified)
		return nil
	}
	if d.current.State != StateGiven {
		d.current.State, d.current.Stream = StateRequested, StreamPartnered
		d.current.GivenAt, d.current.ExpiresAt = time.Time{}, time.Time{}
	}
	d.current.RequestedCategories, d.current.DueAt = categories, d.now.Add(d.ReviewTime)
	d.addStep(EventRequested)
	return nil
}

// decidePartnership executes ActionDecide: it records what the agent's side has decided.
func (d *decision) decidePartnership() error {
	command := d.command
	switch {
	case !d.hasRecord:
		return newNotFoundError()
	case d.current.RequestedCategories == nil:
		e := newValidationError("no partnership is requested")
		e.NotRequested = true
		return e
	case command.Caller.ID == "":
		return newValidationError("the decision must name who decides")
	case command.Caller.ID == d.current.Subject, command.Caller.ID == d.partnershipAsker.ID:
		return newForbiddenError(command.Caller.Role, "a party that asks for a partnership cannot decide about it")
	case !d.current.IsPendingAt(d.now):
		return newExpiredError("nobody has decided about the partnership in time")
	}
	switch command.Decision {
	case DecisionApprove:
		d.current.stopDecay(d.now)
		purposes := d.current.Purposes
		d.startConsent(StreamPartnered, d.current.RequestedCategories, purposes)
		d.clearRequest()
		d.addStep(EventApproved)
	case DecisionReject:
		if d.current.State == StateRequested {
			d.current.State = StateRefused
		}
		d.clearRequest()
		d.addStep(EventRejected)
	case DecisionDefer:
		d.addStep(EventDeferred)
	default:
		return newValidationError("there is no decision %q", command.Decision).hint("Decisions: %s, %s, %s.", DecisionApprove,
			DecisionReject, DecisionDefer)
	}
	return nil
}

// closeRequest adds a step if the deadline of a request has passed without a decision.
func (d *decision) closeRequest() {
	if d.current.RequestedCategories == nil || d.current.IsPendingAt(d.now) {
		return
	}
	if d.current.State == StateRequested {
		d.current.State = StateExpired
	}
	d.clearRequest()
	d.addStep(EventLapsed)
}

// lapse executes ActionLapse: it records that nobody decided about a request in time.
func (d *decision) lapse() error {
	if !d.hasRecord {
		return newNotFoundError()
	}
	d.closeRequest()
	return nil
}
