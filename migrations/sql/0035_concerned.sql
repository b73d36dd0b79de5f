-- Which changes of the catalogs concern agents. A table that no policy lists, that nothing listed leads to and that has nothing's name may be
-- made, altered and dropped: no statement of an agent means anything else by it. Where that is not known for sure, a change counts.

-- What counts by itself: listed tables, which have policies of ours; views, foreign tables, composite types and what is in our schemas; what a function, a rule, a view or another
-- table's policy reads; and what has the name of a type that is no table's.
CREATE VIEW pgconsent.concerned_by_itself (oid) AS
  SELECT p.polrelid FROM pg_catalog.pg_policy AS p WHERE p.polname OPERATOR(pg_catalog.~) '^pgconsent_'
  UNION ALL SELECT c.oid FROM pg_catalog.pg_class AS c WHERE c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['v', 'm', 'f', 'c']::pg_catalog."char"[]) AND c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    WHERE n.nspname OPERATOR(pg_catalog.=) ANY (ARRAY['pgconsent', 'pgconsent_gate', 'pgconsent_catalog', 'pgconsent_rows'])
  UNION ALL SELECT d.refobjid FROM pg_catalog.pg_depend AS d WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
    AND d.classid OPERATOR(pg_catalog.=) ANY (ARRAY['pg_catalog.pg_rewrite'::pg_catalog.regclass, 'pg_catalog.pg_proc'::pg_catalog.regclass]::pg_catalog.oid[])
  UNION ALL SELECT d.refobjid FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_policy AS p ON p.oid OPERATOR(pg_catalog.=) d.objid AND p.polrelid OPERATOR(pg_catalog.<>) d.refobjid
    WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_policy'::pg_catalog.regclass
  UNION ALL SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_depend AS d ON d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_type'::pg_catalog.regclass
      AND d.refobjid OPERATOR(pg_catalog.=) c.reltype AND d.classid OPERATOR(pg_catalog.<>) 'pg_catalog.pg_type'::pg_catalog.regclass
    WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid AND c.reltype OPERATOR(pg_catalog.<>) 0::pg_catalog.oid
  UNION ALL SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_type AS t ON t.typname OPERATOR(pg_catalog.=) c.relname AND t.typrelid OPERATOR(pg_catalog.=) 0::pg_catalog.oid
    WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid AND c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'p', 'S']::pg_catalog."char"[]);

-- What leads from one relation to another, each both ways: inheritance, foreign keys, sequences of columns, and one name.
CREATE VIEW pgconsent.concerned_beside (a, b) AS
  SELECT i.inhrelid, i.inhparent FROM pg_catalog.pg_inherits AS i
  UNION ALL SELECT i.inhparent, i.inhrelid FROM pg_catalog.pg_inherits AS i
  UNION ALL SELECT k.conrelid, k.confrelid FROM pg_catalog.pg_constraint AS k WHERE k.contype OPERATOR(pg_catalog.=) 'f'
  UNION ALL SELECT d.refobjid, k.conrelid FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_constraint AS k ON k.oid OPERATOR(pg_catalog.=) d.objid
    AND k.confrelid OPERATOR(pg_catalog.=) d.refobjid AND k.contype OPERATOR(pg_catalog.=) 'f'
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_constraint'::pg_catalog.regclass AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
  UNION ALL SELECT d.objid, d.refobjid FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_class AS s ON s.oid OPERATOR(pg_catalog.=) d.objid AND s.relkind OPERATOR(pg_catalog.=) 'S'
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
  UNION ALL SELECT d.refobjid, d.objid FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_class AS s ON s.oid OPERATOR(pg_catalog.=) d.objid AND s.relkind OPERATOR(pg_catalog.=) 'S'
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
  UNION ALL SELECT f.adrelid, d.refobjid FROM pg_catalog.pg_attrdef AS f JOIN pg_catalog.pg_depend AS d ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass
    AND d.objid OPERATOR(pg_catalog.=) f.oid AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid OPERATOR(pg_catalog.<>) f.adrelid
  UNION ALL SELECT d.refobjid, f.adrelid FROM pg_catalog.pg_attrdef AS f JOIN pg_catalog.pg_depend AS d ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass
    AND d.objid OPERATOR(pg_catalog.=) f.oid AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid OPERATOR(pg_catalog.<>) f.adrelid
  UNION ALL SELECT c.oid, o.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_class AS o ON o.relname OPERATOR(pg_catalog.=) c.relname AND o.oid OPERATOR(pg_catalog.<>) c.oid
    WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid AND o.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
      AND c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'p', 'S', 'v', 'm', 'f', 'c']::pg_catalog."char"[]) AND o.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'p', 'S', 'v', 'm', 'f', 'c']::pg_catalog."char"[]);

