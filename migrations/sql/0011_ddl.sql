-- Which catalog a statement was decided under. An event trigger, made by migrate where it may make one, notes DDL in the
-- transaction that did it; the seal of a session says which version its proxy has looked at; and where the two differ the
-- planner refuses the statement.

-- One row for each transaction that changed the catalogs. Rows are added up now and then, so the sum is what counts: it
-- grows with each such transaction that commits, in whatever order, and nobody waits for a row of another.
CREATE TABLE pgconsent.catalog_change (
  xid pg_catalog.xid8 PRIMARY KEY,
  n   pg_catalog.int8 NOT NULL DEFAULT 1
);

CREATE FUNCTION pgconsent.catalog_version() RETURNS pg_catalog.int8
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT COALESCE(pg_catalog.sum(c.n), 0)::pg_catalog.int8 FROM pgconsent.catalog_change AS c;
END;
REVOKE ALL ON FUNCTION pgconsent.catalog_version() FROM PUBLIC;

-- add_catalog_changes makes one row of them. Transactions below the oldest one that runs have ended.
CREATE FUNCTION pgconsent.add_catalog_changes() RETURNS pg_catalog.void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  WITH gone AS (DELETE FROM pgconsent.catalog_change AS c WHERE c.xid OPERATOR(pg_catalog.<>) '0'::pg_catalog.xid8 RETURNING c.n)
  INSERT INTO pgconsent.catalog_change AS c (xid, n)
  SELECT '0'::pg_catalog.xid8, pg_catalog.sum(g.n)::pg_catalog.int8 FROM gone AS g HAVING pg_catalog.count(*) OPERATOR(pg_catalog.>) 0
  ON CONFLICT (xid) DO UPDATE SET n = c.n OPERATOR(pg_catalog.+) EXCLUDED.n;
END;
REVOKE ALL ON FUNCTION pgconsent.add_catalog_changes() FROM PUBLIC;

-- catalog_changed is the event trigger. It must never be what makes somebody's DDL fail: an error in here is logged and the
-- change is noticed by polling; a transaction that may be prepared is not told of, since PREPARE TRANSACTION refuses one
-- that has notified, and neither is any while others have filled the queue. It waits for nobody's lock. Temporary objects,
-- comments and what is merely computed again do not count.
CREATE FUNCTION pgconsent.catalog_changed() RETURNS pg_catalog.event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF tg_tag IN ('COMMENT', 'SECURITY LABEL', 'REFRESH MATERIALIZED VIEW', 'REINDEX') THEN
    RETURN;
  ELSIF tg_event OPERATOR(pg_catalog.=) 'sql_drop' THEN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger_dropped_objects() AS o WHERE NOT o.is_temporary) THEN
      RETURN;
    END IF;
  ELSIF NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger_ddl_commands() AS c WHERE c.schema_name IS DISTINCT FROM 'pg_temp') THEN
    RETURN;
  END IF;
  IF pg_catalog.current_setting('pgconsent.catalog_changed', true) IS DISTINCT FROM pg_catalog.pg_current_xact_id()::pg_catalog.text THEN
    INSERT INTO pgconsent.catalog_change AS c (xid) VALUES (pg_catalog.pg_current_xact_id())
    ON CONFLICT (xid) DO UPDATE SET n = c.n OPERATOR(pg_catalog.+) 1; -- a row of another cluster's, out of a dump
    INSERT INTO pgconsent.change (xid) VALUES (pg_catalog.pg_current_xact_id()) ON CONFLICT DO NOTHING;
    IF pg_catalog.current_setting('max_prepared_transactions') OPERATOR(pg_catalog.=) '0' AND pg_catalog.pg_notification_queue_usage() OPERATOR(pg_catalog.<) 0.5 THEN
      PERFORM pg_catalog.pg_notify('pgconsent_catalog', '');
    END IF;
    PERFORM pg_catalog.set_config('pgconsent.catalog_changed', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
  END IF;
EXCEPTION WHEN OTHERS THEN
  RAISE LOG 'pgconsent: a change of the catalogs is not noted (SQLSTATE %)', SQLSTATE;
END $$;
REVOKE ALL ON FUNCTION pgconsent.catalog_changed() FROM PUBLIC;

-- current_catalog stands in a policy of each table by itself. It is declared IMMUTABLE, which it is not, so that the planner
-- evaluates it: whether it raises depends on no row, and on no row being there. A plan that is kept has its meaning from when
-- it was made, and is made anew where what it reads is altered. The seal is not verified here: who could change it would
-- gain a plan, and lose every row. A session that says no version is not asked for one.
CREATE FUNCTION pgconsent_gate.current_catalog() RETURNS pg_catalog.bool
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  known pg_catalog.text := pg_catalog.substring(pg_catalog.current_setting('pgconsent.seal', true), '[|]pgconsent[.]catalog=([0-9]+)');
BEGIN
  IF known OPERATOR(pg_catalog.<>) (SELECT COALESCE(pg_catalog.sum(c.n), 0)::pg_catalog.text FROM pgconsent.catalog_change AS c) THEN
    RAISE EXCEPTION 'pgconsent: the catalogs have changed since this statement was decided' USING ERRCODE = '40001';
  END IF;
  RETURN true;
END $$;
REVOKE ALL ON FUNCTION pgconsent_gate.current_catalog() FROM PUBLIC;
