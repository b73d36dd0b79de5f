package consent

// revoke ends a consent: withdrawn by the subject or a guardian, revoked by the controller or the system. It is refused
// only if there is nothing to end; a second call changes nothing. A requested partnership is withdrawn, too.
func (d *decision) revoke() error {
	if !d.recorded {
		return notFound()
	}
	event, state := EventWithdrawn, Withdrawn
	if d.command.By.Role != RoleSubject && d.command.By.Role != RoleGuardian {
		event, state = EventRevoked, Revoked
	}
	if d.current.State == Withdrawn || d.current.State == Revoked || d.current.State == Refused {
		return nil
	}
	d.end(state, d.now)
	d.forget()
	d.step(event)
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
	d.end(Refused, d.now)
	d.forget()
	d.step(EventRefused)
	return nil
}
