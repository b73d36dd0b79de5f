-- Who has drawn a belief from a private memory is noted as well: of one that is granted to nobody, no grant tells it.
ALTER TABLE pgconsent.privacy_event DROP CONSTRAINT privacy_event_did_check;
ALTER TABLE pgconsent.privacy_event ADD CONSTRAINT privacy_event_did_check
  CHECK (did OPERATOR(pg_catalog.=) ANY ('{grant,revoke,consent,withdraw,join,leave,draw}'::pg_catalog.text[]));
