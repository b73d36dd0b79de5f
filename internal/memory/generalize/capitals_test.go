package generalize

import (
	"strings"
	"testing"
)

// A capitalized word may be a place or a name and gets a warning. It gets none if it begins a sentence, is an acronym,
// says when, or is in the list of ordinary words. A word that another check has found is not reported again.
func TestCapitalizedWords(t *testing.T) {
	for text, want := range map[string]string{
		// a place that no list contains, with different text around it
		"They moved to Graz last": "Graz", "near Graz, in the hills": "Graz", "(Graz)": "", "they live there (Graz)": "Graz",
		"by Graz's river": "Graz", "by Graz’s river": "Graz", "a Graz-based clinic": "Graz-based", "the Graz–Linz line": "Graz, Linz",
		"near Unterzürich or Ötz": "Unterzürich, Ötz", "near Zu\u0308gersee": "Zu\u0308gersee", "der Weg nach Škofja": "Weg, Škofja",
		"около Граца тихо": "Граца", "near *Graz* and _Linz_": "Graz, Linz", "it is Graz; Linz": "Graz, Linz",
		"near G\u200braz": "G\u200braz", "near 𝐆𝐫𝐚𝐳": "𝐆𝐫𝐚𝐳", "moved to #Graz": "Graz", "in Graz and Graz": "Graz",
		"walks in Baden-Irgendwo help": "Baden-Irgendwo", "so said O'Neil": "O'Neil", "pre-Raphaelite art": "pre-Raphaelite",
		"Graz-Umgebung is calm": "Graz-Umgebung", "people of l'Aquila": "l'Aquila", "a Graz2 route": "Graz2", "see GRAZER wald": "GRAZER",
		"like McDermott": "McDermott", "as Dr. Grazer says": "Grazer", "near St. Pelten": "Pelten", "towns, e.g. Graz": "Graz",
		"a trip:Graz": "Graz", "v1.Graz": "Graz", "Sleep helps - Graz": "Graz",
		// the start of a sentence
		"Graz is calm": "", "Rest helps. Exercise too": "", "Rest! Exercise? Walk: Eat": "", "Rest… Walk": "", "- Rest\n- Walk": "", "1. Rest 2. Walk": "",
		`the vet said "Rest well"`: "", "the vet said “Rest well”": "", "er sagt „Ruhe“": "",
		"il dit « Repos »": "", "»Ruhe« Graz": "Graz", "the vet said 'Rest well'": "",
		"They said no. (Walk on)": "", "They said no.) Walk on": "", "“Rest.” Walk on": "", "Rest.\" Walk": "", "*Rest.* Walk": "", "休む。Walk": "",
		"the \"big\" Graz": "Graz", "¿Qué? ¡Anda!": "", "Walk\u2028Rest": "",
		// I, acronyms, days and months, ordinary words
		"what I know, I'm sure, I’ve seen": "", "plan B and vitamin C": "", "over HTTP, an API of SQL, two APIs, PDFs": "", "by HTTP/2 and UTF-8": "",
		"on Monday and Tuesday": "", "Mondays, Fridays: in May and March": "", "a Sunday Monday week": "", "since December": "",
		"in Python on Linux": "", "speak English and German": "", "by Wi-Fi": "Wi-Fi", "written in PostgreSQL's own": "", "an English-speaking vet": "",
		"people with Alzheimer's sleep": "", "as Mr and Mrs say": "",
		// words that another check finds
		"They live in Berlin": "", "near the Willow Creek School": "", "see https://Grazer.example/Walk": "", "mail Grazer@example.org": "",
		"that Bella sleeps": "", "that Bellas sleep": "",
		// texts without such words
		"": "", "...": "", "'": "", "rest well": "", "’s": "", "-": "", "A": "", "a 'B": "",
	} {
		var got []string
		for _, f := range judge("dog:bella", "", text).Findings {
			if f.Kind == "capitalized" {
				got = append(got, f.Text)
				if f.Check != CheckSpecificity || f.Level != LevelWarn || !strings.Contains(text, f.Text) {
					t.Errorf("%q: %+v", text, f)
				}
			}
		}
		if found := strings.Join(got, ", "); found != want {
			t.Errorf("%q: %q, want %q", text, found, want)
		}
	}
}

// The list of ordinary words has no duplicates, and no word that is also in the list of places.
func TestOrdinaryWords(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(ordinaryWordList), "\n")
	seenWords := map[string]bool{}
	for _, w := range lines {
		if seenWords[w] || w != strings.TrimSpace(w) || knownPlaces()[normalizePlace(w)] || isAcronym(w) || !splitWords(w)[0].isCapitalized {
			t.Errorf("%q is there twice, or a place, or no word with a capital letter", w)
		}
		seenWords[w] = true
		if got := CheckTexts(Input{Texts: []string{"it is " + w}}); len(got.Findings) > 0 {
			t.Errorf("%q: %+v", w, got.Findings)
		}
	}
	if len(lines) > 100 {
		t.Errorf("%d words", len(lines))
	}
}
