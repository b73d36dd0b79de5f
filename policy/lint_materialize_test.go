package policy_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// The advice to materialize a rule is given where it pays, and compiles as written. It is not given for small tables,
// for rows that an index on the caller's own id finds, or for subjects with a large part of the rows. It is not given
// either where materializing is impossible or done already.
func TestAdviceToMaterialize(t *testing.T) {
	snap := derivedSnapshot(t)
	size := func(memories, people float64, owners float64) catalog.Sizes {
		s := catalog.Sizes{
			{Schema: "public", Name: "memories"}: {Rows: memories, DistinctValues: map[string]float64{}},
			{Schema: "public", Name: "people"}:   {Rows: people},
		}
		if owners > 0 {
			s[catalog.Name{Schema: "public", Name: "memories"}].DistinctValues["user_id"] = owners
		}
		return s
	}
	const consent = "consent: { every: [ people: { id: person_id } ], status: consent, is: granted }"
	const materializedRule = "consent: { every: [ people: { id: person_id } ], status: consent, is: granted, materialize: true }"
	for name, c := range map[string]struct {
		rule  string
		sizes catalog.Sizes
		want  string
	}{
		"a large table": {consent, size(2_000_000, 50_000, 0),
			"p.yaml:5:23: about 2000000 rows of public.memories are asked about one by one, whether everybody has " +
				"agreed: the answer can be stored beside each; who changes their mind then changes about 40 of these (" + materializedRule + ")"},
		"within any":                   {"any: [ sql: \"body = 'x'\", " + consent + " ]", size(2_000_000, 50_000, 0), materializedRule},
		"a small one":                  {consent, size(99_000, 5000, 0), ""},
		"many of each owner":           {"own: { column: user_id, is: user }, " + consent, size(10_000_000, 500_000, 20), "about 500000 rows"},
		"few of each owner":            {"own: { column: user_id, is: user }, " + consent, size(10_000_000, 500_000, 10_000), ""},
		"nobody knows how many owners": {"own: { column: user_id, is: user }, " + consent, size(10_000_000, 500_000, 0), ""},
		"few people in all rows":       {consent, size(2_000_000, 50, 0), ""},
		"kept":                         {materializedRule, size(2_000_000, 50_000, 0), ""},
		"nobody to ask":                {consent, size(2_000_000, 0, 0), ""},
		"nothing known":                {consent, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := derivedHead + "  memories: { rows: [ " + c.rule + " ] }\n"
			doc, err := policy.Parse("p.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			findings, err := policy.WorthMaterializing(doc, snap, c.sizes)
			if err != nil {
				t.Fatal(err)
			}
			var adviceLines []string
			for _, f := range findings {
				adviceLines = append(adviceLines, f.Error())
				if _, err := derivedCompile(t, snap, derivedHead+"  memories: { rows: [ "+f.Suggestion+" ] }\n"); err != "" {
					t.Errorf("what is advised does not compile: %s", err)
				}
			}
			if got := strings.Join(adviceLines, "\n"); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	writablePolicy := derivedHead + "  memories: { rows: [ " + consent + " ], write: { commands: [update], columns: [body] } }\n"
	doc, err := policy.Parse("p.yaml", []byte(writablePolicy))
	if err != nil {
		t.Fatal(err)
	}
	if findings, err := policy.WorthMaterializing(doc, snap, size(2_000_000, 50_000, 0)); err != nil || len(findings) > 0 {
		t.Errorf("of a table that agents write: %v %v", findings, err)
	}
}
