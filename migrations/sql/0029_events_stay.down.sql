DROP TRIGGER pgconsent_refuse ON pgconsent.privacy_event;
DROP TRIGGER pgconsent_refuse_truncate ON pgconsent.privacy_event;
DROP FUNCTION pgconsent.privacy_event_refuse();
