package consent

import (
	"slices"
	"strings"
)

// Stream is the kind of a relationship. A consent between a subject and one grantee has none.
type Stream string

// The streams.
const (
	Temporary Stream = "TEMPORARY" // expires unless renewed
	Partnered Stream = "PARTNERED" // does not expire; needs an agreement of both sides
	Anonymous Stream = "ANONYMOUS" // for statistics only; does not expire
)

// Streams are all there are.
var Streams = []Stream{Temporary, Partnered, Anonymous}

// The categories of streams.
const (
	Essential   = "ESSENTIAL"
	Behavioral  = "BEHAVIORAL"
	Improvement = "IMPROVEMENT"
	Statistical = "STATISTICAL"
)

// Allows returns the categories that a consent of the stream may list, with all below them.
func (s Stream) Allows() []string {
	switch s {
	case Temporary:
		return []string{Essential}
	case Partnered:
		return []string{Essential, Behavioral, Improvement}
	case Anonymous:
		return []string{Statistical}
	default:
		return nil
	}
}

func (s Stream) known() bool { return slices.Contains(Streams, s) }

// checkCategories returns the categories to record: the requested ones, or all of the stream's.
func (s Stream) checkCategories(asked []string) ([]string, error) {
	if len(asked) == 0 {
		return s.Allows(), nil
	}
	for _, c := range asked {
		if !Covers(s.Allows(), c) {
			return nil, invalid("category %s is not one of the stream %s", c, s).
				hint("%s allows %s and what is below them. A grant may list fewer, never more.", s, strings.Join(s.Allows(), ", "))
		}
	}
	return sortedUnique(asked), nil
}
