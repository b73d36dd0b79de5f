package consent

// revoke ends a consent: the subject or a guardian withdraws it, or the controller or the system revokes it. It fails
// only if there is no record; a second call changes nothing. It also cancels a requested partnership.
func (d *decision) revoke() error {
	if !d.hasRecord {
		return newNotFoundError()
	}
	event, state := EventWithdrawn, StateWithdrawn
	if d.command.Caller.Role != RoleSubject && d.command.Caller.Role != RoleGuardian {
		event, state = EventRevoked, StateRevoked
	}
	if d.current.State == StateWithdrawn || d.current.State == StateRevoked || d.current.State == StateRefused {
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
	case StateGiven:
		return newValidationError("a consent that was given can be withdrawn, not refused").hint("Revoke it.")
	case StateRefused:
		return nil
	}
	d.endConsent(StateRefused, d.now)
	d.clearRequest()
	d.addStep(EventRefused)
	return nil
}
