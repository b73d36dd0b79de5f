-- What remembers that a transaction has something to settle is set before the row that has it settled is there. With SET CONSTRAINTS
-- IMMEDIATE that row is settled at once, and what remembers it is taken away again: set afterwards, it had what the transaction changed later never settled.
CREATE OR REPLACE FUNCTION pgconsent.kept_note(name pg_catalog.text, step pg_catalog.int4, value pg_catalog.text) RETURNS pg_catalog.void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO pgconsent.kept_change (tx, name, step, value) VALUES (pg_catalog.pg_current_xact_id(), kept_note.name, kept_note.step, kept_note.value);
  IF pg_catalog.current_setting('pgconsent.kept_due', true) IS DISTINCT FROM pg_catalog.pg_current_xact_id()::pg_catalog.text THEN
    PERFORM pg_catalog.set_config('pgconsent.kept_due', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
    INSERT INTO pgconsent.kept_due (tx) VALUES (pg_catalog.pg_current_xact_id());
  END IF;
END $$;

-- Such changes are still there. What they concern counts again when it was filled in anew.
UPDATE pgconsent.kept AS k SET (ready, stale) = (false, k.stale OPERATOR(pg_catalog.+) 1) WHERE k.name OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT c.name FROM pgconsent.kept_change AS c));
DELETE FROM pgconsent.kept_change;
