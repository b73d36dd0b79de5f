package consent

import "time"

// DecayStage is how far older data of a subject who has left a relationship have been anonymised.
type DecayStage string

// The steps, by full days since DecayFrom.
const (
	DecayNone         DecayStage = ""             // no countdown
	DecayContextKept  DecayStage = "kept"         // 0–30: relationship context is kept
	DecayAggregated   DecayStage = "aggregated"   // 31–60: behavioural data in aggregates only
	DecayUnidentified DecayStage = "unidentified" // 61–89: identity markers are gone
	DecayAnonymous    DecayStage = "anonymous"    // from 90
)

// The first full day of each step.
const (
	AggregatedFrom   = 31
	UnidentifiedFrom = 61
	AnonymousFrom    = 90
)

// DecayAfter is the step after so many full days.
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

// DecayDays are the full days elapsed since DecayFrom; 0 without a countdown.
func (c Consent) DecayDays(at time.Time) int {
	if c.DecayFrom.IsZero() || at.Before(c.DecayFrom) {
		return 0
	}
	return int(at.Sub(c.DecayFrom) / day)
}

// Decay is the step of older data at that time.
func (c Consent) Decay(at time.Time) DecayStage {
	switch {
	case !c.DecayFrom.IsZero():
		return DecayAfter(c.DecayDays(at))
	case c.State == Given && c.Stream == Anonymous:
		return DecayAnonymous
	default:
		return DecayNone
	}
}

// stopDecay stores how far the data have decayed: removed data stay removed.
func (c *Consent) stopDecay(now time.Time) {
	switch {
	case !c.DecayFrom.IsZero():
		c.mergeCountdown(c.DecayFrom, c.DecayDays(now))
	case c.State == Given && c.Stream == Anonymous:
		c.mergeCountdown(now, AnonymousFrom)
	}
	c.DecayFrom = time.Time{}
}

// mergeCountdown merges two countdowns into one that is as far as either: it hides rather too much than too little.
func (c *Consent) mergeCountdown(before time.Time, days int) {
	if before.After(c.DecayedBefore) {
		c.DecayedBefore = before
	}
	c.DecayedDays = max(c.DecayedDays, days)
}
