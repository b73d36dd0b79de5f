-- How many values columns have, for the proxy's hints: as pg_stats has it, whose rows the tables' owner sees. It counts
-- hidden rows, so that only the control role may ask.
CREATE FUNCTION pgconsent.distinct_values(tables pg_catalog.oid[],
  OUT relation pg_catalog.oid, OUT attribute pg_catalog.text, OUT number pg_catalog.float8) RETURNS SETOF pg_catalog.record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT c.oid, s.attname::pg_catalog.text, s.n_distinct::pg_catalog.float8
  FROM pg_catalog.pg_stats AS s
  JOIN pg_catalog.pg_namespace AS n ON n.nspname OPERATOR(pg_catalog.=) s.schemaname
  JOIN pg_catalog.pg_class AS c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid AND c.relname OPERATOR(pg_catalog.=) s.tablename
  WHERE c.oid OPERATOR(pg_catalog.=) ANY (tables) AND s.inherited OPERATOR(pg_catalog.=) (c.relkind OPERATOR(pg_catalog.=) 'p');
END;
REVOKE ALL ON FUNCTION pgconsent.distinct_values(pg_catalog.oid[]) FROM PUBLIC;
