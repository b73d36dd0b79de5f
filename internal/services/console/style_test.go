package console

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// In both colour themes, text has a contrast of at least 4.5, and the edges of controls have at least 3.
func TestContrast(t *testing.T) {
	text, err := files.ReadFile("console.css")
	if err != nil {
		t.Fatal(err)
	}
	roots := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(string(text), -1)
	if len(roots) != 2 {
		t.Fatalf("%d themes", len(roots))
	}
	for i, theme := range []string{"light", "dark"} {
		colours := map[string]float64{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6})`).FindAllStringSubmatch(roots[i][1], -1) {
			colours[m[1]] = luminance(t, m[2])
		}
		for _, pair := range []struct {
			background  string
			minContrast float64
			selectors   []string
		}{
			{"paper", 4.5, []string{"ink", "quiet", "accent", "good", "bad", "note"}},
			{"card", 4.5, []string{"ink", "quiet", "accent", "good", "bad", "note"}},
			{"accent-soft", 4.5, []string{"accent", "ink"}},
			{"good-soft", 4.5, []string{"good", "ink"}},
			{"bad-soft", 4.5, []string{"bad", "ink"}},
			{"note-soft", 4.5, []string{"note", "ink"}},
			{"accent", 4.5, []string{"on-accent"}},
			{"card", 3, []string{"edge", "focus"}},
			{"paper", 3, []string{"edge", "focus"}},
		} {
			for _, name := range pair.selectors {
				a, okA := colours[name]
				b, okB := colours[pair.background]
				if got := (math.Max(a, b) + .05) / (math.Min(a, b) + .05); !okA || !okB || got < pair.minContrast {
					t.Errorf("%s: %s on %s has %.2f, want %.1f", theme, name, pair.background, got, pair.minContrast)
				}
			}
		}
	}
	// All colours are CSS variables, and the style sheet loads nothing from elsewhere.
	withoutRoots := regexp.MustCompile(`(?s):root \{.*?\}`).ReplaceAllString(string(text), "")
	if m := regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|rgb\(|url\(|@import`).FindString(withoutRoots); m != "" {
		t.Errorf("the style has %q", m)
	}
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	v, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	channel := func(shift uint) float64 {
		c := float64(v>>shift&255) / 255
		if c <= .03928 {
			return c / 12.92
		}
		return math.Pow((c+.055)/1.055, 2.4)
	}
	return .2126*channel(16) + .7152*channel(8) + .0722*channel(0)
}

// No page contains a script, an inline style, or an address of another host.
func TestPagesLoadNoOtherResources(t *testing.T) {
	pageFiles, err := files.ReadDir("pages")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range pageFiles {
		text, err := files.ReadFile("pages/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, forbiddenText := range []string{"<script", "<style", "style=", "http://", "https://", "//", "method=\"get\"", " onclick"} {
			if strings.Contains(string(text), forbiddenText) {
				t.Errorf("%s has %q", f.Name(), forbiddenText)
			}
		}
		if forms := strings.Count(string(text), "<form"); forms != strings.Count(string(text), `name="csrf"`) && f.Name() != "login.html" {
			t.Errorf("%s: a form has no token", f.Name())
		}
	}
}
