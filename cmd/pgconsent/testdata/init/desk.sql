-- A help desk: consent by the words of an enum and of a CHECK, tenants that go by two names, ways to reach people, and a
-- register of consents.
CREATE TYPE ai_answer AS ENUM ('granted', 'refused', 'withdrawn');
CREATE TYPE consent_level AS ENUM ('all', 'some', 'none');
CREATE TABLE organizations (id integer PRIMARY KEY, name text);
CREATE TABLE customers (id integer PRIMARY KEY, org_id integer NOT NULL REFERENCES organizations, name text, email text NOT NULL, home_phone text, ai ai_answer);
CREATE TABLE contacts ( org_id integer NOT NULL, email text PRIMARY KEY, standing text CHECK (standing IN ('pending', 'opted_in', 'opted_out')));
CREATE TABLE levels (id integer PRIMARY KEY, org_id integer NOT NULL, sharing consent_level);
CREATE TABLE tickets (id integer PRIMARY KEY, organization_id integer NOT NULL, customer_id integer NOT NULL REFERENCES customers, state text CHECK (state IN ('open', 'rejected', 'approved')));
CREATE TABLE ticket_people (ticket_id integer REFERENCES tickets, customer_id integer REFERENCES customers, PRIMARY KEY (ticket_id, customer_id));
CREATE TABLE customer_consents (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers, purpose text, withdrawn_at timestamptz);
