package air

import (
	"os"
	"strings"
	"testing"
)

// docs/reference/air.md contains the text of the reminder.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/air.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "<!-- air.Text -->\n```\n"+DefaultReminder+"\n```\n") {
		t.Error("docs/reference/air.md has another text than the code")
	}
}
