CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE TABLE people (id bigint PRIMARY KEY, name text NOT NULL, consent_status text NOT NULL);
CREATE TABLE memories (
  id bigint PRIMARY KEY, owner_id bigint NOT NULL, title text NOT NULL, body text NOT NULL, metadata jsonb NOT NULL,
  occurred_at timestamptz NOT NULL, tsv tsvector NOT NULL
);
CREATE TABLE participants (memory_id bigint NOT NULL, person_id bigint NOT NULL, role text NOT NULL DEFAULT 'present');
CREATE VIEW titled AS SELECT id, owner_id, title, occurred_at, tsv FROM memories WHERE title <> '';
