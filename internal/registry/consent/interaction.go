package consent

// interact is an interaction of the subject's own. The first gives TEMPORARY, where no consent has to be explicit; so
// does one after an expiry, which revives nothing. A later one renews TEMPORARY. It never overrides a withdrawal or a
// refusal.
func (d *decision) interact() {
	if !d.relationship() || d.known && d.at.Stream == "" {
		return
	}
	fresh := !d.known || d.at.State == Expired || d.at.State == Requested && d.at.VoidBefore.IsZero()
	switch {
	case fresh && !d.RequireExplicit:
		d.give(Temporary, Temporary.Allows(), []string{})
		d.step(EventGiven)
	case d.at.State == Given && d.at.Stream == Temporary && !d.NoRenewal:
		d.renew(d.Duration)
	}
}
