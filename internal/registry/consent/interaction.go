package consent

// interact records an interaction of the subject. The first gives TEMPORARY, unless consent must be explicit; so does
// one after an expiry, without reviving older data. A later one renews TEMPORARY. It never overrides a withdrawal or a
// refusal.
func (d *decision) interact() {
	if !d.hasStream() || d.hasRecord && d.current.Stream == "" {
		return
	}
	startsNew := !d.hasRecord || d.current.State == StateExpired || d.current.State == StateRequested &&
		d.current.VoidBefore.IsZero()
	switch {
	case startsNew && !d.RequireExplicit:
		d.startConsent(StreamTemporary, StreamTemporary.AllowedCategories(), []string{})
		d.addStep(EventGiven)
	case d.current.State == StateGiven && d.current.Stream == StreamTemporary && !d.NoRenewal:
		d.renew(d.TemporaryDuration)
	}
}
