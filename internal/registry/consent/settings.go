package consent

import "time"

// Settings are the durations and switches. The zero value of a duration is its default.
type Settings struct {
	Duration        time.Duration // of TEMPORARY; 0: DefaultDuration
	Warning         time.Duration // before expiry; 0: DefaultWarning
	Review          time.Duration // of a partnership; 0: DefaultReview
	NoRenewal       bool          // an interaction renews nothing
	RequireExplicit bool          // an interaction gives nothing
	NoDecay         bool          // what turns ANONYMOUS is anonymous at once
	Controller      string        // who answers for the data
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
