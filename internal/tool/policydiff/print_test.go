package policydiff

import (
	"strings"
	"testing"
)

// A key that an agent wrote cannot add a line to the report, nor send control characters to a terminal.
func TestPrintedKeysAreEscaped(t *testing.T) {
	var out strings.Builder
	Printer{Out: &out}.Print(&Report{Database: "d", Tables: []Table{{Name: "notes", Rows: []Rows{{
		Agents: []string{"chat"}, Key: []string{"id"}, New: 1, Appear: 1, Appearing: [][]string{{"a\nagents gain nothing\x1b[2J\u009b2J\u202e"}},
	}}}}})
	if strings.Contains(out.String(), "\nagents gain nothing") || strings.ContainsAny(out.String(), "\x1b\u009b\u202e") {
		t.Errorf("%q", out.String())
	}
}
