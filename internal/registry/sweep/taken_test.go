package sweep

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Notes have subjects. Summaries derive from notes by a link table, digests from summaries by a list, letters from
// digests by a column. Thoughts derive from each other, and at first from notes. Archives are kept. Rooms are deleted
// with their people, and echoes derive from rooms.
const takenSchema = `
CREATE TABLE people (user_id text PRIMARY KEY);
CREATE TABLE rooms (id int PRIMARY KEY, user_id text REFERENCES people ON DELETE CASCADE);
CREATE TABLE echoes (id int PRIMARY KEY, room int);
CREATE TABLE notes (id int PRIMARY KEY, user_id text, at timestamptz, body text);
CREATE TABLE summaries (id int PRIMARY KEY, os text);
CREATE TABLE summary_notes (summary int REFERENCES summaries ON DELETE CASCADE, note int REFERENCES notes ON DELETE CASCADE);
CREATE TABLE digests (id int PRIMARY KEY, sources jsonb, own text);
CREATE TABLE letters (id int, digest int);
CREATE TABLE thoughts (id int PRIMARY KEY, note int, kind text);
CREATE TABLE thought_parts (whole int REFERENCES thoughts ON DELETE CASCADE, part int REFERENCES thoughts ON DELETE CASCADE);
CREATE TABLE archives (id int PRIMARY KEY, note int);
CREATE TABLE copies (id int PRIMARY KEY, archive int);
`

const takenRules = `
version: 1
attributes: { user: { type: text, source: credential } }
tables:
  people: { rows: [ consent: { subject: user_id, registry: {} } ], lifecycle: { subject: user_id } }
  rooms: { rows: [ visible: { people: { user_id: user_id } } ] }
  echoes: { rows: [ derived: { from: { rooms: { id: room } } } ] }
  notes:
    rows: [ consent: { subject: user_id, registry: { since: at, decay: { less_than: 90 days } } } ]
    lifecycle: { subject: user_id, at: at, columns: { body: { becomes: null } } }
  summaries: { rows: [ derived: { from: [ summary_notes: { summary: id }, notes: { id: note } ] } ] }
  digests: { rows: [ derived: { sources: sources, of: summaries, unless: [ status: { column: own, is: "yes" } ] } ] }
  letters: { rows: [ derived: { from: { digests: { id: digest } } } ] }
  thoughts:
    rows:
      - derived: { from: { notes: { id: note } }, unless: [ status: { column: kind, is: made } ] }
      - derived: { from: [ thought_parts: { whole: id }, thoughts: { id: part } ], unless: [ status: { column: kind, is: first } ] }
  archives: { rows: [ derived: { from: { notes: { id: note } }, on_erase: keep } ] }
  copies: { rows: [ derived: { from: { archives: { id: archive } } } ] }
`

// ids returns the ids of the remaining rows of a table.
func (s *site) ids(table string) string {
	s.t.Helper()
	return strings.ReplaceAll(s.query("SELECT t.id::text FROM "+table+" AS t ORDER BY t.id"), ", ", " ")
}

func (s *site) dry() []Table {
	s.t.Helper()
	out, err := s.Run(s.t.Context(), true)
	if err != nil {
		s.t.Fatal(err)
	}
	return out.Tables
}

