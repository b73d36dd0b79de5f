DROP FUNCTION pgconsent.mask(pg_catalog.text);
DROP TABLE pgconsent.mask_key;
DROP SCHEMA pgconsent_rows;
