-- What a snapshot may miss. A cursor, a portal or a REPEATABLE READ transaction shows what its snapshot shows; the proxy
-- asks here whether anything that decides who sees a row was committed since, and ends it if so.

-- One row for each transaction that changed such a thing. Rows older than an hour are pruned: no snapshot lives as long.
CREATE TABLE pgconsent.change (
  xid     pg_catalog.xid8 PRIMARY KEY,
  made_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);

-- changed is the trigger. It writes once for each transaction: a setting that ends with the (sub)transaction remembers it,
-- so that a statement that changes a million rows pays little.
CREATE FUNCTION pgconsent.changed() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_catalog.current_setting('pgconsent.changed', true) IS DISTINCT FROM pg_catalog.pg_current_xact_id()::pg_catalog.text THEN
    INSERT INTO pgconsent.change (xid) VALUES (pg_catalog.pg_current_xact_id()) ON CONFLICT DO NOTHING;
    PERFORM pg_catalog.set_config('pgconsent.changed', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.changed() FROM PUBLIC;

-- deleted is the same for DELETE, which may find no row.
CREATE FUNCTION pgconsent.deleted() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM pgconsent_gone) THEN
    INSERT INTO pgconsent.change (xid) VALUES (pg_catalog.pg_current_xact_id()) ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.deleted() FROM PUBLIC;

-- changed_since tells whether a change is committed that the snapshot does not show. What is below the snapshot's xmin has
-- ended before it, so that the index finds the few rows to be asked about.
CREATE FUNCTION pgconsent.changed_since(taken pg_catalog.pg_snapshot) RETURNS pg_catalog.bool
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT EXISTS (SELECT 1 FROM pgconsent.change AS c
    WHERE c.xid OPERATOR(pg_catalog.>=) pg_catalog.pg_snapshot_xmin(taken) AND NOT pg_catalog.pg_visible_in_snapshot(c.xid, taken));
END;
REVOKE ALL ON FUNCTION pgconsent.changed_since(pg_catalog.pg_snapshot) FROM PUBLIC;

-- prune_changes drops what no snapshot asks about any more.
CREATE FUNCTION pgconsent.prune_changes() RETURNS pg_catalog.void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  DELETE FROM pgconsent.change AS c
  WHERE c.made_at OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) pg_catalog.make_interval(0, 0, 0, 0, 1))
    AND c.xid OPERATOR(pg_catalog.<) pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot());
END;
REVOKE ALL ON FUNCTION pgconsent.prune_changes() FROM PUBLIC;
