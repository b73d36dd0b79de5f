package consent

import "time"

// Settings are durations and switches of the rules. For a duration of zero, its default applies.
type Settings struct {
	Duration        time.Duration // how long a TEMPORARY consent lasts; 0: DefaultDuration
	Warning         time.Duration // how long before the expiry the subject is warned; 0: DefaultWarning
	Review          time.Duration // how long a partnership waits for a decision; 0: DefaultReview
	NoRenewal       bool          // interactions of the subject do not renew a consent
	RequireExplicit bool          // interactions of the subject do not give a consent
	NoDecay         bool          // data of a consent that becomes ANONYMOUS are anonymous at once
	Controller      string        // the data controller
}

const day = 24 * time.Hour

// The defaults.
const (
	DefaultDuration = 14 * day
	DefaultWarning  = 3 * day
	DefaultReview   = 48 * time.Hour
)

func (s Settings) withDefaults() Settings {
	if s.Duration == 0 {
		s.Duration = DefaultDuration
	}
	if s.Warning == 0 {
		s.Warning = DefaultWarning
	}
	if s.Review == 0 {
		s.Review = DefaultReview
	}
	return s
}
