-- consent_append adds a record and what holds after it, in the words of scope.
CREATE OR REPLACE FUNCTION pgconsent.consent_append(r pgconsent.consent_record, scope pg_catalog.text) RETURNS pg_catalog.void
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

CREATE OR REPLACE FUNCTION pgconsent.pseudonym(subject pg_catalog.text, value pg_catalog.text) RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER PARALLEL SAFE COST 1000 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  key pg_catalog.text;
BEGIN
  SELECT pg_catalog.encode(pg_catalog.sha256(s.key), 'hex') INTO key FROM pgconsent.subject AS s WHERE s.subject OPERATOR(pg_catalog.=) pseudonym.subject;
  RETURN pgconsent.mask('sweep|' OPERATOR(pg_catalog.||) key OPERATOR(pg_catalog.||) '|' OPERATOR(pg_catalog.||) value);
END $$;

-- A subject can be forgotten, and nothing else.
CREATE OR REPLACE FUNCTION pgconsent.consent_forget_only() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NEW.ref IS DISTINCT FROM OLD.ref OR NEW.subject IS NOT NULL OR NEW.key IS NOT NULL OR OLD.erased_at IS NOT NULL THEN
    RAISE EXCEPTION 'a subject of the consent registry can be erased, and not changed'
      USING ERRCODE = '42501', HINT = 'pgconsent consent erase --subject ID';
  END IF;
  RETURN NEW;
END $$;

DROP FUNCTION pgconsent.consent_recode(pg_catalog.int4, pg_catalog.int8[], pg_catalog.bytea[]);
DROP FUNCTION pgconsent.consent_rewrap(pg_catalog.uuid[], pg_catalog.bytea[], pg_catalog.bytea[]);
DROP TABLE pgconsent.consent_code;
ALTER TABLE pgconsent.subject DROP COLUMN stands;
