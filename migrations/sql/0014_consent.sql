-- The consent registry. Records are appended and never changed; consent_current is their fold, kept in the same transaction,
-- and what policies read. Triggers and privileges refuse everything else to every role; what an owner or a superuser does by
-- altering them is found by "pgconsent audit verify": hashes, codes under a key outside the database, and a head in a file of
-- the proxy's.

-- One row: which registry this is. Who appends locks it, so that there is one writer at a time.
CREATE TABLE pgconsent.consent_registry (
  only_row pg_catalog.bool PRIMARY KEY DEFAULT true CHECK (only_row),
  id       pg_catalog.uuid NOT NULL DEFAULT pg_catalog.gen_random_uuid(),
  made_at  pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
INSERT INTO pgconsent.consent_registry DEFAULT VALUES;

-- Everybody whom records speak of: subjects, guardians, grantees, actors. A record holds the ref alone. The key, which is
-- wrapped with a key outside the database, opens what is sealed in the records of the subject: erasure forgets both.
CREATE TABLE pgconsent.subject (
  ref       pg_catalog.uuid PRIMARY KEY,
  subject   pg_catalog.text UNIQUE,
  key       pg_catalog.bytea,
  erased_at pg_catalog.timestamptz,
  CHECK ((subject IS NULL) = (erased_at IS NOT NULL) AND (key IS NULL) = (erased_at IS NOT NULL))
);

-- A record says what holds after it, so that the last one of a subject, grantee and scope is what holds now.
CREATE TABLE pgconsent.consent_record (
  number         pg_catalog.int8 PRIMARY KEY CHECK (number > 0),
  recorded_at    pg_catalog.timestamptz NOT NULL CHECK (pg_catalog.isfinite(recorded_at)),
  subject        pg_catalog.uuid NOT NULL REFERENCES pgconsent.subject (ref),
  event          pg_catalog.text NOT NULL,
  state          pg_catalog.text NOT NULL,
  stream         pg_catalog.text CHECK (stream IN ('TEMPORARY', 'PARTNERED', 'ANONYMOUS')),
  categories     pg_catalog.text[] NOT NULL,
  purposes       pg_catalog.text[] NOT NULL,
  asked          pg_catalog.text[],                -- categories of the partnership that was asked for and not decided yet
  grantee        pg_catalog.uuid REFERENCES pgconsent.subject (ref), -- NULL: everybody
  scope          pg_catalog.bytea,                 -- a digest under the subject's key; NULL: everything
  given_at       pg_catalog.timestamptz,
  expires_at     pg_catalog.timestamptz,           -- NULL: never
  due_at         pg_catalog.timestamptz,           -- until when what was asked can be decided
  decay_from     pg_catalog.timestamptz,           -- the countdown to anonymity began
  decayed_before pg_catalog.timestamptz,           -- what is older has decayed by decayed_days in a countdown that was stopped
  decayed_days   pg_catalog.int4,
  void_before    pg_catalog.timestamptz,           -- what is older went with a consent that ended
  warned_at      pg_catalog.timestamptz,           -- of the expiry ahead
  controller     pg_catalog.text,
  request        pg_catalog.bytea,                 -- a digest of the caller's key, so that a call made twice is done once
  sealed         pg_catalog.bytea NOT NULL,        -- under the subject's key: names, grantor, actor, evidence, reason
  prev           pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(prev) = 32),
  hash           pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(hash) = 32),
  mac            pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(mac) = 32),
  kid            pg_catalog.int4 NOT NULL
);
CREATE INDEX consent_record_subject ON pgconsent.consent_record (subject, number);
CREATE UNIQUE INDEX consent_record_request ON pgconsent.consent_record (request);

