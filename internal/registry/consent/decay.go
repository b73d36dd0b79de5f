package consent

import "time"

// DecayStage says how far the older data of a subject who has left a relationship have been anonymised.
type DecayStage string

// The stages, by full days since DecayFrom.
const (
	DecayNone         DecayStage = ""             // there is no countdown
	DecayContextKept  DecayStage = "kept"         // days 0 to 30: the context of the relationship is kept
	DecayAggregated   DecayStage = "aggregated"   // days 31 to 60: behavioural data show in aggregates only
	DecayUnidentified DecayStage = "unidentified" // days 61 to 89: identity markers are gone
	DecayAnonymous    DecayStage = "anonymous"    // from day 90 on: the data are anonymous
)

// The first full day of each stage.
const (
	AggregatedFrom   = 31
	UnidentifiedFrom = 61
	AnonymousFrom    = 90
)

// DecayAfter returns the stage after a number of full days.
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

// DecayDays returns the full days since DecayFrom; 0 without a countdown.
func (c Consent) DecayDays(at time.Time) int {
	if c.DecayFrom.IsZero() || at.Before(c.DecayFrom) {
		return 0
	}
	return int(at.Sub(c.DecayFrom) / day)
}

// DecayStageAt returns the stage of older data at a time.
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

// stopDecay stores how far the data have decayed when a countdown stops: removed data stay removed.
func (c *Consent) stopDecay(now time.Time) {
	switch {
	case !c.DecayFrom.IsZero():
		c.mergeCountdown(c.DecayFrom, c.DecayDays(now))
	case c.State == StateGiven && c.Stream == StreamAnonymous:
		c.mergeCountdown(now, AnonymousFrom)
	}
	c.DecayFrom = time.Time{}
}

// mergeCountdown merges a countdown into the present one, so that data have decayed as far as in either. It may hide
// too much, but never too little.
func (c *Consent) mergeCountdown(before time.Time, days int) {
	if before.After(c.DecayedBefore) {
		c.DecayedBefore = before
	}
	c.DecayedDays = max(c.DecayedDays, days)
}
