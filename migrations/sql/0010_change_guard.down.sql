CREATE OR REPLACE FUNCTION pgconsent.changed_since(taken pg_catalog.pg_snapshot) RETURNS pg_catalog.bool
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT EXISTS (SELECT 1 FROM pgconsent.change AS c
    WHERE c.xid OPERATOR(pg_catalog.>=) pg_catalog.pg_snapshot_xmin(taken) AND NOT pg_catalog.pg_visible_in_snapshot(c.xid, taken));
END;
