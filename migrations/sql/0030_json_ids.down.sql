CREATE OR REPLACE FUNCTION pgconsent_gate.json_ids(list pg_catalog.text) RETURNS pg_catalog.text[]
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN pgconsent_gate.json_grants(list, '{}'::pg_catalog.text[]) IS NOT NULL THEN pgconsent_gate.jsonb_ids(list::pg_catalog.jsonb) END;
END;
