-- As it was.
CREATE OR REPLACE FUNCTION pgconsent_gate.current_catalog() RETURNS pg_catalog.bool
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  known pg_catalog.text := pg_catalog.split_part(pg_catalog.split_part(pg_catalog.current_setting('pgconsent.seal', true), '|pgconsent.catalog=', 2), '#', 1);
BEGIN
  IF known OPERATOR(pg_catalog.<>) '' AND known OPERATOR(pg_catalog.<>) (SELECT COALESCE(pg_catalog.sum(c.n), 0)::pg_catalog.text FROM pgconsent.catalog_change AS c) THEN
    RAISE EXCEPTION 'pgconsent: the catalogs have changed since this statement was decided' USING ERRCODE = '40001';
  END IF;
  RETURN true;
END $$;
