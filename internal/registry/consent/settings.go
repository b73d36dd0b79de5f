package consent

import "time"

// Settings are the durations and switches of the consent rules.
type Settings struct {
	TemporaryDuration time.Duration // how long a TEMPORARY consent lasts; 0: DefaultDuration
	WarningTime       time.Duration // how long before the expiry the subject is warned; 0: DefaultWarningTime
	ReviewTime        time.Duration // how long a requested partnership waits for a decision; 0: DefaultReviewTime
	NoRenewal         bool          // interactions of the subject do not renew a consent
	RequireExplicit   bool          // interactions of the subject do not give a consent
	NoDecay           bool          // a consent that becomes ANONYMOUS makes data anonymous at once, without a countdown
	Controller        string        // the name of the data controller, which records state
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
