CREATE TABLE notes (id integer PRIMARY KEY, team text, body text);
