DROP TRIGGER pgconsent_sweep ON pgconsent.subject;
DROP TRIGGER pgconsent_outbox ON pgconsent.consent_record;
DROP FUNCTION pgconsent.sweep_erase();
DROP FUNCTION pgconsent.outbox_fill();
DROP TABLE pgconsent.outbox;
DROP TABLE pgconsent.sweep_note;
DROP TABLE pgconsent.sweep_erased;
DROP TABLE pgconsent.sweep_state;
