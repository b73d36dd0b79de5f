CREATE OR REPLACE FUNCTION pgconsent.catalog_changed() RETURNS pg_catalog.event_trigger
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
DROP FUNCTION pgconsent.concerns(pg_catalog.oid), pgconsent.concerned(), pgconsent.within_reach(pg_catalog.oid);
DROP VIEW pgconsent.concerned_beside, pgconsent.concerned_by_itself;
