DROP FUNCTION pgconsent.kept_ready(pg_catalog.text);
DROP TABLE pgconsent.kept_due, pgconsent.kept_change;
DROP FUNCTION pgconsent.kept_settle();
DROP FUNCTION pgconsent.kept_note(pg_catalog.text, pg_catalog.int4, pg_catalog.text);
DROP FUNCTION pgconsent.kept_distrust(pg_catalog.text);
DROP TABLE pgconsent.kept;
