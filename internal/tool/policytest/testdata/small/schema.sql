CREATE TABLE people (id integer PRIMARY KEY, name text NOT NULL, consent text, tags text[]);
CREATE TABLE "Order Lines" (tenant integer, line integer, person integer, note text, doc jsonb, PRIMARY KEY (tenant, line));
CREATE TABLE log (at date, what text);
