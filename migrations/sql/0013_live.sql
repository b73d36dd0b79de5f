-- Attributes that no credential gives: what a session claims in a setting as far as a policy lets it through, what is looked
-- up, what follows from others. They are worked out where they are asked for, with the snapshot of the statement.

-- claim finds a field of a seal, name=value, and undoes its escapes; NULL where there is none.
CREATE FUNCTION pgconsent.claim(name pg_catalog.text, claims pg_catalog.text[]) RETURNS pg_catalog.text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  field pg_catalog.text;
BEGIN
  IF claims IS NOT NULL THEN
    FOREACH field IN ARRAY claims LOOP
      IF pg_catalog.starts_with(field, name OPERATOR(pg_catalog.||) '=') THEN
        field := pg_catalog.substr(field, pg_catalog.length(name) OPERATOR(pg_catalog.+) 2);
        IF pg_catalog.strpos(field, '%') OPERATOR(pg_catalog.>) 0 THEN
          field := pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(
            field, '%7C', '|'), '%23', '#'), '%3D', '='), '%25', '%');
        END IF;
        RETURN field;
      END IF;
    END LOOP;
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.claim(pg_catalog.text, pg_catalog.text[]) FROM PUBLIC;

-- live is made by each policy that has such attributes, in this one's place. The claims are the fields of a seal; the
-- settings are those of the session where they are NULL, and fields as well where the proxy asks for another session.
CREATE FUNCTION pgconsent.live(name pg_catalog.text, claims pg_catalog.text[], settings pg_catalog.text[]) RETURNS pg_catalog.text
LANGUAGE sql STABLE PARALLEL RESTRICTED
RETURN NULL::pg_catalog.text;
REVOKE ALL ON FUNCTION pgconsent.live(pg_catalog.text, pg_catalog.text[], pg_catalog.text[]) FROM PUBLIC;

-- attr asks it for what is not in the seal.
CREATE OR REPLACE FUNCTION pgconsent_gate.attr(name pg_catalog.text) RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- verify
  seal     pg_catalog.text := pg_catalog.current_setting('pgconsent.seal', true);
  n        pg_catalog.int4 := pg_catalog.length(seal) OPERATOR(pg_catalog.-) 65;
  i        pg_catalog.bytea;
  o        pg_catalog.bytea;
  fields   pg_catalog.text[];
  started  pg_catalog.float8;
  valid    pg_catalog.bool := false;
  -- declared
  field    pg_catalog.text;
BEGIN
  -- verify
  IF n OPERATOR(pg_catalog.>) 0 AND n OPERATOR(pg_catalog.<) 65536 THEN
    SELECT k.ipad, k.opad INTO i, o FROM pgconsent.keys AS k
    WHERE k.kid::pg_catalog.text OPERATOR(pg_catalog.=) pg_catalog.split_part(seal, '|', 2);
    IF pg_catalog.encode(pg_catalog.sha256(o OPERATOR(pg_catalog.||) pg_catalog.sha256(i OPERATOR(pg_catalog.||)
         pg_catalog.convert_to('seal|' OPERATOR(pg_catalog.||) pg_catalog.substr(seal, 1, n), 'UTF8'))), 'hex')
       OPERATOR(pg_catalog.=) pg_catalog.substr(seal, n OPERATOR(pg_catalog.+) 2)
       AND pg_catalog.substr(seal, n OPERATOR(pg_catalog.+) 1, 1) OPERATOR(pg_catalog.=) '#' THEN
      fields := pg_catalog.string_to_array(pg_catalog.substr(seal, 1, n), '|');
      started := pg_catalog.date_part('epoch', pg_catalog.transaction_timestamp());
      valid := fields[1] OPERATOR(pg_catalog.=) 'v1'
        AND fields[4] OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()::pg_catalog.text
        AND fields[5]::pg_catalog.float8 OPERATOR(pg_catalog.>) started
        AND fields[5]::pg_catalog.float8 OPERATOR(pg_catalog.<=) (started OPERATOR(pg_catalog.+) 120);
    END IF;
  END IF;
  -- verified
  IF valid IS TRUE THEN
    FOREACH field IN ARRAY fields[7:] LOOP
      IF pg_catalog.starts_with(field, name OPERATOR(pg_catalog.||) '=') THEN
        field := pg_catalog.substr(field, pg_catalog.length(name) OPERATOR(pg_catalog.+) 2);
        IF pg_catalog.strpos(field, '%') OPERATOR(pg_catalog.>) 0 THEN
          field := pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(
            field, '%7C', '|'), '%23', '#'), '%3D', '='), '%25', '%');
        END IF;
        RETURN field;
      END IF;
    END LOOP;
    RETURN pgconsent.live(name, fields[7:], NULL);
  END IF;
  RETURN NULL;
END $$;
