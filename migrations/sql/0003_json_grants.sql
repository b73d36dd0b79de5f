-- json_grants tells whether a JSON array in a text holds one of these ids as a string: true or false, and NULL for what is
-- no array of scalars. It never raises: policies call it with whatever an application has written.
--
-- A text is cast only if it is certain to be JSON that jsonb can hold: strings without NUL and with surrogates in pairs,
-- numbers of moderate size, no nesting. A handler for errors would do as well, but its subtransaction would forbid
-- parallel plans. Not a definer: it does nothing that its caller may not do. The pattern is
-- [ (scalar (, scalar)*)? ], a scalar "string" | true | false | null | number; literals on two lines are one literal.
CREATE FUNCTION pgconsent_gate.json_grants(grants pg_catalog.text, who pg_catalog.text[]) RETURNS pg_catalog.bool
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE
    WHEN pg_catalog.octet_length(grants) OPERATOR(pg_catalog.>) 1048576 THEN NULL
    WHEN pg_catalog.getdatabaseencoding() OPERATOR(pg_catalog.<>) 'UTF8' AND (grants COLLATE pg_catalog."C") OPERATOR(pg_catalog.~) '\\u' THEN NULL
    WHEN (grants COLLATE pg_catalog."C") OPERATOR(pg_catalog.~)
      '^[ \t\n\r]*\[[ \t\n\r]*('
        '("([^"\\\u0001-\u001f]|\\["\\/bfnrt]|\\u([1-9a-cA-CeEfF][0-9a-fA-F]{3}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][0-7][0-9a-fA-F]{2}|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*"'
        '|true|false|null|-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?)[ \t\n\r]*'
      '(,[ \t\n\r]*'
        '("([^"\\\u0001-\u001f]|\\["\\/bfnrt]|\\u([1-9a-cA-CeEfF][0-9a-fA-F]{3}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][0-7][0-9a-fA-F]{2}|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*"'
        '|true|false|null|-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?)[ \t\n\r]*'
      ')*)?\][ \t\n\r]*$'
    THEN grants::pg_catalog.jsonb OPERATOR(pg_catalog.?|) who
  END;
END;
REVOKE ALL ON FUNCTION pgconsent_gate.json_grants(pg_catalog.text, pg_catalog.text[]) FROM PUBLIC;
