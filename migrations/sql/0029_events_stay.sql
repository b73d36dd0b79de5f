-- What became of grants, consents and contexts is only added to: by no role is it changed or taken away.
CREATE FUNCTION pgconsent.privacy_event_refuse() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'what became of grants and consents is noted, and never changed'
    USING ERRCODE = '42501', HINT = 'Persons stand there by references: pgconsent audit forget --subject ID takes those away.';
END $$;
REVOKE ALL ON FUNCTION pgconsent.privacy_event_refuse() FROM PUBLIC;
CREATE TRIGGER pgconsent_refuse BEFORE UPDATE OR DELETE ON pgconsent.privacy_event FOR EACH ROW EXECUTE FUNCTION pgconsent.privacy_event_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.privacy_event FOR EACH STATEMENT EXECUTE FUNCTION pgconsent.privacy_event_refuse();
ALTER TABLE pgconsent.privacy_event ENABLE ALWAYS TRIGGER pgconsent_refuse, ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;
