DROP FUNCTION pgconsent_gate.unmoved(pg_catalog.xid, pg_catalog.bool);
