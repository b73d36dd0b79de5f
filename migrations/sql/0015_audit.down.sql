DROP TRIGGER zz_pgconsent_epoch ON pgconsent.consent_record;
DROP TRIGGER zz_pgconsent_audit ON pgconsent.subject;
DROP FUNCTION pgconsent.audit_ref(pg_catalog.text), pgconsent.audit_forget(pg_catalog.text), pgconsent.audit_forgets(), pgconsent.audit_epoch();
DROP TABLE pgconsent.audit_subject;
