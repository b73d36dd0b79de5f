package consent

// expire records an expiry that has happened already.
func (d *decision) expire() {
	if d.current.State != Given || d.current.ActiveAt(d.now) {
		return
	}
	d.end(Expired, d.current.ExpiresAt)
	d.step(EventExpired)
}

// expired is the command for it.
func (d *decision) expired() error {
	switch {
	case !d.recorded:
		return notFound()
	case d.current.State == Given:
		d.expire()
		if d.current.State == Given {
			return invalid("the consent has not expired")
		}
	case d.current.State != Expired:
		return invalid("there is no consent that could expire: it is %s", d.current.State)
	}
	return nil
}

// warn records that the subject was warned of an expiry, once for each.
func (d *decision) warn() error {
	switch {
	case !d.recorded:
		return notFound()
	case d.current.State != Given || d.current.ExpiresAt.IsZero():
		return invalid("the consent does not expire")
	case d.now.Before(d.current.ExpiresAt.Add(-d.Warning)):
		return invalid("it is too early for a warning")
	case !d.current.WarnedAt.IsZero():
		return nil
	}
	d.current.WarnedAt = d.now
	d.step(EventWarned)
	return nil
}

// note records what was done with the data, or reported about them, without a change of the consent.
func (d *decision) note() error {
	if !d.recorded {
		return notFound()
	}
	event := EventDeleted
	switch d.command.Do {
	case Anonymised:
		event = EventAnonymised
	case Report:
		event = EventReported
	}
	d.step(event)
	return nil
}

// guardians appoints or dismisses a guardian, who acts for the subject until dismissed.
func (d *decision) guardians() error {
	c := d.command
	if c.Guardian == "" {
		return invalid("the guardian is missing")
	}
	if c.Guardian == c.Subject || c.Guardian == Everybody {
		return invalid("the guardian cannot be the subject")
	}
	event, state := EventAppointed, Given
	switch {
	case c.Do == Appoint && d.guardian, c.Do == Dismiss && !d.guardian:
		return nil
	case c.Do == Dismiss:
		event, state = EventDismissed, Revoked
	}
	d.current = Consent{Key: Key{c.Subject, c.Guardian, Everything}, State: state, Categories: []string{}, Purposes: []string{}}
	d.step(event)
	return nil
}
