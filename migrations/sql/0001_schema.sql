-- What pgconsent keeps in a database, as of version 0.1.0. migrate runs this file once, and then makes what the policy
-- asks for. Every name is qualified, and functions with rights of their own set their search path: sessions of agents
-- run them.

-- ====================================================================================================
-- Schemas and what is installed
-- ====================================================================================================

-- Agents have USAGE of pgconsent_signed, pgconsent_catalog and pgconsent_rows only. They cannot name what is in
-- pgconsent: policies and views refer to it by OID.
CREATE SCHEMA pgconsent;
CREATE SCHEMA pgconsent_signed;
CREATE SCHEMA pgconsent_catalog;
CREATE SCHEMA pgconsent_rows;
REVOKE ALL ON SCHEMA pgconsent, pgconsent_signed, pgconsent_catalog FROM PUBLIC;
REVOKE ALL ON SCHEMA pgconsent_rows FROM PUBLIC;

CREATE TABLE pgconsent.migration (
  number     pg_catalog.int4 PRIMARY KEY,
  name       pg_catalog.text NOT NULL,
  applied_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now()
);

-- One row: the policy that is installed in this database.
CREATE TABLE pgconsent.installed (
  only_row       pg_catalog.bool PRIMARY KEY DEFAULT true CHECK (only_row),
  hash           pg_catalog.text NOT NULL,
  policy_version pg_catalog.text NOT NULL,
  found          pg_catalog.text NOT NULL, -- the state that its objects fit in, as JSON
  installed_at   pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now()
);

-- The objects of that policy: migrate compares them with those of the next one, and changes only what differs.
CREATE TABLE pgconsent.installed_plan (
  identity pg_catalog.text PRIMARY KEY,
  made     pg_catalog.text NOT NULL,   -- a hash of the statements that made it
  tables   pg_catalog.text[] NOT NULL, -- to which it belongs
  revokes  pg_catalog.text[] NOT NULL  -- statements that take back the rights that it gave on other objects
);

-- The statements that restore the state found before migrate, in order.
CREATE TABLE pgconsent.installed_undo (
  seq    pg_catalog.int4 PRIMARY KEY,
  sql    pg_catalog.text NOT NULL,
  why    pg_catalog.text NOT NULL,
  object pg_catalog.text NOT NULL -- which object it drops
);

-- How privileges on what was there before differ from those that were found.
CREATE TABLE pgconsent.installed_privilege (
  object    pg_catalog.text NOT NULL, -- as GRANT names it; DATABASE is this one
  grantee   pg_catalog.text NOT NULL,
  privilege pg_catalog.text NOT NULL,
  grantable pg_catalog.bool NOT NULL,
  given     pg_catalog.bool NOT NULL, -- false: it was found, and is taken away
  PRIMARY KEY (object, grantee, privilege, grantable, given)
);

-- The objects that migrate made, with a fingerprint of each, to notice changes by others.
CREATE TABLE pgconsent.installed_object (
  identity    pg_catalog.text PRIMARY KEY,
  fingerprint pg_catalog.text NOT NULL,
  version     pg_catalog.text -- of the rows of the catalogs that define it, where it is a view or a function
);

-- The catalogs that the installed policy fits, as a proxy has read them. A proxy that starts while the schema does not
-- fit compares them with the schema: it suspends what has changed, and serves the rest.
CREATE TABLE pgconsent.installed_catalog (
  only_row  pg_catalog.bool PRIMARY KEY DEFAULT true CHECK (only_row),
  hash      pg_catalog.text NOT NULL,  -- of the installed policy
  concerned pg_catalog.text NOT NULL,  -- the fingerprint of what concerns agents
  snapshot  pg_catalog.bytea NOT NULL
);
-- It is compressed already. PostgreSQL would try again after each change of the schema.
ALTER TABLE pgconsent.installed_catalog ALTER COLUMN snapshot SET STORAGE EXTERNAL;

-- remember_catalog stores them, if the policy is still the installed one. It waits for no lock for long: the session
-- that calls it also finds out whether agents may be served.
CREATE FUNCTION pgconsent.remember_catalog(hash pg_catalog.text, concerned pg_catalog.text, snapshot pg_catalog.bytea)
RETURNS pg_catalog.void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET lock_timeout TO '500ms' AS $$
BEGIN
  INSERT INTO pgconsent.installed_catalog AS c (hash, concerned, snapshot)
  SELECT i.hash, remember_catalog.concerned, remember_catalog.snapshot FROM pgconsent.installed AS i
  WHERE i.hash OPERATOR(pg_catalog.=) remember_catalog.hash
  ON CONFLICT ON CONSTRAINT installed_catalog_pkey DO UPDATE
  SET hash = excluded.hash, concerned = excluded.concerned, snapshot = excluded.snapshot;
END $$;
REVOKE ALL ON FUNCTION pgconsent.remember_catalog(pg_catalog.text, pg_catalog.text, pg_catalog.bytea) FROM PUBLIC;

-- Roles that migrate made, and that --down drops again if no other database needs them.
CREATE TABLE pgconsent.installed_role (name pg_catalog.text PRIMARY KEY);

-- ====================================================================================================
-- Keys
-- ====================================================================================================

-- The keys of seals and signatures, with the two pads of HMAC worked out. No function holds a key in its body, since
-- every role can read bodies.
CREATE TABLE pgconsent.keys (
  kid     pg_catalog.int4 PRIMARY KEY,
  secret  pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(secret) = 32),
  ipad    pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(ipad) = 64),
  opad    pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(opad) = 64),
  made_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now()
);

-- make_key makes a key from the strong random source of the server (a UUID of version 4 has 122 random bits).
CREATE FUNCTION pgconsent.make_key() RETURNS pg_catalog.int4
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  key   pg_catalog.bytea := pg_catalog.sha256(pg_catalog.convert_to(
          pg_catalog.concat(pg_catalog.gen_random_uuid(), pg_catalog.gen_random_uuid(), pg_catalog.gen_random_uuid(),
            pg_catalog.gen_random_uuid()), 'UTF8'));
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

-- seal_key returns the keys. Only the control role may call it.
CREATE FUNCTION pgconsent.seal_key(OUT kid pg_catalog.int4, OUT secret pg_catalog.bytea) RETURNS SETOF pg_catalog.record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT k.kid, k.secret FROM pgconsent.keys AS k ORDER BY k.kid;
END;
REVOKE ALL ON FUNCTION pgconsent.seal_key() FROM PUBLIC;

-- prune_keys drops the keys that a newer one has replaced two seal lifetimes ago: no seal is left that they verify.
CREATE FUNCTION pgconsent.prune_keys() RETURNS pg_catalog.void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  DELETE FROM pgconsent.keys AS k WHERE EXISTS (SELECT 1 FROM pgconsent.keys AS n WHERE n.kid OPERATOR(pg_catalog.>) k.kid
    AND n.made_at OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp()
      OPERATOR(pg_catalog.-) pg_catalog.make_interval(0, 0, 0, 0, 0, 2)));
END;
REVOKE ALL ON FUNCTION pgconsent.prune_keys() FROM PUBLIC;
SELECT pgconsent.make_key();

-- ====================================================================================================
-- The session: its seal, its attributes, its signed statements
-- ====================================================================================================

-- Attributes that no credential gives: a setting of the session that the policy accepts, a value that is looked up, a
-- value that follows from others. They are worked out when they are asked for, with the snapshot of the statement.
--
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

-- live returns such an attribute. A policy that has some replaces this function. claims are the fields of a seal.
-- settings are NULL for the settings of this session; where the proxy asks about another session, they are fields as
-- well.
CREATE FUNCTION pgconsent.live(name pg_catalog.text, claims pg_catalog.text[], settings pg_catalog.text[])
  RETURNS pg_catalog.text
LANGUAGE sql STABLE PARALLEL RESTRICTED
RETURN NULL::pg_catalog.text;
REVOKE ALL ON FUNCTION pgconsent.live(pg_catalog.text, pg_catalog.text[], pg_catalog.text[]) FROM PUBLIC;

-- acting returns the fields of the user for whom a session acts, by the setting pgconsent.acting: the proxy has signed
-- it for the session that the seal names, see package seal. NULL: the session acts for nobody, or its time is over. Only
-- attr asks, which has verified the seal. It never raises an error: nothing is cast before the comparison with the HMAC.
CREATE FUNCTION pgconsent.acting(session pg_catalog.text) RETURNS pg_catalog.text[]
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  value    pg_catalog.text := pg_catalog.current_setting('pgconsent.acting', true);
  payload  pg_catalog.text;
  i        pg_catalog.bytea;
  o        pg_catalog.bytea;
BEGIN
  IF pg_catalog.octet_length(value) OPERATOR(pg_catalog.<) 65536 THEN
    payload := pg_catalog.split_part(value, '#', 1);
    SELECT k.ipad, k.opad INTO i, o FROM pgconsent.keys AS k
    WHERE k.kid::pg_catalog.text OPERATOR(pg_catalog.=) pg_catalog.split_part(value, '|', 2);
    IF value OPERATOR(pg_catalog.=) (payload OPERATOR(pg_catalog.||) '#' OPERATOR(pg_catalog.||)
        pg_catalog.encode(pg_catalog.sha256(o OPERATOR(pg_catalog.||) pg_catalog.sha256(i OPERATOR(pg_catalog.||)
          pg_catalog.convert_to('act|' OPERATOR(pg_catalog.||) payload, 'UTF8'))), 'hex')) THEN
      IF pg_catalog.starts_with(value, 'v1|')
          AND pg_catalog.split_part(payload, '|', 3) OPERATOR(pg_catalog.=) session
          AND pg_catalog.split_part(payload, '|', 4)::pg_catalog.float8 OPERATOR(pg_catalog.>)
            pg_catalog.date_part('epoch', pg_catalog.transaction_timestamp()) THEN
        RETURN (pg_catalog.string_to_array(payload, '|'))[5:];
      END IF;
    END IF;
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.acting(pg_catalog.text) FROM PUBLIC;

-- Three functions verify the seal: verified_attr, is_sealed and text_is_signed. A seal is
-- v1|kid|nonce|pid|expires|profile|name=value|…#hmac, see package seal. It is valid for this process until expires,
-- compared with the start of the transaction, and for at most 120 seconds.
--
-- Each of the three repeats the lines from "-- verify" to "-- verified", since a call inside a call costs more than
-- the hashing. The time goes into expressions, which PL/pgSQL prepares anew in each transaction, and into functions
-- that count characters: both are few here. Nothing that is made of a seal before the comparison with its HMAC can
-- raise an error; casts come after it. Every name and type is qualified and the search path is set: otherwise a
-- domain pg_temp.text would run code of an agent in here. For verified_attr and is_sealed, the caller sets it.
--
-- verified_attr does what attr does, and verifies the seal each time.
CREATE FUNCTION pgconsent.verified_attr(name pg_catalog.text) RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $$
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
  acting   pg_catalog.text[];
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
          pg_catalog.date_part('epoch', pg_catalog.transaction_timestamp()) OPERATOR(pg_catalog.-) 60)
            OPERATOR(pg_catalog.<) 60
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
    start := pg_catalog.split_part(pg_catalog.split_part(payload, '|pgconsent.acts=', 2), '|', 1);
    IF start OPERATOR(pg_catalog.<>) '' THEN
      acting := pgconsent.acting(start);
      field := pgconsent.claim(name, acting);
      IF field IS NOT NULL THEN
        RETURN field;
      END IF;
    END IF;
    RETURN pgconsent.live(name, (pg_catalog.string_to_array(payload, '|'))[7:] OPERATOR(pg_catalog.||) acting, NULL);
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.verified_attr(pg_catalog.text) FROM PUBLIC;

-- is_sealed does what sealed does, and verifies the seal each time.
CREATE FUNCTION pgconsent.is_sealed() RETURNS pg_catalog.bool
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $$
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
          pg_catalog.date_part('epoch', pg_catalog.transaction_timestamp()) OPERATOR(pg_catalog.-) 60)
            OPERATOR(pg_catalog.<) 60
      END;
  END IF;
  -- verified
  RETURN valid IS TRUE;
END $$;
REVOKE ALL ON FUNCTION pgconsent.is_sealed() FROM PUBLIC;

-- attr and sealed find the seal already verified in a plan of their own, which PL/pgSQL keeps for each server process.
-- As it makes this plan, PostgreSQL evaluates seal_time, plan_attributes and plan_seal, which are declared IMMUTABLE
-- and are not. So the plan holds the seal of that time, if it was valid, with its attributes. Each call compares the
-- session's seal with it, within the times at which it is valid, and otherwise verifies the session's seal. Agents
-- cannot change such a plan, nor read one. It is made anew as described below for the plans of prepared statements.
--
-- seal_time returns the times at which the seal is valid, both ends left out. NULL: other sessions may use the plans
-- of this server process. It verifies nothing, and never raises an error.
CREATE FUNCTION pgconsent.seal_time() RETURNS pg_catalog.tstzrange
LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS $$
DECLARE
  expires pg_catalog.text;
BEGIN
  IF pg_catalog.strpos(pg_catalog.current_setting('pgconsent.seal', true), '|pgconsent.alone=')
      OPERATOR(pg_catalog.>) 0 THEN
    expires := pg_catalog.split_part(pg_catalog.current_setting('pgconsent.seal', true), '|', 5);
    IF expires OPERATOR(pg_catalog.~) '^[0-9]{1,10}$' THEN
      RETURN pg_catalog.tstzrange(pg_catalog.to_timestamp(expires::pg_catalog.float8 OPERATOR(pg_catalog.-) 120),
        pg_catalog.to_timestamp(expires::pg_catalog.float8), '()');
    END IF;
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.seal_time() FROM PUBLIC;

-- plan_attributes returns an object of one key, the seal of the session, if it is valid. Its value is an object with
-- the attributes that are in the seal.
CREATE FUNCTION pgconsent.plan_attributes() RETURNS pg_catalog.jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS $$
DECLARE
  seal       pg_catalog.text := pg_catalog.current_setting('pgconsent.seal', true);
  attributes pg_catalog.jsonb := '{}';
  name       pg_catalog.text;
