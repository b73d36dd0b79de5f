package consent

// interact records an interaction of the subject. The first gives TEMPORARY, unless consent must be explicit; so does
// one after an expiry, without reviving older data. A later one renews TEMPORARY. It never overrides a withdrawal or a
// refusal.
func (d *decision) interact() {
	if !d.relationship() || d.recorded && d.current.Stream == "" {
		return
	}
	fresh := !d.recorded || d.current.State == Expired || d.current.State == Requested && d.current.VoidBefore.IsZero()
	switch {
	case fresh && !d.RequireExplicit:
		d.give(Temporary, Temporary.Allows(), []string{})
		d.step(EventGiven)
	case d.current.State == Given && d.current.Stream == Temporary && !d.NoRenewal:
		d.renew(d.Duration)
	}
}
