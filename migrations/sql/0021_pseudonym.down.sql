DROP FUNCTION pgconsent.pseudonym(pg_catalog.text, pg_catalog.text);