-- concerned are all relations that count.
CREATE FUNCTION pgconsent.concerned() RETURNS SETOF pg_catalog.oid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  WITH RECURSIVE beside AS MATERIALIZED (SELECT e.a, e.b FROM pgconsent.concerned_beside AS e),
  near (oid) AS (SELECT r.oid FROM pgconsent.concerned_by_itself AS r UNION SELECT e.b FROM near AS n JOIN beside AS e ON e.a OPERATOR(pg_catalog.=) n.oid)
  SELECT n.oid FROM near AS n;
END;
REVOKE ALL ON FUNCTION pgconsent.concerned() FROM PUBLIC;

-- concerns tells the same of one relation, or of an index by its table. OFFSET 0 has what is beside one relation found by the catalogs' indexes; and a session keeps
-- the plan, which takes longer to make than to run.
CREATE FUNCTION pgconsent.concerns(relation pg_catalog.oid) RETURNS pg_catalog.bool
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (WITH RECURSIVE near (oid) AS (SELECT COALESCE((SELECT i.indrelid FROM pg_catalog.pg_index AS i WHERE i.indexrelid OPERATOR(pg_catalog.=) $1), $1)
      UNION SELECT e.b FROM near AS n CROSS JOIN LATERAL (SELECT e.b FROM pgconsent.concerned_beside AS e WHERE e.a OPERATOR(pg_catalog.=) n.oid OFFSET 0) AS e)
    SELECT EXISTS (SELECT FROM near AS n CROSS JOIN LATERAL (SELECT FROM pgconsent.concerned_by_itself AS r WHERE r.oid OPERATOR(pg_catalog.=) n.oid LIMIT 1) AS r));
END $$;
REVOKE ALL ON FUNCTION pgconsent.concerns(pg_catalog.oid) FROM PUBLIC;

-- within_reach tells of a schema that one of the roles of our policies may name what is in it.
CREATE FUNCTION pgconsent.within_reach(schema pg_catalog.oid) RETURNS pg_catalog.bool
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT EXISTS (SELECT FROM (SELECT DISTINCT r.oid FROM pg_catalog.pg_policy AS p CROSS JOIN LATERAL pg_catalog.unnest(p.polroles) AS r (oid)
      WHERE p.polname OPERATOR(pg_catalog.~) '^pgconsent_' AND r.oid OPERATOR(pg_catalog.<>) 0::pg_catalog.oid) AS r
    WHERE pg_catalog.has_schema_privilege(r.oid, $1, 'USAGE'));
END;
REVOKE ALL ON FUNCTION pgconsent.within_reach(pg_catalog.oid) FROM PUBLIC;

