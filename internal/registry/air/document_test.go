package air

import (
	"os"
	"strings"
	"testing"
)

// docs/air.md has the text.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/air.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "<!-- air.Text -->\n```\n"+Text+"\n```\n") {
		t.Error("docs/air.md has another text than the code")
	}
}
