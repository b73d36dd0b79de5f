package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A to_tsvector expression takes the signed path where an index stores exactly that expression for every row of the
// table.
func TestIndexedVectors(t *testing.T) {
	tier.All(t)
	r, conn := altered(t, AlwaysSignedMode, `CREATE INDEX ON memories USING gin (to_tsvector('english', title));
		CREATE INDEX ON memories USING gin (to_tsvector('simple', coalesce(title, '') || ' ' || coalesce(body, '')));
		CREATE INDEX ON memories USING gin ((setweight(to_tsvector('english', title), 'A') || setweight(to_tsvector('english', body), 'B')));
		CREATE INDEX ON memories USING gin (to_tsvector('german', metadata::text));
		CREATE INDEX ON memories USING gin (to_tsvector('french', title)) WHERE title > 'a';
		CREATE INDEX ON people USING gin (to_tsvector('simple', name));
		ALTER TABLE memories ADD mark varchar(40), ADD posix text COLLATE "POSIX";
		CREATE INDEX ON memories USING gist (to_tsvector('dutch', mark));
		CREATE INDEX ON memories USING gin (to_tsvector('danish', posix));
		CREATE INDEX ON patients USING gin (to_tsvector('simple', name));
		ALTER TABLE memories ADD lang regconfig; CREATE INDEX ON memories USING gin (to_tsvector(lang, body))`)
	const query = " @@ plainto_tsquery('english', 'lake')"
	for sql, isSigned := range map[string]bool{
		"SELECT id FROM memories WHERE to_tsvector('english', title)" + query:                                                                         true,
		"SELECT id FROM memories m WHERE pg_catalog.to_tsvector('english'::regconfig, m.title::text)" + query:                                         true,
		"SELECT count(*) FROM memories WHERE NOT to_tsvector('english', title)" + query:                                                               true,
		"SELECT id FROM memories WHERE to_tsvector('simple', coalesce(title, '') || ' ' || coalesce(body, ''::text))" + query:                         true,
		"SELECT id FROM memories WHERE to_tsvector('dutch', mark)" + query:                                                                            true,
		"SELECT id FROM memories WHERE to_tsvector('dutch', mark::varchar)" + query:                                                                   true,
		"SELECT m.id FROM people p JOIN memories m ON to_tsvector('simple', p.name)" + query:                                                          true,
		"SELECT id FROM people WHERE EXISTS (SELECT FROM memories WHERE to_tsvector('simple', people.name)" + query + ")":                             true,
		`SELECT id FROM memories WHERE setweight(to_tsvector('english', title), 'A') || setweight(to_tsvector('english', body), 'B'::"char")` + query: true,

		"SELECT id FROM memories WHERE to_tsvector('english', body)" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector('simple', title)" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector(title)" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector('english', title || '')" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector('english', lower(title))" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector('english', title::varchar(5))" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector('simple', coalesce(body, '') || ' ' || coalesce(title, ''))" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector('german', metadata)" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector('german', metadata::text)" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector('french', title)" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector('danish', posix)" +
			query: false,
		"SELECT id FROM memories WHERE setweight(to_tsvector('english', title), 'B')" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector('english', title) || to_tsvector('english', body)" +
			query: false,
		"SELECT id FROM people WHERE to_tsvector('english', name)" +
			query: false,
		"SELECT id FROM (SELECT id, title FROM memories) AS m WHERE to_tsvector('english', title)" +
			query: false,
		"WITH m AS (SELECT id, body AS title FROM memories) SELECT id FROM m WHERE to_tsvector('english', title)" +
			query: false,
		"SELECT m.id FROM memories m JOIN (SELECT body AS title FROM memories) n USING (title) WHERE " +
			"to_tsvector('english', title)" + query: false,
		// name is a masked column
		"SELECT id FROM patients WHERE to_tsvector('simple', name)" + query: false,
		// no index can make these expressions leak-safe
		"SELECT id FROM memories WHERE to_tsvector($1, body)" + query: false,
		"SELECT id FROM memories WHERE to_tsvector($1::regconfig, body)" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector(lang, body)" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector('', body)" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector($1, title)" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector('english', title) @@ to_tsquery('english', title)": false,
		"SELECT a FROM memories AS m (a, b, body, title) WHERE to_tsvector('english', title)" +
			query: false,
		"SELECT m.id FROM memories m FULL JOIN memories n USING (title) WHERE to_tsvector('english', title)" +
			query: false,
		"SELECT DISTINCT to_tsvector('english', title) FROM memories": false,
		"SELECT m.id FROM memories m, memories n WHERE to_tsvector('simple', coalesce(m.title, '') || ' ' || " +
			"coalesce(n.body, ''))" + query: false,
		"SELECT id FROM memories WHERE to_tsvector('simple', coalesce(title, '') || ' ' || coalesce(title, ''))" +
			query: false,
		"SELECT id FROM memories WHERE to_tsvector('simple', coalesce(title, '-') || ' ' || coalesce(body, ''))" +
			query: false,
		`SELECT id FROM memories WHERE setweight(to_tsvector('english', title), 'A') || setweight(to_tsvector('english', body), 'Z')` + query: false,
		"SELECT m.title FROM (SELECT body AS title FROM memories) AS m WHERE EXISTS (SELECT FROM memories n WHERE " +
			"to_tsvector('english', m.title)" + query + ")": false,
	} {
		result, refusal := r.Rewrite(sql, false)
		switch {
		case refusal != nil && (isSigned || !strings.Contains(sql, "$1")):
			t.Errorf("%s: %v", sql, refusal)
		case refusal == nil && (result.Path == verdict.PathSigned) != isSigned:
			t.Errorf("%s: path %s, %q", sql, result.Path, result.RowSecurityReason)
		case refusal == nil && isSigned:
			if _, err := conn.Prepare(t.Context(), "", strings.ReplaceAll(sql, "pgconsent_signed.visible_public_", "public.")); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
	}
	// An expression longer than any index expression is compared with indexes only once. Comparing each of its parts
	// would take cubic time.
	for _, expression := range []string{"to_tsvector('english', title)", "to_tsvector('english', title" + strings.Repeat(" || ' '", 300) +
		")"} {
		tree, err := sqltext.Parse("SELECT " + expression + strings.Repeat(" || "+expression, 300))
		if err != nil {
			t.Fatal(err)
		}
		form := &vectorNormalizer{partsLeft: maxVectorParts,
			column: func(*sqltext.ColumnRef) (string, bool) { return "title", true }, isCatalogType: func(*sqltext.TypeName) bool { return true }}
		if _, ok := form.vector(tree.Stmts[0].GetStmt().GetSelectStmt().TargetList[0].GetResTarget().GetVal()); ok || form.partsLeft < -1 {
			t.Errorf("%.60s, many times: %d parts were read, %v", expression, maxVectorParts-form.partsLeft, ok)
		}
	}
	// The name may mean another configuration, or another role's operator.
	for _, change := range []string{
		"CREATE TEXT SEARCH CONFIGURATION english (COPY = simple)",
		"CREATE FUNCTION joined(varchar, varchar) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1'; CREATE " +
			"OPERATOR || (FUNCTION = joined, LEFTARG = varchar, RIGHTARG = varchar)",
		"CREATE FUNCTION to_tsvector(regconfig, varchar) RETURNS tsvector IMMUTABLE LANGUAGE sql AS 'SELECT NULL::tsvector'",
	} {
		r, _ := altered(t, AlwaysSignedMode, "CREATE INDEX ON memories USING gin (to_tsvector('english', title)); "+change)
		if result, refusal := r.Rewrite("SELECT id FROM memories WHERE to_tsvector('english', title)"+query,
			false); refusal == nil && result.Path == verdict.PathSigned {
			t.Errorf("%s: it takes the signed path", change)
		}
	}
}
