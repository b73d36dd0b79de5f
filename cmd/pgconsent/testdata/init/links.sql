-- Tables of links between documents and people: consent in a profile beside the account, people who are not listed, links with much else, and tables that are none.
CREATE TABLE users (id uuid PRIMARY KEY, name text);
CREATE TABLE profiles (user_id uuid PRIMARY KEY REFERENCES users, ai_consent boolean);
CREATE TABLE leads (id uuid PRIMARY KEY, consent boolean NOT NULL);
CREATE TABLE guests (id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES users, consent_status text CHECK (consent_status IN ('a', 'b')));
CREATE TABLE documents (id uuid PRIMARY KEY, owner_id uuid NOT NULL REFERENCES users, title text);
CREATE TABLE document_readers (document_id uuid NOT NULL REFERENCES documents, user_id uuid NOT NULL REFERENCES users, role text, PRIMARY KEY (document_id, user_id));
CREATE TABLE document_leads (id uuid PRIMARY KEY, document_id uuid NOT NULL REFERENCES documents, lead_id uuid NOT NULL REFERENCES leads, at timestamptz);
CREATE TABLE document_guests (document_id uuid NOT NULL REFERENCES documents, guest_id uuid NOT NULL REFERENCES guests, PRIMARY KEY (document_id, guest_id));
CREATE TABLE document_mentions (id uuid PRIMARY KEY, document_id uuid NOT NULL REFERENCES documents, lead_id uuid NOT NULL REFERENCES leads, quote text, page integer, line integer, score real, UNIQUE (document_id, lead_id));
CREATE TABLE document_callers (document_id uuid NOT NULL REFERENCES documents, lead_id uuid NOT NULL REFERENCES leads, user_id text, PRIMARY KEY (document_id, lead_id));
CREATE TABLE comments (id uuid PRIMARY KEY, document_id uuid NOT NULL REFERENCES documents, author_id uuid NOT NULL REFERENCES users, body text);
CREATE TABLE rooms (id uuid PRIMARY KEY, title text);
CREATE TABLE room_members (room_id uuid NOT NULL REFERENCES rooms, user_id uuid NOT NULL REFERENCES users, joined_at timestamptz, PRIMARY KEY (room_id, user_id));
