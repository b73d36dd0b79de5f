package rls_test

import "testing"

// A column called as an argument is, of the owner's, does not say who asks.
func TestPrivacyRowsBesideColumnsOfAnyName(t *testing.T) {
	const columns = ", caller text, of_store text, after text[], most int, of_kind text"
	_, super, _ := keptOver(t, `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  mem: { rows: [ { grant: { column: access_grants, to: user } } ] }
  guardians: { rows: [ { own: { column: guardian, is: user } } ] }
privacy:
  entity: user
  all: "*"
  memories: [ { tables: { note: mem }, store: stack_id, content: content, subjects: subject_ids, grants: access_grants } ]
  guardians: { table: guardians, store: stack_id, subject: subject, guardian: guardian }
`, `CREATE TABLE mem (id text PRIMARY KEY, stack_id text NOT NULL, content text, subject_ids text[], access_grants text[]`+columns+`); CREATE TABLE guardians (stack_id text, subject text, guardian text`+columns+`);
INSERT INTO mem VALUES ('1', 's1', 'x', '{dog}', '{a}', 's1', 's1', NULL, 0, 'x'); INSERT INTO guardians VALUES ('s1', 'dog', 'g1', 'g1', 's2', '{z,z,z}', 0, 'x')`)
	for caller, want := range map[string]int{"stranger": 0, "g1": 1, "s1": 1} {
		var n, guardians int
		err := super.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM pgconsent.privacy_rows($1, 'dog', NULL, NULL, NULL, 10)), (SELECT count(*) FROM pgconsent.privacy_guardians('s2'))", caller).Scan(&n, &guardians)
		if err != nil || n != want || guardians != 0 {
			t.Errorf("%s gets %d rows, want %d; of a store that is not there %d guardians; %v", caller, n, want, guardians, err)
		}
	}
}
