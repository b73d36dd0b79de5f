package consent

// interact records an interaction of the subject. The first gives TEMPORARY, unless consent must be explicit; so does
// one after an expiry, without reviving older data. A later one renews TEMPORARY. It never overrides a withdrawal or a
// refusal.
func (d *decision) interact() {
	if !d.isOfStream() || d.hasRecord && d.current.Stream == "" {
		return
	}
	fresh := !d.hasRecord || d.current.State == Expired || d.current.State == Requested && d.current.VoidBefore.IsZero()
	switch {
	case fresh && !d.RequireExplicit:
		d.startConsent(Temporary, Temporary.AllowedCategories(), []string{})
		d.addStep(EventGiven)
	case d.current.State == Given && d.current.Stream == Temporary && !d.NoRenewal:
		d.renew(d.Duration)
	}
}