BEGIN
  IF pgconsent.is_sealed() THEN
    FOREACH name IN ARRAY (pg_catalog.string_to_array(pg_catalog.split_part(seal, '#', 1), '|'))[7:] LOOP
      name := pg_catalog.split_part(name, '=', 1);
      attributes := attributes OPERATOR(pg_catalog.||) pg_catalog.jsonb_build_object(name, pgconsent.verified_attr(name));
    END LOOP;
    RETURN pg_catalog.jsonb_build_object(seal, attributes);
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.plan_attributes() FROM PUBLIC;

-- attr returns an attribute of the sealed session, or of the user for whom it acts; NULL without a valid seal. It never
-- raises an error: policies call it, and an error would tell that a row exists.
CREATE FUNCTION pgconsent_signed.attr(name pg_catalog.text) RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN COALESCE(CASE WHEN pgconsent.seal_time() OPERATOR(pg_catalog.@>) pg_catalog.transaction_timestamp()
    THEN pgconsent.plan_attributes() OPERATOR(pg_catalog.->) pg_catalog.current_setting('pgconsent.seal', true)
      OPERATOR(pg_catalog.->>) name END, pgconsent.verified_attr(name));
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.attr(pg_catalog.text) FROM PUBLIC;

-- sealed tells whether the session has a valid seal. It never raises and is never NULL.
CREATE FUNCTION pgconsent_signed.sealed() RETURNS pg_catalog.bool
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN COALESCE(CASE WHEN pgconsent.seal_time() OPERATOR(pg_catalog.@>) pg_catalog.transaction_timestamp()
    AND pgconsent_signed.plan_seal() OPERATOR(pg_catalog.=) pg_catalog.current_setting('pgconsent.seal', true)
    THEN true END, pgconsent.is_sealed());
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.sealed() FROM PUBLIC;

-- The plan of a prepared statement holds the verified seal, too, so that an execution calls none of these functions. As
-- the planner plans such a statement, it evaluates plan_attr and plan_seal, which are declared IMMUTABLE and are not:
-- their values, of the seal that is verified then, become part of the plan. Row policies ask
--
--   COALESCE(CASE WHEN plan_time() @> transaction_timestamp()
--     THEN plan_attr('user') ->> current_setting('pgconsent.seal', true) END, attr('user'))
--
-- which gives the value in the plan where the session has the very seal that was verified, within the times at which
-- that is valid. Otherwise attr verifies the seal of now. No statement can change what is in a plan, and a plan is
-- known to the server process only that made it. The proxy has plans made anew as it renews the seal, and so has the
-- database when a key is deleted.
--
-- plan_time returns the times at which the seal is valid, both ends left out. It is NULL, so that the planner drops the
-- rest, where the plan is not to be kept, which the proxy tells by a comment at the end of the text, or where the
-- server process may serve other sessions with the same plans. It verifies nothing, and never raises an error.
CREATE FUNCTION pgconsent_signed.plan_time() RETURNS pg_catalog.tstzrange
LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS $$
DECLARE
  expires pg_catalog.text;
BEGIN
  IF pg_catalog.current_query() OPERATOR(pg_catalog.~~) '%/*pgconsent:prepared*/' THEN
    IF pg_catalog.strpos(pg_catalog.current_setting('pgconsent.seal', true), '|pgconsent.alone=')
        OPERATOR(pg_catalog.>) 0 THEN
      expires := pg_catalog.split_part(pg_catalog.current_setting('pgconsent.seal', true), '|', 5);
      IF expires OPERATOR(pg_catalog.~) '^[0-9]{1,10}$' THEN
        RETURN pg_catalog.tstzrange(pg_catalog.to_timestamp(expires::pg_catalog.float8 OPERATOR(pg_catalog.-) 120),
          pg_catalog.to_timestamp(expires::pg_catalog.float8), '()');
      END IF;
    END IF;
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.plan_time() FROM PUBLIC;

-- plan_attr returns an object of one key, the seal of the session, with an attribute that is in the seal as its value,
-- or null where the seal is not valid. NULL: the seal has no such attribute. Like plan_seal it is a definer function
-- because the owner of row views cannot name what it calls.
CREATE FUNCTION pgconsent_signed.plan_attr(name pg_catalog.text) RETURNS pg_catalog.jsonb
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  seal pg_catalog.text := pg_catalog.current_setting('pgconsent.seal', true);
BEGIN
  IF pg_catalog.strpos(seal, '|' OPERATOR(pg_catalog.||) name OPERATOR(pg_catalog.||) '=') OPERATOR(pg_catalog.>) 0 THEN
    RETURN pg_catalog.jsonb_build_object(seal, pgconsent_signed.attr(name));
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.plan_attr(pg_catalog.text) FROM PUBLIC;

-- plan_seal returns the seal of the session if it is valid.
CREATE FUNCTION pgconsent_signed.plan_seal() RETURNS pg_catalog.text
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN CASE WHEN pgconsent.is_sealed() THEN pg_catalog.current_setting('pgconsent.seal', true) END;
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.plan_seal() FROM PUBLIC;

-- drop_plans has every session make its plans anew that may hold a seal, when a key is deleted: a change of a function
-- makes the server drop the plans of what calls it. That is no change of the catalogs for the proxies.
CREATE FUNCTION pgconsent.drop_plans() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN
    IF NOT EXISTS (SELECT FROM gone) THEN
      RETURN NULL; -- another session has deleted it, and changes the function
    END IF;
  END IF;
  PERFORM pg_catalog.set_config('pgconsent.catalog_changed', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
  ALTER FUNCTION pgconsent_signed.plan_time() PARALLEL RESTRICTED;
  ALTER FUNCTION pgconsent.seal_time() PARALLEL RESTRICTED;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.drop_plans() FROM PUBLIC;
CREATE TRIGGER pgconsent_drop_plans AFTER DELETE ON pgconsent.keys REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
  EXECUTE FUNCTION pgconsent.drop_plans();
CREATE TRIGGER pgconsent_drop_plans_truncate AFTER TRUNCATE ON pgconsent.keys FOR EACH STATEMENT
  EXECUTE FUNCTION pgconsent.drop_plans();
ALTER TABLE pgconsent.keys ENABLE ALWAYS TRIGGER pgconsent_drop_plans,
  ENABLE ALWAYS TRIGGER pgconsent_drop_plans_truncate;

-- text_is_signed returns true if the whole text of the client's message carries the signature of the proxy for the
-- profile of the sealed session, made with the key of the seal; otherwise it raises an error. The signed views call
-- it. It must never return false: under NOT EXISTS a view without rows would show every row of the table outside.
CREATE FUNCTION pgconsent_signed.text_is_signed() RETURNS pg_catalog.bool
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
          pg_catalog.date_part('epoch', pg_catalog.transaction_timestamp()) OPERATOR(pg_catalog.-) 60)
            OPERATOR(pg_catalog.<) 60
      END;
  END IF;
  -- verified
  IF valid IS TRUE THEN
    -- As bytes: substr counts characters from the start, which a long text pays for.
    message := pg_catalog.convert_to(pg_catalog.current_query(), 'UTF8');
    IF pg_catalog.substring(message, 1, 81) OPERATOR(pg_catalog.=) pg_catalog.convert_to('/*pgconsent:v1:'
      OPERATOR(pg_catalog.||)
         pg_catalog.encode(pg_catalog.sha256(o OPERATOR(pg_catalog.||) pg_catalog.sha256(i OPERATOR(pg_catalog.||)
           pg_catalog.convert_to('stmt|' OPERATOR(pg_catalog.||) pg_catalog.split_part(payload, '|',
             6) OPERATOR(pg_catalog.||) '|', 'UTF8')
           OPERATOR(pg_catalog.||) pg_catalog.substring(message, 82))), 'hex') OPERATOR(pg_catalog.||) '*/', 'UTF8') THEN
      RETURN true;
    END IF;
  END IF;
  RAISE EXCEPTION 'pgconsent: the proxy has not signed this statement' USING ERRCODE = '42501';
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.text_is_signed() FROM PUBLIC;

-- ====================================================================================================
-- Hints of the proxy in a statement
-- ====================================================================================================

-- use_hash tells row policies that the statement reads much of a table. The proxy says so by a hint in front of the
-- text, or behind its signature, and the policy then uses another form of the same condition, which the planner
-- hashes. It is declared IMMUTABLE, which it is not: so the planner evaluates it and plans one of the two forms only.
-- A plan that is reused keeps its form. Only speed depends on it, no row.
CREATE FUNCTION pgconsent_signed.use_hash() RETURNS pg_catalog.bool
  LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS $$
BEGIN
  RETURN pg_catalog.current_query() OPERATOR(pg_catalog.~~) '/*pgconsent:%use_hash*/%';
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.use_hash() FROM PUBLIC;

-- use_index tells that the conditions of the statement find few rows by an index. It is declared IMMUTABLE for the
-- same reason as use_hash; only speed depends on it.
CREATE FUNCTION pgconsent_signed.use_index() RETURNS pg_catalog.bool
  LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS $$
BEGIN
  RETURN pg_catalog.current_query() OPERATOR(pg_catalog.~~) '/*pgconsent:%use_index*/%';
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.use_index() FROM PUBLIC;

-- estimate_rows tells that the statement looks for a few rows of the signed view that has this mark. It is declared
-- IMMUTABLE for the same reason as use_hash; only speed depends on it.
CREATE FUNCTION pgconsent_signed.estimate_rows(mark pg_catalog.text) RETURNS pg_catalog.bool
  LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS $$
BEGIN
  RETURN pg_catalog.strpos(pg_catalog.left(pg_catalog.current_query(), 1000),
    pg_catalog.concat('/*pgconsent:estimate_rows ', mark, '*/')) OPERATOR(pg_catalog.>) 0;
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.estimate_rows(pg_catalog.text) FROM PUBLIC;

-- harden_plan makes the settings of a hardened plan, until the transaction ends or is rolled back to a savepoint
-- before it. It is declared IMMUTABLE, which it is not: so the planner evaluates it when the proxy binds it, and
-- nothing is executed. An Execute could be noticed: from PostgreSQL 18 on, a statement behind one in a pipeline is in
-- a transaction block.
CREATE FUNCTION pgconsent_signed.harden_plan() RETURNS pg_catalog.bool
  LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED AS $$
BEGIN
  PERFORM pg_catalog.set_config('cpu_operator_cost', '0', true), pg_catalog.set_config('enable_bitmapscan', 'off',
    true), pg_catalog.set_config('plan_cache_mode', 'force_custom_plan', true);
  RETURN true;
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.harden_plan() FROM PUBLIC;

-- set_config stands for pg_catalog.set_config where an agent sets the user for whom its session acts: the proxy has put a
-- signed value in the place of the agent's own, which the agent does not get to see. The name is left out of account.
CREATE FUNCTION pgconsent_signed.set_config(setting pg_catalog.text, value pg_catalog.text, is_local pg_catalog.bool)
  RETURNS pg_catalog.text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
BEGIN
  PERFORM pg_catalog.set_config('pgconsent.acting', value, is_local);
  RETURN '';
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.set_config(pg_catalog.text, pg_catalog.text, pg_catalog.bool) FROM PUBLIC;

-- lock_key is the key that is locked for an advisory lock of an agent's: a hash of the key that it names and of the
-- attributes of its session, and of the user for whom it acts. So its locks collide with none of the owner's, and with
-- none of agents whose attributes are others. A session holds 64 at most (takes tells that it is about to lock one more): all sessions share one
-- table of locks, which an agent must not fill.
CREATE FUNCTION pgconsent_signed.lock_key(key pg_catalog.text, takes pg_catalog.bool) RETURNS pg_catalog.int8
LANGUAGE plpgsql VOLATILE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fields pg_catalog.text[] := (pg_catalog.string_to_array(pg_catalog.split_part(
    pg_catalog.current_setting('pgconsent.seal', true), '#', 1), '|'))[7:];
BEGIN
  IF pg_catalog.strpos(pg_catalog.current_setting('pgconsent.seal', true), '|pgconsent.acts=') OPERATOR(pg_catalog.>) 0 THEN
    fields := fields OPERATOR(pg_catalog.||) (pg_catalog.string_to_array(pg_catalog.split_part(
      pg_catalog.current_setting('pgconsent.acting', true), '#', 1), '|'))[5:];
  END IF;
  IF takes AND (SELECT pg_catalog.count(*) FROM pg_catalog.pg_locks AS l WHERE l.locktype OPERATOR(pg_catalog.=) 'advisory'
    AND l.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()) OPERATOR(pg_catalog.>=) 64 THEN
    RAISE EXCEPTION 'pgconsent: too many advisory locks' USING ERRCODE = '54000';
  END IF;
  RETURN pg_catalog.hashtextextended(COALESCE((SELECT pg_catalog.string_agg(f.field, '|' ORDER BY f.n)
    FROM pg_catalog.unnest(fields) WITH ORDINALITY AS f (field, n)
    WHERE NOT pg_catalog.starts_with(f.field, 'pgconsent.')), '') OPERATOR(pg_catalog.||) '|' OPERATOR(pg_catalog.||) key, 0);
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.lock_key(pg_catalog.text, pg_catalog.bool) FROM PUBLIC;

-- drawn_number is the number that this session has drawn last from a sequence, as by an INSERT of its own: of one that
-- numbers a column which agents read, and that they may draw from. NULL: it is another sequence, or nothing was drawn,
-- or the session acts for others: another user may have drawn it.
CREATE FUNCTION pgconsent_signed.drawn_number(sequence pg_catalog.oid) RETURNS pg_catalog.int8
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_catalog.strpos(pg_catalog.current_setting('pgconsent.seal', true), '|pgconsent.acts=') OPERATOR(pg_catalog.>) 0 THEN
    RETURN NULL;
  END IF;
  -- Of what is no sequence has_sequence_privilege would say so, and by that, that a hidden relation is there.
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid OPERATOR(pg_catalog.=) sequence
    AND c.relkind OPERATOR(pg_catalog.=) 'S') THEN
    RETURN NULL;
  END IF;
  IF NOT pg_catalog.has_sequence_privilege(sequence, 'USAGE') OR NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.objid OPERATOR(pg_catalog.=) sequence AND d.refclassid OPERATOR(pg_catalog.=) d.classid
      AND d.refobjsubid OPERATOR(pg_catalog.>) 0 AND d.deptype OPERATOR(pg_catalog.=) ANY (ARRAY['a', 'i']::pg_catalog."char"[])
      AND pg_catalog.has_column_privilege(d.refobjid, d.refobjsubid::pg_catalog.int2, 'SELECT')) THEN
    RETURN NULL;
  END IF;
  RETURN pg_catalog.currval(sequence::pg_catalog.regclass);
