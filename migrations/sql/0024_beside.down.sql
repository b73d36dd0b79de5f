ALTER TABLE pgconsent.sweep_note DROP COLUMN code;
DROP TRIGGER pgconsent_refuse ON pgconsent.outbox;
DROP TRIGGER pgconsent_refuse_truncate ON pgconsent.outbox;
DROP FUNCTION pgconsent.outbox_refuse();
DELETE FROM pgconsent.change WHERE xid OPERATOR(pg_catalog.=) '0'::pg_catalog.xid8;

CREATE OR REPLACE FUNCTION pgconsent.prune_changes() RETURNS pg_catalog.void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  UPDATE pgconsent.change SET seen_at = pg_catalog.clock_timestamp() WHERE seen_at IS NULL;
  DELETE FROM pgconsent.change AS c
  WHERE c.seen_at OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) pg_catalog.make_interval(0, 0, 0, 0, 1));
END;

CREATE OR REPLACE FUNCTION pgconsent.changed_since(taken pg_catalog.pg_snapshot) RETURNS pg_catalog.bool
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT EXISTS (SELECT 1 FROM pgconsent.change AS c
    WHERE c.xid OPERATOR(pg_catalog.>=) pg_catalog.pg_snapshot_xmin(taken) AND NOT pg_catalog.pg_visible_in_snapshot(c.xid, taken))
  OR EXISTS (SELECT 1 FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_trigger AS t ON t.oid OPERATOR(pg_catalog.=) d.objid
    WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
      AND d.refobjid OPERATOR(pg_catalog.=) 'pgconsent.changed()'::pg_catalog.regprocedure
      AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_trigger'::pg_catalog.regclass
      AND t.tgenabled OPERATOR(pg_catalog.<>) 'A'::pg_catalog."char");
END;
