package e2e

import "testing"

// A statement that a text runs, by name too, is decided by the claims at that moment, not by those before the text.
func TestClaimsOfStatementsRunByName(t *testing.T) {
	b := startBeheard(t)
	b.stage(t, "4")
	b.now(t, `UPDATE "Session" SET stage = 2 WHERE id = 'ses-2-4'`)
	const near = `SELECT id FROM "ConsentedContent" ORDER BY embedding <-> '(1,1,1)' LIMIT 9`
	const there, here = "SET app.current_session_id = 'ses-2-4'", "SET app.current_session_id = 'ses-1-4'"
	run := func(want string, texts ...string) {
		t.Helper()
		c := b.as(t, "ana", "ses-2-4")
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
	run(rows, near)
	run("42501", here, near)
	run("42501", here+"; "+near)
	run("42501", "BEGIN; "+here+"; "+near+"; COMMIT")
	run("42501", here, there+"; "+near) // claims set by the same text are not known yet
	run(rows, "PREPARE v AS "+near, "EXECUTE v")
	run("42501", "PREPARE v AS "+near, here, "EXECUTE v")
	run("42501", "PREPARE v AS "+near, here+"; EXECUTE v")
	run("42501", "PREPARE v AS "+near, "BEGIN; "+here+"; EXECUTE v; COMMIT")
	run("42501", "PREPARE v AS "+near, here, "BEGIN", there, "ROLLBACK; EXECUTE v")
	run("42501", "BEGIN", "DECLARE k CURSOR FOR "+near, here+"; FETCH ALL FROM k")

	// The rows of a cursor WITH HOLD are read at the end of its transaction.
	run("0A000", "BEGIN", "DECLARE k CURSOR WITH HOLD FOR "+near, here, "COMMIT", there, "FETCH ALL FROM k")
	run("0A000", "BEGIN", "DECLARE k CURSOR WITH HOLD FOR "+near, "SET LOCAL app.current_session_id = 'ses-1-4'", "COMMIT", "FETCH ALL FROM k")
	run("0A000", "DECLARE k CURSOR WITH HOLD FOR "+near+"; "+here, there, "FETCH ALL FROM k")
	run("0A000", "BEGIN", "DECLARE k CURSOR WITH HOLD FOR "+near, "RESET app.current_session_id")
	run("42501", "BEGIN", "DECLARE k CURSOR WITH HOLD FOR "+near, "COMMIT", here, "FETCH ALL FROM k")
	run(rows, "BEGIN", "DECLARE k CURSOR WITH HOLD FOR "+near, "COMMIT", here, there, "FETCH ALL FROM k")
	run(rows, "DECLARE k CURSOR WITH HOLD FOR "+near, here, there, "FETCH ALL FROM k")
	run("", "BEGIN", "DECLARE k CURSOR WITH HOLD FOR "+near, "CLOSE k", here, "COMMIT")
}
