CREATE TABLE people (who text PRIMARY KEY);
CREATE TABLE notes (id integer PRIMARY KEY, who text NOT NULL REFERENCES people, body text NOT NULL);
