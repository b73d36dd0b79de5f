package pgcatalog_test

import (
	"slices"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
)

// A foreign key to a partitioned table is one key, though pg_constraint has a further row for each partition. A
// partition also has the foreign keys of its table.
func TestForeignKeysToPartitionedTables(t *testing.T) {
	t.Parallel()
	conn := pgtest.Database(t).Connect(t, "postgres")
	if _, err := conn.Exec(t.Context(), `
		CREATE TABLE whole (a int, b int, PRIMARY KEY (a, b)) PARTITION BY HASH (a);
		CREATE TABLE whole_0 PARTITION OF whole FOR VALUES WITH (MODULUS 2, REMAINDER 0) PARTITION BY HASH (b);
		CREATE TABLE whole_00 PARTITION OF whole_0 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
		CREATE TABLE whole_1 PARTITION OF whole FOR VALUES WITH (MODULUS 2, REMAINDER 1);
		CREATE TABLE plain (id int PRIMARY KEY, a int, b int, FOREIGN KEY (a, b) REFERENCES whole);
		CREATE TABLE parted (a int, b int, FOREIGN KEY (a, b) REFERENCES whole) PARTITION BY HASH (a);
		CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 1, REMAINDER 0);`); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(t.Context(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	whole := catalog.Name{Schema: "public", Name: "whole"}
	for _, name := range []string{"plain", "parted", "parted_0"} {
		relation, ok := snap.Relation(catalog.Name{Schema: "public", Name: name})
		if !ok {
			t.Fatal(name)
		}
		keys := relation.ForeignKeys
		if len(keys) != 1 || keys[0].Target != whole || len(keys[0].Columns) != 2 {
			t.Errorf("%s: %v", name, keys)
		}
	}
}

// Two rows that differ in a column WITH = do not collide in an exclusion constraint. Other operators, and the = of an
// operator class of other roles, do not count as equality.
func TestExclusionConstraints(t *testing.T) {
	t.Parallel()
	conn := pgtest.Database(t).Connect(t, "postgres")
	if _, err := conn.Exec(t.Context(), `
		CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq, COMMUTATOR = ===);
		CREATE OPERATOR CLASS own FOR TYPE int USING hash AS OPERATOR 1 =, FUNCTION 1 hashint4(int);
		CREATE FUNCTION loosely(text, text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT bttextcmp(lower($1), lower($2))';
		CREATE OPERATOR CLASS any_case FOR TYPE text USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
		OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 loosely(text, text);
		CREATE OPERATOR CLASS others FOR TYPE int USING hash AS OPERATOR 1 ===, FUNCTION 1 hashint4(int);
		CREATE TABLE booked (room int4range, owner int, during tstzrange, name text,
		  CONSTRAINT pair EXCLUDE USING gist (room WITH =, during WITH &&),
		  CONSTRAINT near EXCLUDE USING gist (room WITH &&, during WITH =) WHERE (owner > 0),
		  CONSTRAINT one EXCLUDE USING btree (owner WITH =, name WITH =),
		  CONSTRAINT hashed EXCLUDE USING hash (owner WITH =),
		  CONSTRAINT other EXCLUDE USING hash (owner others WITH ===),
		  CONSTRAINT with_own EXCLUDE USING hash (owner own WITH =),
		  CONSTRAINT computed EXCLUDE USING btree ((owner % 10) WITH =),
		  CONSTRAINT collated EXCLUDE USING btree (name COLLATE "POSIX" WITH =));
		CREATE UNIQUE INDEX loose ON booked (name any_case, owner);
		CREATE UNIQUE INDEX patterns ON booked (name text_pattern_ops);`); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"pair": {"room"}, "near": {"during"}, "one": {"owner", "name"}, "hashed": {"owner"},
		"other": {}, "with_own": {}, "loose": {"owner"}, "patterns": {"name"}, "computed": {}, "collated": {}}
	if pgtest.Binaries().Major >= 18 {
		if _, err := conn.Exec(t.Context(), `ALTER TABLE booked ADD CONSTRAINT timed UNIQUE (room, during WITHOUT OVERLAPS)`); err != nil {
			t.Fatal(err)
		}
		want["timed"] = []string{"room"}
	}
	snap, err := pgcatalog.Load(t.Context(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	relation, ok := snap.Relation(catalog.Name{Schema: "public", Name: "booked"})
	if !ok {
		t.Fatal("not loaded")
	}
	for _, key := range relation.UniqueKeys {
		if !slices.Equal(key.EqualColumns, want[key.Name]) {
			t.Errorf("%s: equal %q, want %q", key.Name, key.EqualColumns, want[key.Name])
		}
		delete(want, key.Name)
	}
	if len(want) > 0 {
		t.Errorf("not loaded: %v", want)
	}
}
