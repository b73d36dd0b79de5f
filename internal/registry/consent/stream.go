package consent

import (
	"slices"
	"strings"
)

// Stream is the kind of relationship between the subject and the agents. A consent given to one grantee has no stream.
type Stream string

// The streams.
const (
	StreamTemporary Stream = "TEMPORARY" // a consent that expires unless an interaction renews it
	StreamPartnered Stream = "PARTNERED" // a consent that does not expire and needs the agreement of both sides
	StreamAnonymous Stream = "ANONYMOUS" // a consent to statistics only, which does not expire
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

// AllowedCategories returns the categories that a consent with this stream may list. It may also list categories below
// these.
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

// checkCategories returns the requested categories, or all categories of the stream if none is requested. It returns an
// error for a category that the stream does not allow.
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
