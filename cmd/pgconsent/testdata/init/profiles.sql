-- Accounts in a schema of their own, a profile with the account's key, keys of programs, numbers of tokens.
CREATE SCHEMA auth;
CREATE TABLE auth.users (id uuid PRIMARY KEY, email text UNIQUE, encrypted_password text);
CREATE TABLE profiles (id uuid PRIMARY KEY REFERENCES auth.users ON DELETE CASCADE, username text UNIQUE, full_name text, memory_consent text NOT NULL DEFAULT 'ask' CHECK (memory_consent IN ('ask', 'granted', 'denied')));
CREATE TABLE threads (id uuid PRIMARY KEY, title text);
CREATE TABLE thread_participants (thread_id uuid NOT NULL REFERENCES threads, user_id uuid NOT NULL REFERENCES profiles, PRIMARY KEY (thread_id, user_id));
CREATE TABLE messages (id uuid PRIMARY KEY, thread_id uuid NOT NULL REFERENCES threads, content jsonb NOT NULL, token_count integer, token text);
CREATE TABLE memories (id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES profiles, fact text NOT NULL);
CREATE TABLE api_keys (id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES profiles, name text, key_hash text NOT NULL);
CREATE TABLE webhooks (id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES profiles, url text, "hashedKey" text, "signingKey" text);
