package pgcatalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

const relationsSchema = `
CREATE TABLE whole (a int, b int, c int);
CREATE FUNCTION good(whole) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true';
ALTER TABLE whole ADD CHECK (good(whole)), ADD CHECK (a > 0);
CREATE UNIQUE INDEX some_rows ON whole (a) WHERE good(whole);
CREATE TABLE pairs (x int, y int, z int, w int, CHECK (x < y), CHECK (z < w));
CREATE TABLE more_pairs (k int, l int, m int, n int, CHECK (l < k), CHECK (m < n));
CREATE TABLE later (g int GENERATED ALWAYS AS (n + 1) STORED, n int, o int);
CREATE TABLE away (a int, b int, EXCLUDE USING gist (int4range(a, b) WITH &&), EXCLUDE USING btree (a WITH =));
CREATE TABLE texts (a text, b text COLLATE "C", c text COLLATE "default");
CREATE UNIQUE INDEX in_bytes ON texts (a COLLATE "C", b);
CREATE TABLE alike (a int, b int, UNIQUE NULLS NOT DISTINCT (a, b));
CREATE TABLE waits (a int, b int, c int, UNIQUE (a) DEFERRABLE INITIALLY DEFERRED);
CREATE UNIQUE INDEX leads ON waits (b, (c + 1));
CREATE INDEX behind ON waits ((a + 1), b);
CREATE INDEX broken ON waits (c);
CREATE UNIQUE INDEX broken_too ON waits (b, c);
UPDATE pg_index SET indisvalid = false WHERE indexrelid IN ('broken'::regclass, 'broken_too'::regclass);
CREATE UNIQUE INDEX part_of ON waits (c) WHERE a > 0;
CREATE TABLE listed (a text[], b text[], c text[]);
CREATE INDEX ON listed USING gin (a); CREATE INDEX ON listed USING gin (b) WHERE c IS NULL; CREATE INDEX broken_gin ON listed USING gin (c);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'broken_gin'::regclass;
CREATE TABLE one (a int); CREATE TABLE two (b int); CREATE TABLE of_both () INHERITS (one, two);
CREATE TABLE to_governed (a int); CREATE POLICY pgconsent_other ON to_governed; CREATE TABLE governed (a int); CREATE POLICY pgconsent_select ON governed;
CREATE DOMAIN filled AS int DEFAULT 7; CREATE TABLE fills (a filled, b filled DEFAULT 8, c int);
CREATE TABLE acts (a int PRIMARY KEY, b int REFERENCES acts ON DELETE SET DEFAULT ON UPDATE RESTRICT,
  c int REFERENCES acts ON DELETE RESTRICT ON UPDATE SET NULL);
CREATE VIEW plain AS SELECT a, b FROM whole;
CREATE VIEW counted AS SELECT count(*) FROM one;
CREATE VIEW triggered AS SELECT a FROM one; CREATE VIEW ruled AS SELECT a FROM one; CREATE VIEW grouped AS SELECT a FROM one GROUP BY a;
CREATE VIEW over_grouped AS SELECT a FROM grouped;
CREATE FUNCTION instead() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER instead INSTEAD OF UPDATE ON triggered FOR EACH ROW EXECUTE FUNCTION instead();
CREATE TRIGGER instead INSTEAD OF INSERT OR UPDATE OR DELETE ON grouped FOR EACH ROW EXECUTE FUNCTION instead();
CREATE RULE instead AS ON UPDATE TO ruled DO INSTEAD NOTHING;
CREATE VIEW checks WITH (security_barrier, check_option = local) AS SELECT a FROM one WHERE a > 0;
CREATE VIEW barrier WITH (security_barrier) AS SELECT a FROM one;
CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing; CREATE FOREIGN TABLE foreigner (a int) SERVER nowhere;
CREATE MATERIALIZED VIEW stored AS SELECT a FROM one; CREATE SEQUENCE numbers; CREATE TYPE pair AS (a int);`

