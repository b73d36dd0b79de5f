package rewrite

import (
	"regexp"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// newerSyntax lists syntax that PostgreSQL 17 and 18 have added to statements which agents may send. The parser has the
// grammar of PostgreSQL 16 and cannot parse it. If the server's version has the syntax, the refusal says so.
var newerSyntax = []struct {
	what    string
	since   int // the major version that added the syntax
	pattern *regexp.Regexp
	example string
	instead string
}{
	{
		"JSON_TABLE", 17, regexp.MustCompile(`(?i)\bjson_table *\(`),
		`SELECT * FROM JSON_TABLE('[{"a": 1}]'::jsonb, '$[*]' COLUMNS (a integer PATH '$.a'))`,
		"Write jsonb_to_recordset(...) AS t (a integer), or jsonb_path_query(...) in FROM.",
	},
	{
		"JSON_VALUE", 17, regexp.MustCompile(`(?i)\bjson_value *\(`),
		`SELECT JSON_VALUE('{"a": 1}'::jsonb, '$.a' RETURNING integer)`,
		"Write (jsonb_path_query_first(value, path) #>> '{}')::integer.",
	},
	{
		"JSON_QUERY", 17, regexp.MustCompile(`(?i)\bjson_query *\(`),
		`SELECT JSON_QUERY('{"a": [1]}'::jsonb, '$.a' WITH WRAPPER)`,
		"Write jsonb_path_query_first(value, path), or jsonb_path_query_array for an array of all that match.",
	},
	{
		"JSON_EXISTS", 17, regexp.MustCompile(`(?i)\bjson_exists *\(`),
		`SELECT JSON_EXISTS('{"a": 1}'::jsonb, '$.a' ERROR ON ERROR)`,
		"Write jsonb_path_exists(value, path), or value @? path.",
	},
	{
		"JSON_SERIALIZE", 17, regexp.MustCompile(`(?i)\bjson_serialize *\(`),
		`SELECT JSON_SERIALIZE('{}' RETURNING text)`,
		"Write value::text.",
	},
	{
		"JSON_SCALAR", 17, regexp.MustCompile(`(?i)\bjson_scalar *\(`),
		`SELECT JSON_SCALAR(1)`,
		"Write to_json(value).",
	},
	{
		"JSON(...) WITH UNIQUE", 17, regexp.MustCompile(`(?i)\bjson *\([^()]*\bunique\b`),
		`SELECT JSON('{"a": 1}' WITH UNIQUE KEYS)`,
		"Write value::json, and value IS JSON WITH UNIQUE KEYS.",
	},
	{
		"AT LOCAL", 17, regexp.MustCompile(`(?i)\bat +local\b`),
		`SELECT now() AT LOCAL`,
		"Write AT TIME ZONE current_setting('TimeZone').",
	},
	{
		"MERGE ... RETURNING", 17, regexp.MustCompile(`(?is)\bmerge +into\b.*\breturning\b`),
		`MERGE INTO drafts d USING (SELECT gen_random_uuid() AS id) s ON d.id = s.id WHEN MATCHED THEN DELETE RETURNING d.id`,
		"Write INSERT, UPDATE or DELETE with RETURNING.",
	},
	{
		"WHEN NOT MATCHED BY SOURCE", 17, regexp.MustCompile(`(?i)\bnot +matched +by +source\b`),
		`MERGE INTO drafts d USING (SELECT gen_random_uuid() AS id) s ON d.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE`,
		"Write a DELETE or UPDATE with NOT EXISTS.",
	},
	{
		"WHEN NOT MATCHED BY TARGET", 17, regexp.MustCompile(`(?i)\bnot +matched +by +target\b`),
		`MERGE INTO drafts d USING (SELECT gen_random_uuid() AS id) s ON d.id = s.id WHEN NOT MATCHED BY TARGET THEN INSERT (title) VALUES ('a')`,
		"Leave BY TARGET out: WHEN NOT MATCHED says the same.",
	},
	{
		"RETURNING WITH (...)", 18, regexp.MustCompile(`(?i)\breturning +with *\(`),
		`UPDATE drafts SET title = 'a' RETURNING WITH (OLD AS o) o.title`,
		"Write old.column and new.column, without other names for them.",
	},
}

// explainNewerSyntax replaces a syntax error of the parser by a refusal that names the newer syntax, if the server's
// version has it. Otherwise it returns the error.
func explainNewerSyntax(e *sqlstate.Error, source *sqltext.Source, serverVersion int) *sqlstate.Error {
	if e.Code != sqlstate.SyntaxError || e.Position == 0 {
		return e
	}
	bare := source.WithoutLiterals()
	for _, s := range newerSyntax {
		if serverVersion >= s.since*10_000 && s.pattern.MatchString(bare) {
			return tooNewRefusal(s.what, s.since, s.instead).WithPosition(e.Position)
		}
	}
	return e
}

// newerFunctionRefusal returns the refusal of newer syntax that the parser reads as a function call; nil if the name is
// another function's.
func newerFunctionRefusal(name string, serverVersion int) *sqlstate.Error {
	for _, s := range newerSyntax {
		if serverVersion >= s.since*10_000 && s.pattern.MatchString(name+"(") {
			return tooNewRefusal(s.what, s.since, s.instead)
		}
	}
	return nil
}

func tooNewRefusal(what string, since int, alternative string) *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct,
		"%s of PostgreSQL %d is not available to agents", what, since).
		WithHint("pgconsent reads the grammar of PostgreSQL 16. %s", alternative)
}
