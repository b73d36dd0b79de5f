package consent

// interact records an interaction of the subject. The first interaction gives a TEMPORARY consent, unless the settings
// require explicit consent. The first one after an expiry does so too, but the new consent does not cover older data.
// Other interactions renew TEMPORARY. An interaction never overrides a withdrawal or a refusal.
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