// Rows that derive from deleted rows are deleted with them, to any depth, unless the policy keeps them.
func TestRowsDerivedFromSweptRows(t *testing.T) {
	tier.All(t)
	s := buildWith(t, consent.Settings{}, takenSchema, takenRules)
	for _, subjectID := range []string{"ada", "bob", "eve"} {
		s.partner(subjectID)
		s.exec("INSERT INTO people VALUES ($1)", subjectID)
	}
	s.exec(`INSERT INTO rooms VALUES (1, 'ada'), (2, 'bob'); INSERT INTO echoes VALUES (1, 1), (2, 2), (3, NULL);
		INSERT INTO notes VALUES (1, 'ada', now(), 'x'), (2, 'bob', now(), 'x'), (3, 'eve', NULL, 'x'), (4, 'nobody', now(), 'x');
		INSERT INTO summaries VALUES (1), (2), (3), (4);
		INSERT INTO summary_notes VALUES (1, 1), (1, 2), (2, 2), (3, 3), (3, 3), (2, NULL), (4, 4);
		INSERT INTO digests (id, sources) VALUES (1, '["1", "2"]'), (2, '["2"]'), (3, '["3", "2"]'), (4, '["1"]'), (5, 'null'),
			(6, '{}'), (7, '["x", "4"]'), (8, '["1", "1", "3"]');
		UPDATE digests SET own = 'yes' WHERE id = 4;
		INSERT INTO letters VALUES (1, 1), (2, 2), (3, 3), (3, 3), (4, 4), (NULL, 8);
		INSERT INTO thoughts VALUES (1, 1, 'first'), (2, 2, 'first'), (3, NULL, 'made'), (4, NULL, 'made'), (5, NULL, 'made'), (6, NULL, 'made'),
			(7, 1, 'made'), (8, NULL, 'made'), (9, NULL, 'made');
		INSERT INTO thought_parts VALUES (3, 1), (3, 2), (4, 3), (4, 2), (5, 4), (6, 2), (8, 9), (9, 8), (9, 5), (7, 2), (1, 2);
		INSERT INTO archives VALUES (1, 1), (2, 2); INSERT INTO copies VALUES (1, 1), (2, 2)`)
	s.do(consent.Command{Action: consent.ActionRevoke, Subject: "ada"})
	predictedTables := s.dry()
	want := []Table{{"public.digests", 1, 2, 0}, {"public.echoes", 1, 1, 0}, {"public.letters", 1, 2, 0},
		{"public.notes", 1, 1, 0}, {"public.people", 1, 1, 0}, {"public.summaries", 1, 1, 0}, {"public.thoughts", 1, 6, 0}}
	if !slices.Equal(predictedTables, want) {
		t.Errorf("a dry run says %v, want %v", predictedTables, want)
	}
	if out := s.sweep(); !slices.Equal(out.Tables, want) {
		t.Errorf("done: %v, want %v", out.Tables, want)
	}
	for table, want := range map[string]string{
		"rooms": "2", "echoes": "2 3", "notes": "2 3 4", "summaries": "2 3 4", "digests": "2 3 4 5 6 7", "letters": "2 3 3 4",
		"thoughts": "2 6 7", "archives": "1 2", "copies": "1 2",
	} {
		if got := s.ids(table); got != want {
			t.Errorf("%s: %s, want %s", table, got, want)
		}
	}
	history, err := s.Registry.History(t.Context(), "ada")
	if err != nil || history[len(history)-1].Event != consent.EventDeleted {
		t.Errorf("%+v %v", history, err)
	}
	// When a row has become fully anonymous, the rows that derive from it are deleted, and the row itself stays.
	s.degrade("bob", consent.StreamAnonymous)
	if out := s.sweep(); len(out.Tables) != 0 {
		t.Errorf("on day 0: %v", out.Tables)
	}
	s.exec("UPDATE pgconsent.consent_current SET decay_from = now() - interval '89 days 23 hours' WHERE subject = " +
		"'bob'; UPDATE notes SET at = now() - interval '1 year' WHERE id = 2")
	if out := s.dry(); len(out) != 0 {
		t.Errorf("on day 89: %v", out)
	}
	s.exec("UPDATE pgconsent.consent_current SET decay_from = now() - interval '90 days' WHERE subject = 'bob'")
	predictedTables = s.dry()
	if out := s.sweep(); !slices.Equal(out.Tables, predictedTables) {
		t.Errorf("done: %v, the dry run said %v", out.Tables, predictedTables)
	}
	for table, want := range map[string]string{"notes": "2 3 4", "summaries": "3 4", "digests": "4 5 6 7",
		"letters": "4", "thoughts": "", "archives": "1 2"} {
		if got := s.ids(table); got != want {
			t.Errorf("%s: %s, want %s", table, got, want)
		}
	}
	// A new summary derives from a row that was swept already. (The consent is written again, since this test had
	// changed it.)
	s.exec("UPDATE pgconsent.consent_current SET decay_from = now() - interval '90 days' WHERE subject = 'bob'; " +
		"INSERT INTO summaries VALUES (9); INSERT INTO summary_notes VALUES (9, 2)")
	s.sweep()
	if got := s.ids("summaries"); got != "3 4" {
		t.Errorf("summaries: %s", got)
	}
	// A note without a time counts as oldest. Erasing a subject also deletes everything that derives from their rows.
	s.do(consent.Command{Action: consent.ActionErase, Subject: "eve"})
	predictedTables = s.dry()
	if out := s.sweep(); !slices.Equal(out.Tables, predictedTables) || s.ids("summaries") != "4" || s.ids("notes") != "2 4" {
		t.Errorf("done: %v, the dry run said %v", out.Tables, predictedTables)
	}
}

// If a trigger prevents that a derived row is deleted, its source row stays too, and the failure is reported. Other
// rows are deleted.
func TestTriggersThatKeepDerivedRows(t *testing.T) {
	tier.All(t)
	s := buildWith(t, consent.Settings{}, takenSchema, takenRules)
	for _, subjectID := range []string{"ada", "bob"} {
		s.temporary(subjectID)
	}
	s.exec(`INSERT INTO notes VALUES (1, 'ada', now(), 'x'), (2, 'bob', now(), 'x');
		INSERT INTO summaries VALUES (1), (2); INSERT INTO summary_notes VALUES (1, 1), (2, 2);
		CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER stay BEFORE DELETE ON summaries FOR EACH ROW WHEN (OLD.id = 1) EXECUTE FUNCTION stay()`)
	s.do(consent.Command{Action: consent.ActionRevoke, Subject: "ada"})
	s.do(consent.Command{Action: consent.ActionRevoke, Subject: "bob"})
	out, err := s.Run(t.Context(), false)
	if err != nil || fmt.Sprint(out.Failures) != "[sweep public.notes: SQLSTATE 55000]" {
		t.Errorf("%+v %v", out, err)
	}
	if s.ids("notes") != "1" || s.ids("summaries") != "1" {
		t.Errorf("notes %s, summaries %s", s.ids("notes"), s.ids("summaries"))
	}
	s.exec("DROP TRIGGER stay ON summaries")
	s.sweep()
	if s.ids("notes") != "" || s.ids("summaries") != "" {
		t.Errorf("notes %s, summaries %s", s.ids("notes"), s.ids("summaries"))
	}
}

