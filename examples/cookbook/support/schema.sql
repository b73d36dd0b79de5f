CREATE TABLE organizations (id bigint PRIMARY KEY, name text NOT NULL, plan text NOT NULL);

CREATE TYPE ai_consent AS ENUM ('unasked', 'granted', 'refused', 'withdrawn');
CREATE TABLE customers (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org_id bigint NOT NULL REFERENCES organizations,
  name text NOT NULL,
  email text NOT NULL,
  phone text,
  ai ai_consent NOT NULL DEFAULT 'unasked'
);
CREATE INDEX ON customers (org_id);

CREATE TABLE tickets (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org_id bigint NOT NULL REFERENCES organizations,
  requester_id bigint NOT NULL REFERENCES customers,
  subject text NOT NULL,
  status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'pending', 'solved', 'closed')),
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON tickets (org_id, created_at);
CREATE INDEX ON tickets (requester_id);

-- Everybody else who takes part: in copy, forwarded to, mentioned.
CREATE TABLE ticket_people (ticket_id bigint NOT NULL REFERENCES tickets, customer_id bigint NOT NULL REFERENCES customers, PRIMARY KEY (ticket_id, customer_id));

CREATE TABLE comments (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  ticket_id bigint NOT NULL REFERENCES tickets,
  author text NOT NULL,
  internal boolean NOT NULL DEFAULT false,
  body text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON comments (ticket_id);

CREATE TABLE articles (id bigint PRIMARY KEY, org_id bigint, title text NOT NULL, body text NOT NULL, published boolean NOT NULL);
