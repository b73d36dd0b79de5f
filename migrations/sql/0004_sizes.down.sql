DROP FUNCTION pgconsent.distinct_values(pg_catalog.oid[]);
