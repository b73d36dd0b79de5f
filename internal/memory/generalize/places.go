package generalize

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

// gazetteer lists countries and cities, one a line: those of the time zone database, and names of some of them in other
// languages.
//
//go:embed places.txt
var gazetteer string

var places = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(gazetteer) {
		if name := normalize(strings.TrimSpace(line)); name != "" {
			out[name] = true
		}
	}
	return out
})

// normalize is a text for comparison: in lower case, without marks, with single spaces.
func normalize(s string) string {
	var b strings.Builder
	for _, p := range splitParts(s) {
		if b.Len() > 0 && !p.followsDirectly {
			b.WriteByte(' ')
		}
		b.WriteString(p.plain)
	}
	return b.String()
}

var addresses = compile(
	word(`\d+[a-z]?,?\s+(?:\p{L}+\s+){1,3}(?:street|st|road|rd|avenue|ave|lane|ln|drive|dr|boulevard|blvd|square|court|way)`),
	`\p{L}{3,}(?:straße|strasse|str\.|gasse|platz|allee)\s*\d*`,
	word(
		`(?:rue|avenue|boulevard|place|calle|avenida|plaza|via|piazza|viale|rua|ulica|ul\.|улица|ул\.|проспект|площадь)\s+\p{L}+(?:\s+\p{L}+)?`),
	word(`(?:room|apartment|flat|suite|floor|ward|zimmer|classroom)\s+\d+[a-z]?`), `\p{Han}{2,}(?:路|街|区|市|省|县|町|駅)`,
	`-?\d{1,3}\.\d{3,},\s*-?\d{1,3}\.\d{3,}`,
)

var contacts = compile(
	`[\p{L}\p{N}._%+-]+@[\p{L}\p{N}.-]+\.\p{L}{2,}`, `https?://\S+|www\.\S+`, `\+?\d[\d ()/-]{6,}\d`,
	`\b\d{1,3}(?:\.\d{1,3}){3}\b`, `(?:^|\s)@[\p{L}\p{N}_]{2,}`,
)

var namedPlaces = regexp.MustCompile(
	`\p{Lu}[\p{L}'’-]+(?:\s+(?:of\s+|de\s+|la\s+|the\s+)?\p{Lu}[\p{L}'’-]+)*\s+(?:School|Hospital|Clinic|University|College|Church|Park|` +
		`Hotel|Station|Airport|Library|Academy|Kindergarten|Street|County|Valley|Beach|Lake|River|Island|Bridge)\b`)

// findPlaces finds places and addresses, and ways to reach somebody.
func findPlaces(text string) []Finding {
	const message = "it says where: consider whether that tells the source"
	out := findMatches(text, addresses, "place", message)
	out = append(out, findMatches(text, []*regexp.Regexp{namedPlaces}, "place", message)...)
	out = append(out, findMatches(text, contacts, "contact",
		"it leads to somebody: take it out unless it is everybody's")...)
	parts := splitParts(text)
	for i := range parts {
		name := ""
		for j := i; j < len(parts) && j < i+4; j++ {
			if name != "" && !parts[j].followsDirectly {
				name += " "
			}
			name += parts[j].plain
			known := places()[name]
			if !known && parts[j].script != unspaced && len(parts[j].plain) > 4 { // in, of, to a place: with an ending
				known = places()[strings.TrimSuffix(name, "s")]
			}
			if known && (parts[i].upper || parts[i].script != latin) {
				out = append(out, Finding{Check: Specificity, Level: Warn, Kind: "place",
					Text: text[parts[i].start:parts[j].end], Message: message, at: parts[i].start})
			}
		}
	}
	return out
}
