package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	instants = regexp.MustCompile(`20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC`)
	spaces   = regexp.MustCompile(` +`)
)

// The sessions of docs/reference/consent.md, run in order, print what the page shows, except for times and column
// widths.
func TestConsentPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/consent.md")
	if err != nil {
		t.Fatal(err)
	}
	config, _ := installConsent(t)
	withoutTimes := func(text string) string {
		var lines []string
		for line := range strings.Lines(instants.ReplaceAllString(text, "TIME")) {
			lines = append(lines, strings.TrimSpace(spaces.ReplaceAllString(line, " ")))
		}
		return strings.Join(lines, "\n")
	}
	commands := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for _, session := range strings.Split("\n"+block[1], "\n$ pgconsent ")[1:] {
			line, want, _ := strings.Cut(session, "\n")
			commands++
			out, stderr, _ := call(t, "", append(fields(strings.ReplaceAll(line, `"`, "'")), "-c", config)...)
			if got := withoutTimes(out + stderr); got != withoutTimes(strings.TrimSuffix(want, "\n")+"\n") && got != withoutTimes(want) {
				t.Errorf("pgconsent %s\nprints\n%s\nthe page says\n%s", line, got, withoutTimes(want))
			}
		}
	}
	if commands < 14 {
		t.Errorf("only %d commands", commands)
	}
}
