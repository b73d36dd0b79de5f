-- The same verification for less: what a statement that looks up one row pays for its walls is mostly this.

-- scan is declared IMMUTABLE, which it is not: so the planner evaluates it, and plans one of the two forms only. A plan that
-- is kept keeps the form. It is no security input: nothing but speed depends on it.
CREATE OR REPLACE FUNCTION pgconsent_gate.scan() RETURNS pg_catalog.bool LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS $$
BEGIN
  RETURN pg_catalog.starts_with(pg_catalog.current_query(), '/*pgconsent:scan*/')
    OR pg_catalog.substr(pg_catalog.current_query(), 82, 18) OPERATOR(pg_catalog.=) '/*pgconsent:scan*/';
END $$;

-- The part from "-- verify" to "-- verified" is the same in the three verifiers. The time is that of few expressions, since
-- PL/pgSQL prepares each anew in each transaction, and of functions that count characters, which are avoided. What is made of a seal's
-- fields before the comparison with its HMAC cannot raise; casts come after it.
CREATE OR REPLACE FUNCTION pgconsent_gate.attr(name pg_catalog.text) RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- verify
  seal     pg_catalog.text := pg_catalog.current_setting('pgconsent.seal', true);
  payload  pg_catalog.text;
  i        pg_catalog.bytea;
  o        pg_catalog.bytea;
  valid    pg_catalog.bool := false;
  -- declared
  start    pg_catalog.text;
  field    pg_catalog.text;
BEGIN
  -- verify
  IF pg_catalog.octet_length(seal) OPERATOR(pg_catalog.<) 65536 THEN
    payload := pg_catalog.split_part(seal, '#', 1);
    SELECT k.ipad, k.opad INTO i, o FROM pgconsent.keys AS k
    WHERE k.kid::pg_catalog.text OPERATOR(pg_catalog.=) pg_catalog.split_part(seal, '|', 2);
    valid := CASE WHEN seal OPERATOR(pg_catalog.=) (payload OPERATOR(pg_catalog.||) '#' OPERATOR(pg_catalog.||)
        pg_catalog.encode(pg_catalog.sha256(o OPERATOR(pg_catalog.||) pg_catalog.sha256(i OPERATOR(pg_catalog.||)
          pg_catalog.convert_to('seal|' OPERATOR(pg_catalog.||) payload, 'UTF8'))), 'hex'))
      THEN pg_catalog.starts_with(seal, 'v1|')
        AND pg_catalog.split_part(payload, '|', 4) OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()::pg_catalog.text
        AND pg_catalog.abs(pg_catalog.split_part(payload, '|', 5)::pg_catalog.float8 OPERATOR(pg_catalog.-)
          pg_catalog.date_part('epoch', pg_catalog.transaction_timestamp()) OPERATOR(pg_catalog.-) 60) OPERATOR(pg_catalog.<) 60
      END;
  END IF;
  -- verified
  IF valid IS TRUE THEN
    start := '|' OPERATOR(pg_catalog.||) name OPERATOR(pg_catalog.||) '=';
    IF pg_catalog.strpos(payload, start) OPERATOR(pg_catalog.>) 0 THEN
      field := pg_catalog.split_part(pg_catalog.split_part(payload, start, 2), '|', 1);
      IF pg_catalog.strpos(field, '%') OPERATOR(pg_catalog.>) 0 THEN
        field := pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(
          field, '%7C', '|'), '%23', '#'), '%3D', '='), '%25', '%');
      END IF;
      RETURN field;
    END IF;
    RETURN pgconsent.live(name, (pg_catalog.string_to_array(payload, '|'))[7:], NULL);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION pgconsent_gate.sealed() RETURNS pg_catalog.bool
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- verify
  seal     pg_catalog.text := pg_catalog.current_setting('pgconsent.seal', true);
  payload  pg_catalog.text;
  i        pg_catalog.bytea;
  o        pg_catalog.bytea;
  valid    pg_catalog.bool := false;
  -- declared
