DROP TRIGGER pgconsent_keep ON pgconsent.consent_current;
DROP FUNCTION pgconsent.consent_keep();
ALTER TABLE pgconsent.consent_current DROP COLUMN kept;
