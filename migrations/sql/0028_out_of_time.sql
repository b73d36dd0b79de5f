-- A statement that is planned under a seal of another time than its transaction is refused: the database's clock was moved, and its
-- proxy does not know yet. Row security would show nothing, which could not be told from a database that has nothing. Like the
-- version of the catalogs this is asked as the statement is planned, before and without any row. Whoever forges a seal here gets
-- an error, and no row for it.
CREATE OR REPLACE FUNCTION pgconsent_gate.current_catalog() RETURNS pg_catalog.bool
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  seal  pg_catalog.text := pg_catalog.current_setting('pgconsent.seal', true);
  known pg_catalog.text := pg_catalog.split_part(pg_catalog.split_part(seal, '|pgconsent.catalog=', 2), '#', 1);
BEGIN
  IF known OPERATOR(pg_catalog.<>) '' THEN
    IF known OPERATOR(pg_catalog.<>) (SELECT COALESCE(pg_catalog.sum(c.n), 0)::pg_catalog.text FROM pgconsent.catalog_change AS c) THEN
      RAISE EXCEPTION 'pgconsent: the catalogs have changed since this statement was decided' USING ERRCODE = '40001';
    ELSIF pg_catalog.abs(pg_catalog.split_part(seal, '|', 5)::pg_catalog.float8 OPERATOR(pg_catalog.-)
        pg_catalog.date_part('epoch', pg_catalog.transaction_timestamp()) OPERATOR(pg_catalog.-) 60) OPERATOR(pg_catalog.>=) 60 THEN
      RAISE EXCEPTION 'pgconsent: the session''s identity is of another time than its transaction' USING ERRCODE = '40001';
    END IF;
  END IF;
  RETURN true;
END $$;
