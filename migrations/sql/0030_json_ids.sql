-- The cast stands on what the pattern has let through: PostgreSQL works out the cast of a constant while it plans, in a branch of CASE
-- that is never taken too, and a plan for one execution has constants for parameters.
CREATE OR REPLACE FUNCTION pgconsent_gate.json_ids(list pg_catalog.text) RETURNS pg_catalog.text[]
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT pgconsent_gate.jsonb_ids((CASE WHEN pgconsent_gate.json_grants(list, '{}'::pg_catalog.text[]) IS NOT NULL THEN list END)::pg_catalog.jsonb);
END;
