DROP FUNCTION pgconsent_gate.json_grants(pg_catalog.text, pg_catalog.text[]);
