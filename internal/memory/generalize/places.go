package generalize

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

// placeList lists countries and cities, one a line: the cities of the time zone database, some also by their names in
// other languages.
//
//go:embed places.txt
var placeList string

var knownPlaces = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(placeList) {
		if name := normalizePlace(strings.TrimSpace(line)); name != "" {
			out[name] = true
		}
	}
	return out
})

// normalizePlace returns a text in the form in which places are compared: lower case, without marks, with single
// spaces.
func normalizePlace(s string) string {
	var b strings.Builder
	for _, p := range splitParts(s) {
		if b.Len() > 0 && !p.followsDirectly {
			b.WriteByte(' ')
		}
		b.WriteString(p.plainForm)
	}
	return b.String()
}

var addressPatterns = compilePatterns(
	wholeWord(`\d+[a-z]?,?\s+(?:\p{L}+\s+){1,3}(?:street|st|road|rd|avenue|ave|lane|ln|drive|dr|boulevard|blvd|square|court|way)`),
	`\p{L}{3,}(?:straße|strasse|str\.|gasse|platz|allee)\s*\d*`,
	wholeWord(
		`(?:rue|avenue|boulevard|place|calle|avenida|plaza|via|piazza|viale|rua|ulica|ul\.|улица|ул\.|проспект|площадь)\s+\p{L}+(?:\s+\p{L}+)?`),
	wholeWord(`(?:room|apartment|flat|suite|floor|ward|zimmer|classroom)\s+\d+[a-z]?`), `\p{Han}{2,}(?:路|街|区|市|省|县|町|駅)`,
	`-?\d{1,3}\.\d{3,},\s*-?\d{1,3}\.\d{3,}`,
)

var contactPatterns = compilePatterns(
	`[\p{L}\p{N}._%+-]+@[\p{L}\p{N}.-]+\.\p{L}{2,}`, `https?://\S+|www\.\S+`, `\+?\d[\d ()/-]{6,}\d`,
	`\b\d{1,3}(?:\.\d{1,3}){3}\b`, `(?:^|\s)@[\p{L}\p{N}_]{2,}`,
)

var namedPlacePattern = regexp.MustCompile(
	`\p{Lu}[\p{L}'’-]+(?:\s+(?:of\s+|de\s+|la\s+|the\s+)?\p{Lu}[\p{L}'’-]+)*\s+(?:School|Hospital|Clinic|University|College|Church|Park|` +
		`Hotel|Station|Airport|Library|Academy|Kindergarten|Street|County|Valley|Beach|Lake|River|Island|Bridge)\b`)

// findPlaces finds places, addresses and contact data such as telephone numbers.
func findPlaces(text string) []Finding {
	const message = "it says where: consider whether that tells the source"
	out := findMatches(text, addressPatterns, "place", message)
	out = append(out, findMatches(text, []*regexp.Regexp{namedPlacePattern}, "place", message)...)
	out = append(out, findMatches(text, contactPatterns, "contact",
		"it leads to somebody: take it out unless it is everybody's")...)
	parts := splitParts(text)
	for i := range parts {
		name := ""
		for j := i; j < len(parts) && j < i+4; j++ {
			if name != "" && !parts[j].followsDirectly {
				name += " "
			}
			name += parts[j].plainForm
			isKnownPlace := knownPlaces()[name]
			// The name of a place may be followed by an s, as in a genitive.
			if !isKnownPlace && parts[j].script != unspacedScript && len(parts[j].plainForm) > 4 {
				isKnownPlace = knownPlaces()[strings.TrimSuffix(name, "s")]
			}
			if isKnownPlace && (parts[i].startsUpper || parts[i].script != latin) {
				out = append(out, Finding{Check: CheckSpecificity, Level: LevelWarn, Kind: "place",
					Text: text[parts[i].start:parts[j].end], Message: message, start: parts[i].start})
			}
		}
	}
	return out
}
