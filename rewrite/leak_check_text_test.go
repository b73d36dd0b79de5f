package rewrite

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// checkQualified reports names of relations, functions and types in a signed text that depend on the search path.
func checkQualified(t *testing.T, sql, text string) {
	t.Helper()
	tree, refusal := sqltext.Parse(text)
	if refusal != nil {
		t.Errorf("%s: %s: %v", sql, text, refusal)
		return
	}
	relations, queries := sqltext.RangeVars(tree)
	for _, rv := range relations {
		if rv.GetSchemaname() == "" && !queries[rv.GetRelname()] {
			t.Errorf("%s: relation %s has no schema in %s", sql, rv.GetRelname(), text)
		}
	}
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		switch n := m.Interface().(type) {
		case *sqltext.TypeName:
			if len(n.Names) != 2 {
				t.Errorf("%s: a type has no schema in %s", sql, text)
			}
		case *sqltext.FuncCall:
			if len(n.Funcname) != 2 {
				t.Errorf("%s: a function has no schema in %s", sql, text)
			}
		}
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			switch {
			case f.Message() == nil:
			case f.IsList():
				for i := range v.List().Len() {
					visit(v.List().Get(i).Message())
				}
			default:
				visit(v.Message())
			}
			return true
		})
	}
	visit(tree.ProtoReflect())
}

// The rewriter qualifies every name of a signed text with its schema, in whatever form the agent wrote it.
func TestSignedTextsAreQualified(t *testing.T) {
	r, _ := altered(t, AlwaysSignedMode, "CREATE INDEX ON memories USING gin (to_tsvector('english', title))")
	for _, sql := range []string{
		"SELECT m.title, n.body FROM memories m, notes n WHERE m.title = n.body",
		"SELECT id::text, occurred_at::date, CAST(title AS varchar) FROM memories",
		"SELECT title FROM memories WHERE id = uuid 'd0000000-0000-4000-8000-000000000001' OR id = $1::uuid",
		"SELECT title FROM memories WHERE id = ANY ('{}'::uuid[]) OR title = ANY ($1::text[])",
		"SELECT title FROM memories WHERE occurred_at > now() - interval '1 day' AND occurred_at < timestamptz '2026-01-01'",
		"SELECT id FROM memories WHERE to_tsvector('english'::regconfig, title::text) @@ plainto_tsquery('english', 'a')",
		"SELECT id FROM memories WHERE to_tsvector('english', title::varchar) @@ plainto_tsquery('english', 'a')",
		"WITH memories AS (SELECT lower(title) AS t FROM memories) SELECT max(t) FROM memories",
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil || result.Path != verdict.PathSigned {
			t.Errorf("%s: %v, %q", sql, refusal, result.RowSecurityReason)
			continue
		}
		checkQualified(t, sql, result.Text)
	}
}

// A client may declare a parameter as the type that the rewriter assumed for the signed path. A different type, which
// would have to be converted, is refused.
func TestParametersOnTheSignedPath(t *testing.T) {
	r := rewriter(t, AlwaysSignedMode)
	oids := map[kind]uint32{kindText: 25, kindBool: 16, kindInt: 23, "uuid": 2950, "timestamptz": 1184, "date": 1082,
		"text[]": 1009, "uuid[]": 2951, "jsonb": 3802, kindNumeric: 1700}
	for _, c := range []struct {
		sql           string
		parameterKind kind
	}{
		{"SELECT id FROM memories WHERE $1", kindBool},
		{"SELECT id FROM memories WHERE NOT $1", kindBool},
		{"SELECT id FROM memories WHERE $1 IS NOT TRUE", kindBool},
		{"SELECT m.id FROM memories m JOIN people p ON $1", kindBool},
		{"SELECT CASE WHEN $1 THEN 1 END FROM memories", kindBool},
		{"SELECT id FROM memories LIMIT $1", kindInt},
		{"SELECT id FROM memories OFFSET $1", kindInt},
		{"SELECT id, $1 FROM memories", kindText},
		{"SELECT id FROM (SELECT id, $1 AS x FROM memories) AS m", kindText},
		{"SELECT $1 FROM memories UNION SELECT title FROM memories", kindText},
		{"SELECT title FROM memories ORDER BY $1", kindText},
		{"SELECT count($1) FROM memories", kindText},
		{"SELECT max($1) FROM memories", kindText},
		{"SELECT id FROM memories WHERE $1 = 'a'", kindText},
		{"SELECT id FROM memories WHERE title = $1", kindText},
		{"SELECT id FROM memories WHERE $1 < title", kindText},
		{"SELECT id FROM memories WHERE id IN ($1)", "uuid"},
		{"SELECT id FROM memories WHERE id IS DISTINCT FROM $1", "uuid"},
		{"SELECT nullif(id, $1) FROM memories", "uuid"},
		{"SELECT nullif($1, title) FROM memories", kindText},
		{"SELECT id FROM memories WHERE occurred_at BETWEEN $1 AND now()", "timestamptz"},
		{"SELECT id FROM memories WHERE occurred_at BETWEEN now() AND $1", "timestamptz"},
		{"SELECT id FROM memories WHERE id = ANY (ARRAY[$1])", "uuid"},
		{"SELECT id FROM memories WHERE title = ANY ($1)", "text[]"},
		{"SELECT id FROM memories WHERE id = ANY ($1)", "uuid[]"},
		{"SELECT CASE id WHEN $1 THEN 1 END FROM memories", "uuid"},
		{"SELECT id FROM memories WHERE $1 IN (SELECT id FROM people)", "uuid"},
		{"SELECT lower($1) FROM memories", kindText},
		{"SELECT $1::uuid FROM memories", "uuid"},
		{"SELECT id FROM memories WHERE $1::date < occurred_at", "date"},
		{"SELECT id FROM memories WHERE metadata @> $1", "jsonb"},
	} {
		result, refusal := r.Rewrite(c.sql, true)
		if refusal != nil || result.Path != verdict.PathSigned {
			t.Errorf("%s: %v, %q", c.sql, refusal, result.RowSecurityReason)
			continue
		}
		if !result.MayDeclare(nil) || !result.MayDeclare([]uint32{0}) || !result.MayDeclare([]uint32{0, 1700}) {
			t.Errorf("%s: its parameter may not be left to the server", c.sql)
		}
		for k, oid := range oids {
			if result.MayDeclare([]uint32{oid}) != (k == c.parameterKind) {
				t.Errorf("%s: declared as %s: %v", c.sql, k, k != c.parameterKind)
			}
		}
	}
	// A cast to a narrower type could fail at run time, if the client declared a wider one.
	for sql, oid := range map[string]uint32{"$1::int = 1": 23, "$1::smallint = 1": 21, "$1::bigint = 1": 20,
		"$1::real > 1": 700, "$1::float8 > 1": 701} {
		result, refusal := r.Rewrite("SELECT id FROM memories WHERE "+sql, true)
		if refusal != nil || result.Path != verdict.PathSigned {
			t.Errorf("%s: %v, %q", sql, refusal, result.RowSecurityReason)
			continue
		}
		for _, declaredType := range []uint32{20, 21, 23, 700, 701} {
			if result.MayDeclare([]uint32{declaredType}) != (declaredType == oid) {
				t.Errorf("%s: declared as %d: %v", sql, declaredType, declaredType != oid)
			}
		}
	}
}
