-- CASCADE: the event trigger, which may be a superuser's.
DROP FUNCTION pgconsent.withhold() CASCADE;
DROP FUNCTION pgconsent.rights_of_bound(pg_catalog.oid);
DROP TABLE pgconsent.withheld;