// The facts about relations on which the policy, the rewriter and the checks of writes depend. There are checks and
// keys of whole rows, generated columns, keys with other collations, and views that PostgreSQL does not write through
// by itself. Some indexes are deferred, invalid or partial.
func TestRelations(t *testing.T) {
	t.Parallel()
	conn := pgtest.Database(t).Connect(t, "postgres")
	exec(t, conn, relationsSchema)
	snap := load(t, conn)
	relationNamed := func(name string) *catalog.Relation {
		relation, ok := snap.Relation(publicName(name))
		if !ok {
			t.Fatalf("no %s", name)
		}
		return relation
	}
	keys := func(list []catalog.Key) string {
		var out []string
		for _, k := range list {
			out = append(out, fmt.Sprint(k.Name, k.Columns, k.EqualColumns, k.NullsDistinctColumns))
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct{ name, got, want string }{
		{"checks of whole rows", fmt.Sprint(relationNamed("whole").CheckedColumns, relationNamed("whole").CheckedTogether), "[a b c] [[a b c]]"},
		{"a key over some rows, by whole rows", keys(relationNamed("whole").UniqueKeys), "some_rows[a b c] [a] [a]"},
		{"two checks of two columns each", fmt.Sprint(relationNamed("pairs").CheckedColumns, relationNamed("pairs").CheckedTogether,
			relationNamed("more_pairs").CheckedTogether), "[x y z w] [[x y] [z w]] [[k l] [m n]]"},
		{"computed from a later column", fmt.Sprint(relationNamed("later").Column("g").ComputedFrom,
			relationNamed("later").Column("n").ComputedFrom,
			relationNamed("later").Column("g").Generated), "[n] [] true"},
		{"exclusions", keys(relationNamed("away").UniqueKeys), "away_a_excl[a] [a] [a] away_int4range_excl[a b] [] []"},
		{"a key in another collation", keys(relationNamed("texts").UniqueKeys), "in_bytes[a b] [b] [a b]"},
		{"a key in which NULLs are equal", keys(relationNamed("alike").UniqueKeys), "alike_a_b_key[a b] [a b] []"},
		{"collations", fmt.Sprintf("%q %q %q", relationNamed("texts").Column("a").Collation, relationNamed("texts").Column("b").Collation,
			relationNamed("texts").Column("c").Collation), `"" "C" ""`},
		{"deferred, led by a column, broken", fmt.Sprint(relationNamed("waits").BTrees), "[{[b] false false} {[a] false false}]"},
		{"what is broken refuses rows nevertheless", keys(relationNamed("waits").UniqueKeys),
			"broken_too[b c] [b c] [b c] leads[b c] [b] [b] part_of[a c] [c] [c] waits_a_key[a] [a] [a]"},
		{"over some rows", fmt.Sprint(relationNamed("waits").PartialBTrees), "[{[c] (a > 0)}]"},
		{"inverted", fmt.Sprint(relationNamed("listed").GINColumns), "[a]"},
		{"two parents", fmt.Sprint(relationNamed("of_both").Parents, relationNamed("of_both").IsPartition, relationNamed("one").HasChildren,
			relationNamed("of_both").HasChildren), "[public.one public.two] false true false"},
		{"policies", fmt.Sprint(relationNamed("to_governed").HasOurPolicy, relationNamed("governed").HasOurPolicy), "false true"},
		{"defaults of domains", fmt.Sprintf("%q %q %q", relationNamed("fills").Column("a").Default,
			relationNamed("fills").Column("b").Default, relationNamed("fills").Column("c").Default), `"7" "8" ""`},
		{"actions", fmt.Sprint(relationNamed("acts").ForeignKeys[0].OnDelete, "/", relationNamed("acts").ForeignKeys[0].OnUpdate,
			" ", relationNamed("acts").ForeignKeys[1].OnDelete, "/", relationNamed("acts").ForeignKeys[1].OnUpdate),
			"set default/restrict restrict/set null"},
		{"a view that reads no column", fmt.Sprint(relationNamed("counted").Reads), "[{public.one []}]"},
		{"a view that reads two", fmt.Sprint(relationNamed("plain").Reads, relationNamed("plain").AllowedCommands), "[{public.whole [a b]}] 28"},
		{"what others write in a view's place",
			fmt.Sprint(relationNamed("triggered").AllowedCommands, relationNamed("ruled").AllowedCommands, relationNamed("grouped").AllowedCommands,
				relationNamed("over_grouped").AllowedCommands, relationNamed("checks").AllowedCommands), "0 0 0 0 28"},
		{"what a view checks", fmt.Sprintf("%q %q", relationNamed("checks").CheckOption, relationNamed("barrier").CheckOption), `"local" ""`},
		{"kinds", fmt.Sprintf("%c%c%c%c", relationNamed("foreigner").Kind, relationNamed("stored").Kind, relationNamed("numbers").Kind,
			relationNamed("pair").Kind), "fmSc"},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, c.got, c.want)
		}
	}
	checkWriteFacts(t, conn)
	exec(t, conn, `CREATE ACCESS METHOD other TYPE INDEX HANDLER gisthandler;
		CREATE OPERATOR CLASS others FOR TYPE box USING other AS OPERATOR 3 &&,
		FUNCTION 1 gist_box_consistent(internal, box, smallint, oid, internal), FUNCTION 2 gist_box_union(internal, internal),
		  FUNCTION 5 gist_box_penalty(internal, internal, internal), FUNCTION 6 gist_box_picksplit(internal, internal), FUNCTION 7 gist_box_same(box, box, internal);
		CREATE TABLE indexed (n int4, b box); CREATE INDEX ON indexed (n); CREATE INDEX ON indexed USING gist (b); CREATE TABLE otherwise (b box);
		CREATE INDEX ON otherwise USING other (b others)`)
	snap = load(t, conn)
	if relationNamed("indexed").HasApproximateIndex || !relationNamed("otherwise").HasApproximateIndex {
		t.Error("access methods that are not PostgreSQL's own are not told")
	}
	if _, err := conn.Exec(t.Context(), "CREATE EXTENSION vector"); err != nil {
		t.Logf("indexes that search approximately are NOT TESTED, since pgvector is not installed: %v", err)
		return
	}
	exec(t, conn, "CREATE TABLE near (v vector(2)); CREATE TABLE nearer (v vector(2)); CREATE INDEX ON near USING "+
		"ivfflat (v vector_l2_ops); CREATE INDEX ON nearer USING hnsw (v vector_l2_ops)")
	snap = load(t, conn)
	if !relationNamed("near").HasApproximateIndex || !relationNamed("nearer").HasApproximateIndex ||
		relationNamed("whole").HasApproximateIndex {
		t.Error("indexes that search approximately are not told")
	}
}

