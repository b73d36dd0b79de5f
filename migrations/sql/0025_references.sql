-- A reference of the audit's is somebody's until they are forgotten: it is made, it goes, and it is not given to somebody else.
CREATE FUNCTION pgconsent.audit_subject_refuse() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'references of the audit are made and forgotten, and never changed'
    USING ERRCODE = '42501', HINT = 'pgconsent audit forget --subject ID forgets a person.';
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_subject_refuse() FROM PUBLIC;
CREATE TRIGGER pgconsent_refuse BEFORE UPDATE ON pgconsent.audit_subject FOR EACH ROW EXECUTE FUNCTION pgconsent.audit_subject_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.audit_subject FOR EACH STATEMENT EXECUTE FUNCTION pgconsent.audit_subject_refuse();
ALTER TABLE pgconsent.audit_subject ENABLE ALWAYS TRIGGER pgconsent_refuse, ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;
