-- What the audit needs in the database: references for what identifies a person, which can be forgotten, the news that consent
-- has changed, and a table of records for those who want them here.

-- Records of the audit say a reference in place of what identifies somebody. This is the only place where the two are together.
CREATE TABLE pgconsent.audit_subject (
  ref     pg_catalog.uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
  subject pg_catalog.text NOT NULL UNIQUE
);

-- audit_ref returns the reference of a name, and makes one where there is none.
CREATE FUNCTION pgconsent.audit_ref(name pg_catalog.text) RETURNS pg_catalog.uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found_ref pg_catalog.uuid;
BEGIN
  LOOP
    SELECT s.ref INTO found_ref FROM pgconsent.audit_subject AS s WHERE s.subject OPERATOR(pg_catalog.=) name;
    IF found_ref IS NULL THEN
      INSERT INTO pgconsent.audit_subject AS s (subject) VALUES (name) ON CONFLICT (subject) DO NOTHING RETURNING s.ref INTO found_ref;
    END IF;
    IF found_ref IS NOT NULL OR name IS NULL THEN
      RETURN found_ref;
    END IF;
  END LOOP;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_ref(pg_catalog.text) FROM PUBLIC;

-- audit_forget breaks the link for ever: what the records say of somebody can no longer be told to be of them.
CREATE FUNCTION pgconsent.audit_forget(name pg_catalog.text) RETURNS pg_catalog.bool
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM pgconsent.audit_subject AS s WHERE s.subject OPERATOR(pg_catalog.=) name;
  RETURN FOUND;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_forget(pg_catalog.text) FROM PUBLIC;

-- Who is erased from the registry is forgotten by the audit in the same transaction.
CREATE FUNCTION pgconsent.audit_forgets() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM pgconsent.audit_subject AS s WHERE s.subject OPERATOR(pg_catalog.=) OLD.subject;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_forgets() FROM PUBLIC;
CREATE TRIGGER zz_pgconsent_audit AFTER UPDATE ON pgconsent.subject FOR EACH ROW
  WHEN (OLD.subject IS NOT NULL AND NEW.subject IS NULL) EXECUTE FUNCTION pgconsent.audit_forgets();
ALTER TABLE pgconsent.subject ENABLE ALWAYS TRIGGER zz_pgconsent_audit;

-- Proxies are told of each change of consent, so that their records name the epoch that statements see.
CREATE FUNCTION pgconsent.audit_epoch() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_catalog.pg_notify('pgconsent_consent', '');
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_epoch() FROM PUBLIC;
CREATE TRIGGER zz_pgconsent_epoch AFTER INSERT ON pgconsent.consent_record FOR EACH STATEMENT EXECUTE FUNCTION pgconsent.audit_epoch();
ALTER TABLE pgconsent.consent_record ENABLE ALWAYS TRIGGER zz_pgconsent_epoch;