EXCEPTION WHEN object_not_in_prerequisite_state THEN
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.drawn_number(pg_catalog.oid) FROM PUBLIC;

-- sequence_named is what a name means. NULL: there is nothing of that name, or in a schema that agents may not use.
CREATE FUNCTION pgconsent_signed.sequence_named(name pg_catalog.text) RETURNS pg_catalog.oid
LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
BEGIN
  RETURN pg_catalog.to_regclass(name)::pg_catalog.oid;
EXCEPTION WHEN insufficient_privilege THEN
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.sequence_named(pg_catalog.text) FROM PUBLIC;

-- number_or_error is a number that was drawn, or PostgreSQL's error where there is none.
CREATE FUNCTION pgconsent_signed.number_or_error(number pg_catalog.int8) RETURNS pg_catalog.int8
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF number IS NULL THEN
    RAISE EXCEPTION 'pgconsent: the session has drawn no number' USING ERRCODE = '55000';
  END IF;
  RETURN number;
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.number_or_error(pg_catalog.int8) FROM PUBLIC;

-- last_number is the number that this session has drawn last from any sequence, if that is one of drawn_number's.
CREATE FUNCTION pgconsent_signed.last_number() RETURNS pg_catalog.int8
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  last pg_catalog.int8;
BEGIN
  BEGIN
    last := pg_catalog.lastval();
  EXCEPTION WHEN object_not_in_prerequisite_state OR insufficient_privilege THEN
    RETURN NULL;
  END;
  RETURN (SELECT last WHERE EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.relkind OPERATOR(pg_catalog.=) 'S'
    AND pgconsent_signed.drawn_number(c.oid) OPERATOR(pg_catalog.=) last));
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.last_number() FROM PUBLIC;

-- distinct_values returns how many values columns have, as pg_stats has it, for hints of the proxy. It counts hidden
-- rows: only the control role may call it.
CREATE FUNCTION pgconsent.distinct_values(tables pg_catalog.oid[],
  OUT relation pg_catalog.oid, OUT attribute pg_catalog.text, OUT number pg_catalog.float8)
    RETURNS SETOF pg_catalog.record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT c.oid, s.attname::pg_catalog.text, s.n_distinct::pg_catalog.float8
  FROM pg_catalog.pg_stats AS s
  JOIN pg_catalog.pg_namespace AS n ON n.nspname OPERATOR(pg_catalog.=) s.schemaname
  JOIN pg_catalog.pg_class AS c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid
    AND c.relname OPERATOR(pg_catalog.=) s.tablename
  WHERE c.oid OPERATOR(pg_catalog.=) ANY (tables) AND s.inherited OPERATOR(pg_catalog.=) (c.relkind
    OPERATOR(pg_catalog.=) 'p');
END;
REVOKE ALL ON FUNCTION pgconsent.distinct_values(pg_catalog.oid[]) FROM PUBLIC;

-- ====================================================================================================
-- Values
-- ====================================================================================================

-- The key of hashed columns, as the two pads of HMAC. It is none of pgconsent.keys, which are rotated: a hash must
-- stay the same.
CREATE TABLE pgconsent.mask_key (
  only_row pg_catalog.bool PRIMARY KEY DEFAULT true CHECK (only_row),
  ipad     pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(ipad) = 64),
  opad     pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(opad) = 64)
);

