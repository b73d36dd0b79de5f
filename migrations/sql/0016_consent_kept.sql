-- What a partnership listed when its countdown to anonymity began: while rows decay, nothing shows that it did not list.
ALTER TABLE pgconsent.consent_current ADD COLUMN kept pg_catalog.text[];

CREATE FUNCTION pgconsent.consent_keep() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.kept := CASE
    WHEN NEW.decay_from IS NULL THEN NULL
    WHEN OLD.decay_from IS NOT NULL THEN OLD.kept
    WHEN OLD.state OPERATOR(pg_catalog.=) 'given' THEN OLD.categories
  END;
  RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION pgconsent.consent_keep() FROM PUBLIC;

CREATE TRIGGER pgconsent_keep BEFORE UPDATE ON pgconsent.consent_current FOR EACH ROW EXECUTE FUNCTION pgconsent.consent_keep();
ALTER TABLE pgconsent.consent_current ENABLE ALWAYS TRIGGER pgconsent_keep;
