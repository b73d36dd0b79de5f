-- A housing co-operative: three schemas with tables of the same names, keys that begin with a tenant, rows with two times (what held when, and what was known when), leases that exclude one another,
-- keys and exclusions over generated columns, an event store whose people are computed from a document, attributes as rows, remarks on rows of several kinds, a closure table, cascades and SET NULL
-- that reach rows of others, keys of partitions of their own, domains over domains over composites, large objects, procedures, constraint triggers, a function named as one of PostgreSQL's.
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE EXTENSION IF NOT EXISTS pgcrypto;
CREATE SCHEMA ext;
CREATE EXTENSION IF NOT EXISTS isn SCHEMA ext;
CREATE EXTENSION IF NOT EXISTS seg SCHEMA ext;
CREATE EXTENSION IF NOT EXISTS cube;
CREATE EXTENSION IF NOT EXISTS earthdistance;
CREATE EXTENSION IF NOT EXISTS lo;
CREATE EXTENSION IF NOT EXISTS tablefunc;
CREATE EXTENSION IF NOT EXISTS unaccent;
CREATE EXTENSION IF NOT EXISTS "uuid-ossp";
CREATE EXTENSION IF NOT EXISTS moddatetime;
CREATE SCHEMA core;
CREATE SCHEMA desk;
CREATE SCHEMA archive;
CREATE TYPE core.kind AS ENUM ('person', 'firm', 'estate of the dead');
CREATE TYPE core.state AS ENUM ('draft', 'signed', 'ended', 'void');
CREATE DOMAIN core.live_state AS core.state CHECK (VALUE <> 'void');
CREATE DOMAIN core.zip AS char(5) CHECK (VALUE ~ '^[0-9]{5}$');
CREATE TYPE core.sum AS (amount numeric(12,2), currency char(3));
CREATE DOMAIN core.rent AS core.sum CHECK ((VALUE).amount >= 0);
CREATE DOMAIN core.capped AS core.rent CHECK ((VALUE).amount < 1000000);
CREATE TYPE core.address AS (line text, zip core.zip, spot point, rents core.sum[]);
CREATE DOMAIN core.home AS core.address CHECK ((VALUE).line <> '');
CREATE DOMAIN core.doc AS jsonb CHECK (jsonb_typeof(VALUE) = 'object');
CREATE DOMAIN core.spell AS tstzrange CHECK (NOT isempty(VALUE));
CREATE DOMAIN core.spells AS tstzmultirange;
CREATE DOMAIN core.tags AS text[] CHECK (cardinality(VALUE) < 9);
CREATE FUNCTION core.time_gap(time, time) RETURNS float8 LANGUAGE sql IMMUTABLE RETURN extract(epoch FROM $1 - $2);
CREATE TYPE core.hours AS RANGE (subtype = time, subtype_diff = core.time_gap);
CREATE FUNCTION core.people_of(doc jsonb) RETURNS uuid[] LANGUAGE sql IMMUTABLE AS $$ SELECT coalesce(array_agg(x::uuid ORDER BY n), '{}') FROM jsonb_array_elements_text(CASE WHEN jsonb_typeof(doc -> 'people') = 'array' THEN doc -> 'people' ELSE '[]' END) WITH ORDINALITY AS e (x, n) $$;
CREATE TABLE core.tenant (id text PRIMARY KEY, name text NOT NULL, region text NOT NULL, parent text REFERENCES core.tenant, plan text NOT NULL DEFAULT 'small', opened date, seats integer);
CREATE TABLE core.party (
  tenant text NOT NULL REFERENCES core.tenant ON UPDATE CASCADE, no integer NOT NULL, uid uuid NOT NULL DEFAULT gen_random_uuid(), name text NOT NULL, kind core.kind NOT NULL DEFAULT 'person', born date, tax bytea, consents jsonb NOT NULL DEFAULT '{}',
  agreed boolean GENERATED ALWAYS AS (coalesce(consents ->> 'assistant' = 'yes', false)) STORED, home core.home, books ext.isbn13[], speaks ext.seg, erased_at timestamptz, notes text, score numeric(6,2), PRIMARY KEY (tenant, no)
);
CREATE UNIQUE INDEX party_uid ON core.party (uid);
CREATE UNIQUE INDEX party_name ON core.party (tenant, lower(name)) WHERE erased_at IS NULL AND kind = 'firm';
CREATE TABLE core.party_version (
  tenant text NOT NULL, no integer NOT NULL, id uuid PRIMARY KEY DEFAULT gen_random_uuid(), valid core.spell NOT NULL, known_from timestamptz NOT NULL, known_to timestamptz, known tstzrange GENERATED ALWAYS AS (tstzrange(known_from, known_to)) STORED,
  latest boolean GENERATED ALWAYS AS (known_to IS NULL) STORED, name text, home core.address, by_user text, FOREIGN KEY (tenant, no) REFERENCES core.party ON DELETE CASCADE ON UPDATE CASCADE, CONSTRAINT one_truth EXCLUDE USING gist (tenant WITH =, no WITH =, (valid::tstzrange) WITH &&, known WITH &&)
);
CREATE TABLE core.flat (
  tenant text NOT NULL REFERENCES core.tenant, code varchar(12) NOT NULL, house text NOT NULL, floor smallint, area numeric(6,1), rooms integer, at cube, open core.hours, features core.tags NOT NULL DEFAULT '{}', meta core.doc NOT NULL DEFAULT '{}', keeper integer,
  search tsvector GENERATED ALWAYS AS (to_tsvector('simple', house || ' ' || code)) STORED, listed boolean NOT NULL DEFAULT false, PRIMARY KEY (tenant, code), FOREIGN KEY (tenant, keeper) REFERENCES core.party ON DELETE SET NULL (keeper)
);
CREATE INDEX ON core.flat USING gin (search);
CREATE TABLE core.lease (
  tenant text NOT NULL, no integer NOT NULL, version integer NOT NULL DEFAULT 1, flat varchar(12) NOT NULL, holder integer, starts timestamptz NOT NULL, ends timestamptz, term tstzrange GENERATED ALWAYS AS (tstzrange(starts, ends)) STORED, state core.state NOT NULL DEFAULT 'draft', stage core.live_state, rent core.capped,
  paid core.spells, signers uuid[] NOT NULL DEFAULT '{}', terms json, PRIMARY KEY (tenant, no, version), FOREIGN KEY (tenant, flat) REFERENCES core.flat ON UPDATE CASCADE, FOREIGN KEY (tenant, holder) REFERENCES core.party (tenant, no) ON DELETE SET NULL (holder) ON UPDATE CASCADE DEFERRABLE,
  CONSTRAINT no_two_leases EXCLUDE USING gist (tenant WITH =, flat WITH =, term WITH &&) WHERE (state = 'signed'), CHECK (ends IS NULL OR ends > starts)
);
CREATE TABLE core.co_holder (tenant text NOT NULL, lease integer NOT NULL, version integer NOT NULL, party integer NOT NULL, share numeric NOT NULL DEFAULT 1 CHECK (share > 0), PRIMARY KEY (tenant, lease, version, party), FOREIGN KEY (tenant, lease, version) REFERENCES core.lease ON DELETE CASCADE, FOREIGN KEY (tenant, party) REFERENCES core.party ON DELETE CASCADE);
CREATE TABLE core.closure (tenant text NOT NULL, ancestor integer NOT NULL, descendant integer NOT NULL, depth integer NOT NULL, PRIMARY KEY (tenant, ancestor, descendant), FOREIGN KEY (tenant, ancestor) REFERENCES core.party, FOREIGN KEY (tenant, descendant) REFERENCES core.party);
CREATE TABLE core.attribute (id smallint PRIMARY KEY, name text NOT NULL UNIQUE, type text NOT NULL CHECK (type IN ('text', 'number', 'date', 'flag')), sensitive boolean NOT NULL DEFAULT false, unit text);
CREATE TABLE core.value (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, entity_type text NOT NULL, tenant text NOT NULL, party integer, flat varchar(12), attribute smallint NOT NULL REFERENCES core.attribute ON DELETE CASCADE, v_text text, v_number numeric, v_date date, v_flag boolean,
  FOREIGN KEY (tenant, party) REFERENCES core.party ON DELETE CASCADE, FOREIGN KEY (tenant, flat) REFERENCES core.flat ON UPDATE CASCADE ON DELETE CASCADE, CHECK (num_nonnulls(party, flat) = 1), UNIQUE NULLS NOT DISTINCT (tenant, party, flat, attribute));
