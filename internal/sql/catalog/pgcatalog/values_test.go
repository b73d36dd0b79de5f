package pgcatalog_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// AllowedValues is set only if a CHECK of the column is a plain list of values.
func TestValues(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	exec(t, conn, `
CREATE DOMAIN state AS text CHECK (VALUE IN ('on', 'off'));
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE TABLE v (
  a text CHECK (a IN ('x', 'it''s', 'a, b')),
  b varchar(20) CHECK (b IN ('one', 'two')),
  c varchar CHECK (c = ANY (ARRAY['one', 'two'])),
  "D e" text CHECK ("D e" IN ('x')),
  s state,
  m mood,
  n int CHECK (n IN (1, 2)),
  o text CHECK (o IN ('x', 'y') OR o IS NULL),
  p text CHECK (p <> ALL (ARRAY['x', 'y'])),
  q text CHECK (lower(q) IN ('x', 'y')),
  r text CHECK (r IN ('x', 'y') AND length(r) > 0),
  u text CHECK (u IN ('back\slash', 'y')),
  w text, x text, tags text[], doc jsonb, body text,
  CHECK (w IN ('a', 'b') AND x > 'c')
);
ALTER TABLE v ADD CONSTRAINT later CHECK (w IN ('a', 'b')) NOT VALID;
CREATE INDEX ON v USING gin (tags, doc);
CREATE INDEX ON v USING gin (to_tsvector('english', body));`)
	relation, _ := load(t, conn).Relation(publicName("v"))
	want := map[string]string{"a": "a, b|it's|x", "b": "one|two", "u": `back\slash|y`, "c": "one|two", "s": "off|on"}
	for _, c := range relation.Columns {
		// A list of one value is printed as an equation; the reader may recognise it or not.
		if got := strings.Join(c.AllowedValues, "|"); got != want[c.Name] && c.Name != "D e" {
			t.Errorf("%s: %q, want %q", c.Name, got, want[c.Name])
		}
	}
	if got := strings.Join(relation.GINColumns, " "); got != "doc tags" {
		t.Errorf("gin: %q", got)
	}
	mood := load(t, conn).TypeByOID(relation.Column("m").TypeOID)
	if mood == nil || strings.Join(mood.Labels, " ") != "sad glad" {
		t.Errorf("mood: %+v", mood)
	}
}
