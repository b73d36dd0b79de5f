-- What agents read in place of relations that they hold no right on: tables with hidden or masked columns.
CREATE SCHEMA pgconsent_rows;
REVOKE ALL ON SCHEMA pgconsent_rows FROM PUBLIC;

-- The key of hashed columns, as the pads of HMAC. It is not one of pgconsent.keys: those come and go, and a hash must stay.
CREATE TABLE pgconsent.mask_key (
  only_row pg_catalog.bool PRIMARY KEY DEFAULT true CHECK (only_row),
  ipad     pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(ipad) = 64),
  opad     pg_catalog.bytea NOT NULL CHECK (pg_catalog.octet_length(opad) = 64)
);

-- The key is from the server's strong random source (a UUID of version 4 has 122 random bits).
INSERT INTO pgconsent.mask_key (ipad, opad)
SELECT pg_catalog.decode(pg_catalog.string_agg(pg_catalog.lpad(pg_catalog.to_hex(pg_catalog.get_byte(k.key, n.i) OPERATOR(pg_catalog.#) 54), 2, '0'), '' ORDER BY n.i), 'hex'),
       pg_catalog.decode(pg_catalog.string_agg(pg_catalog.lpad(pg_catalog.to_hex(pg_catalog.get_byte(k.key, n.i) OPERATOR(pg_catalog.#) 92), 2, '0'), '' ORDER BY n.i), 'hex')
FROM (SELECT pg_catalog.sha256(pg_catalog.convert_to(
        pg_catalog.concat(pg_catalog.gen_random_uuid(), pg_catalog.gen_random_uuid(), pg_catalog.gen_random_uuid(), pg_catalog.gen_random_uuid()), 'UTF8'))
      OPERATOR(pg_catalog.||) pg_catalog.decode(pg_catalog.repeat('00', 32), 'hex') AS key OFFSET 0) AS k
CROSS JOIN pg_catalog.generate_series(0, 63) AS n (i);

-- mask returns the first 32 hexadecimal digits of HMAC-SHA-256 of a value; NULL for NULL. Whoever may call it can check
-- guesses: agents have EXECUTE, since row views call it with their rights, and cannot name it, since they have no USAGE of
-- its schema.
CREATE FUNCTION pgconsent.mask(value pg_catalog.text) RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  i pg_catalog.bytea;
  o pg_catalog.bytea;
BEGIN
  SELECT k.ipad, k.opad INTO i, o FROM pgconsent.mask_key AS k;
  RETURN pg_catalog.substr(pg_catalog.encode(pg_catalog.sha256(o OPERATOR(pg_catalog.||) pg_catalog.sha256(i OPERATOR(pg_catalog.||)
    pg_catalog.convert_to(value, 'UTF8'))), 'hex'), 1, 32);
END $$;
REVOKE ALL ON FUNCTION pgconsent.mask(pg_catalog.text) FROM PUBLIC;
