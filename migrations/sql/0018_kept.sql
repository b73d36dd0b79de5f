-- Consents whose answer is kept beside the rows: until when everybody has agreed. A change of what it depends on is noted as it
-- is made, and settled when its transaction commits, by functions that the policy's plan makes.

-- One row for each consent that is kept. What is kept counts while ready. stale grows with each change that could not be
-- settled; filled_of is what it was when filling in began, and filled_to the last key that was.
CREATE TABLE pgconsent.kept (
  name       pg_catalog.text PRIMARY KEY,
  relation   pg_catalog.text NOT NULL,
  ready      pg_catalog.bool NOT NULL DEFAULT false,
  stale      pg_catalog.int8 NOT NULL DEFAULT 0,
  filled_of  pg_catalog.int8,
  filled_to  pg_catalog.text
);

-- What transactions have changed and not settled: empty but for those that run.
CREATE TABLE pgconsent.kept_change (
  tx    pg_catalog.xid8 NOT NULL,
  name  pg_catalog.text NOT NULL,
  step  pg_catalog.int4 NOT NULL,
  value pg_catalog.text NOT NULL
);
CREATE INDEX kept_change_tx ON pgconsent.kept_change (tx);
CREATE TABLE pgconsent.kept_due (tx pg_catalog.xid8 NOT NULL);
CREATE INDEX kept_due_tx ON pgconsent.kept_due (tx);

-- kept_note notes a change. A setting that ends with the (sub)transaction remembers that the transaction has something to
-- settle.
CREATE FUNCTION pgconsent.kept_note(name pg_catalog.text, step pg_catalog.int4, value pg_catalog.text) RETURNS pg_catalog.void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO pgconsent.kept_change (tx, name, step, value) VALUES (pg_catalog.pg_current_xact_id(), kept_note.name, kept_note.step, kept_note.value);
  IF pg_catalog.current_setting('pgconsent.kept_due', true) IS DISTINCT FROM pg_catalog.pg_current_xact_id()::pg_catalog.text THEN
    INSERT INTO pgconsent.kept_due (tx) VALUES (pg_catalog.pg_current_xact_id());
    PERFORM pg_catalog.set_config('pgconsent.kept_due', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
  END IF;
END $$;
REVOKE ALL ON FUNCTION pgconsent.kept_note(pg_catalog.text, pg_catalog.int4, pg_catalog.text) FROM PUBLIC;

-- kept_distrust has the subjects looked at until what is kept was filled in anew.
CREATE FUNCTION pgconsent.kept_distrust(name pg_catalog.text) RETURNS pg_catalog.void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  UPDATE pgconsent.kept AS k SET (ready, stale) = (false, k.stale OPERATOR(pg_catalog.+) 1) WHERE k.name OPERATOR(pg_catalog.=) kept_distrust.name;
END;
REVOKE ALL ON FUNCTION pgconsent.kept_distrust(pg_catalog.text) FROM PUBLIC;

-- kept_settle runs when a transaction commits. One with a snapshot of its own would not see what others have committed
-- meanwhile: what is kept then waits to be filled in.
CREATE FUNCTION pgconsent.kept_settle() RETURNS pg_catalog.trigger
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
REVOKE ALL ON FUNCTION pgconsent.kept_settle() FROM PUBLIC;
CREATE CONSTRAINT TRIGGER kept_settle AFTER INSERT ON pgconsent.kept_due DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pgconsent.kept_settle();
ALTER TABLE pgconsent.kept_due ENABLE ALWAYS TRIGGER kept_settle;

-- kept_ready tells whether what is kept counts: not before it is complete, and not in a transaction that has changes to settle.
CREATE FUNCTION pgconsent.kept_ready(name pg_catalog.text) RETURNS pg_catalog.bool
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN EXISTS (SELECT FROM pgconsent.kept AS k WHERE k.name OPERATOR(pg_catalog.=) kept_ready.name AND k.ready)
    AND NOT EXISTS (SELECT FROM pgconsent.kept_due AS d WHERE d.tx OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id_if_assigned());
END $$;
REVOKE ALL ON FUNCTION pgconsent.kept_ready(pg_catalog.text) FROM PUBLIC;