-- The key is from the server's strong random source (a UUID of version 4 has 122 random bits).
INSERT INTO pgconsent.mask_key (ipad, opad)
SELECT pg_catalog.decode(pg_catalog.string_agg(pg_catalog.lpad(pg_catalog.to_hex(pg_catalog.get_byte(k.key,
  n.i) OPERATOR(pg_catalog.#) 54), 2, '0'), '' ORDER BY n.i), 'hex'),
       pg_catalog.decode(pg_catalog.string_agg(pg_catalog.lpad(pg_catalog.to_hex(pg_catalog.get_byte(k.key,
         n.i) OPERATOR(pg_catalog.#) 92), 2, '0'), '' ORDER BY n.i), 'hex')
FROM (SELECT pg_catalog.sha256(pg_catalog.convert_to(
        pg_catalog.concat(pg_catalog.gen_random_uuid(), pg_catalog.gen_random_uuid(), pg_catalog.gen_random_uuid(),
          pg_catalog.gen_random_uuid()), 'UTF8'))
      OPERATOR(pg_catalog.||) pg_catalog.decode(pg_catalog.repeat('00', 32), 'hex') AS key OFFSET 0) AS k
CROSS JOIN pg_catalog.generate_series(0, 63) AS n (i);

-- mask returns the first 32 hexadecimal digits of HMAC-SHA-256 of a value; NULL for NULL. A caller could check
-- guesses. Agents have EXECUTE, since row views call it with their rights, but cannot name it, since they have no
-- USAGE of its schema.
CREATE FUNCTION pgconsent.mask(value pg_catalog.text) RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  i pg_catalog.bytea;
  o pg_catalog.bytea;
BEGIN
  SELECT k.ipad, k.opad INTO i, o FROM pgconsent.mask_key AS k;
  RETURN pg_catalog.substr(pg_catalog.encode(pg_catalog.sha256(o OPERATOR(pg_catalog.||) pg_catalog.sha256(i
    OPERATOR(pg_catalog.||)
    pg_catalog.convert_to(value, 'UTF8'))), 'hex'), 1, 32);
END $$;
REVOKE ALL ON FUNCTION pgconsent.mask(pg_catalog.text) FROM PUBLIC;

-- json_grants tells whether a JSON array in a text holds one of these ids as a string; NULL if the text is no array
-- of scalars. It never raises an error: policies call it with texts that applications have written.
--
-- A text is cast only if it is certain to be JSON that jsonb can hold: strings without NUL and with surrogates in
-- pairs, numbers of moderate size, no nesting. A handler for errors would start a subtransaction, which forbids
-- parallel plans. The pattern is [ (scalar (, scalar)*)? ], a scalar "string" | true | false | null | number;
-- literals on two lines are one literal.
CREATE FUNCTION pgconsent_signed.json_grants(grants pg_catalog.text, who pg_catalog.text[]) RETURNS pg_catalog.bool
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE
    WHEN pg_catalog.octet_length(grants) OPERATOR(pg_catalog.>) 1048576 THEN NULL
    WHEN pg_catalog.getdatabaseencoding() OPERATOR(pg_catalog.<>) 'UTF8' AND (grants COLLATE pg_catalog."C")
      OPERATOR(pg_catalog.~) '\\u' THEN NULL
    WHEN (grants COLLATE pg_catalog."C") OPERATOR(pg_catalog.~)
      '^[ \t\n\r]*\[[ \t\n\r]*('
        '("([^"\\\u0001-\u001f]|\\["\\/bfnrt]|\\u('
          '[1-9a-cA-CeEfF][0-9a-fA-F]{3}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]'
          '|[dD][0-7][0-9a-fA-F]{2}|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*"'
        '|true|false|null|-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?)[ \t\n\r]*'
      '(,[ \t\n\r]*'
        '("([^"\\\u0001-\u001f]|\\["\\/bfnrt]|\\u('
          '[1-9a-cA-CeEfF][0-9a-fA-F]{3}|0[1-9a-fA-F][0-9a-fA-F]{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]'
          '|[dD][0-7][0-9a-fA-F]{2}|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*"'
        '|true|false|null|-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?)[ \t\n\r]*'
      ')*)?\][ \t\n\r]*$'
    THEN grants::pg_catalog.jsonb OPERATOR(pg_catalog.?|) who
  END;
END;
REVOKE ALL ON FUNCTION pgconsent_signed.json_grants(pg_catalog.text, pg_catalog.text[]) FROM PUBLIC;

-- jsonb_ids lists the ids in a JSON array: its strings, and NULL for each element that is no string, since nobody can
-- consent for it. It returns NULL if the value is no array, and never raises an error.
CREATE FUNCTION pgconsent_signed.jsonb_ids(list pg_catalog.jsonb) RETURNS pg_catalog.text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT CASE WHEN pg_catalog.jsonb_typeof(list) OPERATOR(pg_catalog.=) 'array' THEN ARRAY(
    SELECT CASE WHEN pg_catalog.jsonb_typeof(e.value) OPERATOR(pg_catalog.=) 'string'
      THEN e.value OPERATOR(pg_catalog.#>>) '{}'::pg_catalog.text[] END
    FROM pg_catalog.jsonb_array_elements(CASE WHEN pg_catalog.jsonb_typeof(list) OPERATOR(pg_catalog.=) 'array'
      THEN list ELSE '[]' END) WITH ORDINALITY AS e (value, place) ORDER BY e.place) END;
END;
REVOKE ALL ON FUNCTION pgconsent_signed.jsonb_ids(pg_catalog.jsonb) FROM PUBLIC;

-- json_ids does the same for JSON in a text; NULL if it is no array of scalars (see json_grants). The cast needs the
-- result of the pattern: PostgreSQL evaluates the cast of a constant while it plans, even in a branch of CASE that is
-- never taken, and a plan for one execution has constants in place of parameters.
CREATE FUNCTION pgconsent_signed.json_ids(list pg_catalog.text) RETURNS pg_catalog.text[]
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT pgconsent_signed.jsonb_ids((CASE WHEN pgconsent_signed.json_grants(list, '{}'::pg_catalog.text[]) IS NOT NULL
    THEN list END)::pg_catalog.jsonb);
END;
REVOKE ALL ON FUNCTION pgconsent_signed.json_ids(pg_catalog.text) FROM PUBLIC;

-- A table on which "pgconsent doctor" and the proxy try row security and signed views: agents see its first row, and
-- no expression may find out about the second. No statement of an agent can name it; the policy and the views over it
-- come with each policy that is installed.
CREATE TABLE pgconsent_signed.canary (
  id      pg_catalog.int4 PRIMARY KEY,
  consent pg_catalog.text NOT NULL,
  secret  pg_catalog.text NOT NULL
);
INSERT INTO pgconsent_signed.canary VALUES (1, 'granted', '7'), (2, 'refused', 'a hidden row');
ALTER TABLE pgconsent_signed.canary ENABLE ROW LEVEL SECURITY;
REVOKE ALL ON pgconsent_signed.canary FROM PUBLIC;

-- ====================================================================================================
-- Changes that snapshots miss
-- ====================================================================================================

-- Changes that snapshots may miss. A cursor, a portal or a REPEATABLE READ transaction shows the rows of its
-- snapshot. The proxy asks here whether a change of consent was committed since, and ends it if so.
--
-- One row for each transaction that changed a value which decides who sees a row. Rows are removed an hour after they
-- were first seen committed: no snapshot lives as long.
CREATE TABLE pgconsent.change (
  xid     pg_catalog.xid8 PRIMARY KEY,
  made_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  seen_at pg_catalog.timestamptz -- when it was first seen committed
);

-- changed is the trigger that notes such a change. It writes once for each transaction: a setting that ends with the
-- (sub)transaction remembers it, so that a statement that changes a million rows costs little more.
CREATE FUNCTION pgconsent.changed() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_catalog.current_setting('pgconsent.changed', true) IS DISTINCT
    FROM pg_catalog.pg_current_xact_id()::pg_catalog.text THEN
    INSERT INTO pgconsent.change (xid) VALUES (pg_catalog.pg_current_xact_id()) ON CONFLICT DO NOTHING;
    PERFORM pg_catalog.set_config('pgconsent.changed', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.changed() FROM PUBLIC;

-- changed_since tells whether a change was committed that the snapshot does not show. Transactions below the
-- snapshot's xmin have ended before it, so that the index finds the few rows that remain. It is true as well if a
-- trigger is not enabled ALWAYS, since nothing would be noted then: ALTER TABLE ... DISABLE TRIGGER ALL is common
-- around bulk loads, and ENABLE TRIGGER ALL leaves ours without ALWAYS. migrate puts them back.
CREATE FUNCTION pgconsent.changed_since(taken pg_catalog.pg_snapshot) RETURNS pg_catalog.bool
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN EXISTS (SELECT 1 FROM pgconsent.change AS c
    WHERE c.xid OPERATOR(pg_catalog.>=) pg_catalog.pg_snapshot_xmin(taken)
      AND NOT pg_catalog.pg_visible_in_snapshot(c.xid, taken))
  OR EXISTS (SELECT 1 FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_trigger AS t
    ON t.oid OPERATOR(pg_catalog.=) d.objid
    WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
      AND d.refobjid OPERATOR(pg_catalog.=) 'pgconsent.changed()'::pg_catalog.regprocedure
      AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_trigger'::pg_catalog.regclass
      AND t.tgenabled OPERATOR(pg_catalog.<>) 'A'::pg_catalog."char")
  OR NOT EXISTS (SELECT 1 FROM pgconsent.change AS c WHERE c.xid OPERATOR(pg_catalog.=) '0'::pg_catalog.xid8);
END $$;
REVOKE ALL ON FUNCTION pgconsent.changed_since(pg_catalog.pg_snapshot) FROM PUBLIC;

-- prune_changes removes changes that no snapshot asks about any more. Their age counts from when they were first seen
-- committed: a transaction may last long after the change, or be prepared, and a snapshot from before its commit must
-- still be ended.

CREATE FUNCTION pgconsent.prune_changes() RETURNS pg_catalog.void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE pgconsent.change SET seen_at = pg_catalog.clock_timestamp() WHERE seen_at IS NULL;
  -- A row with the number of a transaction that has yet to begin comes from another cluster, by a dump.
  DELETE FROM pgconsent.change AS c WHERE c.seen_at OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp()
    OPERATOR(pg_catalog.-) '01:00:00'::pg_catalog.interval)
    OR c.xid OPERATOR(pg_catalog.>=) pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())
      AND c.xid IS DISTINCT FROM pg_catalog.pg_current_xact_id_if_assigned();
END $$;
REVOKE ALL ON FUNCTION pgconsent.prune_changes() FROM PUBLIC;

-- A row of no transaction, which is never removed: without it somebody has emptied the table, and changed_since is
-- true.
INSERT INTO pgconsent.change (xid, made_at, seen_at) VALUES ('0', 'infinity', 'infinity')
  ON CONFLICT (xid) DO UPDATE SET seen_at = 'infinity';

-- row_is_current returns true for a row version with which consent may be looked up in the snapshot of the statement,
-- or raises an error. written is its xmin. An UPDATE, a DELETE or a SELECT FOR UPDATE that has waited for another
-- transaction goes on with the row version that this one has left (EvalPlanQual in PostgreSQL's execMain.c), but looks
-- up consent in the snapshot from before it waited. So a row version that this snapshot does not show may be used only
-- if no change of consent was committed since. noted tells that triggers note all such changes. STABLE: the snapshot
-- is that of the statement.
CREATE FUNCTION pgconsent_signed.row_is_current(written pg_catalog.xid, noted pg_catalog.bool) RETURNS pg_catalog.bool
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  taken  pg_catalog.pg_snapshot := pg_catalog.pg_current_snapshot();
  upto   pg_catalog.int8 := pg_catalog.pg_snapshot_xmax(taken)::pg_catalog.text::pg_catalog.int8;
  behind pg_catalog.int8 := (upto OPERATOR(pg_catalog.-) written::pg_catalog.text::pg_catalog.int8)
    OPERATOR(pg_catalog.&) 4294967295;
  writer pg_catalog.xid8;
BEGIN
  -- The last transaction with this number that the snapshot can show: half of all numbers are behind it, half before it.
  IF behind OPERATOR(pg_catalog.>) 0 AND behind OPERATOR(pg_catalog.<) 2147483648 THEN
    writer := GREATEST(upto OPERATOR(pg_catalog.-) behind, 3)::pg_catalog.text::pg_catalog.xid8;
    IF pg_catalog.pg_visible_in_snapshot(writer, taken) THEN
      RETURN true;
    END IF;
  END IF;
  -- A number further ahead than a billion belongs to a row that was frozen long ago, which keeps its xmin.
  IF behind OPERATOR(pg_catalog.>=) 2147483648 AND behind OPERATOR(pg_catalog.<) 3221225472 THEN
    RETURN true;
  END IF;
  IF NOT noted THEN
    writer := (CASE WHEN behind OPERATOR(pg_catalog.<) 2147483648 THEN upto OPERATOR(pg_catalog.-) behind
      ELSE upto OPERATOR(pg_catalog.-) behind OPERATOR(pg_catalog.+) 4294967296 END)::pg_catalog.text::pg_catalog.xid8;
    BEGIN
      IF pg_catalog.pg_xact_status(writer) OPERATOR(pg_catalog.=) 'in progress' THEN -- our own: of another it is locked
        RETURN true;
      END IF;
    EXCEPTION WHEN invalid_parameter_value THEN -- nobody has had this number yet: frozen as well
      RETURN true;
    END;
  ELSIF NOT pgconsent.changed_since(taken) THEN
    RETURN true;
  END IF;
  RAISE EXCEPTION 'pgconsent: consent has changed while the statement waited' USING ERRCODE = '40001';
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.row_is_current(pg_catalog.xid, pg_catalog.bool) FROM PUBLIC;

-- ====================================================================================================
-- Changes of the catalogs
-- ====================================================================================================

-- The version of the catalogs under which a statement was decided. An event trigger, which migrate makes where it
-- may, notes DDL in its own transaction. The seal of a session has the version that its proxy has read. Where the two
-- differ, the planner refuses the statement.
--
-- One row for each transaction that changed the catalogs. Rows are added up now and then, so that their sum is the
-- version. It grows with each such transaction that commits, in any order, and no transaction waits for the row of
-- another.
CREATE TABLE pgconsent.catalog_change (
  xid pg_catalog.xid8 PRIMARY KEY,
  n   pg_catalog.int8 NOT NULL DEFAULT 1
);

CREATE FUNCTION pgconsent.catalog_version() RETURNS pg_catalog.int8
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT COALESCE(pg_catalog.sum(c.n), 0)::pg_catalog.int8 FROM pgconsent.catalog_change AS c;
END;
REVOKE ALL ON FUNCTION pgconsent.catalog_version() FROM PUBLIC;

-- add_catalog_changes adds the rows up to one.
CREATE FUNCTION pgconsent.add_catalog_changes() RETURNS pg_catalog.void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  WITH gone AS (DELETE FROM pgconsent.catalog_change AS c
    WHERE c.xid OPERATOR(pg_catalog.<>) '0'::pg_catalog.xid8 RETURNING c.n)
  INSERT INTO pgconsent.catalog_change AS c (xid, n)
  SELECT '0'::pg_catalog.xid8, pg_catalog.sum(g.n)::pg_catalog.int8 FROM gone AS g HAVING pg_catalog.count(*)
    OPERATOR(pg_catalog.>) 0
  ON CONFLICT (xid) DO UPDATE SET n = c.n OPERATOR(pg_catalog.+) EXCLUDED.n;
END;
REVOKE ALL ON FUNCTION pgconsent.add_catalog_changes() FROM PUBLIC;

-- Changes of the catalogs that concern agents. A table that no policy lists, that is connected with no listed table
-- and that shares its name with nothing listed may be made, altered and dropped: it changes the meaning of no
-- statement of an agent. Where this is not certain, a change counts.
--
-- concerned_by_itself: listed tables, which have policies of ours; views, foreign tables, composite types and objects
-- in our schemas; relations that a function, a rule, a view or a policy of another table reads; and relations with
-- the name of a type that is no table's.
CREATE VIEW pgconsent.concerned_by_itself (oid) AS
  SELECT p.polrelid FROM pg_catalog.pg_policy AS p WHERE p.polname OPERATOR(pg_catalog.~) '^pgconsent_'
  UNION ALL SELECT c.oid FROM pg_catalog.pg_class AS c WHERE c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['v', 'm',
    'f', 'c']::pg_catalog."char"[]) AND c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  UNION ALL SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n
    ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    WHERE n.nspname OPERATOR(pg_catalog.=) ANY (ARRAY['pgconsent', 'pgconsent_signed', 'pgconsent_catalog',
      'pgconsent_rows'])
  UNION ALL SELECT d.refobjid FROM pg_catalog.pg_depend AS d
    WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
    AND d.classid OPERATOR(pg_catalog.=) ANY (ARRAY['pg_catalog.pg_rewrite'::pg_catalog.regclass,
      'pg_catalog.pg_proc'::pg_catalog.regclass]::pg_catalog.oid[])
  UNION ALL SELECT d.refobjid FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_policy AS p
    ON p.oid OPERATOR(pg_catalog.=) d.objid AND p.polrelid OPERATOR(pg_catalog.<>) d.refobjid
    WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_policy'::pg_catalog.regclass
  UNION ALL SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_depend AS d
    ON d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_type'::pg_catalog.regclass
      AND d.refobjid OPERATOR(pg_catalog.=) c.reltype
        AND d.classid OPERATOR(pg_catalog.<>) 'pg_catalog.pg_type'::pg_catalog.regclass
    WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid AND c.reltype OPERATOR(pg_catalog.<>) 0::pg_catalog.oid
  UNION ALL SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_type AS t
    ON t.typname OPERATOR(pg_catalog.=) c.relname AND t.typrelid OPERATOR(pg_catalog.=) 0::pg_catalog.oid
    WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid AND c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['r',
      'p', 'S']::pg_catalog."char"[]);

-- concerned_beside: the connections of relations, each both ways: inheritance, foreign keys, sequences of columns,
-- defaults, and equal names.
CREATE VIEW pgconsent.concerned_beside (a, b) AS
  SELECT i.inhrelid, i.inhparent FROM pg_catalog.pg_inherits AS i
  UNION ALL SELECT i.inhparent, i.inhrelid FROM pg_catalog.pg_inherits AS i
  UNION ALL SELECT k.conrelid, k.confrelid FROM pg_catalog.pg_constraint AS k WHERE k.contype OPERATOR(pg_catalog.=) 'f'
  UNION ALL SELECT d.refobjid, k.conrelid FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_constraint AS k
    ON k.oid OPERATOR(pg_catalog.=) d.objid
    AND k.confrelid OPERATOR(pg_catalog.=) d.refobjid AND k.contype OPERATOR(pg_catalog.=) 'f'
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_constraint'::pg_catalog.regclass
      AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
  UNION ALL SELECT d.objid, d.refobjid FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_class AS s
    ON s.oid OPERATOR(pg_catalog.=) d.objid AND s.relkind OPERATOR(pg_catalog.=) 'S'
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
  UNION ALL SELECT d.refobjid, d.objid FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_class AS s
    ON s.oid OPERATOR(pg_catalog.=) d.objid AND s.relkind OPERATOR(pg_catalog.=) 'S'
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
  UNION ALL SELECT f.adrelid, d.refobjid FROM pg_catalog.pg_attrdef AS f JOIN pg_catalog.pg_depend AS d
    ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass
    AND d.objid OPERATOR(pg_catalog.=) f.oid
      AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.refobjid OPERATOR(pg_catalog.<>) f.adrelid
  UNION ALL SELECT d.refobjid, f.adrelid FROM pg_catalog.pg_attrdef AS f JOIN pg_catalog.pg_depend AS d
    ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass
    AND d.objid OPERATOR(pg_catalog.=) f.oid
      AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
      AND d.refobjid OPERATOR(pg_catalog.<>) f.adrelid
  UNION ALL SELECT c.oid, o.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_class AS o
    ON o.relname OPERATOR(pg_catalog.=) c.relname AND o.oid OPERATOR(pg_catalog.<>) c.oid
    WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid AND o.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
      AND c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'p', 'S', 'v', 'm', 'f', 'c']::pg_catalog."char"[])
        AND o.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'p', 'S', 'v', 'm', 'f', 'c']::pg_catalog."char"[]);

-- concerned returns all relations that concern agents. It is PL/pgSQL, so that a session keeps the plan, which takes
-- longer to make than to run.
CREATE FUNCTION pgconsent.concerned() RETURNS SETOF pg_catalog.oid
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY WITH RECURSIVE beside AS MATERIALIZED (SELECT e.a, e.b FROM pgconsent.concerned_beside AS e),
  near (oid) AS (SELECT r.oid FROM pgconsent.concerned_by_itself AS r
    UNION SELECT e.b FROM near AS n JOIN beside AS e ON e.a OPERATOR(pg_catalog.=) n.oid)
  SELECT n.oid FROM near AS n;
END $$;
REVOKE ALL ON FUNCTION pgconsent.concerned() FROM PUBLIC;

-- concerns tells it of one relation, or of an index by its table. OFFSET 0 makes the planner use the indexes of the
-- catalogs for one relation. It is PL/pgSQL for the same reason.
CREATE FUNCTION pgconsent.concerns(relation pg_catalog.oid) RETURNS pg_catalog.bool
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (WITH RECURSIVE near (oid) AS (SELECT COALESCE((SELECT i.indrelid FROM pg_catalog.pg_index AS i
    WHERE i.indexrelid OPERATOR(pg_catalog.=) $1), $1)
      UNION SELECT e.b FROM near AS n CROSS JOIN LATERAL (SELECT e.b FROM pgconsent.concerned_beside AS e
        WHERE e.a OPERATOR(pg_catalog.=) n.oid OFFSET 0) AS e)
    SELECT EXISTS (SELECT FROM near AS n CROSS JOIN LATERAL (SELECT FROM pgconsent.concerned_by_itself AS r
      WHERE r.oid OPERATOR(pg_catalog.=) n.oid LIMIT 1) AS r));
END $$;
REVOKE ALL ON FUNCTION pgconsent.concerns(pg_catalog.oid) FROM PUBLIC;

-- within_reach tells whether one of the roles of our policies has USAGE of a schema.
CREATE FUNCTION pgconsent.within_reach(schema pg_catalog.oid) RETURNS pg_catalog.bool
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  SELECT EXISTS (SELECT FROM (SELECT DISTINCT r.oid FROM pg_catalog.pg_policy AS p CROSS
    JOIN LATERAL pg_catalog.unnest(p.polroles) AS r (oid)
      WHERE p.polname OPERATOR(pg_catalog.~) '^pgconsent_' AND r.oid OPERATOR(pg_catalog.<>) 0::pg_catalog.oid) AS r
    WHERE pg_catalog.has_schema_privilege(r.oid, $1, 'USAGE'));
END;
REVOKE ALL ON FUNCTION pgconsent.within_reach(pg_catalog.oid) FROM PUBLIC;

-- catalog_changed is the event trigger. It notes only changes that concern agents; temporary objects, comments and
-- refreshed or rebuilt data do not. A dropped object is not in the catalogs any more: a listed table had a policy of
-- ours, which is dropped with it, and the table of a dropped index or of dropped statistics is locked.
--
-- It must never make DDL of others fail: an error in here is logged, and the proxy notices the change by polling. It
-- sends no notification in a transaction that may be prepared, since PREPARE TRANSACTION refuses one that has
-- notified, nor while others have filled the queue. It waits for no lock.
CREATE FUNCTION pgconsent.catalog_changed() RETURNS pg_catalog.event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF tg_tag IN ('COMMENT', 'SECURITY LABEL', 'REFRESH MATERIALIZED VIEW', 'REINDEX')
    OR pg_catalog.current_setting('pgconsent.catalog_changed', true)
      OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id()::pg_catalog.text THEN
    RETURN; -- or this transaction has noted one
  ELSIF tg_event OPERATOR(pg_catalog.=) 'sql_drop' THEN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger_dropped_objects() AS o WHERE NOT o.is_temporary
      AND NOT COALESCE(CASE
        WHEN o.object_type IN ('table', 'sequence') THEN o.schema_name OPERATOR(pg_catalog.!~) '^pgconsent'
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.relname OPERATOR(pg_catalog.=) o.object_name
            AND pgconsent.concerns(c.oid))
        WHEN o.object_type IN ('index', 'statistics object') THEN NOT EXISTS (SELECT FROM pg_catalog.pg_locks AS l
          WHERE l.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()
          AND l.mode IN ('AccessExclusiveLock', 'ShareUpdateExclusiveLock') AND pgconsent.concerns(l.relation))
        WHEN o.object_type IN ('trigger', 'policy', 'table constraint', 'table column', 'default value')
          THEN (o.object_type OPERATOR(pg_catalog.<>) 'policy'
          OR o.address_names[3] OPERATOR(pg_catalog.!~) '^pgconsent_')
          AND COALESCE(NOT pgconsent.concerns(pg_catalog.to_regclass(pg_catalog.format('%I.%I', o.address_names[1],
            o.address_names[2]))), true)
        WHEN o.object_type OPERATOR(pg_catalog.=) 'toast table' THEN true
        WHEN o.object_type OPERATOR(pg_catalog.=) 'type' AND NOT o.original AND NOT o.normal
          THEN true -- of a table, or an array
        WHEN o.object_type IN ('type', 'function')
          THEN NOT pgconsent.within_reach(pg_catalog.to_regnamespace(pg_catalog.quote_ident(o.schema_name)))
        ELSE false END, false)) THEN
      RETURN;
    END IF;
  ELSIF NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger_ddl_commands() AS c WHERE c.schema_name IS DISTINCT
    FROM 'pg_temp' AND NOT COALESCE(CASE c.classid
      WHEN 'pg_catalog.pg_class'::pg_catalog.regclass THEN NOT pgconsent.concerns(c.objid)
      WHEN 'pg_catalog.pg_trigger'::pg_catalog.regclass THEN (SELECT NOT pgconsent.concerns(g.tgrelid)
        FROM pg_catalog.pg_trigger AS g WHERE g.oid OPERATOR(pg_catalog.=) c.objid)
      WHEN 'pg_catalog.pg_policy'::pg_catalog.regclass THEN (SELECT NOT pgconsent.concerns(p.polrelid)
        FROM pg_catalog.pg_policy AS p WHERE p.oid OPERATOR(pg_catalog.=) c.objid)
      WHEN 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass THEN (SELECT NOT pgconsent.concerns(s.stxrelid)
        FROM pg_catalog.pg_statistic_ext AS s WHERE s.oid OPERATOR(pg_catalog.=) c.objid)
      WHEN 'pg_catalog.pg_namespace'::pg_catalog.regclass THEN NOT pgconsent.within_reach(c.objid)
      WHEN 'pg_catalog.pg_type'::pg_catalog.regclass THEN (SELECT NOT pgconsent.within_reach(t.typnamespace)
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d
        WHERE d.refclassid OPERATOR(pg_catalog.=) c.classid AND d.refobjid OPERATOR(pg_catalog.=) t.oid
          AND d.deptype OPERATOR(pg_catalog.<>) 'i') FROM pg_catalog.pg_type AS t
          WHERE t.oid OPERATOR(pg_catalog.=) c.objid)
      WHEN 'pg_catalog.pg_proc'::pg_catalog.regclass THEN (SELECT NOT pgconsent.within_reach(p.pronamespace)
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d
        WHERE d.refclassid OPERATOR(pg_catalog.=) c.classid AND d.refobjid OPERATOR(pg_catalog.=) p.oid)
          FROM pg_catalog.pg_proc AS p WHERE p.oid OPERATOR(pg_catalog.=) c.objid)
      ELSE false END, false)) THEN
    RETURN;
  END IF;
  INSERT INTO pgconsent.catalog_change AS c (xid) VALUES (pg_catalog.pg_current_xact_id())
  ON CONFLICT (xid) DO UPDATE SET n = c.n OPERATOR(pg_catalog.+) 1; -- a row from another cluster, by a dump
  INSERT INTO pgconsent.change (xid) VALUES (pg_catalog.pg_current_xact_id()) ON CONFLICT DO NOTHING;
  IF pg_catalog.current_setting('max_prepared_transactions') OPERATOR(pg_catalog.=) '0'
    AND pg_catalog.pg_notification_queue_usage() OPERATOR(pg_catalog.<) 0.5 THEN
    PERFORM pg_catalog.pg_notify('pgconsent_catalog', '');
  END IF;
  PERFORM pg_catalog.set_config('pgconsent.catalog_changed', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
EXCEPTION WHEN OTHERS THEN
  RAISE LOG 'pgconsent: a change of the catalogs is not noted (SQLSTATE %)', SQLSTATE;
END $$;
REVOKE ALL ON FUNCTION pgconsent.catalog_changed() FROM PUBLIC;

-- current_catalog stands in a policy of each table by itself. It raises an error if the catalogs have changed since
-- the statement was decided, or if the seal is of another time than the transaction: the clock of the database was
-- moved, and row security would show nothing, as if there were no rows. It is declared IMMUTABLE, which it is not: so
-- the planner evaluates it before any row is read, and whether it raises depends on no row. A plan that is reused has
-- its meaning from when it was made, and is made anew when an object that it reads is altered. The seal is not
-- verified here: a session that forges it gains a plan, and sees no row. A session without a version in its seal is
-- not asked for one.
CREATE FUNCTION pgconsent_signed.current_catalog() RETURNS pg_catalog.bool
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  seal  pg_catalog.text := pg_catalog.current_setting('pgconsent.seal', true);
  known pg_catalog.text := pg_catalog.split_part(pg_catalog.split_part(seal, '|pgconsent.catalog=', 2), '#', 1);
BEGIN
  IF known OPERATOR(pg_catalog.<>) '' THEN
    IF known OPERATOR(pg_catalog.<>) (SELECT COALESCE(pg_catalog.sum(c.n), 0)::pg_catalog.text
      FROM pgconsent.catalog_change AS c) THEN
      RAISE EXCEPTION 'pgconsent: the catalogs have changed since this statement was decided' USING ERRCODE = '40001';
    ELSIF pg_catalog.abs(pg_catalog.split_part(seal, '|', 5)::pg_catalog.float8 OPERATOR(pg_catalog.-)
        pg_catalog.date_part('epoch', pg_catalog.transaction_timestamp()) OPERATOR(pg_catalog.-) 60)
          OPERATOR(pg_catalog.>=) 60 THEN
      RAISE EXCEPTION 'pgconsent: the session''s identity is of another time than its transaction'
        USING ERRCODE = '40001';
    END IF;
  END IF;
  RETURN true;
END $$;
REVOKE ALL ON FUNCTION pgconsent_signed.current_catalog() FROM PUBLIC;

-- The rights of agents on tables whose row security is off. An event trigger takes the rights away in the transaction
-- that switches row security off, since row policies do nothing then and a proxy notices it only afterwards. When row
-- security is on again, it gives them back.
CREATE TABLE pgconsent.withheld (
  relation  pg_catalog.oid  NOT NULL,
  grantee   pg_catalog.name NOT NULL,
  privilege pg_catalog.text NOT NULL,
  attname   pg_catalog.name NOT NULL, -- '': the privilege is on the table
  PRIMARY KEY (relation, grantee, privilege, attname)
);
REVOKE ALL ON TABLE pgconsent.withheld FROM PUBLIC;

-- rights_of_bound returns the rights on a table of the roles to which its row policies of ours apply.
CREATE FUNCTION pgconsent.rights_of_bound(relation pg_catalog.oid)
RETURNS TABLE (grantee pg_catalog.name, privilege pg_catalog.text, attname pg_catalog.name)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH bound AS (SELECT DISTINCT r.oid, r.rolname FROM pg_catalog.pg_policy AS p JOIN pg_catalog.pg_roles AS r
    ON r.oid OPERATOR(pg_catalog.=) ANY (p.polroles)
    WHERE p.polrelid OPERATOR(pg_catalog.=) $1 AND p.polname OPERATOR(pg_catalog.=) 'pgconsent_select')
  SELECT b.rolname, x.privilege_type, ''::pg_catalog.name FROM bound AS b, pg_catalog.pg_class AS c,
    pg_catalog.aclexplode(c.relacl) AS x
  WHERE c.oid OPERATOR(pg_catalog.=) $1 AND x.grantee OPERATOR(pg_catalog.=) b.oid
  UNION SELECT b.rolname, x.privilege_type, a.attname FROM bound AS b, pg_catalog.pg_attribute AS a,
    pg_catalog.aclexplode(a.attacl) AS x
  WHERE a.attrelid OPERATOR(pg_catalog.=) $1 AND NOT a.attisdropped AND x.grantee OPERATOR(pg_catalog.=) b.oid
$$;
REVOKE ALL ON FUNCTION pgconsent.rights_of_bound(pg_catalog.oid) FROM PUBLIC;

CREATE FUNCTION pgconsent.withhold() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t pg_catalog.record;
  g pg_catalog.record;
BEGIN
  FOR t IN SELECT DISTINCT c.oid, c.relrowsecurity, pg_catalog.format('%I.%I', n.nspname, c.relname) AS name
    FROM pg_catalog.pg_event_trigger_ddl_commands() AS d JOIN pg_catalog.pg_class AS c
      ON c.oid OPERATOR(pg_catalog.=) d.objid
    JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND c.relkind IN ('r', 'p') LOOP
    IF NOT t.relrowsecurity THEN
      INSERT INTO pgconsent.withheld (relation, grantee, privilege, attname)
      SELECT t.oid, b.grantee, b.privilege, b.attname FROM pgconsent.rights_of_bound(t.oid) AS b ON CONFLICT DO NOTHING;
      FOR g IN SELECT DISTINCT b.grantee FROM pgconsent.rights_of_bound(t.oid) AS b LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON TABLE %s FROM %I', t.name, g.grantee);
      END LOOP;
    ELSE
      FOR g IN DELETE FROM pgconsent.withheld AS w WHERE w.relation OPERATOR(pg_catalog.=) t.oid RETURNING w.grantee,
        w.privilege, w.attname LOOP
        -- The privilege becomes part of a statement: it must be one word, as this function wrote it.
        IF g.privilege OPERATOR(pg_catalog.!~) '^[A-Z]+$' THEN
          CONTINUE;
        END IF;
        IF g.attname OPERATOR(pg_catalog.=) '' THEN
          EXECUTE pg_catalog.format('GRANT %s ON TABLE %s TO %I', g.privilege, t.name, g.grantee);
        ELSIF EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid OPERATOR(pg_catalog.=) t.oid
          AND a.attname OPERATOR(pg_catalog.=) g.attname AND NOT a.attisdropped) THEN
          EXECUTE pg_catalog.format('GRANT %s (%I) ON TABLE %s TO %I', g.privilege, g.attname, t.name, g.grantee);
        END IF;
      END LOOP;
    END IF;
  END LOOP;
