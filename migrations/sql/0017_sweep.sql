-- What the sweeper keeps, and what users are told. The functions that delete are made of the policy, by migrate.

-- When the sweeper last went through everything, and up to which record.
CREATE TABLE pgconsent.sweep_state (
  only_row    pg_catalog.bool PRIMARY KEY DEFAULT true CHECK (only_row),
  finished_at pg_catalog.timestamptz,
  epoch       pg_catalog.int8 NOT NULL DEFAULT 0
);
INSERT INTO pgconsent.sweep_state DEFAULT VALUES;

-- Subjects who were erased and whose rows may still be there: the registry has forgotten the name, which the rows hold.
-- An entry goes when the rows have gone.
CREATE TABLE pgconsent.sweep_erased (
  subject   pg_catalog.text PRIMARY KEY,
  erased_at pg_catalog.timestamptz NOT NULL
);

-- What was done with a subject's data and is not in the registry yet: written with the deletion, in one transaction.
CREATE TABLE pgconsent.sweep_note (
  id      pg_catalog.uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
  subject pg_catalog.text NOT NULL,
  what    pg_catalog.text NOT NULL CHECK (what IN ('deleted', 'anonymised')),
  UNIQUE (subject, what)
);

-- What users are to be told. Nothing here is of their data.
CREATE TABLE pgconsent.outbox (
  id          pg_catalog.uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
  number      pg_catalog.int8 NOT NULL UNIQUE, -- of the record
  recorded_at pg_catalog.timestamptz NOT NULL,
  subject     pg_catalog.text NOT NULL,
  event       pg_catalog.text NOT NULL,
  state       pg_catalog.text NOT NULL,
  stream      pg_catalog.text,
  categories  pg_catalog.text[] NOT NULL,
  expires_at  pg_catalog.timestamptz,
  attempts    pg_catalog.int4 NOT NULL DEFAULT 0,
  next_at     pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  sent_at     pg_catalog.timestamptz,
  error       pg_catalog.text
);
CREATE INDEX outbox_next ON pgconsent.outbox (next_at) WHERE sent_at IS NULL;
CREATE INDEX outbox_subject ON pgconsent.outbox (subject);

-- A message is written with its record. Interactions and what users do themselves are no news to them.
CREATE FUNCTION pgconsent.outbox_fill() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO pgconsent.outbox (number, recorded_at, subject, event, state, stream, categories, expires_at)
  SELECT NEW.number, NEW.recorded_at, s.subject, NEW.event, NEW.state, NEW.stream, NEW.categories, NEW.expires_at
  FROM pgconsent.subject AS s WHERE s.ref OPERATOR(pg_catalog.=) NEW.subject AND s.subject IS NOT NULL;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.outbox_fill() FROM PUBLIC;
CREATE TRIGGER pgconsent_outbox AFTER INSERT ON pgconsent.consent_record FOR EACH ROW
  WHEN (NEW.event IN ('warned', 'expired', 'approved', 'rejected', 'deferred', 'lapsed', 'revoked', 'deleted', 'anonymised'))
  EXECUTE FUNCTION pgconsent.outbox_fill();
ALTER TABLE pgconsent.consent_record ENABLE ALWAYS TRIGGER pgconsent_outbox;

-- Whoever is erased gets no message any more; their rows are noted where there is somebody to delete them.
CREATE FUNCTION pgconsent.sweep_erase() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM pgconsent.outbox AS o WHERE o.subject OPERATOR(pg_catalog.=) OLD.subject;
  DELETE FROM pgconsent.sweep_note AS n WHERE n.subject OPERATOR(pg_catalog.=) OLD.subject;
  IF pg_catalog.to_regprocedure('pgconsent.sweep_due()') IS NOT NULL THEN
    INSERT INTO pgconsent.sweep_erased VALUES (OLD.subject, NEW.erased_at)
    ON CONFLICT ON CONSTRAINT sweep_erased_pkey DO UPDATE SET erased_at = excluded.erased_at;
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.sweep_erase() FROM PUBLIC;
CREATE TRIGGER pgconsent_sweep AFTER UPDATE ON pgconsent.subject FOR EACH ROW
  WHEN (OLD.subject IS NOT NULL AND NEW.subject IS NULL) EXECUTE FUNCTION pgconsent.sweep_erase();
ALTER TABLE pgconsent.subject ENABLE ALWAYS TRIGGER pgconsent_sweep;

-- What is counted.
CREATE INDEX consent_record_decided ON pgconsent.consent_record (event) WHERE event IN ('approved', 'rejected');
CREATE INDEX consent_record_expired ON pgconsent.consent_record (expires_at) WHERE event = 'expired';
