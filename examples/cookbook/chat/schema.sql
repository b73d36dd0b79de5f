CREATE TABLE users (id bigint PRIMARY KEY, handle text NOT NULL UNIQUE, assistants text NOT NULL DEFAULT 'undecided');
CREATE TABLE threads (id bigint PRIMARY KEY, title text NOT NULL, visibility text NOT NULL DEFAULT 'members');
CREATE TABLE thread_members (thread_id bigint REFERENCES threads, user_id bigint REFERENCES users, muted boolean NOT NULL DEFAULT false, PRIMARY KEY (thread_id, user_id));
CREATE INDEX ON thread_members (user_id);
CREATE TABLE messages (
  thread_id bigint NOT NULL REFERENCES threads,
  seq integer NOT NULL,
  sender_id bigint NOT NULL REFERENCES users,
  reply_to integer,
  body text NOT NULL,
  sent_at timestamptz NOT NULL DEFAULT now(),
  deleted boolean NOT NULL DEFAULT false,
  PRIMARY KEY (thread_id, seq)
);
CREATE TABLE reactions (
  thread_id bigint, seq integer, user_id bigint REFERENCES users, emoji text NOT NULL,
  PRIMARY KEY (thread_id, seq, user_id), FOREIGN KEY (thread_id, seq) REFERENCES messages
);
