package consent

import "time"

// ask requests a partnership. Whatever consent there is stays as it is until the other side has decided.
func (d *decision) ask() error {
	if !d.relationship() {
		return invalid("a partnership is with everybody and about everything").hint("Leave grantee and scope out.")
	}
	if d.known && d.at.Stream == "" {
		return mixed()
	}
	categories, err := Partnered.checkCategories(d.command.Categories)
	if err != nil {
		return err
	}
	switch {
	case d.at.RequestedCategories != nil && sameSet(d.at.RequestedCategories, categories):
		return nil
	case d.at.RequestedCategories != nil:
		return invalid("a partnership with other categories is asked for and not decided yet").
			hint("Wait for the decision, or revoke, which takes the question back as well.")
	case d.at.State == Given && d.at.Stream == Partnered && coversAll(d.at.Categories, categories):
		if coversAll(categories, d.at.Categories) {
			return invalid("the subject is %s already", Partnered)
		}
		// Less needs nobody's agreement.
		d.at.Categories = categories
		d.step(EventModified)
		return nil
	}
	if d.at.State != Given {
		d.at.State, d.at.Stream = Requested, Partnered
		d.at.GivenAt, d.at.ExpiresAt = time.Time{}, time.Time{}
	}
	d.at.RequestedCategories, d.at.DueAt = categories, d.now.Add(d.Review)
	d.step(EventRequested)
	return nil
}

// decide is the agent's side of it.
func (d *decision) decide() error {
	c := d.command
	switch {
	case !d.known:
		return notFound()
	case d.at.RequestedCategories == nil:
		e := invalid("no partnership is asked for")
		e.NotRequested = true
		return e
	case c.By.ID == "":
		return invalid("a decision names who decides")
	case c.By.ID == d.at.Subject, c.By.ID == d.asker.ID:
		return forbidden(c.By.Role, "who asks for a partnership does not decide about it")
	case !d.at.Pending(d.now):
		return expired("nobody has decided about the partnership in time")
	}
	switch c.Decision {
	case TaskComplete:
		d.at.stopDecay(d.now)
		purposes := d.at.Purposes
		d.give(Partnered, d.at.RequestedCategories, purposes)
		d.forget()
		d.step(EventApproved)
	case Reject:
		if d.at.State == Requested {
			d.at.State = Refused
		}
		d.forget()
		d.step(EventRejected)
	case Defer:
		d.step(EventDeferred)
	default:
		return invalid("there is no decision %q", c.Decision).hint("Decisions: %s, %s, %s.", TaskComplete, Reject, Defer)
	}
	return nil
}

// lapse closes a question that nobody has answered in time.
func (d *decision) lapse() {
	if d.at.RequestedCategories == nil || d.at.Pending(d.now) {
		return
	}
	if d.at.State == Requested {
		d.at.State = Expired
	}
	d.forget()
	d.step(EventLapsed)
}

// lapsed is the command for it.
func (d *decision) lapsed() error {
	if !d.known {
		return notFound()
	}
	d.lapse()
	return nil
}
