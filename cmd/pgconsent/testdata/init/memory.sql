-- An agent's memory: rows of a stack, lists of grants in three forms.
CREATE TABLE stacks (id text PRIMARY KEY, name text);
CREATE TABLE episodes (id uuid PRIMARY KEY, stack_id text NOT NULL, objective text, access_grants text, consent_status text, deleted boolean DEFAULT false);
CREATE TABLE beliefs (id uuid PRIMARY KEY, statement text, access_grants jsonb);
CREATE TABLE notes (id uuid PRIMARY KEY, content text, readers text[]);
CREATE TABLE raw (id uuid PRIMARY KEY, episode_id uuid REFERENCES episodes, content text);
