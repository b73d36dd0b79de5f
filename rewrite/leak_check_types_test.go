package rewrite

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Operations that cannot fail take the signed path for these types too: types of extensions, ranges, array literals,
// and times relative to now.
func TestSignedPathIsForEverydayTypes(t *testing.T) {
	const columns = "ALTER TABLE memories ADD mail citext, ADD tags text[], ADD nums int[], ADD span tstzrange, " +
		"ADD path ltree, ADD attrs hstore, ADD day date, ADD n int, ADD old varchar[], ADD found tsvector"
	r, _ := altered(t, AlwaysSignedMode, "CREATE EXTENSION citext; CREATE EXTENSION pg_trgm; CREATE EXTENSION ltree; CREATE EXTENSION hstore; "+columns)
	for condition, isSigned := range map[string]bool{
		"mail = 'a@b' AND mail IN ('a', 'b') AND mail ILIKE '%x%'":                                     true,
		"tags && ARRAY['a', 'b'] AND tags @> ARRAY['a']::text[] AND old @> '{a}' AND 'x' = ANY (tags)": true,
		"tags && $1":                  true,
		"tags && ARRAY[$1, $2]":       true,
		"metadata ?| ARRAY['a', 'b']": true,
		"nums && ARRAY[1, 2] AND 3 = ANY (nums) AND nums @> '{4}'::int[] AND nums <@ ARRAY[]::int[]":                                                 true,
		"span @> now() AND span && tstzrange('2026-01-01', '2026-02-01', '[)') AND span && '[2026-01-01, 2026-02-01)' AND span @> CURRENT_TIMESTAMP": true,
		"path <@ 'a.b' AND path = 'a'": true,
		"attrs ? 'k' AND attrs -> 'k' = 'v' AND attrs @> 'a=>1' AND attrs ?& ARRAY['a']":               true,
		"title % 'lake' AND similarity(title, $1) > 0.3 AND title <-> body < 0.5":                      true,
		"'lake' <% title AND title %> $1 AND $1 <<% title AND title %>> 'b' AND title <->> body < 0.5": true,
		"found @@ to_tsquery('lake & (river | old:*)') AND found @@ to_tsquery('english', $1) AND to_tsquery($1) " +
			"@@ found AND found @@ to_tsquery('english', '''a b''')": true,
		"found @@ to_tsquery('''a b''')":    false,
		"found @@ to_tsquery(title)":        false,
		"found @@ to_tsquery('lake river')": false,
		"day >= CURRENT_DATE - 30 AND occurred_at > CURRENT_DATE - interval '30 days' AND extract(year FROM day) = 2026":                true,
		"occurred_at >= date_trunc('month', now()) - interval '1 month' AND occurred_at > date_trunc('day', now() - interval '7 days')": true,

		"mail = title":                             false,
		"mail ILIKE 'x%' || title":                 false,
		"tags && ARRAY[title]":                     false,
		"tags && ARRAY['a', NULL]":                 false,
		"nums && ARRAY[n]":                         false,
		"n = ANY ($1::int[])":                      false, // the client may have declared a wider type
		"span -|- '[2026-01-01, 2026-02-01)'":      false, // the operator computes new bounds
		"span && tstzrange(occurred_at, now())":    false,
		"span && tstzrange($1, now())":             false,
		"span * '[2026-01-01,)' = 'empty'":         false,
		"path ~ '*.a'":                             false,
		"n % 2 = 0":                                false,
		"$1 % $2":                                  false,
		"'a' % 'b'":                                false,
		"title::citext = 'a'":                      false,
		"date_trunc('month', occurred_at) = now()": false,
		"date_trunc('dow', now()) = occurred_at":   false,
		"date_trunc('month', day) = now()":         false,
		"day - n > CURRENT_DATE":                   false,
		"CURRENT_DATE - n > day":                   false,
		"CURRENT_DATE - 3000000 > day":             false,
		"extract(hour FROM day) = 1":               false,
		"now() - interval '900 years' - interval '900 years' - interval '900 years' > occurred_at": false,
	} {
		result, refusal := r.Rewrite("SELECT id FROM memories WHERE "+condition, false)
		switch {
		case refusal != nil && isSigned:
			t.Errorf("%s: %v", condition, refusal)
		case refusal == nil && (result.Path == verdict.PathSigned) != isSigned:
			t.Errorf("%s: %s: %s", condition, result.Path, result.RowSecurityReason)
		}
	}
	r, _ = altered(t, AlwaysSignedMode, "CREATE EXTENSION intarray; ALTER TABLE memories ADD nums int[]")
	for _, condition := range []string{"nums && ARRAY[1, 2]", "nums @> '{1}'", "3 = ANY (nums)"} {
		if result, refusal := r.Rewrite("SELECT id FROM memories WHERE "+condition, false); refusal != nil || result.Path == verdict.PathSigned {
			t.Errorf("%s, where intarray is: %v, path %s", condition, refusal, result.Path)
		}
	}
}

