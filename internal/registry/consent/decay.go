package consent

import "time"

// DecayStage says how far a subject's older data are anonymised after the subject has changed to ANONYMOUS.
type DecayStage string

// The stages depend on the number of full days since DecayFrom.
const (
	DecayNone         DecayStage = ""             // no countdown runs
	DecayContextKept  DecayStage = "kept"         // days 0 to 30: the context of the relationship is still there
	DecayAggregated   DecayStage = "aggregated"   // days 31 to 60: behavioural data appear in aggregates only
	DecayUnidentified DecayStage = "unidentified" // days 61 to 89: identity markers are gone
	DecayAnonymous    DecayStage = "anonymous"    // from day 90 on: the data are anonymous
)

// The first full day of each stage.
const (
	AggregatedFrom   = 31
	UnidentifiedFrom = 61
	AnonymousFrom    = 90
)

// DecayAfter returns the stage that is reached after a number of full days.
func DecayAfter(days int) DecayStage {
	switch {
	case days < AggregatedFrom:
		return DecayContextKept
	case days < UnidentifiedFrom:
		return DecayAggregated
	case days < AnonymousFrom:
		return DecayUnidentified
	default:
		return DecayAnonymous
	}
}

// DecayDays returns the number of full days since DecayFrom, or 0 if no countdown runs.
func (c Consent) DecayDays(at time.Time) int {
	if c.DecayFrom.IsZero() || at.Before(c.DecayFrom) {
		return 0
	}
	return int(at.Sub(c.DecayFrom) / day)
}

// DecayStageAt returns the stage that older data have reached at a time.
func (c Consent) DecayStageAt(at time.Time) DecayStage {
	switch {
	case !c.DecayFrom.IsZero():
		return DecayAfter(c.DecayDays(at))
	case c.State == StateGiven && c.Stream == StreamAnonymous:
		return DecayAnonymous
	default:
		return DecayNone
	}
}

// stopDecay ends a countdown and stores how far it came, so that data that were hidden by it stay hidden.
func (c *Consent) stopDecay(now time.Time) {
	switch {
	case !c.DecayFrom.IsZero():
		c.mergeCountdown(c.DecayFrom, c.DecayDays(now))
	case c.State == StateGiven && c.Stream == StreamAnonymous:
		c.mergeCountdown(now, AnonymousFrom)
	}
	c.DecayFrom = time.Time{}
}

// mergeCountdown adds a stopped countdown to the stored one: the later date and the larger number of days apply. That
// may hide too much, but never too little.
func (c *Consent) mergeCountdown(before time.Time, days int) {
	if before.After(c.DecayedBefore) {
		c.DecayedBefore = before
	}
	c.DecayedDays = max(c.DecayedDays, days)
}
