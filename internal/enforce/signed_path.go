package enforce

// SignedPathOff is the answer of [Config.Check] that the walls hold and the signed path does not: agents are served, and
// every statement takes the row security door.
type SignedPathOff struct{ Why string }

func (g SignedPathOff) Error() string { return "the gate door is shut: " + g.Why }

// gate opens or shuts the signed path of the state, as the last check wants it. The caller holds mu.
func (d *database) gate() {
	s := d.state
	signing := s.door
	if d.shut {
		signing = s.plain
	}
	if s.signing == signing {
		return
	}
	changed := *s
	changed.epoch = d.e.epochs.Add(1)
	changed.rights, changed.signing = changed.epoch, signing
	d.state = &changed
}

// UnsafeTables is the answer of [Config.Check] that some tables are not safe, and that all which does not depend on
// them is: these are suspended.
type UnsafeTables struct {
	Relations []uint32 // OIDs
	Why       error
}

func (u UnsafeTables) Error() string { return u.Why.Error() }

// Unwrap returns what is unsafe.
func (u UnsafeTables) Unwrap() error { return u.Why }
