package predicate_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The examples of docs/reference/policy-registry.md are correct: its policies compile and install, and its rule becomes
// the SQL that the page shows below it.
func TestRegistryDocument(t *testing.T) {
	tier.All(t)
	ctx := context.Background()
	text, err := os.ReadFile("../../../docs/reference/policy-registry.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(yaml|sql)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	conn := pgtest.Database(t).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(ctx, blocks[0][2]).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(ctx, conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	policyHead, _, _ := strings.Cut(blocks[1][2], "    rows:")
	comparedCount, compiledCount := 0, 0
	for i, b := range blocks {
		if b[1] != "yaml" {
			continue
		}
		source := b[2]
		if strings.HasPrefix(source, "rows:") {
			source = policyHead + "    " + strings.ReplaceAll(source, "\n", "\n    ")
		}
		doc, err := policy.Parse("policy-registry.md", []byte(source))
		if err != nil {
			t.Errorf("%v\n%s", err, source)
			continue
		}
		pol, err := policy.Compile(doc, snap)
		if err != nil {
			t.Errorf("%v\n%s", err, source)
			continue
		}
		compiledCount++
		if err := migrations.Up(ctx, conn, migrations.Options{}, rls.Generate(pol, snap, rls.Options{SignedViews: true})); err != nil {
			t.Errorf("%v\n%s", err, source)
		}
		if i+1 < len(blocks) && blocks[i+1][1] == "sql" {
			comparedCount++
			talks, _ := pol.Table(catalog.Name{Schema: "public", Name: "talks"})
			got := strings.ReplaceAll(simplifiedSQL(predicate.CheckSQL(talks.Rows, talks.Relation)), `COLLATE "default"`,
				`COLLATE pg_catalog."default"`)
			if want := normalizedSpaces(blocks[i+1][2]); got != want {
				t.Errorf("%s becomes\n%s\ndocs/reference/policy-registry.md says\n%s", b[2], got, want)
			}
		}
	}
	if compiledCount < 3 || comparedCount < 1 {
		t.Errorf("%d policies, %d compared: the blocks of the page were not found", compiledCount, comparedCount)
	}
}
