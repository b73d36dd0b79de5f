package rls_test

import "testing"

// The owner's columns may have the names of the functions' arguments: the caller is still the argument.
func TestPrivacyRowsWithColumnsOfAnyName(t *testing.T) {
	const columns = ", caller text, of_store text, after text[], most int, of_kind text"
	_, super, _ := materializedDatabaseOf(t, `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  mem: { rows: [ { grant: { column: access_grants, to: user } } ] }
  guardians: { rows: [ { own: { column: guardian, is: user } } ] }
privacy:
  entity: user
  all: "*"
  memories: [ { tables: { note: mem }, store: stack_id, content: content, subjects: subject_ids, grants: access_grants } ]
  guardians: { table: guardians, store: stack_id, subject: subject, guardian: guardian }
`, `CREATE TABLE mem (id text PRIMARY KEY, stack_id text NOT NULL, content text, subject_ids text[], access_grants text[]`+columns+`); `+
		`CREATE TABLE guardians (stack_id text, subject text, guardian text`+columns+`);
INSERT INTO mem VALUES ('1', 's1', 'x', '{dog}', '{a}', 's1', 's1', NULL, 0, 'x');
INSERT INTO guardians VALUES ('s1', 'dog', 'g1', 'g1', 's2', '{z,z,z}', 0, 'x')`)
	for caller, want := range map[string]int{"stranger": 0, "g1": 1, "s1": 1} {
		var n, guardians int
		err := super.QueryRow(t.Context(),
			"SELECT (SELECT count(*) FROM pgconsent.privacy_rows($1, 'dog', NULL, NULL, NULL, 10)), (SELECT "+
				"count(*) FROM pgconsent.privacy_guardians('s2'))", caller).Scan(&n, &guardians)
		if err != nil || n != want || guardians != 0 {
			t.Errorf("%s gets %d rows, want %d; of a store that is not there %d guardians; %v", caller, n, want, guardians, err)
		}
	}
}

// The privacy functions list valid entries of a store: its guardians, and consents that are neither withdrawn nor
// expired. They list a row to its owner, its subjects, and the guardians of the subjects in that store.
func TestPrivacyFunctionsReturnValidEntries(t *testing.T) {
	_, super, _ := materializedDatabaseOf(t, `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  mem: { rows: [ { grant: { column: access_grants, to: user } } ] }
  guardians: { rows: [ { own: { column: guardian, is: user } } ] }
  consents: { rows: [ { own: { column: grantor, is: user } } ] }
privacy:
  entity: user
  all: "*"
  memories: [ { tables: { note: mem }, store: stack_id, content: content, subjects: subject_ids, grants: access_grants } ]
  guardians: { table: guardians, store: stack_id, subject: subject, guardian: guardian }
  consents: { table: consents, store: stack_id, grantor: grantor, grantee: grantee, revoked: revoked, expires: expires }
`, `CREATE TABLE mem (id text PRIMARY KEY, stack_id text NOT NULL, content text, subject_ids text[], access_grants text[]);
CREATE TABLE guardians (stack_id text, subject text, guardian text);
CREATE TABLE consents (id text PRIMARY KEY, stack_id text, grantor text, grantee text, revoked timestamptz, expires timestamptz);
INSERT INTO mem VALUES ('1', 's1', 'x', '{dog}', '{a}'), ('2', 's1', 'x', '{cat}', '{a}'), ('3', 's2', 'x', '{dog}', '{a}'),
  ('4', 's1', 'x', '{dog,cat}', '{a}'), ('5', 's1', 'x', '{}', '{a}');
INSERT INTO guardians VALUES ('s1', 'dog', 'g1'), ('s2', 'cat', 'g1'), ('s2', 'dog', 'g2');
INSERT INTO consents VALUES ('holds', 's1', 'dog', 'a', NULL, NULL),
  ('will end', 's1', 'dog', 'a', NULL, 'infinity'), ('is over', 's1', 'dog', 'a', NULL, '-infinity'),
  ('withdrawn', 's1', 'dog', 'a', '-infinity', NULL),
  ('withdrawn and to end', 's1', 'dog', 'a', '-infinity', 'infinity'), ('elsewhere', 's2', 'dog', 'a', NULL, NULL)`)
	rows := func(caller, subject string) string {
		return "SELECT key FROM pgconsent.privacy_rows('" + caller + "', " + subject + ", NULL, NULL, NULL, 10)"
	}
	for _, c := range []struct{ sql, want string }{
		{"SELECT key FROM pgconsent.privacy_consents('s1')", "holds|will end"},
		{"SELECT key FROM pgconsent.privacy_consents('s2')", "elsewhere"},
		{"SELECT subject || ' ' || guardian AS key FROM pgconsent.privacy_guardians('s2')", "cat g1|dog g2"},
		{rows("s1", "NULL"), "1|2|4|5"}, // the owner
		{rows("s1", "'dog'"), "1|4"},
		{rows("dog", "NULL"), "1|3|4"}, // themselves
		{rows("dog", "'dog'"), "1|3|4"},
		{rows("dog", "'cat'"), ""},
		{rows("g1", "NULL"), "1|4"}, // guardian of the dog in one store, and of the cat in another
		{rows("g1", "'dog'"), "1|4"},
		{rows("g1", "'cat'"), ""},
		{rows("g2", "NULL"), "3"},
		{rows("a", "NULL"), ""}, // a grantee is told nothing
		{rows("a", "'dog'"), ""},
	} {
		var got string
		if err := super.QueryRow(t.Context(),
			"SELECT coalesce(string_agg(q.key, '|' ORDER BY q.key COLLATE \"C\"), '') FROM ("+c.sql+") AS q").Scan(&got); err != nil || got != c.want {
			t.Errorf("%s: got %q, want %q (%v)", c.sql, got, c.want, err)
		}
	}
}