CREATE TABLE pgconsent.consent_current (
  subject        pg_catalog.text NOT NULL,
  grantee        pg_catalog.text NOT NULL, -- '*': everybody
  scope          pg_catalog.text NOT NULL, -- '*', or table:…, row:…, ctx:…
  number         pg_catalog.int8 NOT NULL,
  state          pg_catalog.text NOT NULL,
  stream         pg_catalog.text,
  categories     pg_catalog.text[] NOT NULL,
  purposes       pg_catalog.text[] NOT NULL,
  asked          pg_catalog.text[],
  given_at       pg_catalog.timestamptz,
  expires_at     pg_catalog.timestamptz,
  due_at         pg_catalog.timestamptz,
  decay_from     pg_catalog.timestamptz,
  decayed_before pg_catalog.timestamptz,
  decayed_days   pg_catalog.int4,
  void_before    pg_catalog.timestamptz,
  warned_at      pg_catalog.timestamptz,
  PRIMARY KEY (subject, grantee, scope)
);
CREATE INDEX consent_current_expires ON pgconsent.consent_current (expires_at) WHERE state = 'given' AND expires_at IS NOT NULL;
CREATE INDEX consent_current_due ON pgconsent.consent_current (due_at) WHERE due_at IS NOT NULL;

-- Who speaks for a subject, by the records of events appointed and dismissed.
CREATE TABLE pgconsent.consent_guardian (
  subject  pg_catalog.text NOT NULL,
  guardian pg_catalog.text NOT NULL,
  number   pg_catalog.int8 NOT NULL,
  PRIMARY KEY (subject, guardian)
);

-- consent_refuse is the trigger on what is never changed.
CREATE FUNCTION pgconsent.consent_refuse() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'consent records are appended and never changed'
    USING ERRCODE = '42501', HINT = 'A change of consent is a new record: pgconsent consent --help. An erasure is one as well: pgconsent consent erase.';
END $$;
REVOKE ALL ON FUNCTION pgconsent.consent_refuse() FROM PUBLIC;

CREATE TRIGGER pgconsent_refuse BEFORE UPDATE OR DELETE ON pgconsent.consent_record FOR EACH ROW EXECUTE FUNCTION pgconsent.consent_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.consent_record FOR EACH STATEMENT EXECUTE FUNCTION pgconsent.consent_refuse();
ALTER TABLE pgconsent.consent_record ENABLE ALWAYS TRIGGER pgconsent_refuse, ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;

CREATE TRIGGER pgconsent_refuse BEFORE UPDATE OR DELETE ON pgconsent.consent_registry FOR EACH ROW EXECUTE FUNCTION pgconsent.consent_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.consent_registry FOR EACH STATEMENT EXECUTE FUNCTION pgconsent.consent_refuse();
ALTER TABLE pgconsent.consent_registry ENABLE ALWAYS TRIGGER pgconsent_refuse, ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;

-- A subject can be forgotten, and nothing else.
CREATE FUNCTION pgconsent.consent_forget_only() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NEW.ref IS DISTINCT FROM OLD.ref OR NEW.subject IS NOT NULL OR NEW.key IS NOT NULL OR OLD.erased_at IS NOT NULL THEN
    RAISE EXCEPTION 'a subject of the consent registry can be erased, and not changed'
      USING ERRCODE = '42501', HINT = 'pgconsent consent erase --subject ID';
  END IF;
  RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION pgconsent.consent_forget_only() FROM PUBLIC;

CREATE TRIGGER pgconsent_forget BEFORE UPDATE ON pgconsent.subject FOR EACH ROW EXECUTE FUNCTION pgconsent.consent_forget_only();
CREATE TRIGGER pgconsent_refuse BEFORE DELETE ON pgconsent.subject FOR EACH ROW EXECUTE FUNCTION pgconsent.consent_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.subject FOR EACH STATEMENT EXECUTE FUNCTION pgconsent.consent_refuse();
ALTER TABLE pgconsent.subject ENABLE ALWAYS TRIGGER pgconsent_forget, ENABLE ALWAYS TRIGGER pgconsent_refuse, ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;