-- catalog_changed as before, but that it notes only what concerns agents. What was dropped is not in the catalogs any more: a table of ours had a policy
-- of ours, which is among what was dropped with it; and what an index or statistics stood on is locked.
CREATE OR REPLACE FUNCTION pgconsent.catalog_changed() RETURNS pg_catalog.event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF tg_tag IN ('COMMENT', 'SECURITY LABEL', 'REFRESH MATERIALIZED VIEW', 'REINDEX')
    OR pg_catalog.current_setting('pgconsent.catalog_changed', true) OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id()::pg_catalog.text THEN
    RETURN; -- or this transaction has noted one
  ELSIF tg_event OPERATOR(pg_catalog.=) 'sql_drop' THEN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger_dropped_objects() AS o WHERE NOT o.is_temporary AND NOT COALESCE(CASE
        WHEN o.object_type IN ('table', 'sequence') THEN o.schema_name OPERATOR(pg_catalog.!~) '^pgconsent'
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.relname OPERATOR(pg_catalog.=) o.object_name AND pgconsent.concerns(c.oid))
        WHEN o.object_type IN ('index', 'statistics object') THEN NOT EXISTS (SELECT FROM pg_catalog.pg_locks AS l WHERE l.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()
          AND l.mode IN ('AccessExclusiveLock', 'ShareUpdateExclusiveLock') AND pgconsent.concerns(l.relation))
        WHEN o.object_type IN ('trigger', 'policy', 'table constraint', 'table column', 'default value') THEN (o.object_type OPERATOR(pg_catalog.<>) 'policy' OR o.address_names[3] OPERATOR(pg_catalog.!~) '^pgconsent_')
          AND COALESCE(NOT pgconsent.concerns(pg_catalog.to_regclass(pg_catalog.format('%I.%I', o.address_names[1], o.address_names[2]))), true)
        WHEN o.object_type OPERATOR(pg_catalog.=) 'toast table' THEN true
        WHEN o.object_type OPERATOR(pg_catalog.=) 'type' AND NOT o.original AND NOT o.normal THEN true -- of a table, or an array
        WHEN o.object_type IN ('type', 'function') THEN NOT pgconsent.within_reach(pg_catalog.to_regnamespace(pg_catalog.quote_ident(o.schema_name)))
        ELSE false END, false)) THEN
      RETURN;
    END IF;
  ELSIF NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger_ddl_commands() AS c WHERE c.schema_name IS DISTINCT FROM 'pg_temp' AND NOT COALESCE(CASE c.classid
      WHEN 'pg_catalog.pg_class'::pg_catalog.regclass THEN NOT pgconsent.concerns(c.objid)
      WHEN 'pg_catalog.pg_trigger'::pg_catalog.regclass THEN (SELECT NOT pgconsent.concerns(g.tgrelid) FROM pg_catalog.pg_trigger AS g WHERE g.oid OPERATOR(pg_catalog.=) c.objid)
      WHEN 'pg_catalog.pg_policy'::pg_catalog.regclass THEN (SELECT NOT pgconsent.concerns(p.polrelid) FROM pg_catalog.pg_policy AS p WHERE p.oid OPERATOR(pg_catalog.=) c.objid)
      WHEN 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass THEN (SELECT NOT pgconsent.concerns(s.stxrelid) FROM pg_catalog.pg_statistic_ext AS s WHERE s.oid OPERATOR(pg_catalog.=) c.objid)
      WHEN 'pg_catalog.pg_namespace'::pg_catalog.regclass THEN NOT pgconsent.within_reach(c.objid)
      WHEN 'pg_catalog.pg_type'::pg_catalog.regclass THEN (SELECT NOT pgconsent.within_reach(t.typnamespace) AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d
        WHERE d.refclassid OPERATOR(pg_catalog.=) c.classid AND d.refobjid OPERATOR(pg_catalog.=) t.oid AND d.deptype OPERATOR(pg_catalog.<>) 'i') FROM pg_catalog.pg_type AS t WHERE t.oid OPERATOR(pg_catalog.=) c.objid)
      WHEN 'pg_catalog.pg_proc'::pg_catalog.regclass THEN (SELECT NOT pgconsent.within_reach(p.pronamespace) AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d
        WHERE d.refclassid OPERATOR(pg_catalog.=) c.classid AND d.refobjid OPERATOR(pg_catalog.=) p.oid) FROM pg_catalog.pg_proc AS p WHERE p.oid OPERATOR(pg_catalog.=) c.objid)
      ELSE false END, false)) THEN
    RETURN;
  END IF;
  INSERT INTO pgconsent.catalog_change AS c (xid) VALUES (pg_catalog.pg_current_xact_id())
  ON CONFLICT (xid) DO UPDATE SET n = c.n OPERATOR(pg_catalog.+) 1; -- a row of another cluster's, out of a dump
  INSERT INTO pgconsent.change (xid) VALUES (pg_catalog.pg_current_xact_id()) ON CONFLICT DO NOTHING;
  IF pg_catalog.current_setting('max_prepared_transactions') OPERATOR(pg_catalog.=) '0' AND pg_catalog.pg_notification_queue_usage() OPERATOR(pg_catalog.<) 0.5 THEN
    PERFORM pg_catalog.pg_notify('pgconsent_catalog', '');
  END IF;
  PERFORM pg_catalog.set_config('pgconsent.catalog_changed', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
EXCEPTION WHEN OTHERS THEN
  RAISE LOG 'pgconsent: a change of the catalogs is not noted (SQLSTATE %)', SQLSTATE;
END $$;