// checkWriteFacts checks which constraints may refuse an update that does not change their columns, and with which
// functions indexes compare.
func checkWriteFacts(t *testing.T, conn *pgx.Conn) {
	exec(t, conn, `
		CREATE SCHEMA w; SET search_path = w, public; CREATE EXTENSION btree_gist;
		CREATE FUNCTION to_day(text) RETURNS date LANGUAGE sql IMMUTABLE AS 'SELECT $1::date';
		CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN word AS text; CREATE TYPE pair AS (a int, j json);
		CREATE TYPE floats AS RANGE (SUBTYPE = float8, SUBTYPE_DIFF = float8mi);
		CREATE TABLE checks (a int, b text, c varchar(9), d timestamptz, e mood, f numeric, g text[], h jsonb, i word, j date, k float8, l bytea, m uuid);
		CREATE FUNCTION whole_row(checks) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
		CREATE TABLE computes (a int, b text, c numeric, d text, e date GENERATED ALWAYS AS (to_day(b)) STORED, f text GENERATED ALWAYS AS (lower(d)) STORED);
		CREATE INDEX ON computes (lower(b), c) WHERE c > 0; CREATE INDEX ON computes ((a + 1)); CREATE INDEX ON computes (to_day(d));
		CREATE INDEX ON computes (a) WHERE to_day(b) > '2020-01-01';
		CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER t1 BEFORE INSERT ON computes FOR EACH ROW WHEN (NEW.a / 2 > 0) EXECUTE FUNCTION nothing();
		CREATE TRIGGER t2 BEFORE UPDATE ON computes FOR EACH ROW WHEN (NEW.c > 1 AND OLD.b IS DISTINCT FROM NEW.b AND lower(NEW.d) <> 'x') EXECUTE FUNCTION nothing();
		CREATE TRIGGER t3 BEFORE UPDATE ON computes FOR EACH ROW WHEN (NEW.b::date > '2020-01-01') EXECUTE FUNCTION nothing();
		CREATE TRIGGER t4 BEFORE UPDATE OF d ON computes FOR EACH ROW WHEN (1 / NEW.a > 0) EXECUTE FUNCTION nothing();
		CREATE TABLE shapes (a int, c circle, s lseg, l int[], m int[], p path, t text, d bytea);
		CREATE INDEX ON shapes ((c = '<(0,0),1>')); CREATE INDEX ON shapes (a) WHERE s < '[(0,0),(1,1)]'; CREATE INDEX ON shapes ((ARRAY[l, m] IS NULL));
		CREATE INDEX ON shapes ((length(p) > 1)); CREATE INDEX ON shapes (length(t)) WHERE length(d) > 1;
		CREATE TRIGGER t1 BEFORE DELETE ON shapes FOR EACH ROW WHEN (1 / OLD.a > 0) EXECUTE FUNCTION nothing();
		CREATE TRIGGER t2 AFTER DELETE ON shapes FOR EACH ROW WHEN (OLD.a > 1 AND OLD.t <> current_user) EXECUTE FUNCTION nothing();
		CREATE TRIGGER t3 AFTER UPDATE OR DELETE ON shapes FOR EACH ROW WHEN (OLD.c = '<(0,0),1>') EXECUTE FUNCTION nothing();
		CREATE TRIGGER t4 AFTER DELETE ON shapes FOR EACH ROW WHEN (lower(OLD.t) = 'x') EXECUTE FUNCTION nothing();
		CREATE TABLE spread (a text, b int) PARTITION BY LIST (to_day(a));
		CREATE TABLE compares (a int, b box, c numrange, d pair, e int[], f floats, g int4multirange, h text,
			EXCLUDE USING gist (h WITH =, c WITH &&), EXCLUDE USING hash (a WITH =));
		CREATE INDEX ON compares (a, h); CREATE INDEX ON compares USING gist (box(b[0], b[1]));
		CREATE INDEX ON compares USING brin (a int4_minmax_multi_ops); CREATE INDEX ON compares USING gist (g);
		CREATE INDEX ON compares USING hash (e); CREATE INDEX ON compares (d, a) INCLUDE (b);`)
	for _, check := range []string{ // first those that PostgreSQL must check again, then the others
		"b::date > '2020-01-01'", "d > now()", "d::date > j", "d > current_timestamp", "d::text <> b", "k::text <> b",
		"to_day(b) > j", "l::text <> b", "i::word <> 'x'::word AND (i || 'x')::word <> 'y'", "concat(b, c) <> ''", "whole_row(checks)",
		"b IN ('x', 'y')", "c IN ('x', 'y')", "e <> 'sad'", "e::text <> 'sad'", "a::text <> b", "f > 0", "g <> '{}'",
		"cardinality(g) < 5", "h ->> 'a' <> ''", "i <> 'x'", "j > '2020-01-01'", "b ~ '^a'", "m::text <> b", "b::json ->> 'x' <> ''",
		"CASE WHEN a > 1 THEN b IS NOT NULL END", "coalesce(b, c)::jsonb IS NOT NULL", "jsonb_typeof(h) = 'object'",
		"length(b) < 100", "num_nonnulls(a, b) = 1", "d > '2020-01-01 00:00Z'", "d - '2020-01-01 00:00Z' > '1 day'",
		"char_length(c) <= 9", "sha256(b::bytea) <> ''", "b::float8 > 0",
	} {
		exec(t, conn, "ALTER TABLE checks ADD CHECK ("+check+")")
	}
	exec(t, conn, "ALTER TABLE checks ADD CONSTRAINT laxly CHECK (a > 7) NOT VALID")
	if pgtest.Binaries().Major >= 18 {
		exec(t, conn, "ALTER TABLE checks ADD CONSTRAINT there NOT NULL m NOT VALID")
	}
	exec(t, conn, "RESET search_path")
	snap := load(t, conn)
	relationNamed := func(name string) *catalog.Relation {
		relation, ok := snap.Relation(catalog.Name{Schema: "w", Name: name})
		if !ok {
			t.Fatalf("no %s", name)
		}
		return relation
	}
	rechecked := "[[a] [a b c d e f g h i j k l m] [b] [b c] [b d] [b j] [b k] [b l] [d] [d j] [i]]"
	if pgtest.Binaries().Major >= 18 {
		rechecked = strings.TrimSuffix(rechecked, "]") + " [m]]"
	}
	comparedKeys := ""
	for _, index := range relationNamed("compares").FallibleIndexes {
		comparedKeys += index.Index
		for _, key := range index.Keys {
			comparedKeys += fmt.Sprint(" ", key.Method, " ", key.Provider, ".", key.Class, key.Columns)
		}
		comparedKeys += "; "
	}
	for _, c := range []struct{ name, got, want string }{
		{"constraints that are asked anew", fmt.Sprint(relationNamed("checks").RecheckedColumns), rechecked},
		{"what is computed", fmt.Sprint(relationNamed("computes").Computations),
			"[{column [b] true false} {index [a] false false} {index [a b] true false} {index [d] true false} " +
				"{trigger [a] false false} {trigger [a d] false false} {trigger [b] true false}]"},
		{"what is taken for leak-proof and fails", fmt.Sprint(relationNamed("shapes").Computations),
			"[{index [a s] false false} {index [c] false false} {index [l m] false false} {index [p] false false} " +
				"{trigger [a] false true} {trigger [a t] false false} {trigger [c] true true}]"},
		{"partitions by a function of others", fmt.Sprint(relationNamed("spread").Computations), "[{partition [a] true false}]"},
		{"what is compared", comparedKeys,
			"compares_a_excl hash postgresql.int4_ops[a]; compares_a_idx brin " +
				"postgresql.int4_minmax_multi_ops[a]; compares_box_idx gist postgresql.box_ops[b]; " +
				"compares_d_a_b_idx btree postgresql.record_ops[d] btree postgresql.int4_ops[a]; " +
				"compares_g_idx gist postgresql.multirange_ops[g]; compares_h_c_excl gist btree_gist.gist_text_ops[h] gist postgresql.range_ops[c]; "},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, c.got, c.want)
		}
	}
}
