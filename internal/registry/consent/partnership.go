package consent

import "time"

// requestPartnership requests a partnership. The present consent stays active until the other side has decided.
func (d *decision) requestPartnership() error {
	if !d.isOfStream() {
		return invalid("a partnership is with everybody and about everything").hint("Leave grantee and scope out.")
	}
	if d.hasRecord && d.current.Stream == "" {
		return mixedCategoriesError()
	}
	categories, err := Partnered.checkCategories(d.command.Categories)
	if err != nil {
		return err
	}
	switch {
	case d.current.RequestedCategories != nil && equalSets(d.current.RequestedCategories, categories):
		return nil
	case d.current.RequestedCategories != nil:
		return invalid("a partnership with other categories is requested and not decided yet").
			hint("Wait for the decision, or revoke, which also withdraws the request.")
	case d.current.State == Given && d.current.Stream == Partnered && coversAll(d.current.Categories, categories):
		if coversAll(categories, d.current.Categories) {
			return invalid("the subject is %s already", Partnered)
		}
		// a partnership with fewer categories needs no agreement
		d.current.Categories = categories
		d.addStep(EventModified)
		return nil
	}
	if d.current.State != Given {
		d.current.State, d.current.Stream = Requested, Partnered
		d.current.GivenAt, d.current.ExpiresAt = time.Time{}, time.Time{}
	}
	d.current.RequestedCategories, d.current.DueAt = categories, d.now.Add(d.Review)
	d.addStep(EventRequested)
	return nil
}

// decidePartnership records the decision of the agent's side.
func (d *decision) decidePartnership() error {
	c := d.command
	switch {
	case !d.hasRecord:
		return notFound()
	case d.current.RequestedCategories == nil:
		e := invalid("no partnership is requested")
		e.NotRequested = true
		return e
	case c.By.ID == "":
		return invalid("the decision must name who decides")
	case c.By.ID == d.current.Subject, c.By.ID == d.partnershipAsker.ID:
		return forbidden(c.By.Role, "a party that asks for a partnership cannot decide about it")
	case !d.current.IsPendingAt(d.now):
		return expired("nobody has decided about the partnership in time")
	}
	switch c.Decision {
	case TaskComplete:
		d.current.stopDecay(d.now)
		purposes := d.current.Purposes
		d.startConsent(Partnered, d.current.RequestedCategories, purposes)
		d.clearRequest()
		d.addStep(EventApproved)
	case Reject:
		if d.current.State == Requested {
			d.current.State = Refused
		}
		d.clearRequest()
		d.addStep(EventRejected)
	case Defer:
		d.addStep(EventDeferred)
	default:
		return invalid("there is no decision %q", c.Decision).hint("Decisions: %s, %s, %s.", TaskComplete, Reject, Defer)
	}
	return nil
}

// closeRequest closes a request that nobody has answered in time.
func (d *decision) closeRequest() {
	if d.current.RequestedCategories == nil || d.current.IsPendingAt(d.now) {
		return
	}
	if d.current.State == Requested {
		d.current.State = Expired
	}
	d.clearRequest()
	d.addStep(EventLapsed)
}

// lapse carries out the command Lapse.
func (d *decision) lapse() error {
	if !d.hasRecord {
		return notFound()
	}
	d.closeRequest()
	return nil
}
