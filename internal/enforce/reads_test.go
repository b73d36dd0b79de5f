package enforce

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// The enforcer knows which statements depend on the time, read other servers, or read relations whose changes are not
// reported. It finds such relations behind any number of views and functions, and finds none if the policy has none.
func TestRelationsReadByStatements(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	if _, err := conn.Exec(t.Context(), "LOAD 'postgres_fdw'"); err != nil {
		t.Skipf("NOT TESTED: this server cannot load postgres_fdw: %v", err)
	}
	if _, err := conn.PgConn().Exec(t.Context(), `
		CREATE TABLE plain (id int PRIMARY KEY, user_id int, desk int);
		CREATE TABLE timed (id int, user_id int, until timestamptz) PARTITION BY RANGE (id);
		CREATE TABLE timed_part PARTITION OF timed FOR VALUES FROM (0) TO (9);
		CREATE TABLE desks (user_id int PRIMARY KEY, desk int, until timestamptz);
		CREATE EXTENSION postgres_fdw; CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw;
		CREATE FOREIGN TABLE far (id int, user_id int, until timestamptz) SERVER elsewhere;
		CREATE TABLE half (id int, user_id int);
		CREATE FOREIGN TABLE half_part () INHERITS (half) SERVER elsewhere;
		CREATE TABLE wide_desks (user_id int PRIMARY KEY, desk int); CREATE FOREIGN TABLE wide_part () INHERITS (wide_desks) SERVER elsewhere;
		CREATE VIEW of_timed AS SELECT id FROM timed; CREATE VIEW above_timed AS SELECT id FROM of_timed;
		CREATE VIEW of_far AS SELECT id FROM far; CREATE VIEW above_far AS SELECT id FROM of_far; CREATE VIEW of_half AS SELECT id FROM half;
		CREATE VIEW of_plain AS SELECT id FROM plain;
		CREATE FUNCTION says() RETURNS int LANGUAGE sql STABLE RETURN 1; CREATE FUNCTION fixed() RETURNS int LANGUAGE sql IMMUTABLE RETURN 1`).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(t.Context(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	part, _ := snap.Relation(catalog.Name{Schema: "public", Name: "timed_part"})
	part.HasOurPolicy = true // as after a migration
	const head, plain = "version: 1\nattributes:\n  user: { type: integer, source: credential }\n",
		"  plain: { rows: [ own: { column: user_id, is: user } ] }\n"
	const tail = "functions: { says: { reads: nothing }, fixed: { reads: nothing } }\n"
	desk := func(of, rows string) string {
		return "  desk: { type: integer, source: query, query: { table: " + of + ", column: desk, match: { user_id: user }" + rows + " } }\n"
	}
	const atDesk = "tables:\n  plain: { rows: [ own: { column: desk, is: desk } ] }\n"
	const all = "*"
	for name, c := range map[string]struct {
		policy                    string
		timed, foreign, untracked []string // relations for which the test asks; all: every relation
	}{
		"nothing": {head + "tables:\n" + plain + "views: { of_plain: {} }\n" + tail, nil, nil, nil},
		"time": {head + "tables:\n" + plain +
			"  timed: { rows: [ own: { column: user_id, is: user }, sql: \"until > now()\" ] }\nviews: { " +
			"of_plain: {}, of_timed: {}, above_timed: {} }\n" + tail,
			[]string{"timed", "timed_part", "of_timed", "above_timed", "says()"}, nil, nil},
		"another server": {head + "tables:\n" + plain +
			"  far: { rows: [ own: { column: user_id, is: user } ] }\n  half: { rows: [ own: { column: user_id, " +
			"is: user } ] }\nviews: { of_plain: {}, of_far: {}, above_far: {}, of_half: {} }\n" + tail,
			nil, []string{"far", "half", "of_far", "above_far", "of_half", "says()"}, []string{"far", "half", "of_far", "above_far", "of_half", "says()"}},
		"both": {head + "tables:\n" + plain +
			"  far: { rows: [ own: { column: user_id, is: user }, sql: \"until > now()\" ] }\nviews: { of_plain: {}, of_far: {}, above_far: {} }\n" + tail,
			[]string{"far", "of_far", "above_far", "says()"}, []string{
				"far", "of_far", "above_far", "says()"}, []string{"far", "of_far", "above_far", "says()"}},
		"a timed attribute": {head + desk("desks", ", rows: [ sql: \"until > now()\" ]") + atDesk + tail, []string{all}, nil, nil},
		"both of time": {head + desk("desks", ", rows: [ sql: \"until > now()\" ]") +
			atDesk + "  timed: { rows: [ sql: \"until > now()\" ] }\n" + tail, []string{all}, nil, nil},
		"an attribute":           {head + desk("desks", "") + atDesk + tail, nil, nil, nil},
		"attribute of elsewhere": {head + desk("wide_desks", "") + atDesk + tail, nil, []string{all}, nil},
		"one of both, and a table": {head + desk("wide_desks", "") + atDesk +
			"  timed: { rows: [ sql: \"until > now()\" ] }\n" + tail, []string{"timed", "timed_part", "says()"}, []string{all}, nil},
	} {
		doc, err := policy.Parse("p.yaml", []byte(c.policy))
		if err != nil {
			t.Fatal(name, err)
		}
		p, err := policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
		if err != nil {
			t.Fatal(name, err)
		}
		plan, r := rls.Generate(p, snap, rls.Options{}), rewrite.New(snap, p, rewrite.RowSecurityMode)
		goes, reads, unnoticed := newTimeDependent(p, plan), newForeignRelations(snap, p, plan), newUntrackedRelations(p, plan)
		tried := 0
		for _, of := range []string{"plain", "of_plain", "timed", "timed_part", "of_timed", "above_timed", "far",
			"half", "of_far", "above_far", "of_half", "says()", "fixed()"} {
			is := func(list []string) bool {
				for _, one := range list {
					if one == of || one == all {
						return true
					}
				}
				return false
			}
			text := "SELECT id FROM " + of
			if of[len(of)-1] == ')' {
				text = "SELECT id FROM plain WHERE id > " + of
			}
			res, refused := r.Rewrite("SELECT 1; "+text, false)
			if refused != nil {
				continue
			}
			tried++
			if got := goes.needsSeparateMessages(res); got != is(c.timed) {
				t.Errorf("%s: %s begins apart: %t", name, of, got)
			}
			res, _ = r.Rewrite(text, false)
			if got := reads.countReads(res) > 0; got != is(c.foreign) {
				t.Errorf("%s: %s asks a foreign server: %t", name, of, got)
			}
			if got := unnoticed.untrackedReadOf(res); (got != "") != is(c.untracked) {
				t.Errorf("%s: %s reads what nobody tells of: %q", name, of, got)
			}
		}
		if tried < 3 {
			t.Errorf("%s: %d texts", name, tried)
		}
	}
}
