-- few tells whether the text of the statement says that it looks for a few of the rows of a door view, which it names by a mark. It is declared IMMUTABLE, which it is not, as
-- seek is: the planner evaluates it. It is no security input: nothing but speed depends on it.
CREATE FUNCTION pgconsent_gate.few(mark pg_catalog.text) RETURNS pg_catalog.bool LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS $$
BEGIN
  RETURN pg_catalog.strpos(pg_catalog.left(pg_catalog.current_query(), 1000), pg_catalog.concat('/*pgconsent:few ', mark, '*/')) OPERATOR(pg_catalog.>) 0;
END $$;
REVOKE ALL ON FUNCTION pgconsent_gate.few(pg_catalog.text) FROM PUBLIC;
