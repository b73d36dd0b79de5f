DROP TRIGGER zz_pgconsent_epoch ON pgconsent.consent_record;
DROP TRIGGER zz_pgconsent_audit ON pgconsent.subject;
DROP FUNCTION pgconsent.audit_ref(pg_catalog.text), pgconsent.audit_forget(pg_catalog.text), pgconsent.audit_forgets(), pgconsent.audit_epoch();
DROP FUNCTION pgconsent.audit_append(pg_catalog.text, pg_catalog.int8, pg_catalog.timestamptz[], pg_catalog.text[]), pgconsent.audit_retire(pg_catalog.text, pg_catalog.int8);
DROP TABLE pgconsent.audit_record, pgconsent.audit_retired, pgconsent.audit_subject;
DROP FUNCTION pgconsent.audit_refuse();
