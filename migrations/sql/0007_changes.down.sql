DROP FUNCTION pgconsent.prune_changes(), pgconsent.changed_since(pg_catalog.pg_snapshot), pgconsent.deleted(), pgconsent.changed();
DROP TABLE pgconsent.change;
