package consent

// recordExpiry adds a step if the consent has expired and no record says so yet.
func (d *decision) recordExpiry() {
	if d.current.State != StateGiven || d.current.IsActiveAt(d.now) {
		return
	}
	d.endConsent(StateExpired, d.current.ExpiresAt)
	d.addStep(EventExpired)
}

// expire executes ActionExpire: it records that the consent has expired.
func (d *decision) expire() error {
	switch {
	case !d.hasRecord:
		return newNotFoundError()
	case d.current.State == StateGiven:
		d.recordExpiry()
		if d.current.State == StateGiven {
			return newValidationError("the consent has not expired")
		}
	case d.current.State != StateExpired:
		return newValidationError("there is no consent that could expire: it is %s", d.current.State)
	}
	return nil
}

// recordWarning executes ActionWarn. It records only once for each expiry that the subject was warned.
func (d *decision) recordWarning() error {
	switch {
	case !d.hasRecord:
		return newNotFoundError()
	case d.current.State != StateGiven || d.current.ExpiresAt.IsZero():
		return newValidationError("the consent does not expire")
	case d.now.Before(d.current.ExpiresAt.Add(-d.WarningTime)):
		return newValidationError("it is too early for a warning")
	case !d.current.WarnedAt.IsZero():
		return nil
	}
	d.current.WarnedAt = d.now
	d.addStep(EventWarned)
	return nil
}

// recordSweepOrReport records that data were deleted, anonymised or reported. The consent stays the same.
func (d *decision) recordSweepOrReport() error {
	if !d.hasRecord {
		return newNotFoundError()
	}
	event := EventDeleted
	switch d.command.Action {
	case ActionNoteAnonymised:
		event = EventAnonymised
	case ActionNoteReport:
		event = EventReported
	}
	d.addStep(event)
	return nil
}

// changeGuardian appoints or dismisses a guardian. A guardian acts for the subject until dismissed.
func (d *decision) changeGuardian() error {
	command := d.command
	if command.Guardian == "" {
		return newValidationError("the guardian is missing")
	}
	if command.Guardian == command.Subject || command.Guardian == AnyGrantee {
		return newValidationError("the guardian cannot be the subject")
	}
	event, state := EventAppointed, StateGiven
	switch {
	case command.Action == ActionAppoint && d.isGuardian, command.Action == ActionDismiss && !d.isGuardian:
		return nil
	case command.Action == ActionDismiss:
		event, state = EventDismissed, StateRevoked
	}
	d.current = Consent{Key: Key{command.Subject, command.Guardian, AnyScope}, State: state, Categories: []string{},
		Purposes: []string{}}
	d.addStep(event)
	return nil
}
