package enforce

// GateShut is the answer of [Config.Check] that the walls hold and the gate door does not: agents are served, and every
// statement takes the row security door.
type GateShut struct{ Why string }

func (g GateShut) Error() string { return "the gate door is shut: " + g.Why }

// gate opens or shuts the gate door of the state, as the last check wants it. The caller holds mu.
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