-- What snapshots may miss. A consent that lasts longer takes nothing from anybody: renewals, which are many, end no cursor.
CREATE TRIGGER zz_pgconsent_current_update AFTER UPDATE ON pgconsent.consent_current FOR EACH ROW
  WHEN ((OLD.subject, OLD.grantee, OLD.scope, OLD.state, OLD.stream, OLD.categories, OLD.purposes, OLD.decay_from, OLD.decayed_before, OLD.decayed_days, OLD.void_before)
      IS DISTINCT FROM (NEW.subject, NEW.grantee, NEW.scope, NEW.state, NEW.stream, NEW.categories, NEW.purposes, NEW.decay_from, NEW.decayed_before, NEW.decayed_days, NEW.void_before)
    OR COALESCE(NEW.expires_at, 'infinity') < COALESCE(OLD.expires_at, 'infinity'))
  EXECUTE FUNCTION pgconsent.changed();
CREATE TRIGGER zz_pgconsent_current_delete AFTER DELETE ON pgconsent.consent_current FOR EACH ROW EXECUTE FUNCTION pgconsent.changed();
CREATE TRIGGER zz_pgconsent_current_truncate AFTER TRUNCATE ON pgconsent.consent_current FOR EACH STATEMENT EXECUTE FUNCTION pgconsent.changed();
ALTER TABLE pgconsent.consent_current ENABLE ALWAYS TRIGGER zz_pgconsent_current_update,
  ENABLE ALWAYS TRIGGER zz_pgconsent_current_delete, ENABLE ALWAYS TRIGGER zz_pgconsent_current_truncate;
CREATE TRIGGER zz_pgconsent_guardian AFTER DELETE OR UPDATE ON pgconsent.consent_guardian FOR EACH ROW EXECUTE FUNCTION pgconsent.changed();
CREATE TRIGGER zz_pgconsent_guardian_truncate AFTER TRUNCATE ON pgconsent.consent_guardian FOR EACH STATEMENT EXECUTE FUNCTION pgconsent.changed();
ALTER TABLE pgconsent.consent_guardian ENABLE ALWAYS TRIGGER zz_pgconsent_guardian, ENABLE ALWAYS TRIGGER zz_pgconsent_guardian_truncate;

-- The bodies from here on are texts, not BEGIN ATOMIC, so that "audit verify" can compare them letter by letter.

-- The clock of the registry: a function of its own, so that a test can move it.
CREATE FUNCTION pgconsent.consent_now() RETURNS pg_catalog.timestamptz
LANGUAGE sql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pg_catalog.clock_timestamp();
$$;
REVOKE ALL ON FUNCTION pgconsent.consent_now() FROM PUBLIC;

-- consent_epoch is the number of the last record that the statement's snapshot shows; 0 without any.
CREATE FUNCTION pgconsent.consent_epoch() RETURNS pg_catalog.int8
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT COALESCE((SELECT r.number FROM pgconsent.consent_record AS r ORDER BY r.number DESC LIMIT 1), 0);
$$;
REVOKE ALL ON FUNCTION pgconsent.consent_epoch() FROM PUBLIC;

-- consent_open makes the transaction the one writer and says on what the next record builds.
CREATE FUNCTION pgconsent.consent_open(OUT id pg_catalog.uuid, OUT clock pg_catalog.timestamptz, OUT number pg_catalog.int8, OUT recorded_at pg_catalog.timestamptz,
  OUT prev pg_catalog.bytea, OUT hash pg_catalog.bytea, OUT mac pg_catalog.bytea, OUT kid pg_catalog.int4)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  SELECT g.id INTO id FROM pgconsent.consent_registry AS g FOR UPDATE;
  SELECT r.number, r.recorded_at, r.prev, r.hash, r.mac, r.kid INTO number, recorded_at, prev, hash, mac, kid
  FROM pgconsent.consent_record AS r ORDER BY r.number DESC LIMIT 1;
  clock := pgconsent.consent_now();
END $$;
REVOKE ALL ON FUNCTION pgconsent.consent_open() FROM PUBLIC;

-- consent_name gives somebody a ref.
CREATE FUNCTION pgconsent.consent_name(ref pg_catalog.uuid, name pg_catalog.text, key pg_catalog.bytea) RETURNS pg_catalog.void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO pgconsent.subject (ref, subject, key) VALUES (consent_name.ref, consent_name.name, consent_name.key);
$$;
REVOKE ALL ON FUNCTION pgconsent.consent_name(pg_catalog.uuid, pg_catalog.text, pg_catalog.bytea) FROM PUBLIC;

