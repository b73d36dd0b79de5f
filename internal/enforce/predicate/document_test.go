package predicate_test

import (
	"context"
	"os"
	"regexp"
	"slices"
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

// The examples of docs/reference/policy.md are correct: each policy compiles and installs, and each rule becomes the
// SQL that the page shows below it.
func TestPolicyDocument(t *testing.T) {
	tier.All(t)
	if ruleCount, comparedCount := checkDocument(t, "policy.md", "notes"); ruleCount < 10 || comparedCount < 10 {
		t.Errorf("%d rules, %d of them compared: the blocks of the page were not found", ruleCount, comparedCount)
	}
}

// The same for docs/reference/policy-derived.md.
func TestDerivedDocument(t *testing.T) {
	tier.All(t)
	if ruleCount, comparedCount := checkDocument(t, "policy-derived.md", "summaries"); ruleCount < 4 || comparedCount < 4 {
		t.Errorf("%d rules, %d of them compared: the blocks of the page were not found", ruleCount, comparedCount)
	}
}

// checkDocument checks the examples of a page, whose rules are those of one table. It returns how many rules there are,
// and how many have SQL below them.
func checkDocument(t *testing.T, page, table string) (ruleCount, comparedCount int) {
	t.Helper()
	ctx := context.Background()
	text, err := os.ReadFile("../../../docs/reference/" + page)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(yaml|sql)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	conn := pgtest.Database(t).Connect(t, "postgres")
	var snap *catalog.Snapshot
	for _, b := range blocks {
		if strings.HasPrefix(b[2], "CREATE ") {
			if _, err := conn.PgConn().Exec(ctx, b[2]).ReadAll(); err != nil {
				t.Fatal(err)
			}
			if snap, err = pgcatalog.Load(ctx, conn, []string{"public"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	fullPolicy := blocks[slices.IndexFunc(blocks, func(b []string) bool { return b[1] == "yaml" })][2]
	policyHead, _, _ := strings.Cut(fullPolicy, "  "+table+":")
	for i, b := range blocks {
		if b[1] != "yaml" {
			continue
		}
		source := b[2]
		if strings.HasPrefix(source, "rows:") {
			source = policyHead + "  " + table + ":\n    " + strings.ReplaceAll(source, "\n", "\n    ")
			ruleCount++
		}
		doc, err := policy.Parse(page, []byte(source))
		if err != nil {
			t.Errorf("%v\n%s", err, source)
			continue
		}
		pol, err := policy.Compile(doc, snap)
		if err != nil {
			t.Errorf("%v\n%s", err, source)
			continue
		}
		if err := migrations.Up(ctx, conn, migrations.Options{}, rls.Generate(pol, snap, rls.Options{})); err != nil {
			t.Errorf("%v\n%s", err, source)
		}
		if i+1 == len(blocks) || blocks[i+1][1] != "sql" || strings.HasPrefix(blocks[i+1][2], "CREATE ") {
			continue
		}
		comparedCount++
		notes, _ := pol.Table(catalog.Name{Schema: "public", Name: table})
		if got, want := simplifiedSQL(predicate.CheckSQL(notes.Rows, notes.Relation)), normalizedSpaces(blocks[i+1][2]); got != want {
			t.Errorf("%s becomes\n%s\ndocs/reference/%s says\n%s", b[2], got, page, want)
		}
	}
	return ruleCount, comparedCount
}

// simplifiedSQL removes from a condition what docs/reference/policy.md leaves out: schemas, operator syntax, and the
// conditions that the session has a seal and attributes.
func simplifiedSQL(sql string) string {
	sql = regexp.MustCompile(`OPERATOR\(pg_catalog\.([^)]+)\)`).ReplaceAllString(sql, "$1")
	sql = strings.NewReplacer("pg_catalog.", "", "pgconsent_signed.", "").Replace(sql)
	sql = strings.TrimPrefix(sql, "(SELECT sealed()) AND ")
	return normalizedSpaces(regexp.MustCompile(`^(\(SELECT attr\('\w+'\)\) IS NOT NULL AND )+`).ReplaceAllString(sql, ""))
}

func normalizedSpaces(sql string) string { return strings.Join(strings.Fields(sql), " ") }
