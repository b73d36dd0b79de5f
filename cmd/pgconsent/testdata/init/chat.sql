-- A chat application: people who let an AI read along or do not, what hangs on them over several steps, settings and profiles beside accounts.
CREATE TABLE users (id uuid PRIMARY KEY, name text, email text NOT NULL, ai_consent boolean NOT NULL DEFAULT false);
CREATE TABLE chats (id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE, title text);
CREATE TABLE messages (id uuid PRIMARY KEY, chat_id uuid NOT NULL REFERENCES chats, sender_id uuid REFERENCES users, reviewer_id uuid REFERENCES users ON DELETE SET NULL, body text NOT NULL, sent_at timestamptz);
CREATE TABLE files (id uuid PRIMARY KEY, message_id uuid NOT NULL REFERENCES messages, path text NOT NULL, bytes bigint);
CREATE TABLE file_pages (file_id uuid NOT NULL REFERENCES files, page integer NOT NULL, words text, PRIMARY KEY (file_id, page));
CREATE TABLE drafts (id uuid PRIMARY KEY, user_id uuid REFERENCES users, body text);
CREATE TABLE reactions (id uuid PRIMARY KEY, message_id uuid NOT NULL REFERENCES messages, user_id uuid NOT NULL, emoji text);
CREATE TABLE voice_settings (id bigint PRIMARY KEY, user_id uuid NOT NULL UNIQUE REFERENCES users, allow_ai_voice boolean);
CREATE TABLE research_choices (user_id uuid PRIMARY KEY REFERENCES users, research_consent text NOT NULL CHECK (research_consent IN ('asked', 'granted', 'refused')), research_consent_until timestamptz);
CREATE TABLE leads (id uuid PRIMARY KEY, consent_status text CHECK (consent_status IN ('opted_in', 'opted_out')), phone text);
CREATE TABLE calls (id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES users, lead_id uuid NOT NULL REFERENCES leads, notes text);
CREATE TABLE callbacks (id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES users, lead_id uuid REFERENCES leads, at timestamptz);
