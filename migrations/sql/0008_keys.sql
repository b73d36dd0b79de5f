-- prune_keys drops the keys that a newer one has replaced two seal lifetimes ago: no seal is left that they verify.
CREATE FUNCTION pgconsent.prune_keys() RETURNS pg_catalog.void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  DELETE FROM pgconsent.keys AS k WHERE EXISTS (SELECT 1 FROM pgconsent.keys AS n WHERE n.kid OPERATOR(pg_catalog.>) k.kid
    AND n.made_at OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) pg_catalog.make_interval(0, 0, 0, 0, 0, 2)));
END;
REVOKE ALL ON FUNCTION pgconsent.prune_keys() FROM PUBLIC;
