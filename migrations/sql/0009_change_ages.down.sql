CREATE OR REPLACE FUNCTION pgconsent.prune_changes() RETURNS pg_catalog.void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  DELETE FROM pgconsent.change AS c
  WHERE c.made_at OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) pg_catalog.make_interval(0, 0, 0, 0, 1))
    AND c.xid OPERATOR(pg_catalog.<) pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot());
END;

ALTER TABLE pgconsent.change DROP COLUMN seen_at;
