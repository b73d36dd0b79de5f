package attacks

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// to_tsquery must accept every query that SafeTextQuery calls safe, whatever its words become. The test builds queries
// of random pieces, also in wrong places.
func TestPlainTextQueriesAreRead(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	pieces := strings.Fields(`lake rivers the a 2024 _ é ß İstanbul Ⱥ x_1 12e5 | | & & <-> ! ( ( ) ) :* : * <2> ' \ :A - . ,`)
	pieces = append(pieces, " ", " & ", " | ", "lake | ", "the & ", "!the", "rivers:*", strings.Repeat("Ⱥ", 100))
	random := rand.New(rand.NewPCG(11, 5))
	safeCount, longest := 0, 0
	for tries := 0; safeCount < 3000 && tries < 4_000_000; tries++ {
		var b strings.Builder
		for range 1 + random.IntN(40) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		text := b.String()
		if !verdict.SafeTextQuery(text) {
			continue
		}
		safeCount, longest = safeCount+1, max(longest, len(text))
		if _, err := conn.Exec(t.Context(),
			"SELECT s @@ to_tsquery('english', $1), s @@ to_tsquery('simple', $1), s @@ to_tsquery($1) FROM "+
				"unnest(ARRAY['', 'lake:1 river:2 2024:3', 'a']::tsvector[]) s", text); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	t.Logf("%d plain queries, the longest of %d bytes", safeCount, longest)
	if safeCount < 1000 || longest < 50 {
		t.Error("they are few, or short")
	}
	// the largest queries that are still safe
	for _, text := range []string{strings.Repeat("a|b&c<->"+strings.Repeat("!", 10), 3) + "a",
		strings.Repeat("!", 10) + strings.Repeat("("+strings.Repeat("!", 3), 10) + "a" +
			strings.Repeat(")", 10), strings.Repeat("(", 10) + strings.Repeat("a|", 40) +
			"b" + strings.Repeat(")", 10), strings.Repeat("ab:*<->", 40) + "c", strings.Repeat("(a|!(b&", 5) +
			"c" + strings.Repeat("))", 5), strings.Repeat("Ⱥ", 100) + "&" + strings.Repeat("ß", 100)} {
		if !verdict.SafeTextQuery(text) {
			t.Errorf("%q is not plain", text)
		}
		if _, err := conn.Exec(t.Context(),
			"SELECT s @@ to_tsquery('english', $1) FROM (SELECT to_tsvector('simple', string_agg('ab' || g || ' "+
				"c', ' ')) s FROM generate_series(1, 5000) g) v", text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An agent searches with texts that to_tsquery cannot parse, in each form in which it can send them. They must answer
// alike on both twins. The same holds for texts that newer versions refuse, and for pg_trgm's word comparisons.
func TestTextQueriesOnTheSignedPath(t *testing.T) {
	tier.All(t)
	text := []uint32{25}
	const where = "SELECT count(*) FROM big WHERE a = 123 AND "
	const join = "SELECT count(*) FROM big o JOIN link l ON l.big_id = o.id, to_tsquery('simple', $1) q WHERE o.found @@ q AND o.body::int = 5"
	cases := []signedCase{
		signedSQL(where + "found @@ to_tsquery('z')"), signedSQL(where + "found @@ to_tsquery('z & ')"), signedSQL(where +
			"(b < 0 OR found @@ to_tsquery(body))"), signedSQL(where + "found @@ to_tsquery('simple', 'z | (')"),
		signedSQL(where + "CASE WHEN found @@ to_tsquery('a z') THEN 1 ELSE 0 END = 1"), signedSQL(where +
			"CASE WHEN found @@ to_tsquery('nowhere', 'z') THEN 1 ELSE 0 END = 1"),
		signedSQL("SELECT id, ts_rank_cd(found, q) AS rank FROM big, to_tsquery('simple', 'z | a') q WHERE q @@ found AND a = 123 ORDER BY rank DESC"),
		signedSQL("SELECT id FROM big, to_tsquery('z & ') q WHERE q @@ found AND a = 123"),
		signedSQL(where + "'od' <% body"), signedSQL(where + "body %> 'odd'"), signedSQL(where +
			"body <<% 'odd' OR a = 123 AND 'odd' %>> body"), signedSQL("SELECT id FROM big WHERE a = 123 ORDER BY 'odd' <<-> body, body <->>> 'o' LIMIT 3"),
	}
	for _, value := range []string{"z", "z | a:*", "z &", "a z", "'z", "(", "", strings.Repeat("z&", 300) + "z",
		strings.Repeat("!", 3000) + "z", strings.Repeat("Ⱥ", 999), "z:A", "z\\"} {
		cases = append(cases, signedParams(where+"found @@ to_tsquery('simple', $1)", text, value),
			signedParams(where+"(b < 0 OR to_tsquery($1) @@ found)", nil, value), signedParams(where+"NOT found @@ to_tsquery($1) AND body LIKE $1", nil, value),
			signedParams(join, text, value), signedParams(
				"SELECT id, ts_rank_cd(found, q) AS rank FROM big, to_tsquery('simple', $1) q WHERE q @@ found "+
					"AND a = 123 ORDER BY rank DESC", nil, value), signedParams(where+"$1 <% body", text, value))
	}
	askSignedPath(t, "body = 'odd', found = 'z:1 a:3'::tsvector", instance.SignedViews, cases)
	askSignedPath(t, "body = 'odd', found = 'z:1 a:3'::tsvector", instance.Auto, cases)
}
