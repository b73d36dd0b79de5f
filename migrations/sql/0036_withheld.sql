-- What agents may do with a table is withheld from the moment on that its row security is off, in the transaction that switches it off: row policies hold nothing then, and
-- a proxy looks at the database only afterwards. Row security that is on again gives it back.
CREATE TABLE pgconsent.withheld (
  relation  pg_catalog.oid  NOT NULL,
  grantee   pg_catalog.name NOT NULL,
  privilege pg_catalog.text NOT NULL,
  attname   pg_catalog.name NOT NULL, -- '': the privilege is on the table
  PRIMARY KEY (relation, grantee, privilege, attname)
);
REVOKE ALL ON TABLE pgconsent.withheld FROM PUBLIC;

-- The rights on a table of the roles that its row policies of ours bind.
CREATE FUNCTION pgconsent.rights_of_bound(relation pg_catalog.oid)
RETURNS TABLE (grantee pg_catalog.name, privilege pg_catalog.text, attname pg_catalog.name)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH bound AS (SELECT DISTINCT r.oid, r.rolname FROM pg_catalog.pg_policy AS p JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) ANY (p.polroles)
    WHERE p.polrelid OPERATOR(pg_catalog.=) $1 AND p.polname OPERATOR(pg_catalog.=) 'pgconsent_select')
  SELECT b.rolname, x.privilege_type, ''::pg_catalog.name FROM bound AS b, pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS x
  WHERE c.oid OPERATOR(pg_catalog.=) $1 AND x.grantee OPERATOR(pg_catalog.=) b.oid
  UNION SELECT b.rolname, x.privilege_type, a.attname FROM bound AS b, pg_catalog.pg_attribute AS a, pg_catalog.aclexplode(a.attacl) AS x
  WHERE a.attrelid OPERATOR(pg_catalog.=) $1 AND NOT a.attisdropped AND x.grantee OPERATOR(pg_catalog.=) b.oid
$$;
REVOKE ALL ON FUNCTION pgconsent.rights_of_bound(pg_catalog.oid) FROM PUBLIC;

CREATE FUNCTION pgconsent.withhold() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t pg_catalog.record;
  g pg_catalog.record;
BEGIN
  FOR t IN SELECT DISTINCT c.oid, c.relrowsecurity, pg_catalog.format('%I.%I', n.nspname, c.relname) AS name
    FROM pg_catalog.pg_event_trigger_ddl_commands() AS d JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) d.objid
    JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND c.relkind IN ('r', 'p') LOOP
    IF NOT t.relrowsecurity THEN
      INSERT INTO pgconsent.withheld (relation, grantee, privilege, attname)
      SELECT t.oid, b.grantee, b.privilege, b.attname FROM pgconsent.rights_of_bound(t.oid) AS b ON CONFLICT DO NOTHING;
      FOR g IN SELECT DISTINCT b.grantee FROM pgconsent.rights_of_bound(t.oid) AS b LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON TABLE %s FROM %I', t.name, g.grantee);
      END LOOP;
    ELSE
      FOR g IN DELETE FROM pgconsent.withheld AS w WHERE w.relation OPERATOR(pg_catalog.=) t.oid RETURNING w.grantee, w.privilege, w.attname LOOP
        -- What stands in the table becomes part of a statement: it is one word that this function has written.
        IF g.privilege OPERATOR(pg_catalog.!~) '^[A-Z]+$' THEN
          CONTINUE;
        END IF;
        IF g.attname OPERATOR(pg_catalog.=) '' THEN
          EXECUTE pg_catalog.format('GRANT %s ON TABLE %s TO %I', g.privilege, t.name, g.grantee);
        ELSIF EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid OPERATOR(pg_catalog.=) t.oid AND a.attname OPERATOR(pg_catalog.=) g.attname AND NOT a.attisdropped) THEN
          EXECUTE pg_catalog.format('GRANT %s (%I) ON TABLE %s TO %I', g.privilege, g.attname, t.name, g.grantee);
        END IF;
      END LOOP;
    END IF;
  END LOOP;
EXCEPTION WHEN OTHERS THEN
  RAISE LOG 'pgconsent: what agents may do with a table is not withheld (SQLSTATE %)', SQLSTATE;
END $$;
REVOKE ALL ON FUNCTION pgconsent.withhold() FROM PUBLIC;