// A domain is treated as its base type, since PostgreSQL uses the base type's operators and functions. Its check does
// not run when a value is read. It is not leak-safe if somebody has made an operator or function of the name, or if its
// check runs another role's code. A cast to a domain is never leak-safe.
func TestDomainsTakeThePathOfTheirTypes(t *testing.T) {
	const domains = `CREATE EXTENSION citext; CREATE EXTENSION pg_trgm; CREATE DOMAIN email AS citext CHECK (VALUE ~ '^[^@]+@[^@]+$');
		CREATE DOMAIN work_email AS email; CREATE DOMAIN amount AS numeric(12,2) CHECK (VALUE >= 0);
		CREATE DOMAIN label AS varchar(40) NOT NULL; CREATE DOMAIN labels AS text[]; CREATE DOMAIN number AS bigint CHECK (VALUE > 0);
		CREATE DOMAIN doc AS jsonb CHECK (jsonb_typeof(VALUE) = 'object'); CREATE DOMAIN nordic AS text COLLATE "en-x-icu";
		ALTER TABLE memories ADD mail email, ADD work work_email, ADD price amount, ADD name label DEFAULT 'a',
		ADD tags labels, ADD n number, ADD data doc, ADD place nordic;`
	checkPath := func(r *Rewriter, condition string, isSigned bool) {
		t.Helper()
		result, refusal := r.Rewrite("SELECT id FROM memories WHERE "+condition, false)
		if refusal != nil && isSigned {
			t.Errorf("%s: %v", condition, refusal)
		} else if refusal == nil && (result.Path == verdict.PathSigned) != isSigned {
			t.Errorf("%s: %s: %s", condition, result.Path, result.RowSecurityReason)
		}
	}
	r, _ := altered(t, AlwaysSignedMode, domains)
	for condition, isSigned := range map[string]bool{
		"mail = 'a@b' AND mail IN ('a', 'b') AND mail ILIKE '%x%' AND work = $1 AND mail <> work": true,
		"price > 10 AND price BETWEEN 1 AND 2.5 AND price = ANY (ARRAY[1, 2])":                    true,
		"name LIKE 'a%' AND lower(name) = 'a' AND name % 'b' AND COALESCE(name, 'x') = title":     true,
		"tags && ARRAY['a'] AND 'a' = ANY (tags)":                                                 true,
		"n = 4 AND n IN (1, 2) AND n = $1":                                                        true,
		`data @> '{"a": 1}' AND data ->> 'a' = 'b'`:                                               true,
		"mail = 'a'::email": false,
		"n + 1 = 2":         false,
		"price / 2 = 1":     false,
		"place = 'a'":       false,
		"name::amount > 1":  false,
		"mail = title":      false,
	} {
		checkPath(r, condition, isSigned)
	}
	for regexp, conditions := range map[string][]string{
		"CREATE FUNCTION same(label, text) RETURNS bool LANGUAGE sql AS 'SELECT true'; CREATE OPERATOR % (LEFTARG " +
			"= label, RIGHTARG = text, FUNCTION = same);": {"name % 'a'"},
		"CREATE FUNCTION lower(label) RETURNS text LANGUAGE sql AS 'SELECT $1';": {"lower(name) = 'a'"},
		"CREATE FUNCTION fine(text) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RETURN true; END'; ALTER DOMAIN label " +
			"ADD CHECK (fine(VALUE));": {"name = 'a'", "n = 4"},
	} {
		r, _ := altered(t, AlwaysSignedMode, domains+regexp)
		for _, condition := range conditions {
			checkPath(r, condition, false)
		}
	}
}

