package e2e

import "testing"

// The claims at the moment of its execution decide about each statement that a text runs, also by EXECUTE. Claims from
// before the text do not.
func TestClaimsOfStatementsRunByName(t *testing.T) {
	b := startBeheard(t)
	b.setStage(t, "4")
	b.execAsOwner(t, `UPDATE "Session" SET stage = 2 WHERE id = 'ses-2-4'`)
	const nearestQuery = `SELECT id FROM "ConsentedContent" ORDER BY embedding <-> '(1,1,1)' LIMIT 9`
	const claimSession2, claimSession1 = "SET app.current_session_id = 'ses-2-4'", "SET app.current_session_id = 'ses-1-4'"
	checkLastAnswer := func(want string, texts ...string) {
		t.Helper()
		c := b.connectAs(t, "ana", "ses-2-4")
		got := ""
		for _, text := range texts {
			if got = oneText(c, text); len(got) == 5 {
				break
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", texts, got, want)
		}
	}
	rows := "content-2-1\ncontent-2-3"
	checkLastAnswer(rows, nearestQuery)
	checkLastAnswer("42501", claimSession1, nearestQuery)
	checkLastAnswer("42501", claimSession1+"; "+nearestQuery)
	checkLastAnswer("42501", "BEGIN; "+claimSession1+"; "+nearestQuery+"; COMMIT")
	checkLastAnswer("42501", claimSession1, claimSession2+"; "+nearestQuery) // claims set by the same text are not known yet
	checkLastAnswer(rows, "PREPARE v AS "+nearestQuery, "EXECUTE v")
	checkLastAnswer("42501", "PREPARE v AS "+nearestQuery, claimSession1, "EXECUTE v")
	checkLastAnswer("42501", "PREPARE v AS "+nearestQuery, claimSession1+"; EXECUTE v")
	checkLastAnswer("42501", "PREPARE v AS "+nearestQuery, "BEGIN; "+claimSession1+"; EXECUTE v; COMMIT")
	checkLastAnswer("42501", "PREPARE v AS "+nearestQuery, claimSession1, "BEGIN", claimSession2, "ROLLBACK; EXECUTE v")
	checkLastAnswer("42501", "BEGIN", "DECLARE k CURSOR FOR "+nearestQuery, claimSession1+"; FETCH ALL FROM k")

	// A cursor WITH HOLD reads its rows at the end of its transaction.
	checkLastAnswer("0A000", "BEGIN", "DECLARE k CURSOR WITH HOLD FOR "+nearestQuery, claimSession1, "COMMIT", claimSession2,
		"FETCH ALL FROM k")
	checkLastAnswer("0A000", "BEGIN", "DECLARE k CURSOR WITH HOLD FOR "+nearestQuery, "SET LOCAL app.current_session_id = 'ses-1-4'",
		"COMMIT", "FETCH ALL FROM k")
	checkLastAnswer("0A000", "DECLARE k CURSOR WITH HOLD FOR "+nearestQuery+"; "+claimSession1, claimSession2, "FETCH ALL FROM k")
	checkLastAnswer("0A000", "BEGIN", "DECLARE k CURSOR WITH HOLD FOR "+nearestQuery, "RESET app.current_session_id")
	checkLastAnswer("42501", "BEGIN", "DECLARE k CURSOR WITH HOLD FOR "+nearestQuery, "COMMIT", claimSession1, "FETCH ALL FROM k")
	checkLastAnswer(rows, "BEGIN", "DECLARE k CURSOR WITH HOLD FOR "+nearestQuery, "COMMIT", claimSession1, claimSession2, "FETCH ALL FROM k")
	checkLastAnswer(rows, "DECLARE k CURSOR WITH HOLD FOR "+nearestQuery, claimSession1, claimSession2, "FETCH ALL FROM k")
	checkLastAnswer("", "BEGIN", "DECLARE k CURSOR WITH HOLD FOR "+nearestQuery, "CLOSE k", claimSession1, "COMMIT")
}
