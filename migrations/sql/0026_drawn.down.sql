DELETE FROM pgconsent.privacy_event WHERE did OPERATOR(pg_catalog.=) 'draw';
ALTER TABLE pgconsent.privacy_event DROP CONSTRAINT privacy_event_did_check;
ALTER TABLE pgconsent.privacy_event ADD CONSTRAINT privacy_event_did_check
  CHECK (did OPERATOR(pg_catalog.=) ANY ('{grant,revoke,consent,withdraw,join,leave}'::pg_catalog.text[]));
