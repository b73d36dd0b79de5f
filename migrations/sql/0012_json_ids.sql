-- jsonb_ids lists the ids in a JSON array: its strings, and NULL for what is no string, whom nobody can speak for. NULL for
-- what is no array. json_ids does so for JSON in a text, where it is an array of scalars; see json_grants for what is one.
-- They never raise.
CREATE FUNCTION pgconsent_gate.jsonb_ids(list pg_catalog.jsonb) RETURNS pg_catalog.text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN pg_catalog.jsonb_typeof(list) OPERATOR(pg_catalog.=) 'array' THEN ARRAY(
    SELECT CASE WHEN pg_catalog.jsonb_typeof(e.value) OPERATOR(pg_catalog.=) 'string' THEN e.value OPERATOR(pg_catalog.#>>) '{}'::pg_catalog.text[] END
    FROM pg_catalog.jsonb_array_elements(CASE WHEN pg_catalog.jsonb_typeof(list) OPERATOR(pg_catalog.=) 'array' THEN list ELSE '[]' END) WITH ORDINALITY AS e (value, place) ORDER BY e.place) END;
END;
REVOKE ALL ON FUNCTION pgconsent_gate.jsonb_ids(pg_catalog.jsonb) FROM PUBLIC;

CREATE FUNCTION pgconsent_gate.json_ids(list pg_catalog.text) RETURNS pg_catalog.text[]
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN pgconsent_gate.json_grants(list, '{}'::pg_catalog.text[]) IS NOT NULL THEN pgconsent_gate.jsonb_ids(list::pg_catalog.jsonb) END;
END;
REVOKE ALL ON FUNCTION pgconsent_gate.json_ids(pg_catalog.text) FROM PUBLIC;
