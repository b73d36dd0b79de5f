-- A transaction with a snapshot of its own waits, as it commits, for those that have settled and not committed yet, and they for it. One that
-- had settled before it, and commits after what is kept was filled in again, would bring a row whose answer is of before it.
CREATE OR REPLACE FUNCTION pgconsent.kept_settle() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  due  pg_catalog.text;
  lock pg_catalog.int8;
BEGIN
  FOR due IN SELECT DISTINCT c.name FROM pgconsent.kept_change AS c WHERE c.tx OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id() ORDER BY c.name LOOP
    lock := pg_catalog.hashtextextended('pgconsent kept ' OPERATOR(pg_catalog.||) due, 0);
    IF pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'read committed' THEN
      -- In this order: who fills in has the row that is changed here, before it settles.
      PERFORM pgconsent.kept_distrust(due);
      PERFORM pg_catalog.pg_advisory_xact_lock(lock);
    ELSE
      PERFORM pg_catalog.pg_advisory_xact_lock_shared(lock);
      EXECUTE pg_catalog.format('SELECT pgconsent.%I()', 'kept_settle_' OPERATOR(pg_catalog.||) due);
    END IF;
  END LOOP;
  DELETE FROM pgconsent.kept_change AS c WHERE c.tx OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id();
  DELETE FROM pgconsent.kept_due AS d WHERE d.tx OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id();
  PERFORM pg_catalog.set_config('pgconsent.kept_due', '', true);
  RETURN NULL;
END $$;
