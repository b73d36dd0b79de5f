-- CASCADE: the event triggers, which may be a superuser's.
DROP FUNCTION pgconsent.catalog_changed() CASCADE;
DROP FUNCTION pgconsent_gate.current_catalog(), pgconsent.add_catalog_changes(), pgconsent.catalog_version();
DROP TABLE pgconsent.catalog_change;