// ORMs and drivers wrap a search in casts, typed limits and function calls. Each form here takes the signed path; under
// row security it would read the whole table.
func TestSignedPathTakesTextsOfORMs(t *testing.T) {
	r, _ := altered(t, AlwaysSignedMode,
		`CREATE EXTENSION citext; CREATE TYPE stage AS ENUM ('open', 'done'); CREATE TYPE "Odd Stage" AS ENUM ('open');
			ALTER TABLE memories ADD at stage, ADD odd "Odd Stage", ADD mail citext, ADD tags text[], ADD names varchar(50)[], ADD found tsvector`)
	for sql, isSigned := range map[string]bool{
		"SELECT id FROM memories WHERE at = 'open'::stage AND body ILIKE '%x%'":                               true,
		"SELECT id FROM memories WHERE at = CAST('open' AS stage) AND odd = 'open'::\"Odd Stage\"":            true,
		"SELECT id FROM memories WHERE at = $1::stage AND body ILIKE $2::varchar LIMIT $3::integer":           true,
		"SELECT id FROM memories WHERE at IN ($1::stage, $2::stage)":                                          true,
		"SELECT id FROM memories WHERE upper(body::text) LIKE upper('%ab%')":                                  true,
		"SELECT id FROM memories WHERE lower(body) LIKE lower(concat('%', $1, '%')) ESCAPE ''":                true,
		"SELECT id FROM memories WHERE body LIKE $1 ESCAPE '' OFFSET $2 ROWS FETCH FIRST $3 ROWS ONLY":        true,
		"SELECT id FROM memories WHERE upper(mail::text) = upper('A@b')":                                      true,
		"SELECT id FROM memories WHERE tags @> ARRAY[$1]::text[] AND names @> ARRAY['a', 'b']::varchar(50)[]": true,
		"SELECT id FROM memories WHERE found @@ plainto_tsquery('english'::regconfig, $1)":                    true,
		"SELECT id FROM (SELECT id FROM memories WHERE body ILIKE $1 LIMIT $2 OFFSET $3) q":                   true,

		"SELECT id FROM memories WHERE at = $1::text::stage":                            false,
		"SELECT id FROM memories WHERE at = $1::stage AND body = $1":                    false,
		"SELECT id FROM memories WHERE at = $1::stage AND odd = $1::\"Odd Stage\"":      false,
		"SELECT id FROM memories WHERE at = body::stage":                                false,
		"SELECT id FROM memories WHERE body LIKE concat()":                              false,
		"SELECT id FROM memories WHERE body LIKE upper(concat(concat())) ESCAPE ''":     false,
		"SELECT id FROM memories WHERE body LIKE upper(title)":                          false,
		"SELECT id FROM memories WHERE body LIKE concat('%', title)":                    false,
		"SELECT id FROM memories WHERE body LIKE '%x' ESCAPE '!'":                       false,
		"SELECT id FROM memories WHERE body LIKE $1 ESCAPE $2":                          false,
		"SELECT id FROM memories WHERE tags @> ARRAY[title]::text[]":                    false,
		"SELECT id FROM memories WHERE found @@ plainto_tsquery($1::regconfig, 'a')":    false,
		"SELECT id FROM memories WHERE found @@ plainto_tsquery(title::regconfig, 'a')": false,
		"SELECT id FROM (SELECT id FROM memories LIMIT (SELECT 1)) q":                   false,
	} {
		result, refusal := r.Rewrite(sql, false)
		switch {
		case refusal != nil && isSigned:
			t.Errorf("%s: %v", sql, refusal)
		case refusal == nil && (result.Path == verdict.PathSigned) != isSigned:
			t.Errorf("%s: %s: %s\n%s", sql, result.Path, result.RowSecurityReason, result.Text)
		}
	}
}

// An unqualified enum name means the enum only where nothing else on the search path has the name. Row types of tables
// count too.
func TestEnumsOfOneName(t *testing.T) {
	enum := func(schema, name string, oid uint32) *catalog.Type {
		return &catalog.Type{OID: oid, Name: catalog.Name{Schema: schema, Name: name}, Kind: 'e'}
	}
	snap := catalog.NewSnapshot(catalog.Spec{SearchPath: []string{"app", "public"},
		Types: []*catalog.Type{enum("public", "mood", 1), enum("public", "stage", 2), enum("app", "stage", 3),
			enum("public", "memo", 4), enum("other", "mood", 5)},
		Relations: []*catalog.Relation{{Name: catalog.Name{Schema: "app", Name: "memo"}}}})
	v := &leakChecker{walker: &walker{Rewriter: &Rewriter{snap: snap}}}
	for name, want := range map[catalog.Name]uint32{
		{Name: "mood"}: 1, {Name: "stage"}: 0, {Name: "memo"}: 0, {Name: "nothing"}: 0, {
			Schema: "app", Name: "stage"}: 3, {Schema: "public", Name: "memo"}: 4, {Schema: "app", Name: "mood"}: 0} {
		got := uint32(0)
		if t := v.findEnum(name.Schema, name.Name); t != nil {
			got = t.OID
		}
		if got != want {
			t.Errorf("%v: %d, want %d", name, got, want)
		}
	}
}
