-- The three schemas. Agents get USAGE of the last two only: what is in pgconsent cannot be named by them, and policies
-- and views that use it go by OID.
CREATE SCHEMA pgconsent;
CREATE SCHEMA pgconsent_gate;
CREATE SCHEMA pgconsent_catalog;
REVOKE ALL ON SCHEMA pgconsent, pgconsent_gate, pgconsent_catalog FROM PUBLIC;

CREATE TABLE pgconsent.migration (
  number     pg_catalog.int4 PRIMARY KEY,
  name       pg_catalog.text NOT NULL,
  applied_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now()
);

-- One row: the policy whose half is in this database.
CREATE TABLE pgconsent.installed (
  only_row       pg_catalog.bool PRIMARY KEY DEFAULT true CHECK (only_row),
  hash           pg_catalog.text NOT NULL,
  policy_version pg_catalog.text NOT NULL,
  installed_at   pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now()
);

-- What restores the state found, in order.
CREATE TABLE pgconsent.installed_undo (
  seq pg_catalog.int4 PRIMARY KEY,
  sql pg_catalog.text NOT NULL,
  why pg_catalog.text NOT NULL
);

-- What was made, to notice drift.
CREATE TABLE pgconsent.installed_object (
  identity    pg_catalog.text PRIMARY KEY,
  fingerprint pg_catalog.text NOT NULL
);

-- Roles that migrate made, and that --down drops again if no other database needs them.
CREATE TABLE pgconsent.installed_role (name pg_catalog.text PRIMARY KEY);

-- The keys of seals and signatures, with the two pads of HMAC worked out. No function holds a key in its body, since
-- every role can read bodies.
CREATE TABLE pgconsent.keys (
  kid     pg_catalog.int4 PRIMARY KEY,
  secret  pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(secret) = 32),
  ipad    pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(ipad) = 64),
  opad    pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(opad) = 64),
  made_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now()
);

-- Makes a key from the server's strong random source (a UUID of version 4 has 122 random bits).
CREATE FUNCTION pgconsent.make_key() RETURNS pg_catalog.int4
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  key   pg_catalog.bytea := pg_catalog.sha256(pg_catalog.convert_to(
          pg_catalog.concat(pg_catalog.gen_random_uuid(), pg_catalog.gen_random_uuid(), pg_catalog.gen_random_uuid(), pg_catalog.gen_random_uuid()), 'UTF8'));
  inner_pad pg_catalog.bytea := key OPERATOR(pg_catalog.||) pg_catalog.decode(pg_catalog.repeat('00', 32), 'hex');
  outer_pad pg_catalog.bytea := inner_pad;
  id        pg_catalog.int4;
BEGIN
  FOR i IN 0..63 LOOP
    outer_pad := pg_catalog.set_byte(outer_pad, i, pg_catalog.get_byte(inner_pad, i) OPERATOR(pg_catalog.#) 92);
    inner_pad := pg_catalog.set_byte(inner_pad, i, pg_catalog.get_byte(inner_pad, i) OPERATOR(pg_catalog.#) 54);
  END LOOP;
  INSERT INTO pgconsent.keys (kid, secret, ipad, opad)
  SELECT COALESCE(pg_catalog.max(k.kid), 0) OPERATOR(pg_catalog.+) 1, key, inner_pad, outer_pad FROM pgconsent.keys AS k
  RETURNING kid INTO id;
  RETURN id;
END $$;
REVOKE ALL ON FUNCTION pgconsent.make_key() FROM PUBLIC;

-- The way by which the control role, and nobody else, reads the keys.
CREATE FUNCTION pgconsent.seal_key(OUT kid pg_catalog.int4, OUT secret pg_catalog.bytea) RETURNS SETOF pg_catalog.record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT k.kid, k.secret FROM pgconsent.keys AS k ORDER BY k.kid;
END;
REVOKE ALL ON FUNCTION pgconsent.seal_key() FROM PUBLIC;

-- The three verifiers follow. Each is flat, since a call in a call costs more than the hashing; the part from
-- "-- verify" to "-- verified" is the same in all. Every name and every type is qualified and the path is set: a domain
-- pg_temp.text once ran code of an agent in here.
--
-- A seal is v1|kid|nonce|pid|expires|profile|name=value|…#hmac, see package seal. It holds for this process until
-- expires, compared with the start of the transaction, and may not claim more than twice 60 seconds.

-- attr returns an attribute of the sealed session; NULL without a valid seal. It never raises: it is used in policies,
-- where an error would tell that a row exists.
CREATE FUNCTION pgconsent_gate.attr(name pg_catalog.text) RETURNS pg_catalog.text
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
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent_gate.attr(pg_catalog.text) FROM PUBLIC;

-- sealed tells whether the session has a valid seal. It never raises and is never NULL.
CREATE FUNCTION pgconsent_gate.sealed() RETURNS pg_catalog.bool
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
REVOKE ALL ON FUNCTION pgconsent_gate.sealed() FROM PUBLIC;

-- vetted returns true if the whole text of the client's message carries the proxy's signature for the profile of the
-- sealed session, made with the seal's key; anything else raises. It guards the gate views and must never return false:
-- under NOT EXISTS an empty helper would show every row.
CREATE FUNCTION pgconsent_gate.vetted() RETURNS pg_catalog.bool
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
REVOKE ALL ON FUNCTION pgconsent_gate.vetted() FROM PUBLIC;

SELECT pgconsent.make_key();