CREATE TABLE core.remark (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), tenant text NOT NULL, subject_type text NOT NULL, subject_no integer, subject_code varchar(12), parent uuid REFERENCES core.remark ON DELETE CASCADE, author uuid, body text NOT NULL, mentions uuid[] NOT NULL DEFAULT '{}', at timestamptz NOT NULL DEFAULT '2025-01-01 00:00+00', stars integer);
CREATE TABLE desk.remark (id integer PRIMARY KEY, tenant text NOT NULL, body text, private boolean, weight double precision);
CREATE TABLE archive.remark (LIKE desk.remark INCLUDING ALL, gone_at timestamptz);
CREATE TABLE desk.party (tenant text NOT NULL, no integer NOT NULL, role text NOT NULL, since date, tone text COLLATE "C", PRIMARY KEY (tenant, no, role), FOREIGN KEY (tenant, no) REFERENCES core.party ON DELETE CASCADE);
CREATE UNLOGGED TABLE archive.party (LIKE core.party INCLUDING ALL);
CREATE TABLE desk.event (
  position bigint GENERATED ALWAYS AS IDENTITY, stream text NOT NULL, version integer NOT NULL, kind text NOT NULL, payload jsonb NOT NULL, people uuid[] GENERATED ALWAYS AS (core.people_of(payload)) STORED, tenant text GENERATED ALWAYS AS (payload ->> 'tenant') STORED, at timestamptz NOT NULL, xid xid8, lsn pg_lsn,
  PRIMARY KEY (stream, version)
) PARTITION BY HASH (stream);
CREATE TABLE desk.event_0 PARTITION OF desk.event FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE desk.event_1 PARTITION OF desk.event FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE desk.event_2 (kind text NOT NULL, lsn pg_lsn, gone text, tenant text GENERATED ALWAYS AS (payload ->> 'tenant') STORED, xid xid8, version integer NOT NULL, stream text NOT NULL, payload jsonb NOT NULL, at timestamptz NOT NULL, people uuid[] GENERATED ALWAYS AS (core.people_of(payload)) STORED, position bigint NOT NULL, PRIMARY KEY (stream, version));
ALTER TABLE desk.event_2 DROP COLUMN gone;
ALTER TABLE desk.event ATTACH PARTITION desk.event_2 FOR VALUES WITH (MODULUS 3, REMAINDER 2);
CREATE TABLE desk.read_mark (reader text NOT NULL, stream text NOT NULL, version integer NOT NULL, seen_at timestamptz, PRIMARY KEY (reader, stream), FOREIGN KEY (stream, version) REFERENCES desk.event);
CREATE TABLE desk.visit (
  id uuid NOT NULL DEFAULT gen_random_uuid(), tenant text NOT NULL, flat varchar(12) NOT NULL, who text NOT NULL, on_day date NOT NULL, from_time time NOT NULL DEFAULT '09:00', minutes integer NOT NULL DEFAULT 30, slot tsrange GENERATED ALWAYS AS (tsrange(on_day + from_time, on_day + from_time + minutes * interval '1 minute')) STORED, note text,
  badge integer, desk text, PRIMARY KEY (id, on_day)
) PARTITION BY RANGE (on_day);
CREATE TABLE desk.visit_2024 PARTITION OF desk.visit FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE desk.visit_2025 PARTITION OF desk.visit FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE desk.visit_rest PARTITION OF desk.visit DEFAULT;
ALTER TABLE desk.visit_2025 ADD CONSTRAINT one_visit EXCLUDE USING gist (tenant WITH =, flat WITH =, slot WITH &&);
CREATE UNIQUE INDEX visit_badge ON desk.visit_2025 (badge);
CREATE TABLE desk.place (code text PRIMARY KEY, tenant text NOT NULL, chairs integer);
ALTER TABLE desk.visit_2025 ADD CONSTRAINT visit_desk FOREIGN KEY (desk) REFERENCES desk.place;
CREATE TABLE desk.setting (tenant text NOT NULL, key text NOT NULL, slug text GENERATED ALWAYS AS (lower(key)) STORED, value core.doc NOT NULL DEFAULT '{}', current boolean NOT NULL DEFAULT false, changed timestamptz, PRIMARY KEY (tenant, key), UNIQUE (tenant, slug));
CREATE TABLE desk.draft (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text NOT NULL, title text NOT NULL, slug text GENERATED ALWAYS AS (lower(regexp_replace(title, '[^a-zA-Z]+', '-', 'g'))) STORED UNIQUE, body text, words integer GENERATED ALWAYS AS (length(body)) STORED, changed timestamptz);
CREATE TABLE desk.folder (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text NOT NULL, parent uuid REFERENCES desk.folder ON DELETE CASCADE, name text NOT NULL, UNIQUE (owner, parent, name));
CREATE TABLE desk.file (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text NOT NULL, folder uuid REFERENCES desk.folder ON DELETE SET NULL, lease integer, name text NOT NULL, raster lo, sha text GENERATED ALWAYS AS (encode(sha256(name::bytea), 'hex')) STORED, size bigint);
CREATE TABLE desk.payout (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant text NOT NULL, lease integer NOT NULL, version integer NOT NULL DEFAULT 1, due date NOT NULL, total core.capped, ref text, done boolean, FOREIGN KEY (tenant, lease, version) REFERENCES core.lease DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE desk."Öffentliche Aushänge ""am Brett"" im Treppenhaus, OG/EG; --" ("*" integer PRIMARY KEY, "tenant" text NOT NULL, "count(*)" text, "NULL" date, " " text, "é" text, U&"e\0301" text);
CREATE TABLE core.audit_row (id bigint GENERATED ALWAYS AS IDENTITY, at timestamptz DEFAULT now(), what text, old jsonb, rows integer);
CREATE TABLE core.tables (table_name text PRIMARY KEY, tenant text, columns integer);
CREATE TABLE core.product (ean ext.ean13 PRIMARY KEY, title text NOT NULL, isbn ext.isbn, weight ext.seg, at cube, tenant text);
CREATE FUNCTION core.note_row() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = core, pg_temp AS $$ BEGIN INSERT INTO core.audit_row (what, old) VALUES (TG_TABLE_NAME || ' ' || TG_OP, to_jsonb(OLD)); RAISE NOTICE 'noted % of %', TG_OP, OLD; RETURN coalesce(NEW, OLD); END $$;
CREATE FUNCTION core.note_rows() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = core, pg_temp AS $$ BEGIN INSERT INTO core.audit_row (what, rows) SELECT TG_TABLE_NAME, count(*) FROM gone; RETURN NULL; END $$;
CREATE FUNCTION core.lease_makes_sense() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.state = 'signed' AND NEW.rent IS NULL THEN RAISE EXCEPTION 'lease % of % has no rent', NEW.no, NEW.holder USING ERRCODE = 'check_violation', DETAIL = NEW::text; END IF; RETURN NULL; END $$;
CREATE TRIGGER note AFTER UPDATE OF name, home OR DELETE ON core.party FOR EACH ROW EXECUTE FUNCTION core.note_row();
CREATE TRIGGER note AFTER UPDATE OR DELETE ON core.remark FOR EACH ROW WHEN (OLD.stars IS NOT NULL) EXECUTE FUNCTION core.note_row();
CREATE TRIGGER notes AFTER DELETE ON desk.folder REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION core.note_rows();
CREATE CONSTRAINT TRIGGER sense AFTER INSERT OR UPDATE ON core.lease DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION core.lease_makes_sense();
CREATE TRIGGER changed BEFORE UPDATE ON desk.draft FOR EACH ROW EXECUTE FUNCTION moddatetime(changed);
CREATE TRIGGER raster BEFORE UPDATE OR DELETE ON desk.file FOR EACH ROW EXECUTE FUNCTION lo_manage(raster);
CREATE FUNCTION core.label(f core.flat) RETURNS text LANGUAGE sql STABLE RETURN upper(f.house) || ' ' || f.code;
CREATE FUNCTION core.length(s core.spell) RETURNS interval LANGUAGE sql IMMUTABLE RETURN upper(s) - lower(s);
CREATE FUNCTION core.leases_of(of_party integer, OUT lease integer, OUT flat text, OUT days integer) RETURNS SETOF record LANGUAGE sql STABLE BEGIN ATOMIC SELECT l.no, l.flat::text, extract(day FROM coalesce(upper(l.term), '2026-01-01 00:00+00') - lower(l.term))::integer FROM core.lease l WHERE l.holder = of_party ORDER BY 1; END;
CREATE FUNCTION core.first_of(VARIADIC list anycompatiblearray) RETURNS anycompatible LANGUAGE sql IMMUTABLE AS $$ SELECT x FROM unnest(list) WITH ORDINALITY u (x, n) WHERE x IS NOT NULL ORDER BY n LIMIT 1 $$;
CREATE FUNCTION core.as_of(moment timestamptz DEFAULT '2024-06-01 00:00+00', deep boolean DEFAULT true) RETURNS TABLE (tenant text, no integer, name text) LANGUAGE sql STABLE AS $$ SELECT v.tenant, v.no, v.name FROM core.party_version v WHERE v.valid @> moment AND (deep OR v.latest) ORDER BY 1, 2, 3 $$;
CREATE FUNCTION core.heads() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER AS $$ SELECT count(*) FROM core.party $$;
CREATE PROCEDURE core.rename(INOUT who integer, called text) LANGUAGE plpgsql AS $$ BEGIN UPDATE core.party SET name = called WHERE no = who RETURNING no INTO who; END $$;
CREATE PROCEDURE core.tidy() LANGUAGE sql BEGIN ATOMIC DELETE FROM core.remark WHERE stars < 0; END;
CREATE VIEW core.now_known AS SELECT DISTINCT ON (tenant, no) tenant, no, name, lower(valid) AS since, known_from FROM core.party_version WHERE latest ORDER BY tenant, no, lower(valid) DESC NULLS LAST, id;
CREATE VIEW core.gap (tenant, flat, nth, starts, idle, running) AS SELECT tenant, flat, row_number() OVER w, starts, starts - lag(ends) OVER w, sum((rent).amount) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM core.lease WHERE state = 'signed' WINDOW w AS (PARTITION BY tenant, flat ORDER BY starts, no, version);
CREATE VIEW desk.gap AS SELECT g.flat, max(g.idle) AS longest, count(*) FILTER (WHERE g.idle > interval '10 days') AS long, f.house, f.features[1] AS feature FROM core.gap g JOIN core.flat f ON f.tenant = g.tenant AND f.code = g.flat GROUP BY 1, 4, 5;
CREATE VIEW core.entity AS SELECT v.tenant, v.party, jsonb_object_agg(a.name, coalesce(to_jsonb(v.v_text), to_jsonb(v.v_number), to_jsonb(v.v_date), to_jsonb(v.v_flag)) ORDER BY a.name) AS attributes, max(v.v_number) FILTER (WHERE a.name = 'income') AS income FROM core.value v JOIN core.attribute a ON a.id = v.attribute WHERE v.entity_type = 'party' GROUP BY 1, 2;
CREATE VIEW desk.my_draft AS SELECT id, title, body, words FROM desk.draft WHERE words IS NULL OR words < 100 WITH LOCAL CHECK OPTION;
CREATE VIEW desk.short_draft WITH (security_barrier) AS SELECT id, title, body FROM desk.my_draft WHERE length(title) < 20 WITH CASCADED CHECK OPTION;
CREATE RECURSIVE VIEW desk.folder_path (id, path, depth) AS SELECT id, name, 0 FROM desk.folder WHERE parent IS NULL UNION ALL SELECT f.id, p.path || '/' || f.name, p.depth + 1 FROM desk.folder f JOIN folder_path p ON f.parent = p.id;
CREATE VIEW desk.timeline AS SELECT stream, version, kind, at, payload #>> '{body,title}' AS title, at - lag(at) OVER (PARTITION BY stream ORDER BY version) AS since, cardinality(people) AS n FROM desk.event;
CREATE VIEW desk.stream AS SELECT stream, count(*) AS events, max(version) AS version, array_agg(DISTINCT kind ORDER BY kind) AS kinds FROM desk.timeline GROUP BY stream HAVING count(*) > 1;
CREATE VIEW core.secret AS SELECT tenant, no, tax FROM core.party;
CREATE MATERIALIZED VIEW core.tenant_month AS SELECT tenant, date_trunc('month', starts) AS month, count(*) AS leases, sum((rent).amount) AS rent FROM core.lease GROUP BY 1, 2;
CREATE STATISTICS core.flat_stats (ndistinct, dependencies, mcv) ON house, floor, (rooms * 2) FROM core.flat;
COMMENT ON TABLE core.audit_row IS 'HIDDENMARK';
COMMENT ON COLUMN core.party.tax IS 'HIDDENMARK';
DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'estate_bi') THEN CREATE ROLE estate_bi; END IF; END $$;
GRANT USAGE ON SCHEMA core TO estate_bi;
GRANT SELECT (tenant, no, name), UPDATE (notes) ON core.party TO estate_bi;
SET session_replication_role = replica;
INSERT INTO core.tenant SELECT 't' || i, 'Tenant ' || i, (ARRAY['north','south'])[1 + i % 2], CASE WHEN i > 2 THEN 't' || i / 2 END, (ARRAY['small','big'])[1 + i % 2], date '2010-01-01' + i * 100, i * 10 FROM generate_series(1, 6) i;
INSERT INTO core.party (tenant, no, uid, name, kind, born, tax, consents, home, books, speaks, erased_at, notes, score) SELECT 't' || 1 + i % 6, i, md5('party ' || i)::uuid, (ARRAY['Ada','Émile','Zoë','Óscar','Łukasz'])[1 + i % 5] || ' ' || i, (enum_range(NULL::core.kind))[1 + i % 3], CASE WHEN i % 7 > 0 THEN date '1950-01-01' + i * 97 END, digest('tax ' || i, 'sha256'),
  CASE i % 5 WHEN 0 THEN '{"assistant": "no"}' WHEN 1 THEN '{"assistant": ["yes"]}' WHEN 2 THEN '{"assistant": "yes", "mail": "no"}' ELSE '{"assistant": "yes"}' END::jsonb, CASE WHEN i % 4 > 0 THEN ROW(i || ' Main St', lpad((i * 37 % 90000)::text, 5, '1'), point(i % 9, i % 5), ARRAY[ROW(i * 10, 'EUR')::core.sum])::core.address END, CASE WHEN i % 3 = 0 THEN ARRAY['978-0-393-04002-9','9780306406157']::ext.isbn13[] END, (i % 9 || ' .. ' || i % 9 + 2)::ext.seg, CASE WHEN i % 13 = 0 THEN timestamptz '2024-03-03 00:00+00' END, CASE WHEN i % 2 = 0 THEN 'note ' || i END, CASE WHEN i % 6 > 0 THEN i * 1.25 END FROM generate_series(1, 120) i;
