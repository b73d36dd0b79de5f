-- scan tells row policies which of two forms of the same condition to use: the one for statements that read much of a
-- table, where the proxy has put the hint in front of the text, or behind its signature. Nothing but speed depends on it.
CREATE FUNCTION pgconsent_gate.scan() RETURNS pg_catalog.bool LANGUAGE sql STABLE PARALLEL RESTRICTED
RETURN pg_catalog.starts_with(pg_catalog.current_query(), '/*pgconsent:scan*/')
  OR pg_catalog.substr(pg_catalog.current_query(), 82, 18) OPERATOR(pg_catalog.=) '/*pgconsent:scan*/';
REVOKE ALL ON FUNCTION pgconsent_gate.scan() FROM PUBLIC;
