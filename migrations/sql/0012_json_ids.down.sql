DROP FUNCTION pgconsent_gate.json_ids(pg_catalog.text);
DROP FUNCTION pgconsent_gate.jsonb_ids(pg_catalog.jsonb);
