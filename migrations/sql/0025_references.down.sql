DROP TRIGGER pgconsent_refuse ON pgconsent.audit_subject;
DROP TRIGGER pgconsent_refuse_truncate ON pgconsent.audit_subject;
DROP FUNCTION pgconsent.audit_subject_refuse();
