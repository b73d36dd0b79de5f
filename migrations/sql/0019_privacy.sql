-- What became of grants, consents and contexts: who was let in or out, when, by whom and why.

-- Rows are only added. Persons stand here by the references of the audit, so that who is forgotten there is forgotten here.
CREATE TABLE pgconsent.privacy_event (
  number   pg_catalog.int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at       pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  did      pg_catalog.text NOT NULL CHECK (did OPERATOR(pg_catalog.=) ANY ('{grant,revoke,consent,withdraw,join,leave}'::pg_catalog.text[])),
  relation pg_catalog.text NOT NULL,
  key      pg_catalog.text NOT NULL,
  store    pg_catalog.text,
  who      pg_catalog.uuid[] NOT NULL, -- who was let in or out; of a consent: the grantor, then the grantee
  entity   pg_catalog.uuid,            -- who did it: the entity of an agent's session
  login    pg_catalog.text NOT NULL,   -- the role of the database that did it
  reason   pg_catalog.text
);
CREATE INDEX privacy_event_row ON pgconsent.privacy_event (relation, key);

-- privacy_note adds a row. Triggers that a policy's plan makes call it, for whoever writes.
CREATE FUNCTION pgconsent.privacy_note(did pg_catalog.text, relation pg_catalog.text, key pg_catalog.text, store pg_catalog.text, who pg_catalog.text[], entity pg_catalog.text) RETURNS pg_catalog.void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  id pg_catalog.text;
BEGIN
  -- In one order, so that two who make references of the same names do not wait for each other.
  FOR id IN SELECT DISTINCT u.id FROM pg_catalog.unnest(who OPERATOR(pg_catalog.||) entity) AS u (id) WHERE u.id IS NOT NULL ORDER BY 1 LOOP
    PERFORM pgconsent.audit_ref(id);
  END LOOP;
  INSERT INTO pgconsent.privacy_event (did, relation, key, store, who, entity, login, reason)
  VALUES (privacy_note.did, privacy_note.relation, privacy_note.key, privacy_note.store,
    ARRAY(SELECT pgconsent.audit_ref(u.id) FROM pg_catalog.unnest(privacy_note.who) WITH ORDINALITY AS u (id, n) WHERE u.id IS NOT NULL ORDER BY u.n),
    CASE WHEN privacy_note.entity IS NOT NULL THEN pgconsent.audit_ref(privacy_note.entity) END, SESSION_USER,
    NULLIF(pg_catalog.left(pg_catalog.current_setting('pgconsent.reason', true), 256), ''));
END $$;
REVOKE ALL ON FUNCTION pgconsent.privacy_note(pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.text[], pg_catalog.text) FROM PUBLIC;
