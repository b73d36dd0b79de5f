-- What stands beside the consent registry is held to it: messages cannot be taken away before their time, notes of the sweeper say
-- which sweep made them, and what tells that a snapshot is too old tells so as well when it was emptied. Bodies are texts, so that
-- "audit verify" can compare them letter by letter.

-- The code of a sweep for a subject, which the proxy makes with a key that the database does not have.
ALTER TABLE pgconsent.sweep_note ADD COLUMN code pg_catalog.text DEFAULT pg_catalog.current_setting('pgconsent.sweep', true);

-- A message goes 720 hours after it was sent, with its subject, or if no record asked for it.
CREATE FUNCTION pgconsent.outbox_refuse() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN
    IF OLD.sent_at IS NOT NULL AND GREATEST(OLD.sent_at, OLD.recorded_at) OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) '720:00:00'::pg_catalog.interval)
       OR NOT EXISTS (SELECT FROM pgconsent.subject AS s WHERE s.subject OPERATOR(pg_catalog.=) OLD.subject)
       OR NOT EXISTS (SELECT FROM pgconsent.consent_record AS r WHERE r.number OPERATOR(pg_catalog.=) OLD.number) THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION 'messages to users are not taken away before 30 days after they were sent'
    USING ERRCODE = '42501', HINT = 'Whoever reads them here sets sent_at of what was told: the row goes by itself, later.';
END $$;
REVOKE ALL ON FUNCTION pgconsent.outbox_refuse() FROM PUBLIC;
CREATE TRIGGER pgconsent_refuse BEFORE DELETE ON pgconsent.outbox FOR EACH ROW EXECUTE FUNCTION pgconsent.outbox_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.outbox FOR EACH STATEMENT EXECUTE FUNCTION pgconsent.outbox_refuse();
ALTER TABLE pgconsent.outbox ENABLE ALWAYS TRIGGER pgconsent_refuse, ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;

-- A row that is of no transaction, and that nothing prunes: where it is not there, changes were taken away.
INSERT INTO pgconsent.change (xid, made_at, seen_at) VALUES ('0', 'infinity', 'infinity') ON CONFLICT (xid) DO UPDATE SET seen_at = 'infinity';

CREATE OR REPLACE FUNCTION pgconsent.prune_changes() RETURNS pg_catalog.void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE pgconsent.change SET seen_at = pg_catalog.clock_timestamp() WHERE seen_at IS NULL;
  -- What says that it was done by a transaction that has yet to begin is of another cluster, out of a dump.
  DELETE FROM pgconsent.change AS c WHERE c.seen_at OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) '01:00:00'::pg_catalog.interval)
    OR c.xid OPERATOR(pg_catalog.>=) pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()) AND c.xid IS DISTINCT FROM pg_catalog.pg_current_xact_id_if_assigned();
END $$;

CREATE OR REPLACE FUNCTION pgconsent.changed_since(taken pg_catalog.pg_snapshot) RETURNS pg_catalog.bool
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN EXISTS (SELECT 1 FROM pgconsent.change AS c
    WHERE c.xid OPERATOR(pg_catalog.>=) pg_catalog.pg_snapshot_xmin(taken) AND NOT pg_catalog.pg_visible_in_snapshot(c.xid, taken))
  OR EXISTS (SELECT 1 FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_trigger AS t ON t.oid OPERATOR(pg_catalog.=) d.objid
    WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
      AND d.refobjid OPERATOR(pg_catalog.=) 'pgconsent.changed()'::pg_catalog.regprocedure
      AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_trigger'::pg_catalog.regclass
      AND t.tgenabled OPERATOR(pg_catalog.<>) 'A'::pg_catalog."char")
  OR NOT EXISTS (SELECT 1 FROM pgconsent.change AS c WHERE c.xid OPERATOR(pg_catalog.=) '0'::pg_catalog.xid8);
END $$;
