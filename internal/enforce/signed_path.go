package enforce

// SignedPathOff is the error of [Config.Check] if row security is safe but the signed path is not. Agents are served,
// and every statement takes the row security path.
type SignedPathOff struct{ Reason string }

func (g SignedPathOff) Error() string { return "the signed path is off: " + g.Reason }

// switchSignedPath makes the state use the signed path or not, depending on the result of the last check. The caller
// holds mu.
func (d *database) switchSignedPath() {
	s := d.state
	signing := s.signingRewriter
	if d.signedPathOff {
		signing = s.unsignedRewriter
	}
	if s.activeRewriter == signing {
		return
	}
	changed := *s
	changed.epoch = d.enforcer.epochCounter.Add(1)
	changed.rightsEpoch, changed.activeRewriter = changed.epoch, signing
	d.state = &changed
}

// UnsafeTables is the error of [Config.Check] if only some tables are not safe. These tables are suspended, with all
// relations that depend on them; agents can use the other tables.
type UnsafeTables struct {
	Relations []uint32 // OIDs of the tables
	Cause     error
}

func (u UnsafeTables) Error() string { return u.Cause.Error() }

// Unwrap returns the error that says what is unsafe.
func (u UnsafeTables) Unwrap() error { return u.Cause }
