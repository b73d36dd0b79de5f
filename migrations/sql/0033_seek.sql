-- seek tells whether the text of the statement says that conditions of its own find few rows. It is declared IMMUTABLE, which it is not, as scan is: the planner evaluates
-- it, and plans one of two forms only. It is no security input: nothing but speed depends on it.
CREATE FUNCTION pgconsent_gate.seek() RETURNS pg_catalog.bool LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS $$
BEGIN
  RETURN pg_catalog.starts_with(pg_catalog.current_query(), '/*pgconsent:seek*/')
    OR pg_catalog.substr(pg_catalog.current_query(), 82, 18) OPERATOR(pg_catalog.=) '/*pgconsent:seek*/';
END $$;
REVOKE ALL ON FUNCTION pgconsent_gate.seek() FROM PUBLIC;