EXCEPTION WHEN OTHERS THEN
  RAISE LOG 'pgconsent: what agents may do with a table is not withheld (SQLSTATE %)', SQLSTATE;
END $$;
REVOKE ALL ON FUNCTION pgconsent.withhold() FROM PUBLIC;

-- ====================================================================================================
-- The consent registry
-- ====================================================================================================

-- Records are appended and never changed. consent_current holds the state after all records, is kept in the same
-- transaction, and is read by policies. Triggers and privileges refuse everything else to every role. An owner or a
-- superuser can alter them; "pgconsent audit verify" finds it, by hashes, by codes under a key outside the database,
-- and by the number and hash of the last record in a file of the proxy.
--
-- One row: the id of this registry. Each transaction that appends locks it, so that there is one writer at a time.
CREATE TABLE pgconsent.consent_registry (
  only_row pg_catalog.bool PRIMARY KEY DEFAULT true CHECK (only_row),
  id       pg_catalog.uuid NOT NULL DEFAULT pg_catalog.gen_random_uuid(),
  made_at  pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
INSERT INTO pgconsent.consent_registry DEFAULT VALUES;

-- The persons whom records are about: subjects, guardians, grantees, actors. A record holds the ref alone. The key,
-- which is wrapped with a key outside the database, opens the sealed part of the records of a subject. Erasure
-- removes the name and the key.
CREATE TABLE pgconsent.subject (
  ref           pg_catalog.uuid PRIMARY KEY,
  subject       pg_catalog.text UNIQUE,
  key           pg_catalog.bytea,
  erased_at     pg_catalog.timestamptz,
  -- The key was wrapped with a newer key: the digest of the value that it had before. Pseudonyms are made of it.
  pseudonym_key pg_catalog.bytea,
  CHECK ((subject IS NULL) = (erased_at IS NOT NULL) AND (key IS NULL) = (erased_at IS NOT NULL)),
  CONSTRAINT subject_pseudonym_key_check CHECK (pseudonym_key IS NULL OR erased_at IS NULL)
);

-- Each record has the whole state after it, so that the last one of a subject, grantee and scope is the current state.
CREATE TABLE pgconsent.consent_record (
  number         pg_catalog.int8 PRIMARY KEY CHECK (number > 0),
  recorded_at    pg_catalog.timestamptz NOT NULL CHECK (pg_catalog.isfinite(recorded_at)),
  subject        pg_catalog.uuid NOT NULL REFERENCES pgconsent.subject (ref),
  event          pg_catalog.text NOT NULL,
  state          pg_catalog.text NOT NULL,
  stream         pg_catalog.text CHECK (stream IN ('TEMPORARY', 'PARTNERED', 'ANONYMOUS')),
  categories     pg_catalog.text[] NOT NULL,
  purposes       pg_catalog.text[] NOT NULL,
  asked          pg_catalog.text[],                -- categories of the partnership that was asked for and not decided yet
  grantee        pg_catalog.uuid REFERENCES pgconsent.subject (ref), -- NULL: everybody
  scope          pg_catalog.bytea,                 -- a digest under the subject's key; NULL: everything
  given_at       pg_catalog.timestamptz,
  expires_at     pg_catalog.timestamptz,           -- NULL: never
  due_at         pg_catalog.timestamptz,           -- until when what was asked can be decided
  decay_from     pg_catalog.timestamptz,           -- the countdown to anonymity began
  decayed_before pg_catalog.timestamptz,
              -- what is older has decayed by decayed_days in a countdown that was stopped
  decayed_days   pg_catalog.int4,
  void_before    pg_catalog.timestamptz,           -- what is older went with a consent that ended
  warned_at      pg_catalog.timestamptz,           -- of the expiry ahead
  controller     pg_catalog.text,
  request        pg_catalog.bytea,                 -- a digest of the caller's key, so that a call made twice is done once
  sealed         pg_catalog.bytea NOT NULL,        -- under the subject's key: names, grantor, actor, evidence, reason
  prev           pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(prev) = 32),
  hash           pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(hash) = 32),
  mac            pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(mac) = 32),
  kid            pg_catalog.int4 NOT NULL
);
CREATE INDEX consent_record_subject ON pgconsent.consent_record (subject, number);
CREATE UNIQUE INDEX consent_record_request ON pgconsent.consent_record (request);