BEGIN
  -- verify
  IF pg_catalog.octet_length(seal) OPERATOR(pg_catalog.<) 65536 THEN
    payload := pg_catalog.split_part(seal, '#', 1);
    SELECT k.ipad, k.opad INTO i, o FROM pgconsent.keys AS k
    WHERE k.kid::pg_catalog.text OPERATOR(pg_catalog.=) pg_catalog.split_part(seal, '|', 2);
    valid := CASE WHEN seal OPERATOR(pg_catalog.=) (payload OPERATOR(pg_catalog.||) '#' OPERATOR(pg_catalog.||)
        pg_catalog.encode(pg_catalog.sha256(o OPERATOR(pg_catalog.||) pg_catalog.sha256(i OPERATOR(pg_catalog.||)
          pg_catalog.convert_to('seal|' OPERATOR(pg_catalog.||) payload, 'UTF8'))), 'hex'))
      THEN pg_catalog.starts_with(seal, 'v1|')
        AND pg_catalog.split_part(payload, '|', 4) OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()::pg_catalog.text
        AND pg_catalog.abs(pg_catalog.split_part(payload, '|', 5)::pg_catalog.float8 OPERATOR(pg_catalog.-)
          pg_catalog.date_part('epoch', pg_catalog.transaction_timestamp()) OPERATOR(pg_catalog.-) 60) OPERATOR(pg_catalog.<) 60
      END;
  END IF;
  -- verified
  RETURN valid IS TRUE;
END $$;

CREATE OR REPLACE FUNCTION pgconsent_gate.vetted() RETURNS pg_catalog.bool
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- verify
  seal     pg_catalog.text := pg_catalog.current_setting('pgconsent.seal', true);
  payload  pg_catalog.text;
  i        pg_catalog.bytea;
  o        pg_catalog.bytea;
  valid    pg_catalog.bool := false;
  -- declared
  message  pg_catalog.bytea;
BEGIN
  -- verify
  IF pg_catalog.octet_length(seal) OPERATOR(pg_catalog.<) 65536 THEN
    payload := pg_catalog.split_part(seal, '#', 1);
    SELECT k.ipad, k.opad INTO i, o FROM pgconsent.keys AS k
    WHERE k.kid::pg_catalog.text OPERATOR(pg_catalog.=) pg_catalog.split_part(seal, '|', 2);
    valid := CASE WHEN seal OPERATOR(pg_catalog.=) (payload OPERATOR(pg_catalog.||) '#' OPERATOR(pg_catalog.||)
        pg_catalog.encode(pg_catalog.sha256(o OPERATOR(pg_catalog.||) pg_catalog.sha256(i OPERATOR(pg_catalog.||)
          pg_catalog.convert_to('seal|' OPERATOR(pg_catalog.||) payload, 'UTF8'))), 'hex'))
      THEN pg_catalog.starts_with(seal, 'v1|')
        AND pg_catalog.split_part(payload, '|', 4) OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()::pg_catalog.text
        AND pg_catalog.abs(pg_catalog.split_part(payload, '|', 5)::pg_catalog.float8 OPERATOR(pg_catalog.-)
          pg_catalog.date_part('epoch', pg_catalog.transaction_timestamp()) OPERATOR(pg_catalog.-) 60) OPERATOR(pg_catalog.<) 60
      END;
  END IF;
  -- verified
  IF valid IS TRUE THEN
    -- As bytes: substr counts characters from the start, which a long text pays for.
    message := pg_catalog.convert_to(pg_catalog.current_query(), 'UTF8');
    IF pg_catalog.substring(message, 1, 81) OPERATOR(pg_catalog.=) pg_catalog.convert_to('/*pgconsent:v1:' OPERATOR(pg_catalog.||)
         pg_catalog.encode(pg_catalog.sha256(o OPERATOR(pg_catalog.||) pg_catalog.sha256(i OPERATOR(pg_catalog.||)
           pg_catalog.convert_to('stmt|' OPERATOR(pg_catalog.||) pg_catalog.split_part(payload, '|', 6) OPERATOR(pg_catalog.||) '|', 'UTF8')
           OPERATOR(pg_catalog.||) pg_catalog.substring(message, 82))), 'hex') OPERATOR(pg_catalog.||) '*/', 'UTF8') THEN
      RETURN true;
    END IF;
  END IF;
  RAISE EXCEPTION 'pgconsent: this statement is not vetted' USING ERRCODE = '42501';
END $$;

-- current_catalog without a regular expression, and with one statement for the rest. A seal ends in the version, if it has one.
CREATE OR REPLACE FUNCTION pgconsent_gate.current_catalog() RETURNS pg_catalog.bool
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  known pg_catalog.text := pg_catalog.split_part(pg_catalog.split_part(pg_catalog.current_setting('pgconsent.seal', true), '|pgconsent.catalog=', 2), '#', 1);
BEGIN
  IF known OPERATOR(pg_catalog.<>) '' AND known OPERATOR(pg_catalog.<>) (SELECT COALESCE(pg_catalog.sum(c.n), 0)::pg_catalog.text FROM pgconsent.catalog_change AS c) THEN
    RAISE EXCEPTION 'pgconsent: the catalogs have changed since this statement was decided' USING ERRCODE = '40001';
  END IF;
  RETURN true;
END $$;
