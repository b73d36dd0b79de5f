package noninterference

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

// serverVocabulary has the functions, relations and settings that the server's catalog lists.
type serverVocabulary struct {
	functions       []serverFunction
	objectFunctions []serverFunction // functions whose first argument identifies an object of the database
	relations       []string
	settings        []string
}

type serverFunction struct {
	name string
	args []string
}

// costlyFunctions matches functions that take long or return large results for random arguments. They are left out,
// since other functions test the same.
const costlyFunctions = `^(pg_sleep.*|repeat|lpad|rpad|generate_series|generate_subscripts|array_fill|gen_random_bytes|random_normal|` +
	`.*_(in|out|recv|send|accum|serialize|deserialize|combine|transfn|finalfn))$`

func newVocabulary(t testing.TB, db *pgtest.DB) *serverVocabulary {
	t.Helper()
	c := instance.ConnectSuperuser(t, db)
	rows := func(sql string) []string {
		a := instance.Ask(c, sql)
		if a.Err != "" {
			t.Fatal(a.Err)
		}
		return a.Results[0].Rows
	}
	v := &serverVocabulary{}
	for _, r := range rows(`SELECT quote_ident(proname),
		(SELECT string_agg(format_type(a, NULL), ',' ORDER BY o) FROM unnest(proargtypes) WITH ORDINALITY u (a, o))
		FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND pronargs BETWEEN 0 AND 3
			AND prorettype NOT IN ('internal'::regtype, 'trigger'::regtype)
		AND 'internal'::regtype <> ALL (proargtypes) AND proname !~ '` + costlyFunctions + `'
		AND (provolatile <> 'i' OR pronargs BETWEEN 1 AND 2
			AND proargtypes[0] IN ('text'::regtype, 'regclass'::regtype, 'oid'::regtype, 'jsonb'::regtype, 'anyarray'::regtype, 'name'::regtype))
		ORDER BY oid`) {
		name, args, _ := strings.Cut(r, "\t")
		f := serverFunction{name: name}
		if args != `\N` {
			f.args = strings.Split(args, ",")
		}
		v.functions = append(v.functions, f)
		if len(f.args) > 0 && (f.args[0] == "oid" || f.args[0] == "regclass") {
			v.objectFunctions = append(v.objectFunctions, f)
		}
	}
	v.relations = append(v.relations, rows(`SELECT oid::regclass::text FROM pg_class
		WHERE relkind IN ('r', 'v') AND relnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
		AND relname NOT IN ('pg_database', 'pg_operator', 'pg_proc', 'pg_depend', 'pg_description', 'pg_collation', 'pg_amop', 'pg_amproc') ORDER BY oid`)...)
	v.settings = rows(`SELECT name FROM pg_settings WHERE context IN ('user', 'superuser') AND name !~ '_timeout' ORDER BY name`)
	v.settings = append(v.settings, "pgconsent.seal", "row_security", "search_path", "role")
	return v
}
