-- What stands for a value of somebody's where their rows are anonymous: the sweeper writes it, and groups are counted by it, so
-- that who has rows of both kinds is one subject. It is made under the subject's key, which erasure destroys; NULL: there is none.
CREATE FUNCTION pgconsent.pseudonym(subject pg_catalog.text, value pg_catalog.text) RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER PARALLEL SAFE COST 1000 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  key pg_catalog.text;
BEGIN
  SELECT pg_catalog.encode(pg_catalog.sha256(s.key), 'hex') INTO key FROM pgconsent.subject AS s WHERE s.subject OPERATOR(pg_catalog.=) pseudonym.subject;
  RETURN pgconsent.mask('sweep|' OPERATOR(pg_catalog.||) key OPERATOR(pg_catalog.||) '|' OPERATOR(pg_catalog.||) value);
END $$;
REVOKE ALL ON FUNCTION pgconsent.pseudonym(pg_catalog.text, pg_catalog.text) FROM PUBLIC;
