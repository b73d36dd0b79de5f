-- The verifiers as they were.
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

CREATE OR REPLACE FUNCTION pgconsent_gate.sealed() RETURNS pg_catalog.bool
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
  RETURN valid IS TRUE;
END $$;

CREATE OR REPLACE FUNCTION pgconsent_gate.vetted() RETURNS pg_catalog.bool
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
  message  pg_catalog.bytea;
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
    -- As bytes: substr counts characters from the start, which a long text pays for.
    message := pg_catalog.convert_to(pg_catalog.current_query(), 'UTF8');
    IF pg_catalog.substring(message, 1, 15) OPERATOR(pg_catalog.=) pg_catalog.decode('2f2a7067636f6e73656e743a76313a', 'hex')   -- /*pgconsent:v1:
       AND pg_catalog.substring(message, 80, 2) OPERATOR(pg_catalog.=) pg_catalog.decode('2a2f', 'hex')                           -- */
       AND pg_catalog.convert_to(pg_catalog.encode(pg_catalog.sha256(o OPERATOR(pg_catalog.||) pg_catalog.sha256(i OPERATOR(pg_catalog.||)
             pg_catalog.convert_to('stmt|' OPERATOR(pg_catalog.||) fields[6] OPERATOR(pg_catalog.||) '|', 'UTF8')
             OPERATOR(pg_catalog.||) pg_catalog.substring(message, 82))), 'hex'), 'UTF8')
           OPERATOR(pg_catalog.=) pg_catalog.substring(message, 16, 64) THEN
      RETURN true;
    END IF;
  END IF;
  RAISE EXCEPTION 'pgconsent: this statement is not vetted' USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE FUNCTION pgconsent_gate.scan() RETURNS pg_catalog.bool LANGUAGE sql STABLE PARALLEL RESTRICTED
RETURN pg_catalog.starts_with(pg_catalog.current_query(), '/*pgconsent:scan*/')
  OR pg_catalog.substr(pg_catalog.current_query(), 82, 18) OPERATOR(pg_catalog.=) '/*pgconsent:scan*/';

CREATE OR REPLACE FUNCTION pgconsent_gate.current_catalog() RETURNS pg_catalog.bool
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  known pg_catalog.text := pg_catalog.substring(pg_catalog.current_setting('pgconsent.seal', true), '[|]pgconsent[.]catalog=([0-9]+)');
BEGIN
  IF known OPERATOR(pg_catalog.<>) (SELECT COALESCE(pg_catalog.sum(c.n), 0)::pg_catalog.text FROM pgconsent.catalog_change AS c) THEN
    RAISE EXCEPTION 'pgconsent: the catalogs have changed since this statement was decided' USING ERRCODE = '40001';
  END IF;
  RETURN true;
END $$;
