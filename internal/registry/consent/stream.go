package consent

import (
	"slices"
	"strings"
)

// Stream is the kind of a relationship. A consent that a subject gives to one grantee has no stream.
type Stream string

// The streams.
const (
	StreamTemporary Stream = "TEMPORARY" // a consent that expires unless it is renewed
	StreamPartnered Stream = "PARTNERED" // a consent that does not expire, and needs an agreement of both sides
	StreamAnonymous Stream = "ANONYMOUS" // a consent for statistics only, which does not expire
)

// Streams are all streams.
var Streams = []Stream{StreamTemporary, StreamPartnered, StreamAnonymous}

// The categories of streams.
const (
	CategoryEssential   = "ESSENTIAL"
	CategoryBehavioral  = "BEHAVIORAL"
	CategoryImprovement = "IMPROVEMENT"
	CategoryStatistical = "STATISTICAL"
)

// AllowedCategories returns the categories that a consent of the stream may list; it may also list categories below
// them.
func (s Stream) AllowedCategories() []string {
	switch s {
	case StreamTemporary:
		return []string{CategoryEssential}
	case StreamPartnered:
		return []string{CategoryEssential, CategoryBehavioral, CategoryImprovement}
	case StreamAnonymous:
		return []string{CategoryStatistical}
	default:
		return nil
	}
}

func (s Stream) isKnown() bool { return slices.Contains(Streams, s) }

// checkCategories returns the categories to record: the requested ones, or all categories of the stream.
func (s Stream) checkCategories(requested []string) ([]string, error) {
	if len(requested) == 0 {
		return s.AllowedCategories(), nil
	}
	for _, c := range requested {
		if !PathsCover(s.AllowedCategories(), c) {
			return nil, newValidationError("category %s is not one of the stream %s", c, s).
				hint("%s allows %s and what is below them. A grant may list fewer, never more.", s,
					strings.Join(s.AllowedCategories(), ", "))
		}
	}
	return sortedUnique(requested), nil
}