// For a random graph of derived rows, a sweep leaves exactly the rows that a walk over the graph leaves. A dry run
// predicts what is deleted.
func TestRandomDerivationGraphs(t *testing.T) {
	tier.All(t)
	const seed = 40
	r := rand.New(rand.NewPCG(seed, 1))
	s := buildWith(t, consent.Settings{}, takenSchema, takenRules)
	const users, notes, otherRows = 6, 20, 24
	for round := range 6 {
		s.BatchSize = 1 + r.IntN(4)
		type row struct {
			table string
			id    int
		}
		derivedFrom := map[row][]row{} // the rows that derive from each row
		deletedRows := map[row]bool{}
		var script strings.Builder
		addSQL := func(format string, args ...any) { fmt.Fprintf(&script, format+";\n", args...) }
		addSQL("TRUNCATE notes, summaries, summary_notes, digests, letters, thoughts, thought_parts")
		endedUsers := map[int]bool{}
		for u := range users {
			subjectID := fmt.Sprintf("u%d-%d", round, u)
			s.temporary(subjectID)
			if r.IntN(3) == 0 {
				endedUsers[u] = true
				s.do(consent.Command{Action: consent.ActionRevoke, Subject: subjectID})
			}
		}
		for n := range notes {
			u := r.IntN(users)
			addSQL("INSERT INTO notes VALUES (%d, 'u%d-%d', now(), 'x')", n, round, u)
			deletedRows[row{"notes", n}] = endedUsers[u]
		}
		addDerivation := func(sourceRow row, table string, n int) {
			derivedFrom[row{table, n}] = append(derivedFrom[row{table, n}], sourceRow)
		}
		for n := range otherRows {
			addSQL("INSERT INTO summaries VALUES (%d)", n)
			for range 1 + r.IntN(2) {
				note := r.IntN(notes)
				addDerivation(row{"summaries", n}, "notes", note)
				addSQL("INSERT INTO summary_notes VALUES (%d, %d)", n, note)
			}
			var list []string
			for range r.IntN(3) {
				source := r.IntN(otherRows)
				addDerivation(row{"digests", n}, "summaries", source)
				list = append(list, fmt.Sprintf(`"%d"`, source))
			}
			addSQL("INSERT INTO digests VALUES (%d, '[%s]')", n, strings.Join(list, ", "))
			digest := r.IntN(otherRows)
			addDerivation(row{"letters", n}, "digests", digest)
			addSQL("INSERT INTO letters VALUES (%d, %d)", n, digest)
			if r.IntN(4) == 0 {
				note := r.IntN(notes)
				addDerivation(row{"thoughts", n}, "notes", note)
				addSQL("INSERT INTO thoughts VALUES (%d, %d, 'first')", n, note)
			} else {
				addSQL("INSERT INTO thoughts VALUES (%d, NULL, 'made')", n)
			}
		}
		for range otherRows {
			wholeID, partID := r.IntN(otherRows), r.IntN(otherRows)
			addSQL("INSERT INTO thought_parts SELECT %d, %d FROM thoughts WHERE id = %[1]d AND kind = 'made'", wholeID, partID)
			if !strings.Contains(script.String(), fmt.Sprintf("thoughts VALUES (%d, NULL", wholeID)) {
				continue
			}
			addDerivation(row{"thoughts", wholeID}, "thoughts", partID)
		}
		s.exec(script.String())
		for hasChanged := true; hasChanged; {
			hasChanged = false
			for source, list := range derivedFrom {
				for _, sourceRow := range list {
					if deletedRows[source] && !deletedRows[sourceRow] {
						deletedRows[sourceRow], hasChanged = true, true
					}
				}
			}
		}
		predictedTables := s.dry()
		if out := s.sweep(); !slices.Equal(out.Tables, predictedTables) {
			t.Errorf("round %d: done %v, and the dry run said %v", round, out.Tables, predictedTables)
		}
		leftCount := 0
		for _, table := range []string{"notes", "summaries", "digests", "letters", "thoughts"} {
			var want []string
			for n := range map[bool]int{true: notes, false: otherRows}[table == "notes"] {
				if !deletedRows[row{table, n}] {
					want = append(want, fmt.Sprint(n))
				}
			}
			leftCount += len(want)
			if got := s.ids(table); got != strings.Join(want, " ") {
				t.Errorf("round %d: %s: %s, want %s", round, table, got, strings.Join(want, " "))
			}
		}
		t.Logf("round %d: %d of %d rows left", round, leftCount, notes+4*otherRows)
	}
}