-- Indexes for the counts of metrics.
CREATE INDEX consent_record_decided ON pgconsent.consent_record (event) WHERE event IN ('approved', 'rejected');
CREATE INDEX consent_record_expired ON pgconsent.consent_record (expires_at) WHERE event = 'expired';

CREATE TABLE pgconsent.consent_current (
  subject          pg_catalog.text NOT NULL,
  grantee          pg_catalog.text NOT NULL, -- '*': everybody
  scope            pg_catalog.text NOT NULL, -- '*', or table:…, row:…, ctx:…
  number           pg_catalog.int8 NOT NULL,
  state            pg_catalog.text NOT NULL,
  stream           pg_catalog.text,
  categories       pg_catalog.text[] NOT NULL,
  purposes         pg_catalog.text[] NOT NULL,
  asked            pg_catalog.text[],
  given_at         pg_catalog.timestamptz,
  expires_at       pg_catalog.timestamptz,
  due_at           pg_catalog.timestamptz,
  decay_from       pg_catalog.timestamptz,
  decayed_before   pg_catalog.timestamptz,
  decayed_days     pg_catalog.int4,
  void_before      pg_catalog.timestamptz,
  warned_at        pg_catalog.timestamptz,
  -- The categories that a partnership listed when its countdown to anonymity began: while rows decay, no other shows.
  decay_categories pg_catalog.text[],
  PRIMARY KEY (subject, grantee, scope)
);
CREATE INDEX consent_current_expires ON pgconsent.consent_current (expires_at) WHERE state = 'given'
  AND expires_at IS NOT NULL;
CREATE INDEX consent_current_due ON pgconsent.consent_current (due_at) WHERE due_at IS NOT NULL;

-- The guardians of a subject, by the records of events appointed and dismissed.
CREATE TABLE pgconsent.consent_guardian (
  subject  pg_catalog.text NOT NULL,
  guardian pg_catalog.text NOT NULL,
  number   pg_catalog.int8 NOT NULL,
  PRIMARY KEY (subject, guardian)
);

-- The code of a record under a newer key, where its own code was made with a key that was given up.
CREATE TABLE pgconsent.consent_code (
  number   pg_catalog.int8 PRIMARY KEY,
  code_kid pg_catalog.int4 NOT NULL,
  code     pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(code) = 32)
);

-- consent_refuse is the trigger on tables that are never changed.
CREATE FUNCTION pgconsent.consent_refuse() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'consent records are appended and never changed'
    USING ERRCODE = '42501',
      HINT = 'A change of consent is a new record: pgconsent consent --help. An erasure is one as well: pgconsent consent erase.';
END $$;
REVOKE ALL ON FUNCTION pgconsent.consent_refuse() FROM PUBLIC;
CREATE TRIGGER pgconsent_refuse BEFORE UPDATE OR DELETE ON pgconsent.consent_record FOR EACH ROW
  EXECUTE FUNCTION pgconsent.consent_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.consent_record FOR EACH STATEMENT
  EXECUTE FUNCTION pgconsent.consent_refuse();
ALTER TABLE pgconsent.consent_record ENABLE ALWAYS TRIGGER pgconsent_refuse,
  ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;
CREATE TRIGGER pgconsent_refuse BEFORE UPDATE OR DELETE ON pgconsent.consent_registry FOR EACH ROW
  EXECUTE FUNCTION pgconsent.consent_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.consent_registry FOR EACH STATEMENT
  EXECUTE FUNCTION pgconsent.consent_refuse();
ALTER TABLE pgconsent.consent_registry ENABLE ALWAYS TRIGGER pgconsent_refuse,
  ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;

-- consent_forget_only lets a subject be erased, or their key be wrapped with a newer key, and refuses every other
-- change.
CREATE FUNCTION pgconsent.consent_forget_only() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NEW.ref IS DISTINCT FROM OLD.ref OR OLD.erased_at IS NOT NULL
     OR NOT (NEW.subject IS NULL AND NEW.key IS NULL AND NEW.pseudonym_key IS NULL
       OR NEW.subject IS NOT DISTINCT FROM OLD.subject AND NEW.erased_at IS NULL
         AND pg_catalog.octet_length(NEW.key) IS NOT DISTINCT FROM pg_catalog.octet_length(OLD.key)
         AND (pg_catalog.substr(NEW.key, 1, 4) OPERATOR(pg_catalog.>) pg_catalog.substr(OLD.key, 1, 4)) IS TRUE
         AND NEW.pseudonym_key IS NOT DISTINCT FROM COALESCE(OLD.pseudonym_key, pg_catalog.sha256(OLD.key))) THEN
    RAISE EXCEPTION 'a subject of the consent registry can be erased, and not changed'
      USING ERRCODE = '42501', HINT = 'pgconsent consent erase --subject ID';
  END IF;
  RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION pgconsent.consent_forget_only() FROM PUBLIC;
CREATE TRIGGER pgconsent_forget BEFORE UPDATE ON pgconsent.subject FOR EACH ROW
  EXECUTE FUNCTION pgconsent.consent_forget_only();
CREATE TRIGGER pgconsent_refuse BEFORE DELETE ON pgconsent.subject FOR EACH ROW
  EXECUTE FUNCTION pgconsent.consent_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.subject FOR EACH STATEMENT
  EXECUTE FUNCTION pgconsent.consent_refuse();
ALTER TABLE pgconsent.subject ENABLE ALWAYS TRIGGER pgconsent_forget, ENABLE ALWAYS TRIGGER pgconsent_refuse,
  ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;

-- Changes that snapshots may miss. A consent that lasts longer hides nothing: renewals, which are many, end no cursor.
CREATE TRIGGER zz_pgconsent_current_update AFTER UPDATE ON pgconsent.consent_current FOR EACH ROW
  WHEN ((OLD.subject, OLD.grantee, OLD.scope, OLD.state, OLD.stream, OLD.categories, OLD.purposes, OLD.decay_from,
    OLD.decayed_before, OLD.decayed_days, OLD.void_before)
      IS DISTINCT FROM (NEW.subject, NEW.grantee, NEW.scope, NEW.state, NEW.stream, NEW.categories, NEW.purposes,
        NEW.decay_from, NEW.decayed_before, NEW.decayed_days, NEW.void_before)
    OR COALESCE(NEW.expires_at, 'infinity') < COALESCE(OLD.expires_at, 'infinity'))
  EXECUTE FUNCTION pgconsent.changed();
CREATE TRIGGER zz_pgconsent_current_delete AFTER DELETE ON pgconsent.consent_current FOR EACH ROW
  EXECUTE FUNCTION pgconsent.changed();
CREATE TRIGGER zz_pgconsent_current_truncate AFTER TRUNCATE ON pgconsent.consent_current FOR EACH STATEMENT
  EXECUTE FUNCTION pgconsent.changed();
ALTER TABLE pgconsent.consent_current ENABLE ALWAYS TRIGGER zz_pgconsent_current_update,
  ENABLE ALWAYS TRIGGER zz_pgconsent_current_delete, ENABLE ALWAYS TRIGGER zz_pgconsent_current_truncate;
CREATE TRIGGER zz_pgconsent_guardian AFTER DELETE OR UPDATE ON pgconsent.consent_guardian FOR EACH ROW
  EXECUTE FUNCTION pgconsent.changed();
CREATE TRIGGER zz_pgconsent_guardian_truncate AFTER TRUNCATE ON pgconsent.consent_guardian FOR EACH STATEMENT
  EXECUTE FUNCTION pgconsent.changed();
ALTER TABLE pgconsent.consent_guardian ENABLE ALWAYS TRIGGER zz_pgconsent_guardian,
  ENABLE ALWAYS TRIGGER zz_pgconsent_guardian_truncate;

CREATE FUNCTION pgconsent.consent_decay_categories() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.decay_categories := CASE
    WHEN NEW.decay_from IS NULL THEN NULL
    WHEN OLD.decay_from IS NOT NULL THEN OLD.decay_categories
    WHEN OLD.state OPERATOR(pg_catalog.=) 'given' THEN OLD.categories
  END;
  RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION pgconsent.consent_decay_categories() FROM PUBLIC;
CREATE TRIGGER pgconsent_decay_categories BEFORE UPDATE ON pgconsent.consent_current FOR EACH ROW
  EXECUTE FUNCTION pgconsent.consent_decay_categories();
ALTER TABLE pgconsent.consent_current ENABLE ALWAYS TRIGGER pgconsent_decay_categories;

-- The bodies from here on are texts, not BEGIN ATOMIC, so that "audit verify" can compare them letter by letter.
--
-- The clock of the registry is a function, so that a test can move it.
CREATE FUNCTION pgconsent.consent_now() RETURNS pg_catalog.timestamptz
LANGUAGE sql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT pg_catalog.clock_timestamp();
$$;
REVOKE ALL ON FUNCTION pgconsent.consent_now() FROM PUBLIC;

-- consent_epoch returns the number of the last record that the snapshot of the statement shows; 0 without any.
CREATE FUNCTION pgconsent.consent_epoch() RETURNS pg_catalog.int8
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT COALESCE((SELECT r.number FROM pgconsent.consent_record AS r ORDER BY r.number DESC LIMIT 1), 0);
$$;
REVOKE ALL ON FUNCTION pgconsent.consent_epoch() FROM PUBLIC;

-- consent_open makes the transaction the one writer and returns the last record, on which the next one builds.
CREATE FUNCTION pgconsent.consent_open(OUT id pg_catalog.uuid, OUT clock pg_catalog.timestamptz,
  OUT number pg_catalog.int8, OUT recorded_at pg_catalog.timestamptz,
  OUT prev pg_catalog.bytea, OUT hash pg_catalog.bytea, OUT mac pg_catalog.bytea, OUT kid pg_catalog.int4)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  SELECT g.id INTO id FROM pgconsent.consent_registry AS g FOR UPDATE;
  SELECT r.number, r.recorded_at, r.prev, r.hash, r.mac, r.kid INTO number, recorded_at, prev, hash, mac, kid
  FROM pgconsent.consent_record AS r ORDER BY r.number DESC LIMIT 1;
  clock := pgconsent.consent_now();
END $$;
REVOKE ALL ON FUNCTION pgconsent.consent_open() FROM PUBLIC;

-- consent_name gives a person a ref.
CREATE FUNCTION pgconsent.consent_name(ref pg_catalog.uuid, name pg_catalog.text, key pg_catalog.bytea)
  RETURNS pg_catalog.void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO pgconsent.subject (ref, subject, key) VALUES (consent_name.ref, consent_name.name, consent_name.key);
$$;
REVOKE ALL ON FUNCTION pgconsent.consent_name(pg_catalog.uuid, pg_catalog.text, pg_catalog.bytea) FROM PUBLIC;

-- consent_append adds a record and changes consent_current accordingly. scope is the scope in plain words.
CREATE FUNCTION pgconsent.consent_append(r pgconsent.consent_record, scope pg_catalog.text) RETURNS pg_catalog.void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  head_number pg_catalog.int8 := 0;
  head_time   pg_catalog.timestamptz := '-infinity';
  head_hash   pg_catalog.bytea;
  who         pg_catalog.text;
  whom        pg_catalog.text := '*';
BEGIN
  PERFORM FROM pgconsent.consent_registry AS g FOR UPDATE;
  SELECT h.number, h.recorded_at, h.hash INTO head_number, head_time, head_hash
  FROM pgconsent.consent_record AS h ORDER BY h.number DESC LIMIT 1;
  IF r.number IS DISTINCT FROM COALESCE(head_number, 0) OPERATOR(pg_catalog.+) 1
     OR head_hash IS NOT NULL AND r.prev IS DISTINCT FROM head_hash
     OR r.recorded_at OPERATOR(pg_catalog.<) COALESCE(head_time, '-infinity')
     OR r.recorded_at OPERATOR(pg_catalog.>) GREATEST(head_time, pgconsent.consent_now()) THEN
    RAISE EXCEPTION 'record % does not follow the last consent record', r.number USING ERRCODE = '40001',
      HINT = 'Begin again with pgconsent.consent_open().';
  END IF;
  SELECT s.subject INTO who FROM pgconsent.subject AS s WHERE s.ref OPERATOR(pg_catalog.=) r.subject;
  IF r.grantee IS NOT NULL THEN
    SELECT s.subject INTO whom FROM pgconsent.subject AS s WHERE s.ref OPERATOR(pg_catalog.=) r.grantee;
  END IF;
  IF who IS NULL OR whom IS NULL THEN
    RAISE EXCEPTION 'a consent record speaks of somebody whom the registry does not know' USING ERRCODE = '22023';
  END IF;
  INSERT INTO pgconsent.consent_record VALUES (r.*);
  CASE r.event
  WHEN 'appointed' THEN
    INSERT INTO pgconsent.consent_guardian VALUES (who, whom, r.number)
    ON CONFLICT ON CONSTRAINT consent_guardian_pkey DO UPDATE SET number = excluded.number;
  WHEN 'dismissed' THEN
    DELETE FROM pgconsent.consent_guardian AS g WHERE g.subject OPERATOR(pg_catalog.=) who
      AND g.guardian OPERATOR(pg_catalog.=) whom;
  WHEN 'erased' THEN
    DELETE FROM pgconsent.consent_current AS c WHERE c.subject OPERATOR(pg_catalog.=) who
      OR c.grantee OPERATOR(pg_catalog.=) who;
    DELETE FROM pgconsent.consent_guardian AS g WHERE g.subject OPERATOR(pg_catalog.=) who
      OR g.guardian OPERATOR(pg_catalog.=) who;
    UPDATE pgconsent.subject AS s SET (subject, key, pseudonym_key, erased_at) = (NULL, NULL, NULL, r.recorded_at)
      WHERE s.ref OPERATOR(pg_catalog.=) r.subject;
  ELSE
    INSERT INTO pgconsent.consent_current VALUES (who, whom, consent_append.scope, r.number, r.state, r.stream,
      r.categories, r.purposes, r.asked,
      r.given_at, r.expires_at, r.due_at, r.decay_from, r.decayed_before, r.decayed_days, r.void_before, r.warned_at)
    ON CONFLICT ON CONSTRAINT consent_current_pkey DO UPDATE SET number = excluded.number, state = excluded.state,
      stream = excluded.stream,
      categories = excluded.categories, purposes = excluded.purposes, asked = excluded.asked,
        given_at = excluded.given_at, expires_at = excluded.expires_at,
      due_at = excluded.due_at, decay_from = excluded.decay_from, decayed_before = excluded.decayed_before,
        decayed_days = excluded.decayed_days,
      void_before = excluded.void_before, warned_at = excluded.warned_at;
  END CASE;
