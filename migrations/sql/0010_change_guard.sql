-- A trigger that does not fire notes nothing, so nobody can say that nothing has changed. ALTER TABLE ... DISABLE TRIGGER ALL is
-- common around bulk loads, and ENABLE TRIGGER ALL leaves ours without ALWAYS: migrate puts them back.
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
