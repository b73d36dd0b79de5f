-- As it was.
CREATE OR REPLACE FUNCTION pgconsent.kept_settle() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  due pg_catalog.text;
BEGIN
  FOR due IN SELECT DISTINCT c.name FROM pgconsent.kept_change AS c WHERE c.tx OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id() ORDER BY c.name LOOP
    IF pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'read committed' THEN
      PERFORM pgconsent.kept_distrust(due);
    ELSE
      EXECUTE pg_catalog.format('SELECT pgconsent.%I()', 'kept_settle_' OPERATOR(pg_catalog.||) due);
    END IF;
  END LOOP;
  DELETE FROM pgconsent.kept_change AS c WHERE c.tx OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id();
  DELETE FROM pgconsent.kept_due AS d WHERE d.tx OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id();
  PERFORM pg_catalog.set_config('pgconsent.kept_due', '', true);
  RETURN NULL;
END $$;
