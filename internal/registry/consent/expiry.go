package consent

// recordExpiry records an expiry that has happened already.
func (d *decision) recordExpiry() {
	if d.current.State != Given || d.current.IsActiveAt(d.now) {
		return
	}
	d.endConsent(Expired, d.current.ExpiresAt)
	d.addStep(EventExpired)
}

// expire carries out the command Expire.
func (d *decision) expire() error {
	switch {
	case !d.hasRecord:
		return notFound()
	case d.current.State == Given:
		d.recordExpiry()
		if d.current.State == Given {
			return invalid("the consent has not expired")
		}
	case d.current.State != Expired:
		return invalid("there is no consent that could expire: it is %s", d.current.State)
	}
	return nil
}

// recordWarning carries out Warn: it records once for each expiry that the subject was warned.
func (d *decision) recordWarning() error {
	switch {
	case !d.hasRecord:
		return notFound()
	case d.current.State != Given || d.current.ExpiresAt.IsZero():
		return invalid("the consent does not expire")
	case d.now.Before(d.current.ExpiresAt.Add(-d.Warning)):
		return invalid("it is too early for a warning")
	case !d.current.WarnedAt.IsZero():
		return nil
	}
	d.current.WarnedAt = d.now
	d.addStep(EventWarned)
	return nil
}

// recordNote records what was done with the data, or reported about them, without a change of the consent.
func (d *decision) recordNote() error {
	if !d.hasRecord {
		return notFound()
	}
	event := EventDeleted
	switch d.command.Do {
	case Anonymised:
		event = EventAnonymised
	case Report:
		event = EventReported
	}
	d.addStep(event)
	return nil
}

// changeGuardian appoints or dismisses a guardian, who acts for the subject until dismissed.
func (d *decision) changeGuardian() error {
	c := d.command
	if c.Guardian == "" {
		return invalid("the guardian is missing")
	}
	if c.Guardian == c.Subject || c.Guardian == Everybody {
		return invalid("the guardian cannot be the subject")
	}
	event, state := EventAppointed, Given
	switch {
	case c.Do == Appoint && d.isGuardian, c.Do == Dismiss && !d.isGuardian:
		return nil
	case c.Do == Dismiss:
		event, state = EventDismissed, Revoked
	}
	d.current = Consent{Key: Key{c.Subject, c.Guardian, Everything}, State: state, Categories: []string{}, Purposes: []string{}}
	d.addStep(event)
	return nil
}