INSERT INTO core.party_version (tenant, no, id, valid, known_from, known_to, name, home, by_user) SELECT p.tenant, p.no, md5('version ' || p.no || ' ' || v)::uuid, tstzrange(timestamptz '2023-01-01 00:00+00' + (v / 2) * interval '200 days', CASE WHEN v < 2 THEN timestamptz '2023-01-01 00:00+00' + (v / 2 + 1) * interval '200 days' END), timestamptz '2023-01-01 00:00+00' + v % 2 * interval '300 days', CASE WHEN v % 2 = 0 THEN timestamptz '2023-01-01 00:00+00' + interval '300 days' END, p.name || ' v' || v, p.home, 'u' || p.no % 5 FROM core.party p, generate_series(0, 3) v;
INSERT INTO core.flat (tenant, code, house, floor, area, rooms, at, open, features, meta, keeper, listed) SELECT 't' || 1 + i % 6, 'F' || lpad(i::text, 3, '0'), 'House ' || i % 7, i % 6, 30 + i * 1.7, 1 + i % 5, ll_to_earth(50 + i % 5, 10 + i % 7), core.hours(time '08:00' + (i % 4) * interval '1 hour', '18:00'), CASE WHEN i % 3 > 0 THEN ARRAY['balcony','lift'] ELSE '{}' END, CASE WHEN i % 2 = 0 THEN jsonb_build_object('heat', 'gas', 'n', i) ELSE '{}' END, CASE WHEN i % 4 > 0 THEN i END, i % 3 = 0 FROM generate_series(1, 72) i;
INSERT INTO core.lease (tenant, no, version, flat, holder, starts, ends, state, rent, paid, signers, terms) SELECT 't' || 1 + i % 6, i, 1 + i % 2, 'F' || lpad((1 + (i - 1) % 72)::text, 3, '0'), CASE WHEN i % 9 > 0 THEN 1 + (i - 1) % 120 END, timestamptz '2022-01-01 00:00+00' + i * interval '9 days', CASE WHEN i % 5 > 0 OR i < 90 THEN timestamptz '2022-01-01 00:00+00' + i * interval '9 days' + interval '200 days' END, (ARRAY['draft','signed','ended'])[1 + i % 3]::core.state, CASE WHEN i % 7 > 0 THEN ROW(i * 11.5, 'EUR')::core.sum END,
  CASE WHEN i % 2 = 0 THEN tstzmultirange(tstzrange('2023-01-01 00:00+00', '2023-02-01 00:00+00'), tstzrange('2023-03-01 00:00+00', timestamptz '2023-03-02 00:00+00' + i * interval '1 hour')) END, CASE WHEN i % 4 > 0 THEN ARRAY[md5('party ' || i)::uuid, md5('party ' || i + 6)::uuid] ELSE '{}' END, CASE WHEN i % 3 = 0 THEN '{"pets": true, "n": ' || i || '}' END::json FROM generate_series(1, 160) i;
