CREATE TYPE state AS ENUM ('draft', 'published', 'archived');
CREATE DOMAIN mood AS text;
CREATE DOMAIN amount AS numeric;
CREATE DOMAIN stage AS state;
CREATE EXTENSION IF NOT EXISTS citext;
CREATE SCHEMA app;
CREATE TABLE people (id uuid PRIMARY KEY, user_id uuid NOT NULL, name text, email citext, consent text CHECK (consent IN ('granted', 'revoked', 'pending')), mood mood, active boolean NOT NULL DEFAULT true, born date);
CREATE INDEX ON people (user_id);
CREATE TABLE notes (
  id uuid PRIMARY KEY, user_id uuid NOT NULL, tenant text NOT NULL, state state NOT NULL DEFAULT 'draft', kind text CHECK (kind IN ('memo', 'letter')),
  about uuid, title text, body text, tags text[], readers jsonb, scores integer[], days date[], metadata jsonb,
  size numeric(10, 2), created_at timestamptz NOT NULL DEFAULT now(), deleted_at timestamptz);
CREATE INDEX ON notes (user_id);
CREATE INDEX ON notes (tenant);
CREATE INDEX ON notes USING gin (tags);
CREATE INDEX ON notes USING gin (readers);
CREATE TABLE note_people (note_id uuid NOT NULL REFERENCES notes, person_id uuid NOT NULL REFERENCES people, PRIMARY KEY (note_id, person_id));
CREATE TABLE comments (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note_id uuid NOT NULL REFERENCES notes, author uuid NOT NULL, text text);
CREATE TABLE folders (id uuid PRIMARY KEY, parent uuid REFERENCES folders, owner uuid, label text COLLATE "C");
CREATE TABLE "Groups" ("Id" integer PRIMARY KEY, "ownerId" uuid, readers text[]);
CREATE TABLE app.people (id uuid PRIMARY KEY, login text, user_id uuid) PARTITION BY HASH (id);
CREATE VIEW recent AS SELECT n.id, n.title, f.label FROM notes AS n JOIN folders AS f ON f.id = n.about;
CREATE VIEW named AS SELECT id, label FROM folders;
CREATE VIEW totals AS SELECT count(*) AS n FROM folders;
CREATE MATERIALIZED VIEW summary AS SELECT count(*) AS n FROM notes;
CREATE SEQUENCE numbers;
CREATE FUNCTION find_notes(query text, respect_consent boolean DEFAULT true) RETURNS SETOF notes LANGUAGE sql STABLE AS 'SELECT * FROM notes';
CREATE FUNCTION all_notes() RETURNS SETOF notes LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT * FROM notes';
CREATE FUNCTION lower(notes) RETURNS text LANGUAGE sql STABLE AS 'SELECT $1.title';
CREATE FUNCTION either(text, text) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT $1';
CREATE AGGREGATE longest(text) (SFUNC = either, STYPE = text);
CREATE TABLE agreements (id uuid PRIMARY KEY, person uuid NOT NULL, state text NOT NULL CHECK (state IN ('asked', 'granted')), given_to uuid, revoked_at timestamptz NOT NULL, total amount, stage stage);
CREATE TABLE shares (id uuid PRIMARY KEY, agreement uuid REFERENCES agreements, live boolean, owner uuid NOT NULL);
CREATE INDEX ON agreements (person);
CREATE INDEX ON shares (owner);
CREATE SCHEMA hr;
CREATE TABLE hr."Employees" (id uuid PRIMARY KEY, user_id uuid);
