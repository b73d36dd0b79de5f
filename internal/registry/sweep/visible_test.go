package sweep

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Agents get the same answers before and after a sweep, for consents of every kind, at each day on which a period ends,
// and for rows of every age. The first sweep removes everything that is hidden by date, so a second one finds nothing.
func TestVisibleRowsAreNotSwept(t *testing.T) {
	const seed = 20
	r := rand.New(rand.NewPCG(seed, 1))
	s := build(t, consent.Settings{})
	d := harness.Database{Name: "app", DB: s.db, Policy: rules, SearchPath: []string{"public"}}
	proxy := harness.Serve(t, harness.Auto, []harness.Database{d},
		[]harness.Agent{{Name: "agent", Database: "app", Attributes: map[string]string{"user": "x"}},
			{Name: "vet", Database: "app", Attributes: map[string]string{"user": "vet"}}})
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	days := func() string {
		return fmt.Sprintf("now() - interval '%d hours' - interval '%s minutes'",
			24*[]int{0, 1, 20, 30, 31, 60, 61, 89, 90, 120}[r.IntN(10)], pick("-5", "5"))
	}
	valueOrNull := func(p int, value string) string {
		if r.IntN(100) < p {
			return value
		}
		return "NULL"
	}
	for i := range tier.Count(200, 400, 400) {
		subjectID := fmt.Sprintf("u%03d", i)
		s.exec("INSERT INTO people VALUES ($1, $1)", subjectID)
		for range 3 {
			s.exec("INSERT INTO interactions (user_id, at, channel, account, style, errors, messages) VALUES ($1, "+
				valueOrNull(95, days())+", $2, 'account', 'style', 'errors', 10)", subjectID, pick("api", "cli"))
		}
		if r.IntN(10) == 0 {
			continue // nothing is recorded about this person
		}
		stream := pick("TEMPORARY", "PARTNERED", "ANONYMOUS", "ANONYMOUS")
		categories := map[string]string{"TEMPORARY": "{ESSENTIAL}",
			"PARTNERED": pick("{ESSENTIAL,BEHAVIORAL,IMPROVEMENT}", "{ESSENTIAL}"), "ANONYMOUS": "{STATISTICAL}"}[stream]
		expires, from := "NULL", "NULL"
		if stream == "TEMPORARY" {
			expires = pick("now() + interval '5 days'", days())
		}
		if stream == "ANONYMOUS" {
			from = valueOrNull(80, days())
		}
		decayCategories := "NULL"
		if from != "NULL" {
			decayCategories = "'{ESSENTIAL,BEHAVIORAL,IMPROVEMENT}'"
		}
		state := pick("given", "given", "given", "given", "withdrawn", "revoked", "expired")
		voidBefore := valueOrNull(30, days())
		if state != "given" {
			categories, from, decayCategories, voidBefore = "{}", "NULL", "NULL", days()
		}
		before, after := valueOrNull(30, days()), "NULL"
		if before != "NULL" {
			after = pick("10", "31", "60", "61", "89", "90")
		}
		s.exec(fmt.Sprintf(`INSERT INTO pgconsent.consent_current (subject, grantee, scope, number, state, stream, categories, purposes, given_at, expires_at,
			decay_from, decay_categories, decayed_before, decayed_days, void_before)
			VALUES ('%s', '*', '*', %d, '%s', '%s', '%s', '{}', now() - interval '200 days', %s, %s, %s, %s, %s, %s)`,
			subjectID, 10+i, state, stream, categories, expires, from, decayCategories, before, after, voidBefore))
		if r.IntN(8) == 0 { // also a consent to one grantee, older or newer
			s.exec(fmt.Sprintf(
				`INSERT INTO pgconsent.consent_current (subject, grantee, scope, number, state, categories, purposes, given_at) `+
					`VALUES ('%s', 'vet', '*', %s, '%s', '{ESSENTIAL,BEHAVIORAL,IMPROVEMENT}', '{}', now())`,
				subjectID, pick("1", "9999"), pick("given", "given", "withdrawn")))
		}
	}
	s.exec("INSERT INTO summaries (of, body) SELECT id, user_id FROM interactions WHERE id % 3 <> 0")
	questions := []string{
		"SELECT id, user_id, at, channel, account, style, errors, messages, anonymous FROM interactions ORDER BY id",
		"SELECT * FROM people ORDER BY 1",
		"SELECT * FROM summaries ORDER BY 1",
	}
	// The rule counts rows that have become anonymous, so a sweep never lowers the count.
	countAsAgent := func() (n int) {
		a := harness.Ask(proxy.Agent(t, "agent", "app"), "SELECT count(*) FROM interactions")
		if _, err := fmt.Sscan(a.Results[0].Rows[0], &n); err != nil {
			t.Fatal(a, err)
		}
		return n
	}
	answerAll := func() string {
		var b strings.Builder
		for _, agent := range []string{"agent", "vet"} {
			c := proxy.Agent(t, agent, "app")
			for _, q := range questions {
				a := harness.Ask(c, q)
				if a.Code != "" {
					t.Fatalf("%s: %s", q, a)
				}
				b.WriteString(a.String() + "\n")
			}
		}
		return b.String()
	}
	countBefore := countAsAgent()
	before, rows := answerAll(), s.query("SELECT count(*)::text FROM interactions")
	dryRun, err := s.Run(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	// The test has written the consents directly, without the registry, so the registry records no deletions.
	out, err := s.Run(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(out.Tables) != fmt.Sprint(dryRun.Tables) {
		t.Errorf("done: %v, and the dry run said %v", out.Tables, dryRun.Tables)
	}
	if after := answerAll(); after != before {
		a, b := strings.Split(after, "\n"), strings.Split(before, "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Fatalf("line %d:\n%s\nwas\n%s", i, a[i], b[i])
			}
		}
		t.Fatalf("%d lines, were %d", len(a), len(b))
	}
	if now := countAsAgent(); now < countBefore {
		t.Errorf("%d rows count, %d did", now, countBefore)
	}
	if secondRun, err := s.Run(t.Context(), true); err != nil || len(secondRun.Tables) > 0 {
		t.Errorf("left: %+v %v", secondRun, err)
	}
	if got := s.query("SELECT s.id::text FROM summaries AS s LEFT JOIN interactions AS i ON i.id = s.of WHERE " +
		"i.id IS NULL OR i.user_id IS DISTINCT FROM s.body"); got != "" {
		t.Errorf("summaries that tell of what has gone: %s", got)
	}
	if got := s.query("SELECT count(*)::text FROM interactions AS i WHERE id % 3 <> 0 AND NOT anonymous AND NOT " +
		"EXISTS (SELECT FROM summaries WHERE of = i.id)"); got != "0" {
		t.Errorf("%s rows have lost their summaries", got)
	}
	leftCount := s.query("SELECT count(*)::text FROM interactions")
	if anonymous := s.query("SELECT count(*)::text FROM interactions WHERE anonymous"); leftCount == rows || anonymous == "0" {
		t.Errorf("%s of %s rows left, %s anonymous: nothing was tried", leftCount, rows, anonymous)
	}
}
