package rewrite

import "testing"

// A quoted name needs no spaces around it, but the text that replaces it does.
func TestNamesWithoutSpaces(t *testing.T) {
	for _, mode := range []Mode{RowSecurityMode, AutoMode, InjectedMode} {
		r := rewriter(t, mode)
		for _, sql := range []string{
			`INSERT INTO"drafts"("title")VALUES('a')RETURNING"title"`, `UPDATE"drafts"SET"title"='a'WHERE"title"='b'`,
			`DELETE FROM"drafts"WHERE"title"='b'`, `DELETE FROM"drafts"d USING"notes"WHERE"d"."note_id"="notes"."id"`,
			`SELECT"title"FROM"memories"WHERE"title"='a'`,
			`SELECT"m"."title"FROM"memories"m JOIN"notes"ON"m"."title"="notes"."body"`, `SELECT"id"FROM"Mixed Case"m JOIN"notes"n ON"m"."Id"="n"."id"`,
			`SELECT"Id"FROM"Mixed Case"WHERE"Id"=1`, `SELECT"id"FROM"vehicles"WHERE"id"=1`,
			`SELECT"id"FROM"vehicles"v WHERE"id"=1`, `TABLE"notes"`,
			`SELECT"relname"FROM"pg_class"WHERE"relname"='a'`, `SELECT"upper"("title")FROM"public"."memories"`,
			`COPY"notes"("id")TO STDOUT`, `SELECT"short_titles"."title"FROM"short_titles"`, `SELECT*FROM ONLY"parents"`,
		} {
			if _, refusal := r.Rewrite(sql, false); refusal != nil {
				t.Errorf("%d: %s: %v", mode, sql, refusal)
			}
		}
	}
}
