-- A table to try the walls on: agents see its first row. What an expression does to the second one must not show. No
-- statement of an agent can name it; the policy and the views over it come with each policy that is installed.
CREATE TABLE pgconsent_gate.canary (
  id      pg_catalog.int4 PRIMARY KEY,
  consent pg_catalog.text NOT NULL,
  secret  pg_catalog.text NOT NULL
);
INSERT INTO pgconsent_gate.canary VALUES (1, 'granted', '7'), (2, 'refused', 'a hidden row');
ALTER TABLE pgconsent_gate.canary ENABLE ROW LEVEL SECURITY;
REVOKE ALL ON pgconsent_gate.canary FROM PUBLIC;
