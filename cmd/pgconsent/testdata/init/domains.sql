-- Keys and words that are domains: they compare as the types under them.
CREATE DOMAIN person_id AS uuid;
CREATE DOMAIN note_id AS bigint CHECK (VALUE > 0);
CREATE DOMAIN own_note_id AS note_id;
CREATE DOMAIN consent_word AS text CHECK (VALUE IN ('asked', 'granted', 'withdrawn'));
CREATE TABLE users (id person_id PRIMARY KEY, name text, memory_consent consent_word NOT NULL DEFAULT 'asked');
CREATE TABLE notes (id note_id PRIMARY KEY, user_id person_id NOT NULL REFERENCES users, body text);
CREATE TABLE attachments (id bigint PRIMARY KEY, note_id own_note_id NOT NULL REFERENCES notes, name text);
CREATE TABLE reminders (id bigint PRIMARY KEY, user_id person_id NOT NULL, said text);