END $$;
REVOKE ALL ON FUNCTION pgconsent.consent_append(pgconsent.consent_record, pg_catalog.text) FROM PUBLIC;

-- consent_rewrap replaces wrapped keys by others, and returns how many it replaced. A subject that was erased
-- meanwhile stays erased.
CREATE FUNCTION pgconsent.consent_rewrap(refs pg_catalog.uuid[], olds pg_catalog.bytea[], news pg_catalog.bytea[])
  RETURNS pg_catalog.int8
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH done AS (
    UPDATE pgconsent.subject AS s SET (key, pseudonym_key) = (n.new, COALESCE(s.pseudonym_key, pg_catalog.sha256(s.key)))
    FROM ROWS FROM (pg_catalog.unnest(consent_rewrap.refs), pg_catalog.unnest(consent_rewrap.olds),
      pg_catalog.unnest(consent_rewrap.news)) AS n (ref, old, new)
    WHERE s.ref OPERATOR(pg_catalog.=) n.ref AND s.key OPERATOR(pg_catalog.=) n.old
    RETURNING 1)
  SELECT pg_catalog.count(*) FROM done;
$$;
REVOKE ALL ON FUNCTION pgconsent.consent_rewrap(pg_catalog.uuid[], pg_catalog.bytea[], pg_catalog.bytea[]) FROM PUBLIC;

-- consent_recode gives records codes under this key.
CREATE FUNCTION pgconsent.consent_recode(kid pg_catalog.int4, numbers pg_catalog.int8[], codes pg_catalog.bytea[])
  RETURNS pg_catalog.void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO pgconsent.consent_code (number, code_kid, code)
  SELECT n.number, consent_recode.kid, n.code FROM ROWS FROM (pg_catalog.unnest(consent_recode.numbers),
    pg_catalog.unnest(consent_recode.codes)) AS n (number, code)
  ON CONFLICT ON CONSTRAINT consent_code_pkey DO UPDATE SET code_kid = excluded.code_kid, code = excluded.code;
$$;
REVOKE ALL ON FUNCTION pgconsent.consent_recode(pg_catalog.int4, pg_catalog.int8[], pg_catalog.bytea[]) FROM PUBLIC;

-- pseudonym returns what replaces a value of a person in rows that are made anonymous. The sweeper writes it, and
-- groups are counted by it: a person with rows of both kinds is counted once. It is made under the key of the
-- subject, which erasure destroys; NULL without a key.
CREATE FUNCTION pgconsent.pseudonym(subject pg_catalog.text, value pg_catalog.text) RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER PARALLEL SAFE COST 1000 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  key pg_catalog.text;
BEGIN
  SELECT pg_catalog.encode(COALESCE(s.pseudonym_key, pg_catalog.sha256(s.key)), 'hex') INTO key FROM pgconsent.subject AS s
    WHERE s.subject OPERATOR(pg_catalog.=) pseudonym.subject;
  RETURN pgconsent.mask('sweep|' OPERATOR(pg_catalog.||) key OPERATOR(pg_catalog.||) '|' OPERATOR(pg_catalog.||) value);
END $$;
REVOKE ALL ON FUNCTION pgconsent.pseudonym(pg_catalog.text, pg_catalog.text) FROM PUBLIC;

-- ====================================================================================================
-- Materialized rules
-- ====================================================================================================

-- Rules that the policy materializes: until when every participant has consented is stored beside the row. A change
-- of a value that it depends on is noted when it is made, and worked out when its transaction commits, by functions
-- that migrate makes for the policy.
--
-- One row for each materialized rule. Its stored values are used while ready is true. stale grows with each change
-- that could not be worked out; filled_of is its value when filling in began, and filled_to the last key that was
-- filled in.
CREATE TABLE pgconsent.materialized (
  name       pg_catalog.text PRIMARY KEY,
  relation   pg_catalog.text NOT NULL,
  ready      pg_catalog.bool NOT NULL DEFAULT false,
  stale      pg_catalog.int8 NOT NULL DEFAULT 0,
  filled_of  pg_catalog.int8,
  filled_to  pg_catalog.text
);

-- Changes of running transactions that are not worked out yet.
CREATE TABLE pgconsent.materialized_change (
  tx    pg_catalog.xid8 NOT NULL,
  name  pg_catalog.text NOT NULL,
  step  pg_catalog.int4 NOT NULL,
  value pg_catalog.text NOT NULL
);
CREATE INDEX materialized_change_tx ON pgconsent.materialized_change (tx);

CREATE TABLE pgconsent.materialized_due (tx pg_catalog.xid8 NOT NULL);
CREATE INDEX materialized_due_tx ON pgconsent.materialized_due (tx);

-- materialized_note notes a change. A setting that ends with the (sub)transaction remembers that the transaction has
-- changes to work out. It is set before the row is written that fires materialized_settle: with SET CONSTRAINTS
-- IMMEDIATE that trigger runs at once and clears the setting, and a setting made afterwards would keep later changes
-- from being worked out.
CREATE FUNCTION pgconsent.materialized_note(name pg_catalog.text, step pg_catalog.int4, value pg_catalog.text)
  RETURNS pg_catalog.void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO pgconsent.materialized_change (tx, name, step, value) VALUES (pg_catalog.pg_current_xact_id(),
    materialized_note.name, materialized_note.step, materialized_note.value);
  IF pg_catalog.current_setting('pgconsent.materialized_due', true) IS DISTINCT
    FROM pg_catalog.pg_current_xact_id()::pg_catalog.text THEN
    PERFORM pg_catalog.set_config('pgconsent.materialized_due', pg_catalog.pg_current_xact_id()::pg_catalog.text, true);
    INSERT INTO pgconsent.materialized_due (tx) VALUES (pg_catalog.pg_current_xact_id());
  END IF;
END $$;
REVOKE ALL ON FUNCTION pgconsent.materialized_note(pg_catalog.text, pg_catalog.int4, pg_catalog.text) FROM PUBLIC;

-- materialized_invalidate has the rule answered without the stored values until they are filled in anew.
CREATE FUNCTION pgconsent.materialized_invalidate(name pg_catalog.text) RETURNS pg_catalog.void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
  UPDATE pgconsent.materialized AS m SET (ready, stale) = (false, m.stale OPERATOR(pg_catalog.+) 1)
    WHERE m.name OPERATOR(pg_catalog.=) materialized_invalidate.name;
END;
REVOKE ALL ON FUNCTION pgconsent.materialized_invalidate(pg_catalog.text) FROM PUBLIC;

-- materialized_settle runs when a transaction commits. A transaction with a snapshot of its own (REPEATABLE READ)
-- would not see what others have committed meanwhile: the stored values are not used then until they are filled in
-- anew. Such a transaction waits, as it commits, for those that have worked out their changes and not committed yet,
-- and they wait for it. Without that, one that worked them out before and commits after the filling in would bring a
-- row with an older answer.
CREATE FUNCTION pgconsent.materialized_settle() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  due  pg_catalog.text;
  lock pg_catalog.int8;
BEGIN
  FOR due IN SELECT DISTINCT c.name FROM pgconsent.materialized_change AS c
    WHERE c.tx OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id() ORDER BY c.name LOOP
    lock := pg_catalog.hashtextextended('pgconsent materialized ' OPERATOR(pg_catalog.||) due, 0);
    IF pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'read committed' THEN
      -- In this order: the session that fills in has locked the row that is changed here.
      PERFORM pgconsent.materialized_invalidate(due);
      PERFORM pg_catalog.pg_advisory_xact_lock(lock);
    ELSE
      PERFORM pg_catalog.pg_advisory_xact_lock_shared(lock);
      EXECUTE pg_catalog.format('SELECT pgconsent.%I()', 'materialized_settle_' OPERATOR(pg_catalog.||) due);
    END IF;
  END LOOP;
  DELETE FROM pgconsent.materialized_change AS c WHERE c.tx OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id();
  DELETE FROM pgconsent.materialized_due AS d WHERE d.tx OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id();
  PERFORM pg_catalog.set_config('pgconsent.materialized_due', '', true);
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.materialized_settle() FROM PUBLIC;
CREATE CONSTRAINT TRIGGER materialized_settle AFTER INSERT ON pgconsent.materialized_due
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pgconsent.materialized_settle();
ALTER TABLE pgconsent.materialized_due ENABLE ALWAYS TRIGGER materialized_settle;

-- materialized_ready tells whether stored values are used: not before they are complete, and not in a transaction
-- that has changes to work out.
CREATE FUNCTION pgconsent.materialized_ready(name pg_catalog.text) RETURNS pg_catalog.bool
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN EXISTS (SELECT FROM pgconsent.materialized AS m
    WHERE m.name OPERATOR(pg_catalog.=) materialized_ready.name AND m.ready)
    AND NOT EXISTS (SELECT FROM pgconsent.materialized_due AS d
      WHERE d.tx OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id_if_assigned());
END $$;
REVOKE ALL ON FUNCTION pgconsent.materialized_ready(pg_catalog.text) FROM PUBLIC;

-- ====================================================================================================
-- The sweeper and its messages
-- ====================================================================================================

-- The sweeper deletes and anonymizes rows whose consent has ended, and messages tell users about it. The functions
-- that delete are made by migrate, for the policy.
--
-- When the sweeper last went through all rows, and up to which record.
CREATE TABLE pgconsent.sweep_state (
  only_row    pg_catalog.bool PRIMARY KEY DEFAULT true CHECK (only_row),
  finished_at pg_catalog.timestamptz,
  epoch       pg_catalog.int8 NOT NULL DEFAULT 0
);
INSERT INTO pgconsent.sweep_state DEFAULT VALUES;

-- Subjects who were erased and whose rows may still be there: the registry has removed the name, which the rows hold.
-- An entry is deleted when the rows are gone.
CREATE TABLE pgconsent.sweep_erased (
  subject   pg_catalog.text PRIMARY KEY,
  erased_at pg_catalog.timestamptz NOT NULL
);

-- Deletions and anonymizations that are not in the registry yet: written in the transaction that does them.
CREATE TABLE pgconsent.sweep_note (
  id      pg_catalog.uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
  subject pg_catalog.text NOT NULL,
  what    pg_catalog.text NOT NULL CHECK (what IN ('deleted', 'anonymised')),
  -- The code of a sweep for a subject: the proxy makes it with a key that the database does not have.
  code    pg_catalog.text DEFAULT pg_catalog.current_setting('pgconsent.sweep', true),
  UNIQUE (subject, what)
);

-- Messages to users. They hold no data of rows.
CREATE TABLE pgconsent.outbox (
  id          pg_catalog.uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
  number      pg_catalog.int8 NOT NULL UNIQUE, -- of the record
  recorded_at pg_catalog.timestamptz NOT NULL,
  subject     pg_catalog.text NOT NULL,
  event       pg_catalog.text NOT NULL,
  state       pg_catalog.text NOT NULL,
  stream      pg_catalog.text,
  categories  pg_catalog.text[] NOT NULL,
  expires_at  pg_catalog.timestamptz,
  attempts    pg_catalog.int4 NOT NULL DEFAULT 0,
  next_at     pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  sent_at     pg_catalog.timestamptz,
  error       pg_catalog.text
);
CREATE INDEX outbox_next ON pgconsent.outbox (next_at) WHERE sent_at IS NULL;
CREATE INDEX outbox_subject ON pgconsent.outbox (subject);

-- outbox_fill writes a message with its record. Interactions, and actions of the users themselves, make no message.
CREATE FUNCTION pgconsent.outbox_fill() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO pgconsent.outbox (number, recorded_at, subject, event, state, stream, categories, expires_at)
  SELECT NEW.number, NEW.recorded_at, s.subject, NEW.event, NEW.state, NEW.stream, NEW.categories, NEW.expires_at
  FROM pgconsent.subject AS s WHERE s.ref OPERATOR(pg_catalog.=) NEW.subject AND s.subject IS NOT NULL;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.outbox_fill() FROM PUBLIC;
CREATE TRIGGER pgconsent_outbox AFTER INSERT ON pgconsent.consent_record FOR EACH ROW
  WHEN (NEW.event IN ('warned', 'expired', 'approved', 'rejected', 'deferred', 'lapsed', 'revoked', 'deleted',
    'anonymised'))
  EXECUTE FUNCTION pgconsent.outbox_fill();
ALTER TABLE pgconsent.consent_record ENABLE ALWAYS TRIGGER pgconsent_outbox;

-- sweep_erase removes the messages to a subject who is erased, and notes that rows are to be deleted where a policy
-- says how.
CREATE FUNCTION pgconsent.sweep_erase() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM pgconsent.outbox AS o WHERE o.subject OPERATOR(pg_catalog.=) OLD.subject;
  DELETE FROM pgconsent.sweep_note AS n WHERE n.subject OPERATOR(pg_catalog.=) OLD.subject;
  IF pg_catalog.to_regprocedure('pgconsent.sweep_due()') IS NOT NULL THEN
    INSERT INTO pgconsent.sweep_erased VALUES (OLD.subject, NEW.erased_at)
    ON CONFLICT ON CONSTRAINT sweep_erased_pkey DO UPDATE SET erased_at = excluded.erased_at;
  END IF;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.sweep_erase() FROM PUBLIC;
CREATE TRIGGER pgconsent_sweep AFTER UPDATE ON pgconsent.subject FOR EACH ROW
  WHEN (OLD.subject IS NOT NULL AND NEW.subject IS NULL) EXECUTE FUNCTION pgconsent.sweep_erase();
ALTER TABLE pgconsent.subject ENABLE ALWAYS TRIGGER pgconsent_sweep;