-- consent_append adds a record and what holds after it, in the words of scope.
CREATE FUNCTION pgconsent.consent_append(r pgconsent.consent_record, scope pg_catalog.text) RETURNS pg_catalog.void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  head_number pg_catalog.int8 := 0;
  head_time   pg_catalog.timestamptz := '-infinity';
  head_hash   pg_catalog.bytea;
  who         pg_catalog.text;
  whom        pg_catalog.text := '*';
BEGIN
  PERFORM FROM pgconsent.consent_registry AS g FOR UPDATE;
  SELECT h.number, h.recorded_at, h.hash INTO head_number, head_time, head_hash
  FROM pgconsent.consent_record AS h ORDER BY h.number DESC LIMIT 1;
  IF r.number IS DISTINCT FROM COALESCE(head_number, 0) OPERATOR(pg_catalog.+) 1
     OR head_hash IS NOT NULL AND r.prev IS DISTINCT FROM head_hash
     OR r.recorded_at OPERATOR(pg_catalog.<) COALESCE(head_time, '-infinity')
     OR r.recorded_at OPERATOR(pg_catalog.>) GREATEST(head_time, pgconsent.consent_now()) THEN
    RAISE EXCEPTION 'record % does not follow the last consent record', r.number USING ERRCODE = '40001', HINT = 'Begin again with pgconsent.consent_open().';
  END IF;
  SELECT s.subject INTO who FROM pgconsent.subject AS s WHERE s.ref OPERATOR(pg_catalog.=) r.subject;
  IF r.grantee IS NOT NULL THEN
    SELECT s.subject INTO whom FROM pgconsent.subject AS s WHERE s.ref OPERATOR(pg_catalog.=) r.grantee;
  END IF;
  IF who IS NULL OR whom IS NULL THEN
    RAISE EXCEPTION 'a consent record speaks of somebody whom the registry does not know' USING ERRCODE = '22023';
  END IF;
  INSERT INTO pgconsent.consent_record VALUES (r.*);
  CASE r.event
  WHEN 'appointed' THEN
    INSERT INTO pgconsent.consent_guardian VALUES (who, whom, r.number)
    ON CONFLICT ON CONSTRAINT consent_guardian_pkey DO UPDATE SET number = excluded.number;
  WHEN 'dismissed' THEN
    DELETE FROM pgconsent.consent_guardian AS g WHERE g.subject OPERATOR(pg_catalog.=) who AND g.guardian OPERATOR(pg_catalog.=) whom;
  WHEN 'erased' THEN
    DELETE FROM pgconsent.consent_current AS c WHERE c.subject OPERATOR(pg_catalog.=) who OR c.grantee OPERATOR(pg_catalog.=) who;
    DELETE FROM pgconsent.consent_guardian AS g WHERE g.subject OPERATOR(pg_catalog.=) who OR g.guardian OPERATOR(pg_catalog.=) who;
    UPDATE pgconsent.subject AS s SET (subject, key, erased_at) = (NULL, NULL, r.recorded_at) WHERE s.ref OPERATOR(pg_catalog.=) r.subject;
  ELSE
    INSERT INTO pgconsent.consent_current VALUES (who, whom, consent_append.scope, r.number, r.state, r.stream, r.categories, r.purposes, r.asked,
      r.given_at, r.expires_at, r.due_at, r.decay_from, r.decayed_before, r.decayed_days, r.void_before, r.warned_at)
    ON CONFLICT ON CONSTRAINT consent_current_pkey DO UPDATE SET number = excluded.number, state = excluded.state, stream = excluded.stream,
      categories = excluded.categories, purposes = excluded.purposes, asked = excluded.asked, given_at = excluded.given_at, expires_at = excluded.expires_at,
      due_at = excluded.due_at, decay_from = excluded.decay_from, decayed_before = excluded.decayed_before, decayed_days = excluded.decayed_days,
      void_before = excluded.void_before, warned_at = excluded.warned_at;
  END CASE;
END $$;
REVOKE ALL ON FUNCTION pgconsent.consent_append(pgconsent.consent_record, pg_catalog.text) FROM PUBLIC;
