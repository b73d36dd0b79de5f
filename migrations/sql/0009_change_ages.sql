-- A change counts as old from when it was first seen committed: its transaction may have lasted long after it was made, or
-- been prepared, and what saw a snapshot from before the commit has still to be told.
ALTER TABLE pgconsent.change ADD COLUMN seen_at pg_catalog.timestamptz;

CREATE OR REPLACE FUNCTION pgconsent.prune_changes() RETURNS pg_catalog.void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  UPDATE pgconsent.change SET seen_at = pg_catalog.clock_timestamp() WHERE seen_at IS NULL;
  DELETE FROM pgconsent.change AS c
  WHERE c.seen_at OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) pg_catalog.make_interval(0, 0, 0, 0, 1));
END;
