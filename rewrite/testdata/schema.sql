-- What the tests need besides the arcive world.
CREATE EXTENSION IF NOT EXISTS cube WITH SCHEMA public;
CREATE TABLE notes (id integer PRIMARY KEY, body text, shout text GENERATED ALWAYS AS (upper(body)) STORED);
CREATE TABLE "Mixed Case" ("Id" integer PRIMARY KEY, "select" text, user_id uuid);
CREATE TABLE parents (id integer PRIMARY KEY, user_id uuid);
CREATE TABLE children (extra text) INHERITS (parents);
CREATE VIEW memory_overview AS SELECT id, title FROM memories;
CREATE TYPE mood AS ENUM ('calm', 'bright');
CREATE DOMAIN short_text AS text CHECK (length(VALUE) < 80);
-- Objects of others that must not be reached: by attribute notation, by an overload, by an operator, by a cast.
CREATE FUNCTION secret(memories) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
CREATE FUNCTION unlisted(text) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
CREATE FUNCTION cbrt(text) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
CREATE FUNCTION leak(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
CREATE OPERATOR ### (LEFTARG = text, RIGHTARG = text, FUNCTION = leak);
CREATE FUNCTION leak(uuid, text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
CREATE OPERATOR ^@ (LEFTARG = uuid, RIGHTARG = text, FUNCTION = leak);
CREATE PROCEDURE tidy() LANGUAGE sql AS $$ SELECT 1 $$;
-- Functions that the policy lists.
CREATE FUNCTION pinned_two(a integer, gate boolean DEFAULT false, b text DEFAULT '') RETURNS text LANGUAGE sql AS $$ SELECT gate::text $$;
CREATE FUNCTION plain_listed(a integer) RETURNS integer LANGUAGE sql AS $$ SELECT a $$;
-- Tables that agents write.
CREATE TYPE place AS (city text, street text);
CREATE TABLE drafts (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), user_id uuid NOT NULL, title text, body text DEFAULT '', tags text[], at place,
  note_id integer REFERENCES notes, shout text GENERATED ALWAYS AS (upper(title)) STORED, made timestamptz NOT NULL DEFAULT now(),
  UNIQUE (user_id, title)
);
CREATE TABLE proposals (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), user_id uuid NOT NULL, title text, state text);
-- What runs without being called: checks of domains, and casts.
CREATE FUNCTION checks(text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
CREATE DOMAIN checked_text AS text CHECK (checks(VALUE));
CREATE DOMAIN over_checked AS checked_text[];
CREATE TYPE checked_pair AS (a integer, b over_checked);
CREATE TYPE plain_pair AS (a integer, b short_text, c mood[]);
CREATE TABLE checked_rows (id integer PRIMARY KEY, t checked_text);
CREATE TYPE converted AS ENUM ('a', 'b');
CREATE FUNCTION convert_it(integer) RETURNS converted LANGUAGE sql AS $$ SELECT 'a'::converted $$;
CREATE CAST (integer AS converted) WITH FUNCTION convert_it(integer);
CREATE CAST (text AS mood) WITH INOUT AS IMPLICIT;
CREATE DOMAIN lseg AS text CHECK (checks(VALUE));
-- Ranges: one of PostgreSQL's own parts, and one whose distances somebody else's function tells.
CREATE TYPE spread AS RANGE (SUBTYPE = double precision);
CREATE FUNCTION apart(numeric, numeric) RETURNS double precision LANGUAGE sql IMMUTABLE AS 'SELECT 0.0::double precision';
CREATE TYPE fees AS RANGE (SUBTYPE = numeric, SUBTYPE_DIFF = apart);
-- Functions with names of PostgreSQL's.
CREATE FUNCTION round(double precision, integer, text) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT 0.0';
-- Tables of which the policy hides columns.
CREATE TABLE patients (id integer PRIMARY KEY, user_id uuid, name text, email varchar(100), born date, visits integer, notes jsonb, ssn text);
CREATE TABLE vehicles (id integer PRIMARY KEY, plate text, vin text);
CREATE TABLE trucks (load integer) INHERITS (vehicles);
CREATE TABLE lists (word text, uses integer DEFAULT 0, shout text GENERATED ALWAYS AS (upper(word)) STORED);
-- Views: two that the policy lists, and one that one of them reads.
CREATE VIEW titles AS SELECT m.id, m.title, count(p.person_id) AS people FROM memories m LEFT JOIN memory_participants p ON p.memory_id = m.id GROUP BY m.id, m.title;
CREATE VIEW short_titles AS SELECT t.id, left(t.title, 10) AS title, t.people FROM titles t WHERE t.people < 5;
CREATE VIEW patient_list AS SELECT id, name, born, (SELECT count(*) FROM notes) AS notes FROM patients;
CREATE VIEW open_drafts AS SELECT d.title, d.user_id FROM drafts d WHERE d.title <> '' WITH CASCADED CHECK OPTION;
CREATE VIEW long_drafts AS SELECT o.title AS heading, o.user_id, length(o.title) AS long FROM open_drafts o WHERE length(o.title) > 9;
CREATE VIEW drafts_by_length AS SELECT d.heading, d.long FROM long_drafts d;
CREATE VIEW counted_drafts AS SELECT count(*) AS n FROM long_drafts;
CREATE VIEW over_counted AS SELECT n FROM counted_drafts;
-- Tables with columns that exist by key only.
CREATE TABLE pages (site text, slug varchar(40), n bigint UNIQUE, title text, body text, PRIMARY KEY (site, slug));
CREATE TABLE letters (id integer PRIMARY KEY, code text UNIQUE, body text, topic text);
INSERT INTO letters SELECT i, 'c' || i, 'body ' || i, 'topic' FROM generate_series(1, 9) i;
INSERT INTO pages SELECT 's' || i % 2, 'p' || i, i, 'title', 'body ' || i FROM generate_series(1, 9) i;
-- Types that bring collations along.
CREATE DOMAIN exact AS text COLLATE "POSIX";
CREATE TYPE coded AS (code exact, n integer);
CREATE FUNCTION decoded() RETURNS coded LANGUAGE sql IMMUTABLE AS $$ SELECT ROW('a', 1)::coded $$;
CREATE FUNCTION caption(memories) RETURNS text LANGUAGE sql STABLE AS $$ SELECT $1.title $$;
CREATE AGGREGATE joined(text) (SFUNC = textcat, STYPE = text);
-- A type of others with a cast to one of PostgreSQL's.
CREATE TYPE gauge AS (n integer, unit text);
CREATE DOMAIN main_gauge AS gauge;
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE TYPE wrapped AS (n integer);
CREATE FUNCTION gauged(gauge) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 1 / $1.n $$;
CREATE CAST (gauge AS integer) WITH FUNCTION gauged(gauge);
CREATE TABLE gauges (id integer PRIMARY KEY, g gauge, many gauge[], main main_gauge, n text);
CREATE FUNCTION measured() RETURNS gauge LANGUAGE sql IMMUTABLE AS $$ SELECT ROW(0, 'a')::gauge $$;
-- Types with which PostgreSQL compares others by converting these.
CREATE TABLE meters (id integer PRIMARY KEY, reading double precision, other double precision, amount numeric, at timestamptz, day date, object oid);
-- Views whose columns are followed, and such as cannot be.
CREATE VIEW bodies AS SELECT n.id, n.body FROM notes n WHERE n.body <> '';
CREATE FUNCTION excerpt(bodies) RETURNS text LANGUAGE sql STABLE AS $$ SELECT $1.body $$;
CREATE VIEW shares AS SELECT m.id, m.title, 10 / length(m.title) AS share FROM memories m;
CREATE VIEW hosted AS WITH q AS (SELECT x.memory_id, count(*) AS n FROM memory_participants x GROUP BY x.memory_id) SELECT s.*, q.n FROM shares s JOIN q ON q.memory_id = s.id;
CREATE VIEW either AS SELECT b.id FROM bodies b UNION ALL SELECT 10 / n.id FROM notes n;
CREATE VIEW lowest AS SELECT n.id, n.body FROM notes n WHERE n.id = (SELECT 1 / min(o.id) FROM notes o);
CREATE VIEW settings_of AS SELECT n.id, s.typname FROM notes n LEFT JOIN pg_type s ON s.typname = n.body;
CREATE VIEW listed_calls AS SELECT plain_listed(n.id) AS id FROM notes n;