-- outbox_refuse lets a message be deleted 720 hours after it was sent, with its subject, or if no record asked for it.
CREATE FUNCTION pgconsent.outbox_refuse() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN
    IF OLD.sent_at IS NOT NULL AND GREATEST(OLD.sent_at, OLD.recorded_at)
      OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) '720:00:00'::pg_catalog.interval)
       OR NOT EXISTS (SELECT FROM pgconsent.subject AS s WHERE s.subject OPERATOR(pg_catalog.=) OLD.subject)
       OR NOT EXISTS (SELECT FROM pgconsent.consent_record AS r WHERE r.number OPERATOR(pg_catalog.=) OLD.number) THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION 'messages to users are not taken away before 30 days after they were sent'
    USING ERRCODE = '42501',
      HINT = 'A program that reads messages here sets sent_at of each that it has delivered: the row is deleted later.';
END $$;
REVOKE ALL ON FUNCTION pgconsent.outbox_refuse() FROM PUBLIC;
CREATE TRIGGER pgconsent_refuse BEFORE DELETE ON pgconsent.outbox FOR EACH ROW EXECUTE FUNCTION pgconsent.outbox_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.outbox FOR EACH STATEMENT
  EXECUTE FUNCTION pgconsent.outbox_refuse();
ALTER TABLE pgconsent.outbox ENABLE ALWAYS TRIGGER pgconsent_refuse, ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;

-- ====================================================================================================
-- Events of memories
-- ====================================================================================================

-- The history of grants, consents and contexts of memories: who got or lost access, when, by whom and why. Rows are
-- only added. Persons are named by the references of the audit: a person who is forgotten there is forgotten here.
CREATE TABLE pgconsent.privacy_event (
  number   pg_catalog.int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at       pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  did      pg_catalog.text NOT NULL CHECK (did
    OPERATOR(pg_catalog.=) ANY ('{grant,revoke,consent,withdraw,join,leave,draw}'::pg_catalog.text[])),
  relation pg_catalog.text NOT NULL,
  key      pg_catalog.text NOT NULL,
  store    pg_catalog.text,
  who      pg_catalog.uuid[] NOT NULL, -- who got or lost access; of a consent: the grantor, then the grantee
  entity   pg_catalog.uuid,            -- who did it: the entity of an agent's session
  login    pg_catalog.text NOT NULL,   -- the role of the database that did it
  reason   pg_catalog.text
);
CREATE INDEX privacy_event_row ON pgconsent.privacy_event (relation, key);

-- privacy_note adds a row. Triggers call it that migrate makes for the policy.
CREATE FUNCTION pgconsent.privacy_note(did pg_catalog.text, relation pg_catalog.text, key pg_catalog.text,
  store pg_catalog.text, who pg_catalog.text[], entity pg_catalog.text) RETURNS pg_catalog.void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  id pg_catalog.text;
BEGIN
  -- In one order: two sessions that make references for the same names would wait for each other otherwise.
  FOR id IN SELECT DISTINCT u.id FROM pg_catalog.unnest(who OPERATOR(pg_catalog.||) entity) AS u (id)
    WHERE u.id IS NOT NULL ORDER BY 1 LOOP
    PERFORM pgconsent.audit_ref(id);
  END LOOP;
  INSERT INTO pgconsent.privacy_event (did, relation, key, store, who, entity, login, reason)
  VALUES (privacy_note.did, privacy_note.relation, privacy_note.key, privacy_note.store,
    ARRAY(SELECT pgconsent.audit_ref(u.id) FROM pg_catalog.unnest(privacy_note.who) WITH ORDINALITY AS u (id, n)
      WHERE u.id IS NOT NULL ORDER BY u.n),
    CASE WHEN privacy_note.entity IS NOT NULL THEN pgconsent.audit_ref(privacy_note.entity) END, SESSION_USER,
    NULLIF(pg_catalog.left(pg_catalog.current_setting('pgconsent.reason', true), 256), ''));
END $$;
REVOKE ALL ON FUNCTION pgconsent.privacy_note(pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.text,
  pg_catalog.text[], pg_catalog.text) FROM PUBLIC;

-- privacy_event_refuse refuses to change or delete events, for every role.
CREATE FUNCTION pgconsent.privacy_event_refuse() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'what became of grants and consents is noted, and never changed'
    USING ERRCODE = '42501',
      HINT = 'Persons stand there by references: pgconsent audit forget --subject ID takes those away.';
END $$;
REVOKE ALL ON FUNCTION pgconsent.privacy_event_refuse() FROM PUBLIC;
CREATE TRIGGER pgconsent_refuse BEFORE UPDATE OR DELETE ON pgconsent.privacy_event FOR EACH ROW
  EXECUTE FUNCTION pgconsent.privacy_event_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.privacy_event FOR EACH STATEMENT
  EXECUTE FUNCTION pgconsent.privacy_event_refuse();
ALTER TABLE pgconsent.privacy_event ENABLE ALWAYS TRIGGER pgconsent_refuse,
  ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;

-- ====================================================================================================
-- The audit
-- ====================================================================================================

-- The audit keeps in the database: references in place of names, which can be forgotten, and, if it is configured so,
-- its records.
--
-- Records of the audit have a reference in place of the id of a person. This is the only place where the two are
-- together.
CREATE TABLE pgconsent.audit_subject (
  ref     pg_catalog.uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
  subject pg_catalog.text NOT NULL UNIQUE
);

-- audit_ref returns the reference of a name, and makes one if there is none.
CREATE FUNCTION pgconsent.audit_ref(name pg_catalog.text) RETURNS pg_catalog.uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found_ref pg_catalog.uuid;
BEGIN
  LOOP
    SELECT s.ref INTO found_ref FROM pgconsent.audit_subject AS s WHERE s.subject OPERATOR(pg_catalog.=) name;
    IF found_ref IS NULL THEN
      INSERT INTO pgconsent.audit_subject AS s (subject) VALUES (name)
        ON CONFLICT (subject) DO NOTHING RETURNING s.ref INTO found_ref;
    END IF;
    IF found_ref IS NOT NULL OR name IS NULL THEN
      RETURN found_ref;
    END IF;
  END LOOP;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_ref(pg_catalog.text) FROM PUBLIC;

-- audit_forget removes the link for ever: records about the person can no longer be told to be about them.
CREATE FUNCTION pgconsent.audit_forget(name pg_catalog.text) RETURNS pg_catalog.bool
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM pgconsent.audit_subject AS s WHERE s.subject OPERATOR(pg_catalog.=) name;
  RETURN FOUND;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_forget(pg_catalog.text) FROM PUBLIC;

-- A subject who is erased from the registry is forgotten by the audit in the same transaction.
CREATE FUNCTION pgconsent.audit_forgets() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM pgconsent.audit_subject AS s WHERE s.subject OPERATOR(pg_catalog.=) OLD.subject;
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_forgets() FROM PUBLIC;
CREATE TRIGGER zz_pgconsent_audit AFTER UPDATE ON pgconsent.subject FOR EACH ROW
  WHEN (OLD.subject IS NOT NULL AND NEW.subject IS NULL) EXECUTE FUNCTION pgconsent.audit_forgets();
ALTER TABLE pgconsent.subject ENABLE ALWAYS TRIGGER zz_pgconsent_audit;

-- A notification tells proxies of each change of consent, so that their records have the number of the last consent
-- record.
CREATE FUNCTION pgconsent.audit_epoch() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_catalog.pg_notify('pgconsent_consent', '');
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_epoch() FROM PUBLIC;
CREATE TRIGGER zz_pgconsent_epoch AFTER INSERT ON pgconsent.consent_record FOR EACH STATEMENT
  EXECUTE FUNCTION pgconsent.audit_epoch();
ALTER TABLE pgconsent.consent_record ENABLE ALWAYS TRIGGER zz_pgconsent_epoch;

-- A reference belongs to one person until they are forgotten. It is made and deleted, and never given to another
-- person.
CREATE FUNCTION pgconsent.audit_subject_refuse() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'references of the audit are made and forgotten, and never changed'
    USING ERRCODE = '42501', HINT = 'pgconsent audit forget --subject ID forgets a person.';
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_subject_refuse() FROM PUBLIC;
CREATE TRIGGER pgconsent_refuse BEFORE UPDATE ON pgconsent.audit_subject FOR EACH ROW
  EXECUTE FUNCTION pgconsent.audit_subject_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.audit_subject FOR EACH STATEMENT
  EXECUTE FUNCTION pgconsent.audit_subject_refuse();
ALTER TABLE pgconsent.audit_subject ENABLE ALWAYS TRIGGER pgconsent_refuse,
  ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;

-- Records of the audit, where they are kept in the database: one chain for each proxy, a line for each record, as in
-- the files of the audit. Codes under a key outside the database prove who wrote them (docs/reference/audit.md).
CREATE TABLE pgconsent.audit_record (
  chain pg_catalog.text NOT NULL CHECK (chain OPERATOR(pg_catalog.<>) ''),
  seq   pg_catalog.int8 NOT NULL CHECK (seq OPERATOR(pg_catalog.>) 0),
  line  pg_catalog.text NOT NULL,
  PRIMARY KEY (chain, seq)
);

-- Records that may be removed because the time for which they are kept is over. A checkpoint in the chain proves it.
CREATE TABLE pgconsent.audit_retired (
  chain pg_catalog.text NOT NULL,
  seq   pg_catalog.int8 NOT NULL,
  at    pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  PRIMARY KEY (chain, seq)
);

-- audit_refuse refuses to change records, for every role, and to delete those that are not retired.
CREATE FUNCTION pgconsent.audit_refuse() RETURNS pg_catalog.trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' AND TG_TABLE_NAME OPERATOR(pg_catalog.=) 'audit_record' THEN
    IF EXISTS (SELECT FROM pgconsent.audit_retired AS r WHERE r.chain OPERATOR(pg_catalog.=) OLD.chain
      AND r.seq OPERATOR(pg_catalog.>=) OLD.seq) THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION 'records of the audit are appended and never changed' USING ERRCODE = '42501';
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_refuse() FROM PUBLIC;
CREATE TRIGGER pgconsent_refuse BEFORE UPDATE OR DELETE ON pgconsent.audit_record FOR EACH ROW
  EXECUTE FUNCTION pgconsent.audit_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.audit_record FOR EACH STATEMENT
  EXECUTE FUNCTION pgconsent.audit_refuse();
ALTER TABLE pgconsent.audit_record ENABLE ALWAYS TRIGGER pgconsent_refuse,
  ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;
CREATE TRIGGER pgconsent_refuse BEFORE UPDATE OR DELETE ON pgconsent.audit_retired FOR EACH ROW
  EXECUTE FUNCTION pgconsent.audit_refuse();
CREATE TRIGGER pgconsent_refuse_truncate BEFORE TRUNCATE ON pgconsent.audit_retired FOR EACH STATEMENT
  EXECUTE FUNCTION pgconsent.audit_refuse();
ALTER TABLE pgconsent.audit_retired ENABLE ALWAYS TRIGGER pgconsent_refuse,
  ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate;

-- audit_append adds records that follow the last one of their chain. Records that are there already, as after an
-- answer that was lost, stay as they are; a different record in their place is an error. Two sessions with the same
-- number wait for each other at the primary key.
CREATE FUNCTION pgconsent.audit_append(chain pg_catalog.text, first pg_catalog.int8, lines pg_catalog.text[])
  RETURNS pg_catalog.void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  last pg_catalog.int8;
BEGIN
  SELECT COALESCE(pg_catalog.max(r.seq), 0) INTO last FROM pgconsent.audit_record AS r
    WHERE r.chain OPERATOR(pg_catalog.=) audit_append.chain;
  IF first OPERATOR(pg_catalog.>) (last OPERATOR(pg_catalog.+) 1) OR EXISTS (
      SELECT FROM ROWS FROM (pg_catalog.unnest(lines)) WITH ORDINALITY AS l (line, n)
      JOIN pgconsent.audit_record AS r ON r.chain OPERATOR(pg_catalog.=) audit_append.chain
        AND r.seq OPERATOR(pg_catalog.=) (first OPERATOR(pg_catalog.+) l.n OPERATOR(pg_catalog.-) 1)
      WHERE first OPERATOR(pg_catalog.<=) last AND r.line OPERATOR(pg_catalog.<>) l.line) THEN
    RAISE EXCEPTION 'record % does not follow record % of this chain of the audit', first, last
      USING ERRCODE = '55000', HINT = 'Does another pgconsent write to the same chain? Give each its own audit.chain.';
  END IF;
  INSERT INTO pgconsent.audit_record (chain, seq, line)
  SELECT audit_append.chain, first OPERATOR(pg_catalog.+) l.n OPERATOR(pg_catalog.-) 1, l.line
  FROM ROWS FROM (pg_catalog.unnest(lines)) WITH ORDINALITY AS l (line, n)
  WHERE (first OPERATOR(pg_catalog.+) l.n OPERATOR(pg_catalog.-) 1) OPERATOR(pg_catalog.>) last;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_append(pg_catalog.text, pg_catalog.int8, pg_catalog.text[]) FROM PUBLIC;

-- audit_retire removes up to this many of the oldest records of a chain, and returns how many. The newest record stays.
CREATE FUNCTION pgconsent.audit_retire(chain pg_catalog.text, through pg_catalog.int8, most pg_catalog.int4)
  RETURNS pg_catalog.int8
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  oldest pg_catalog.int8;
  gone pg_catalog.int8;
BEGIN
  IF NOT EXISTS (SELECT FROM pgconsent.audit_record AS r WHERE r.chain OPERATOR(pg_catalog.=) audit_retire.chain
    AND r.seq OPERATOR(pg_catalog.>) through) THEN
    RAISE EXCEPTION 'the newest record of a chain of the audit is not removed' USING ERRCODE = '22023';
  END IF;
  INSERT INTO pgconsent.audit_retired (chain, seq) VALUES (audit_retire.chain, through) ON CONFLICT DO NOTHING;
  SELECT pg_catalog.min(r.seq) INTO oldest FROM pgconsent.audit_record AS r
    WHERE r.chain OPERATOR(pg_catalog.=) audit_retire.chain;
  DELETE FROM pgconsent.audit_record AS r WHERE r.chain OPERATOR(pg_catalog.=) audit_retire.chain
    AND r.seq OPERATOR(pg_catalog.<=) LEAST(through, oldest OPERATOR(pg_catalog.+) most OPERATOR(pg_catalog.-) 1);
  GET DIAGNOSTICS gone := ROW_COUNT;
  RETURN gone;
END $$;
REVOKE ALL ON FUNCTION pgconsent.audit_retire(pg_catalog.text, pg_catalog.int8, pg_catalog.int4) FROM PUBLIC;
