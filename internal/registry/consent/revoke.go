package consent

// revoke ends a consent: withdrawn by the subject or a guardian, revoked by the controller or the system. It is refused
// only where there is nothing that could be ended, and done once if it is asked for twice. What was asked for is
// forgotten.
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

// refuse records that the subject was asked and said no.
func (d *decision) refuse() error {
	switch d.current.State {
	case Given:
		return invalid("what was given is withdrawn, not refused").hint("Revoke it.")
	case Refused:
		return nil
	}
	d.end(Refused, d.now)
	d.forget()
	d.step(EventRefused)
	return nil
}
