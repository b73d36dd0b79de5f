-- One table for each kind of thing that the other schemas of this test have none of.
CREATE TABLE people (id integer PRIMARY KEY, status text, until timestamptz);

CREATE TABLE events (id integer PRIMARY KEY, person integer, kind text, level integer, at timestamptz, day date, amount integer, score float8, note text);

CREATE TABLE chats (id integer PRIMARY KEY, who text NOT NULL, channel text, at timestamptz NOT NULL, anonymous boolean, n integer);

CREATE TABLE notes (id integer PRIMARY KEY, body text);
CREATE TABLE note_people (note integer, person integer);
CREATE TABLE drafts (a text, b integer, person integer, PRIMARY KEY (a, b));
CREATE TABLE draft_people (a text, b integer, person integer);

CREATE TABLE odd (id integer PRIMARY KEY, person integer, secret text, none varchar(10), hashed text, key uuid, day date, stamp timestamp(3), zoned timestamptz,
  short varchar(20), small smallint, whole integer, big bigint, amount numeric(5,2), ratio float8, doc jsonb, old_doc json);

CREATE TABLE parts (id integer, person integer) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE animals (id integer, person integer);
CREATE TABLE cats (tricks text) INHERITS (animals);
CREATE VIEW kittens AS SELECT id FROM animals;

CREATE TABLE desks (person integer, desk integer);
CREATE TABLE rooms (person integer PRIMARY KEY, room integer);
CREATE TABLE papers (id integer PRIMARY KEY, desk integer, room integer, weight numeric, doc jsonb, tags text[], kept boolean);

CREATE TABLE made (id integer PRIMARY KEY, body text, sources jsonb);
CREATE TABLE made_of (made integer, source integer);
