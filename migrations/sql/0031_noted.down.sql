-- As it was.
CREATE OR REPLACE FUNCTION pgconsent.kept_note(name pg_catalog.text, step pg_catalog.int4, value pg_catalog.text) RETURNS pg_catalog.void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO pgconsent.kept_change (tx, name, step, value) VALUES (pg_catalog.pg_current_xact_id(), kept_note.name, kept_note.step, kept_note.value);
  IF pg_catalog.current_setting('pgconsent.kept_due', true) IS DISTINCT FROM pg_catalog.pg_current_xact_id()::pg_catalog.text THEN
    INSERT INTO pgconsent.kept_due (tx) VALUES (pg_catalog.pg_current_xact_id());
    PERFORM pg_catalog.set_config('pgconsent.kept_due', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
  END IF;
END $$;
