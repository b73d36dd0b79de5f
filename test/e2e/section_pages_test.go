package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

// The policy section that a page shows is valid in the example world that the page is about, instead of the world's own
// section.
func TestSectionsOfPages(t *testing.T) {
	for page, name := range map[string]string{"sources": "memberintel", "privacy": "kernle"} {
		text, err := os.ReadFile("../../docs/reference/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		w, err := world.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		content, err := w.File("policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		snap, err := pgcatalog.Load(t.Context(),
			pgtest.Template(t, name, loadWorld(name, w.Owner)).Connect(t, "postgres"), []string{"public"})
		if err != nil {
			t.Fatal(err)
		}
		section := regexp.MustCompile(`(?m)^` + page + `:\n(?:(?:[ #].*)?\n)+`)
		if len(section.FindAll(content, -1)) != 1 {
			t.Fatalf("the policy of %s has no section %s", name, page)
		}
		blocks := 0
		for _, b := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(b[1], page+":\n") {
				t.Errorf("docs/reference/%s.md: a block is not the section", page)
				continue
			}
			blocks++
			doc, err := policy.Parse(page+".md", section.ReplaceAllLiteral(content, []byte(b[1])))
			if err == nil {
				_, err = policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
			}
			if err != nil {
				t.Errorf("docs/reference/%s.md: %v", page, err)
			}
		}
		if blocks == 0 {
			t.Errorf("docs/reference/%s.md shows no section", page)
		}
	}
}
