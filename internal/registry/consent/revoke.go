package consent

// revoke ends a consent: the subject or a guardian withdraws it, or the controller or the system revokes it. It is
// refused only if there is nothing to end; a second call changes nothing. It also withdraws a requested partnership.
func (d *decision) revoke() error {
	if !d.hasRecord {
		return notFound()
	}
	event, state := EventWithdrawn, Withdrawn
	if d.command.By.Role != RoleSubject && d.command.By.Role != RoleGuardian {
		event, state = EventRevoked, Revoked
	}
	if d.current.State == Withdrawn || d.current.State == Revoked || d.current.State == Refused {
		return nil
	}
	d.endConsent(state, d.now)
	d.clearRequest()
	d.addStep(event)
	return nil
}

// refuse records that the subject was asked and refused.
func (d *decision) refuse() error {
	switch d.current.State {
	case Given:
		return invalid("a consent that was given can be withdrawn, not refused").hint("Revoke it.")
	case Refused:
		return nil
	}
	d.endConsent(Refused, d.now)
	d.clearRequest()
	d.addStep(EventRefused)
	return nil
}
