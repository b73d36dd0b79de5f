package consent

import "time"

// Settings are the durations and switches of the consent rules. A duration of zero means the default.
type Settings struct {
	TemporaryDuration time.Duration // how long a TEMPORARY consent lasts; 0: DefaultDuration
	WarningTime       time.Duration // how long before the expiry the subject is warned; 0: DefaultWarningTime
	ReviewTime        time.Duration // how long a partnership waits for a decision; 0: DefaultReviewTime
	NoRenewal         bool          // interactions of the subject do not renew a consent
	RequireExplicit   bool          // interactions of the subject do not give a consent
	NoDecay           bool          // data of a consent that becomes ANONYMOUS are anonymous at once
	Controller        string        // the data controller
}

const day = 24 * time.Hour

// The defaults.
const (
	DefaultDuration    = 14 * day
	DefaultWarningTime = 3 * day
	DefaultReviewTime  = 48 * time.Hour
)

func (s Settings) withDefaults() Settings {
	if s.TemporaryDuration == 0 {
		s.TemporaryDuration = DefaultDuration
	}
	if s.WarningTime == 0 {
		s.WarningTime = DefaultWarningTime
	}
	if s.ReviewTime == 0 {
		s.ReviewTime = DefaultReviewTime
	}
	return s
}
