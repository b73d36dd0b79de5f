-- What the audit needs in the database: references for what identifies a person, which can be forgotten, the news that consent
-- has changed, and a table of records for those who want them here.

-- Records of the audit say a reference in place of what identifies somebody. This is the only place where the two are together.
CREATE TABLE pgconsent.audit_subject (
  ref     pg_catalog.uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
  subject pg_catalog.text NOT NULL UNIQUE
);

-- audit_ref returns the reference of a name, and makes one where there is none.
CREATE FUNCTION pgconsent.audit_ref(name pg_catalog.text) RETURNS pg_catalog.uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found_ref pg_catalog.uuid;
BEGIN
  LOOP
    SELECT s.ref INTO found_ref FROM pgconsent.audit_subject AS s WHERE s.subject OPERATOR(pg_catalog.=) name;
    IF found_ref IS NULL THEN
      INSERT INTO pgconsent.audit_subject AS s (subject) VALUES (name) ON CONFLICT (subject) DO NOTHING RETURNING s.ref INTO found_ref;
    END IF;
    IF found_ref IS NOT NULL OR name IS NULL THEN
      RETURN found_ref;
    END IF;
  END LOOP;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_ref(pg_catalog.text) FROM PUBLIC;

-- audit_forget breaks the link for ever: what the records say of somebody can no longer be told to be of them.
CREATE FUNCTION pgconsent.audit_forget(name pg_catalog.text) RETURNS pg_catalog.bool
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM pgconsent.audit_subject AS s WHERE s.subject OPERATOR(pg_catalog.=) name;
  RETURN FOUND;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_forget(pg_catalog.text) FROM PUBLIC;

-- Who is erased from the registry is forgotten by the audit in the same transaction.
CREATE FUNCTION pgconsent.audit_forgets() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM pgconsent.audit_subject AS s WHERE s.subject OPERATOR(pg_catalog.=) OLD.subject;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_forgets() FROM PUBLIC;
CREATE TRIGGER zz_pgconsent_audit AFTER UPDATE ON pgconsent.subject FOR EACH ROW
  WHEN (OLD.subject IS NOT NULL AND NEW.subject IS NULL) EXECUTE FUNCTION pgconsent.audit_forgets();
ALTER TABLE pgconsent.subject ENABLE ALWAYS TRIGGER zz_pgconsent_audit;

-- Proxies are told of each change of consent, so that their records name the epoch that statements see.
CREATE FUNCTION pgconsent.audit_epoch() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_catalog.pg_notify('pgconsent_consent', '');
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_epoch() FROM PUBLIC;
CREATE TRIGGER zz_pgconsent_epoch AFTER INSERT ON pgconsent.consent_record FOR EACH STATEMENT EXECUTE FUNCTION pgconsent.audit_epoch();
ALTER TABLE pgconsent.consent_record ENABLE ALWAYS TRIGGER zz_pgconsent_epoch;

-- The records of proxies that keep them here: one chain for each proxy, a line for each record.
CREATE TABLE pgconsent.audit_record (
  chain pg_catalog.text NOT NULL,
  seq   pg_catalog.int8 NOT NULL CHECK (seq > 0),
  at    pg_catalog.timestamptz NOT NULL,
  line  pg_catalog.text NOT NULL,
  PRIMARY KEY (chain, seq)
);

-- What was removed because its time was over, and vouched for by a checkpoint in the chain.
CREATE TABLE pgconsent.audit_retired (
  chain pg_catalog.text NOT NULL,
  seq   pg_catalog.int8 NOT NULL,
  at    pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  PRIMARY KEY (chain, seq)
);

