-- What agents read and write. Rows of others than "me" are hidden, and persons who have not consented.
CREATE TABLE item (
  owner text NOT NULL DEFAULT 'me', id integer NOT NULL, rank integer NOT NULL, label text NOT NULL DEFAULT '-', n integer CHECK (n < 100),
  PRIMARY KEY (owner, id), UNIQUE (owner, rank) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE person (id integer PRIMARY KEY, owner text NOT NULL, name text, status text NOT NULL);
CREATE TABLE deed (id integer PRIMARY KEY, person integer REFERENCES person, note text);
CREATE TABLE secret (id integer, words text);
