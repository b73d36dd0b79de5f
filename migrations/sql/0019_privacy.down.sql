DROP FUNCTION pgconsent.privacy_note(pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.text[], pg_catalog.text);
DROP TABLE pgconsent.privacy_event;