CREATE FUNCTION pgconsent.audit_refuse() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' AND TG_TABLE_NAME OPERATOR(pg_catalog.=) 'audit_record' THEN
    IF EXISTS (SELECT FROM pgconsent.audit_retired AS r WHERE r.chain OPERATOR(pg_catalog.=) OLD.chain AND r.seq OPERATOR(pg_catalog.>=) OLD.seq) THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION 'records of the audit are appended and never changed' USING ERRCODE = '42501';
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_refuse() FROM PUBLIC;
CREATE TRIGGER pgconsent_refuse BEFORE UPDATE OR DELETE ON pgconsent.audit_record FOR EACH ROW EXECUTE FUNCTION pgconsent.audit_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.audit_record FOR EACH STATEMENT EXECUTE FUNCTION pgconsent.audit_refuse();
ALTER TABLE pgconsent.audit_record ENABLE ALWAYS TRIGGER pgconsent_refuse, ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;
CREATE TRIGGER pgconsent_refuse BEFORE UPDATE OR DELETE ON pgconsent.audit_retired FOR EACH ROW EXECUTE FUNCTION pgconsent.audit_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.audit_retired FOR EACH STATEMENT EXECUTE FUNCTION pgconsent.audit_refuse();
ALTER TABLE pgconsent.audit_retired ENABLE ALWAYS TRIGGER pgconsent_refuse, ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;

-- audit_append adds records that follow the last one of their chain. Ones that are there already, as after an answer that got
-- lost, are left as they are.
CREATE FUNCTION pgconsent.audit_append(chain pg_catalog.text, first pg_catalog.int8, times pg_catalog.timestamptz[], lines pg_catalog.text[]) RETURNS pg_catalog.void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  last pg_catalog.int8;
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock(1885825891, pg_catalog.hashtext(audit_append.chain));
  SELECT COALESCE(pg_catalog.max(r.seq), 0) INTO last FROM pgconsent.audit_record AS r WHERE r.chain OPERATOR(pg_catalog.=) audit_append.chain;
  SELECT GREATEST(last, COALESCE(pg_catalog.max(r.seq), 0)) INTO last FROM pgconsent.audit_retired AS r WHERE r.chain OPERATOR(pg_catalog.=) audit_append.chain;
  IF first OPERATOR(pg_catalog.>) last OPERATOR(pg_catalog.+) 1 OR EXISTS (
      SELECT FROM ROWS FROM (pg_catalog.unnest(lines)) WITH ORDINALITY AS l (line, n)
      JOIN pgconsent.audit_record AS r ON r.chain OPERATOR(pg_catalog.=) audit_append.chain
        AND r.seq OPERATOR(pg_catalog.=) (first OPERATOR(pg_catalog.+) l.n OPERATOR(pg_catalog.-) 1)
      WHERE r.line OPERATOR(pg_catalog.<>) l.line) THEN
    RAISE EXCEPTION 'record % does not follow record % of this chain of the audit', first, last
      USING ERRCODE = '40001', HINT = 'Does another pgconsent write to the same chain? Give each its own audit.chain.';
  END IF;
  INSERT INTO pgconsent.audit_record
  SELECT audit_append.chain, first OPERATOR(pg_catalog.+) l.n OPERATOR(pg_catalog.-) 1, l.at, l.line
  FROM ROWS FROM (pg_catalog.unnest(times), pg_catalog.unnest(lines)) WITH ORDINALITY AS l (at, line, n)
  WHERE (first OPERATOR(pg_catalog.+) l.n OPERATOR(pg_catalog.-) 1) OPERATOR(pg_catalog.>) last;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_append(pg_catalog.text, pg_catalog.int8, pg_catalog.timestamptz[], pg_catalog.text[]) FROM PUBLIC;

-- audit_retire removes the oldest records of a chain. A checkpoint further on must stand for them, or the chain does not hold.
CREATE FUNCTION pgconsent.audit_retire(chain pg_catalog.text, through pg_catalog.int8) RETURNS pg_catalog.void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pgconsent.audit_record AS r WHERE r.chain OPERATOR(pg_catalog.=) audit_retire.chain AND r.seq OPERATOR(pg_catalog.>) through) THEN
    RAISE EXCEPTION 'the newest record of a chain of the audit is not removed' USING ERRCODE = '22023';
  END IF;
  INSERT INTO pgconsent.audit_retired (chain, seq) VALUES (audit_retire.chain, through) ON CONFLICT ON CONSTRAINT audit_retired_pkey DO NOTHING;
  DELETE FROM pgconsent.audit_record AS r WHERE r.chain OPERATOR(pg_catalog.=) audit_retire.chain AND r.seq OPERATOR(pg_catalog.<=) through;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_retire(pg_catalog.text, pg_catalog.int8) FROM PUBLIC;
