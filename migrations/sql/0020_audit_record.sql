-- A table of the audit's records, for those who keep them in a database: one chain for each proxy, a line for each record, as the
-- audit's files have them. Codes under a key outside the database say who wrote them (docs/reference/audit.md).
CREATE TABLE pgconsent.audit_record (
  chain pg_catalog.text NOT NULL CHECK (chain OPERATOR(pg_catalog.<>) ''),
  seq   pg_catalog.int8 NOT NULL CHECK (seq OPERATOR(pg_catalog.>) 0),
  line  pg_catalog.text NOT NULL,
  PRIMARY KEY (chain, seq)
);

-- What may be removed because its time is over. A checkpoint in the chain vouches for it.
CREATE TABLE pgconsent.audit_retired (
  chain pg_catalog.text NOT NULL,
  seq   pg_catalog.int8 NOT NULL,
  at    pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  PRIMARY KEY (chain, seq)
);

-- Records are appended and never changed, whoever asks.
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

-- audit_append adds records that follow the last one of their chain. Those that are there already, as after an answer that got lost,
-- stay as they are; another record in their place is an error. Whoever comes at the same time with the same number waits for the
-- primary key.
CREATE FUNCTION pgconsent.audit_append(chain pg_catalog.text, first pg_catalog.int8, lines pg_catalog.text[]) RETURNS pg_catalog.void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  last pg_catalog.int8;
BEGIN
  SELECT COALESCE(pg_catalog.max(r.seq), 0) INTO last FROM pgconsent.audit_record AS r WHERE r.chain OPERATOR(pg_catalog.=) audit_append.chain;
  IF first OPERATOR(pg_catalog.>) (last OPERATOR(pg_catalog.+) 1) OR EXISTS (
      SELECT FROM ROWS FROM (pg_catalog.unnest(lines)) WITH ORDINALITY AS l (line, n)
      JOIN pgconsent.audit_record AS r ON r.chain OPERATOR(pg_catalog.=) audit_append.chain
        AND r.seq OPERATOR(pg_catalog.=) (first OPERATOR(pg_catalog.+) l.n OPERATOR(pg_catalog.-) 1)
      WHERE first OPERATOR(pg_catalog.<=) last AND r.line OPERATOR(pg_catalog.<>) l.line) THEN
    RAISE EXCEPTION 'record % does not follow record % of this chain of the audit', first, last
      USING ERRCODE = '55000', HINT = 'Does another pgconsent write to the same chain? Give each its own audit.chain.';
  END IF;
  INSERT INTO pgconsent.audit_record (chain, seq, line)
  SELECT audit_append.chain, first OPERATOR(pg_catalog.+) l.n OPERATOR(pg_catalog.-) 1, l.line
  FROM ROWS FROM (pg_catalog.unnest(lines)) WITH ORDINALITY AS l (line, n)
  WHERE (first OPERATOR(pg_catalog.+) l.n OPERATOR(pg_catalog.-) 1) OPERATOR(pg_catalog.>) last;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_append(pg_catalog.text, pg_catalog.int8, pg_catalog.text[]) FROM PUBLIC;

-- audit_retire removes some of the oldest records of a chain, up to this one, and tells how many. The newest record stays.
CREATE FUNCTION pgconsent.audit_retire(chain pg_catalog.text, through pg_catalog.int8, most pg_catalog.int4) RETURNS pg_catalog.int8
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  oldest pg_catalog.int8;
  gone pg_catalog.int8;
BEGIN
  IF NOT EXISTS (SELECT FROM pgconsent.audit_record AS r WHERE r.chain OPERATOR(pg_catalog.=) audit_retire.chain AND r.seq OPERATOR(pg_catalog.>) through) THEN
    RAISE EXCEPTION 'the newest record of a chain of the audit is not removed' USING ERRCODE = '22023';
  END IF;
  INSERT INTO pgconsent.audit_retired (chain, seq) VALUES (audit_retire.chain, through) ON CONFLICT DO NOTHING;
  SELECT pg_catalog.min(r.seq) INTO oldest FROM pgconsent.audit_record AS r WHERE r.chain OPERATOR(pg_catalog.=) audit_retire.chain;
  DELETE FROM pgconsent.audit_record AS r WHERE r.chain OPERATOR(pg_catalog.=) audit_retire.chain
    AND r.seq OPERATOR(pg_catalog.<=) LEAST(through, oldest OPERATOR(pg_catalog.+) most OPERATOR(pg_catalog.-) 1);
  GET DIAGNOSTICS gone := ROW_COUNT;
  RETURN gone;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_retire(pg_catalog.text, pg_catalog.int8, pg_catalog.int4) FROM PUBLIC;
