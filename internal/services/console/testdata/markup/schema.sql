CREATE TABLE people (who text PRIMARY KEY, stream text NOT NULL);
CREATE TABLE "<i>notes</i>" (id integer PRIMARY KEY, who text, body text, style text);
