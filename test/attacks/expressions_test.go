package attacks

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The server must accept every regular expression that SafeRegularExpression calls safe. The test builds expressions of
// random pieces, also in wrong places, up to the allowed length.
func TestPlainExpressionsAlwaysCompile(t *testing.T) {
	tier.All(t)
	db := pgtest.Database(t)
	conn := db.Connect(t, "postgres")
	pieces := strings.Fields(
		`a b é Z 0 9 _ - , . .. | | ( ( ) ) (?: ^ $ * + ? *? {2} {3,} {0,9} {20} ` +
			`[a-z] [^0-9] [[:alpha:]] [[:punct:]a-f-] [\d\s] [é.] \d \W \S \. \( \m \M \y \Y [ ] { } \ \1 (?= (?i) x{40} .* .+ [^é]*`)
	pieces = append(pieces, " ", "(a|b|.)*", "(.|[a-f])+", "(a*|b+)?")
	random := rand.New(rand.NewPCG(7, 41))
	safeCount, longest := 0, 0
	for tries := 0; safeCount < 4000 && tries < 4_000_000; tries++ {
		var b strings.Builder
		for n, size := 1+random.IntN(60), 0; size < n && b.Len() < 200; size++ {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		text := b.String()
		if !verdict.SafeRegularExpression(text) {
			continue
		}
		safeCount, longest = safeCount+1, max(longest, len(text))
		if _, err := conn.Exec(t.Context(),
			"SELECT s ~ $1, s !~* $1 FROM unnest(ARRAY['', 'a', 'plain text é 09 of a row', repeat('ab0 é', 3000)]) s", text); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	t.Logf("%d plain expressions, the longest of %d bytes", safeCount, longest)
	if safeCount < 1000 || longest < 60 {
		t.Error("they are few, or short")
	}
	// the largest expressions that are still safe
	for _, text := range []string{
		strings.Repeat("(.|[a-f])*", 12), strings.Repeat("(.|é)+(a|b|.)?", 6), strings.Repeat(".*[a-z]", 12) +
			strings.Repeat("x", 100), ".{40}" + strings.Repeat(".*a", 11) + strings.Repeat("[^b]", 25), strings.Repeat("(a|b|c|d|e|f|.)", 12),
		strings.TrimSuffix(strings.Repeat(".*|", 12), "|"), "(" + strings.TrimSuffix(strings.Repeat("[^a]x|", 30), "|") + ")*",
		"(" + strings.TrimSuffix(strings.Repeat("a|", 95), "|") + ")*", strings.Repeat("[a-z]", 40), ".{0,39}.*.*.*.*.*.*.*.*.*.*",
	} {
		if !verdict.SafeRegularExpression(text) {
			t.Errorf("%q is not plain", text)
		}
		if _, err := conn.Exec(t.Context(), "SELECT s ~ $1, s !~* $1 FROM unnest(ARRAY['', repeat('ab0 é', 3000)]) s", text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An agent matches a column against regular expressions that fail when a row is reached, as constants and as
// parameters. Safe and unsafe ones alike must give the same answers on both twins.
func TestExpressionsOnTheSignedPath(t *testing.T) {
	tier.All(t)
	text := []uint32{25}
	cases := []signedCase{
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body ~ 'pl+ain'"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body ~* '^(odd|plain)$'"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body SIMILAR TO '%(odd|z)%'"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body NOT SIMILAR TO 'odd'"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body ~ '('"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body !~ 'x{256}'"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body ~ '(((x{250}){250}){250}){250}'"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body ~ '***:a'"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body ~* '[z-a]'"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body ~ '^*'"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body ~ E'\\\\'"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body ~ body"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND 'x' ~ ('(' || body)"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body SIMILAR TO '(('"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body SIMILAR TO '*'"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body SIMILAR TO 'a[b'"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body SIMILAR TO body"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND body ~ $1", text, "o[d]+"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND body ~ $1", text, "("),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND body ~* $1", nil, "a**"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND body !~ $1", nil, `(a)\1`),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND body !~* $1", nil, "x{300}"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND body ~ $1", nil, ""),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND (body ~ $1 OR body LIKE $1)", nil, `a\`),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND body ~ ('(' || $1)", nil, "a"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND body SIMILAR TO $1", nil, "(("),
	}
	hint := predicate.EstimateRowsHint(catalog.Name{Schema: "public", Name: "big"}) // an agent may write this hint, too
	for _, k := range slices.Clone(cases) {
		k.sql = hint + k.sql
		cases = append(cases, k)
	}
	askSignedPath(t, "body = '('", instance.SignedViews, cases)
	askSignedPath(t, "body = repeat('(', 200000)", instance.Auto, cases)
}
