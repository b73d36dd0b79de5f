DROP FUNCTION pgconsent_gate.few(pg_catalog.text);