INSERT INTO core.co_holder SELECT l.tenant, l.no, l.version, 1 + (l.no + n * 6 - 1) % 120, 0.25 * (n + 1) FROM core.lease l, generate_series(0, 1) n;
INSERT INTO core.closure SELECT a.tenant, a.no, d.no, n FROM core.party a JOIN generate_series(0, 2) n ON true JOIN core.party d ON d.tenant = a.tenant AND d.no = a.no * (n + 1) + 6 * n * (1 - a.no % 2) WHERE d.no <= 120;
INSERT INTO core.attribute VALUES (1, 'language', 'text', false, NULL), (2, 'income', 'number', true, 'EUR'), (3, 'moved', 'date', false, NULL), (4, 'pets', 'flag', false, NULL), (5, 'diagnosis', 'text', true, NULL), (6, 'height', 'number', false, 'cm');
INSERT INTO core.value (entity_type, tenant, party, attribute, v_text, v_number, v_date, v_flag) SELECT 'party', p.tenant, p.no, a.id, CASE WHEN a.type = 'text' THEN (ARRAY['de','fr','pl'])[1 + p.no % 3] END, CASE WHEN a.type = 'number' THEN p.no * a.id END, CASE WHEN a.type = 'date' THEN date '2024-01-01' + p.no END, CASE WHEN a.type = 'flag' THEN p.no % 2 = 0 END FROM core.party p, core.attribute a WHERE (p.no + a.id) % 4 > 0;
INSERT INTO core.value (entity_type, tenant, flat, attribute, v_number) SELECT 'flat', tenant, code, 6, 240 + floor FROM core.flat;
INSERT INTO core.remark (id, tenant, subject_type, subject_no, subject_code, parent, author, body, mentions, at, stars) SELECT md5('remark ' || i)::uuid, 't' || 1 + i % 6, (ARRAY['party','flat','lease'])[1 + i % 3], CASE WHEN i % 3 <> 1 THEN 1 + i % 120 END, CASE WHEN i % 3 = 1 THEN 'F' || lpad((1 + i % 72)::text, 3, '0') END, CASE WHEN i > 60 THEN md5('remark ' || i - 60)::uuid END, md5('party ' || i % 130)::uuid, 'Remark ' || i || ' on rent and water', CASE WHEN i % 4 = 0 THEN ARRAY[md5('party 4')::uuid] ELSE '{}' END, timestamptz '2024-01-01 00:00+00' + i * interval '7 hours', CASE WHEN i % 5 > 0 THEN i % 6 END FROM generate_series(1, 240) i;
INSERT INTO desk.remark SELECT i, 't' || 1 + i % 6, 'Desk remark ' || i, (ARRAY[true,false,NULL])[1 + i % 3], i / 7.0 FROM generate_series(1, 90) i;
INSERT INTO archive.remark SELECT i, 't4', 'HIDDENMARK', false, i, now() FROM generate_series(1, 9) i;
INSERT INTO desk.party SELECT tenant, no, r, date '2020-01-01' + no, 'tone ' || no % 4 FROM core.party, unnest(ARRAY['keeper','debtor']) r WHERE (no + length(r)) % 2 = 0;
INSERT INTO archive.party (tenant, no, name) SELECT 't4', 1000 + i, 'HIDDENMARK' FROM generate_series(1, 5) i;
INSERT INTO desk.event (stream, version, kind, payload, at, xid, lsn) SELECT 's' || i % 24, 1 + i / 24, (ARRAY['opened','signed','paid','moved'])[1 + i % 4], jsonb_build_object('tenant', 't' || 1 + i % 6, 'people', CASE i % 5 WHEN 0 THEN '[]'::jsonb WHEN 1 THEN to_jsonb(md5('party 4')::uuid::text) ELSE jsonb_build_array(md5('party ' || 4 + i % 3)::uuid, md5('party 9')::uuid) END, 'body', jsonb_build_object('title', 'Event ' || i, 'n', i % 6)), timestamptz '2024-01-01 00:00+00' + i * interval '5 hours', (1000 + i)::text::xid8, ('0/' || to_hex(i * 4096))::pg_lsn FROM generate_series(0, 239) i;
INSERT INTO desk.read_mark SELECT r, 's' || s, 1 + s % 10, timestamptz '2024-06-01 00:00+00' + s * interval '1 day' FROM unnest(ARRAY['ann','bob','cyd']) r, generate_series(0, 23) s WHERE (s + length(r) + ascii(r)) % 3 > 0;
INSERT INTO desk.place SELECT 'P' || i, 't' || 1 + i % 6, i FROM generate_series(1, 12) i;
INSERT INTO desk.visit (id, tenant, flat, who, on_day, from_time, minutes, note, badge, desk) SELECT md5('visit ' || i)::uuid, 't' || 1 + i % 6, 'F' || lpad((1 + (i - 1) % 72)::text, 3, '0'), (ARRAY['ann','bob','cyd'])[1 + i % 3], date '2024-06-01' + i * 5, time '08:00' + (i % 8) * interval '1 hour', 15 + i % 50, CASE WHEN i % 3 > 0 THEN 'visit ' || i END, CASE WHEN i % 2 = 0 THEN i END, CASE WHEN i % 4 = 0 THEN 'P' || 1 + i % 12 END FROM generate_series(1, 140) i;
INSERT INTO desk.setting (tenant, key, value, current) SELECT 't' || t, k, jsonb_build_object('v', t * length(k)), t % 2 = 0 FROM generate_series(1, 6) t, unnest(ARRAY['Theme','Mail','Locale']) k;
INSERT INTO desk.draft (id, owner, title, body, changed) SELECT md5('draft ' || i)::uuid, (ARRAY['ann','bob','cyd'])[1 + i % 3], 'Title ' || chr(65 + i % 26) || chr(65 + i / 26), CASE WHEN i % 5 > 0 THEN repeat('word ', i % 30) END, timestamptz '2024-05-05 00:00+00' FROM generate_series(1, 60) i;
INSERT INTO desk.folder SELECT md5('folder ' || i)::uuid, (ARRAY['ann','bob','cyd'])[1 + i % 3], CASE WHEN i > 9 THEN md5('folder ' || i / 3)::uuid END, 'Folder ' || i FROM generate_series(1, 45) i;
INSERT INTO desk.file (id, owner, folder, lease, name, raster, size) SELECT md5('file ' || i)::uuid, (ARRAY['ann','bob','cyd'])[1 + i % 3], CASE WHEN i % 5 > 0 THEN md5('folder ' || 1 + i % 45)::uuid END, i, 'file' || i || '.pdf', 90000 + i, i * 1024 FROM generate_series(1, 80) i;
INSERT INTO desk.payout (tenant, lease, version, due, total, ref, done) SELECT tenant, no, version, date '2024-01-01' + no, rent, 'R-' || no, no % 2 = 0 FROM core.lease;
INSERT INTO desk."Öffentliche Aushänge ""am Brett"" im Treppenhaus, OG/EG; --" SELECT i, 't' || 1 + i % 6, 'c' || i, date '2024-01-01' + i, ' ', 'composed', 'decomposed' FROM generate_series(1, 24) i;
INSERT INTO core.audit_row (what, old) SELECT 'HIDDENMARK', '{}' FROM generate_series(1, 4);
INSERT INTO core.tables SELECT 'table' || i, 't' || 1 + i % 6, i FROM generate_series(1, 12) i;
INSERT INTO core.product SELECT ('400000000' || lpad(i::text, 3, '0') || (10 - (4 + 3 * (i / 100) + i / 10 % 10 + 3 * (i % 10)) % 10) % 10)::ext.ean13, 'Product ' || i, CASE WHEN i % 2 = 0 THEN '0-393-04002-X'::ext.isbn END, (i || '(+-)1')::ext.seg, cube(ARRAY[i, i % 3]::float8[]), CASE WHEN i % 3 > 0 THEN 't' || 1 + i % 6 END FROM generate_series(1, 30) i;
SET session_replication_role = origin;
REFRESH MATERIALIZED VIEW core.tenant_month;
ANALYZE;
