package sqltext

import (
	"errors"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Edit replaces the bytes from Start up to End by Text. If Start equals End, it inserts Text.
type Edit struct {
	Start, End int32
	Text       string
}

// EditedText is the result of edits. Its positions can be mapped back to the original text.
type EditedText struct {
	Text     string
	segments []segment
}

// segment says from where a part of the new text comes, in characters counted from 0.
type segment struct {
	start  int  // where the segment starts in the new text
	origin int  // where the segment starts in the original text
	isCopy bool // the segment is a copy of original text; otherwise all its positions map to origin
}

// ApplyEdits applies edits to a text. Edits must not overlap. Insertions at the same place keep their order, and come
// before a replacement that starts there.
func ApplyEdits(text string, edits []Edit) (*EditedText, *sqlstate.Error) {
	sort.SliceStable(edits, func(i, j int) bool {
		if edits[i].Start != edits[j].Start {
			return edits[i].Start < edits[j].Start
		}
		return edits[i].Start == edits[i].End && edits[j].Start != edits[j].End
	})
	var out strings.Builder
	s := &EditedText{}
	next, newChars, oldChars := int32(0), 0, 0
	for _, e := range edits {
		if e.Start < next || e.End < e.Start || int(e.End) > len(text) {
			return nil, sqlstate.AsError(errors.New("sqltext: edits overlap"))
		}
		unchanged := text[next:e.Start]
		s.segments = append(s.segments, segment{newChars, oldChars, true})
		out.WriteString(unchanged)
		n := utf8.RuneCountInString(unchanged)
		newChars, oldChars = newChars+n, oldChars+n
		s.segments = append(s.segments, segment{newChars, oldChars, false})
		out.WriteString(e.Text)
		newChars += utf8.RuneCountInString(e.Text)
		oldChars += utf8.RuneCountInString(text[e.Start:e.End])
		next = e.End
	}
	s.segments = append(s.segments, segment{newChars, oldChars, true})
	out.WriteString(text[next:])
	s.Text = out.String()
	return s, nil
}

// Position maps a position in the new text to a position in the original text. Both count characters from 1. A position
// inside inserted text maps to the place of the edit. Zero and negative positions are returned unchanged.
func (s *EditedText) Position(p int) int {
	if p <= 0 {
		return p
	}
	i := sort.Search(len(s.segments), func(i int) bool { return s.segments[i].start > p-1 }) - 1
	g := s.segments[i]
	if !g.isCopy {
		return g.origin + 1
	}
	return g.origin + (p - 1 - g.start) + 1
}
