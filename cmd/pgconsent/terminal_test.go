package main

import (
	"bytes"
	"testing"

	"github.com/pgconsent/pgconsent/internal/tool/policydiff"
)

// Agents write the keys of rows. The DBA's terminal must show them as text and nothing else.
func TestValuesDoNotActOnTheTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[31mno\x1b[0m \x1b[32;1msees\x1b[0m\tü\n": "\x1b[31mno\x1b[0m \x1b[32;1msees\x1b[0m\tü\n",
		"\x1b]0;title\a":        `\x1b]0;title\x07`,
		"\x1b[2J\x1b[8m\x1b[1A": `\x1b[2J\x1b[8m\x1b[1A`,
		"a\rb\b\x7f":            `a\x0db\x08\x7f`,
		"\u009b2J":              `\u009b2J`,
		"\u202eabc\u2066":       `\u202eabc\u2066`,
		"\x9b2J \xff":           `\x9b2J \xff`,
		"世界 → ✓ 🙂":              "世界 → ✓ 🙂",
	} {
		var wholeOutput, bytewiseOutput bytes.Buffer
		if n, err := (&plainWriter{writer: &wholeOutput}).Write([]byte(in)); err != nil || n != len(in) {
			t.Fatal(n, err)
		}
		if wholeOutput.String() != want {
			t.Errorf("%q became %q, want %q", in, wholeOutput.String(), want)
		}
		p := &plainWriter{writer: &bytewiseOutput}
		for i := range []byte(in) {
			_, _ = p.Write([]byte(in)[i : i+1])
		}
		if bytes.Contains(bytewiseOutput.Bytes(), []byte("\x1b[2J")) || bytes.Contains(bytewiseOutput.Bytes(), []byte("\u009b")) {
			t.Errorf("%q in pieces became %q", in, bytewiseOutput.String())
		}
	}
}

func TestKeysOfADiffDoNotActOnTheTerminal(t *testing.T) {
	var out bytes.Buffer
	report := &policydiff.Report{Database: "d", Tables: []policydiff.Table{{Name: "notes", Rows: []policydiff.Rows{{
		Agents: []string{"chat"}, Key: []string{"id"}, New: 1, Appear: 1, Appearing: [][]string{{"\x1b[2J\x1b[1;1Hagents gain nothing"}},
	}}}}}
	policydiff.Printer{Out: &plainWriter{writer: &out}, UsesColours: true}.Print(report)
	if bytes.Contains(out.Bytes(), []byte("\x1b[2J")) {
		t.Errorf("%q", out.String())
	}
}
