-- A charity platform that four mappers have written to: Prisma's users, posts and join tables ("_PostToTag"), Rails' polymorphic comments and versions, Hibernate's joined and single-table inheritance with its _aud tables, and
-- a ledger, cases, jobs and shifts by hand. Consent per channel inside documents and arrays of enums, consents as periods whose ends are generated, attributes as rows about rows of several kinds, tenants first in every key,
-- partitions of partitions with other places of their columns, a default one and one detached, columns that were dropped and added, names that generated SQL uses itself (r1, attr, p1), ranges over an enum, ranges over a domain,
-- ltree, a constraint trigger that is asked at the end, exclusions, children of a table, updatable views over views with checks, functions with SQL bodies, numbers and times without end.
CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE EXTENSION IF NOT EXISTS ltree;
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE SCHEMA ext;
CREATE EXTENSION IF NOT EXISTS isn SCHEMA ext;
CREATE EXTENSION IF NOT EXISTS seg SCHEMA ext;
CREATE SCHEMA app;
CREATE SCHEMA rails;
CREATE SCHEMA hib;
CREATE SCHEMA fin;

CREATE TYPE "Role" AS ENUM ('ADMIN', 'MEMBER', 'GUEST');
CREATE TYPE "PostState" AS ENUM ('DRAFT', 'LIVE', 'GONE');
CREATE TYPE app.channel AS ENUM ('email', 'phone', 'post', 'visit');
CREATE TYPE app.level AS ENUM ('low', 'mid', 'high', 'top');
CREATE TYPE app.levels AS RANGE (subtype = app.level);
CREATE DOMAIN app.weight AS numeric CHECK (VALUE IS NULL OR VALUE >= 0 OR VALUE = 'NaN');
CREATE TYPE app.weights AS RANGE (subtype = app.weight);
CREATE DOMAIN app.code AS citext CHECK (VALUE ~ '^[a-z]{1,4}-?[0-9]*$');
CREATE DOMAIN app.channels AS app.channel[] CHECK (cardinality(VALUE) < 5);
CREATE TYPE app.contact AS (mail text, phones text[], best app.channel, hours int4multirange);
CREATE TYPE app.line AS (sku app.code, qty integer, price numeric(8,2));

CREATE TABLE public."Tenant" (id text PRIMARY KEY, slug citext UNIQUE, features jsonb NOT NULL DEFAULT '{}', since date);
CREATE TABLE public."User" (
    id text NOT NULL, "tenantId" text NOT NULL, email citext NOT NULL, name text, role "Role" NOT NULL DEFAULT 'MEMBER', roles "Role"[] NOT NULL DEFAULT '{}', consent jsonb, "createdAt" timestamp(3) NOT NULL DEFAULT '2026-01-01',
    "updatedAt" timestamp(3) NOT NULL, "deletedAt" timestamp(3), score double precision, old1 text, CONSTRAINT "User_pkey" PRIMARY KEY (id)
);
ALTER TABLE public."User" DROP COLUMN old1;
ALTER TABLE public."User" ADD COLUMN locale varchar(5) NOT NULL DEFAULT 'en';
CREATE UNIQUE INDEX "User_tenantId_email_key" ON public."User" ("tenantId", email);
ALTER TABLE public."User" ADD CONSTRAINT "User_tenantId_fkey" FOREIGN KEY ("tenantId") REFERENCES public."Tenant" (id) ON DELETE RESTRICT ON UPDATE CASCADE;
CREATE TABLE public."Post" (
    id text PRIMARY KEY DEFAULT gen_random_uuid()::text, "tenantId" text NOT NULL REFERENCES public."Tenant", "authorId" text NOT NULL REFERENCES public."User" ON UPDATE CASCADE, title text NOT NULL, slug text NOT NULL, content text, state "PostState" NOT NULL DEFAULT 'DRAFT',
    "publishedAt" timestamptz, meta jsonb NOT NULL DEFAULT '{}', "wordCount" integer GENERATED ALWAYS AS (array_length(string_to_array(content, ' '), 1)) STORED, search tsvector GENERATED ALWAYS AS (setweight(to_tsvector('english', title), 'A') || setweight(to_tsvector('english', coalesce(content, '')), 'B')) STORED,
    UNIQUE ("tenantId", slug)
);
CREATE INDEX ON public."Post" USING gin (search);
CREATE TABLE public."Tag" (id text PRIMARY KEY, "tenantId" text NOT NULL REFERENCES public."Tenant", name citext NOT NULL, UNIQUE ("tenantId", name));
CREATE TABLE public."_PostToTag" ("A" text NOT NULL REFERENCES public."Post" ON DELETE CASCADE ON UPDATE CASCADE, "B" text NOT NULL REFERENCES public."Tag" ON DELETE CASCADE ON UPDATE CASCADE);
CREATE UNIQUE INDEX "_PostToTag_AB_unique" ON public."_PostToTag" ("A", "B");
CREATE INDEX "_PostToTag_B_index" ON public."_PostToTag" ("B");
CREATE TABLE public._prisma_migrations (id varchar(36) PRIMARY KEY, checksum varchar(64), migration_name varchar(255), finished_at timestamptz);

CREATE TABLE rails.comments (
    id bigserial PRIMARY KEY, commentable_type varchar NOT NULL, commentable_id varchar NOT NULL, user_id text NOT NULL REFERENCES public."User", parent_id bigint REFERENCES rails.comments ON DELETE SET NULL, body text, votes integer DEFAULT 0,
    created_at timestamp(6) NOT NULL DEFAULT '2026-05-01', updated_at timestamp(6) NOT NULL DEFAULT '2026-05-01', discarded_at timestamp(6)
);
CREATE INDEX index_comments_on_commentable ON rails.comments (commentable_type, commentable_id);
CREATE TABLE rails.versions (id bigserial PRIMARY KEY, item_type varchar NOT NULL, item_id bigint NOT NULL, event varchar NOT NULL, whodunnit varchar, object jsonb, object_changes jsonb, created_at timestamp(6));
CREATE TABLE rails.taggings (id bigint PRIMARY KEY, tag_id text REFERENCES public."Tag", taggable_type varchar, taggable_id varchar, context varchar(128), UNIQUE (tag_id, taggable_id, taggable_type, context));
CREATE TABLE rails."User" (id integer PRIMARY KEY, login text NOT NULL, "type" text NOT NULL, owner text REFERENCES public."User");
CREATE TABLE rails.schema_migrations (version varchar PRIMARY KEY);

CREATE SEQUENCE hib.hibernate_sequence START 1000 INCREMENT 50;
CREATE TABLE hib.party (tenant_id text NOT NULL REFERENCES public."Tenant", id bigint NOT NULL, dtype varchar(31) NOT NULL, version integer NOT NULL DEFAULT 0, name text NOT NULL, region ltree, active boolean, PRIMARY KEY (tenant_id, id), CHECK (dtype IN ('Person', 'Organisation')));
CREATE TABLE hib.person (
    tenant_id text NOT NULL, id bigint NOT NULL, given text NOT NULL, family text, born date, consents text[], reach app.channels, quiet_until timestamptz, contact app.contact, employer bigint, weight app.weights, trust app.levels,
    PRIMARY KEY (tenant_id, id), FOREIGN KEY (tenant_id, id) REFERENCES hib.party ON DELETE CASCADE
);
CREATE TABLE hib.organisation (tenant_id text NOT NULL, id bigint NOT NULL, vat text, staff int4range, parent bigint, PRIMARY KEY (tenant_id, id), FOREIGN KEY (tenant_id, id) REFERENCES hib.party ON DELETE CASCADE, FOREIGN KEY (tenant_id, parent) REFERENCES hib.organisation);
ALTER TABLE hib.person ADD FOREIGN KEY (tenant_id, employer) REFERENCES hib.organisation;
CREATE TABLE hib.person_phones (tenant_id text, person_id bigint, phones_key integer, phones text, PRIMARY KEY (tenant_id, person_id, phones_key), FOREIGN KEY (tenant_id, person_id) REFERENCES hib.person ON DELETE CASCADE);
CREATE TABLE hib.revinfo (rev integer PRIMARY KEY, revtstmp bigint NOT NULL, who text);
CREATE TABLE hib.person_aud (tenant_id text NOT NULL, id bigint NOT NULL, rev integer NOT NULL REFERENCES hib.revinfo, revtype smallint, given text, family text, PRIMARY KEY (tenant_id, id, rev));
CREATE TABLE hib.payment (
    id bigint PRIMARY KEY, dtype varchar(31) NOT NULL, tenant_id text NOT NULL, payer bigint NOT NULL, amount numeric NOT NULL, iban text, last4 char(4), wallet jsonb, settled timestamptz, FOREIGN KEY (tenant_id, payer) REFERENCES hib.party,
    CHECK ((dtype = 'Card') = (last4 IS NOT NULL))
);

CREATE TABLE fin.gift (
    tenant_id text NOT NULL, gift_no bigint NOT NULL, given_at date NOT NULL, donor_id bigint, amount numeric(12,2) NOT NULL, currency char(3) NOT NULL DEFAULT 'EUR', fx numeric, campaign text, meta jsonb NOT NULL DEFAULT '{}', flags bit(4) NOT NULL DEFAULT B'0000',
    base numeric GENERATED ALWAYS AS (round(amount * coalesce(fx, 1), 2)) STORED, PRIMARY KEY (tenant_id, gift_no, given_at), FOREIGN KEY (tenant_id, donor_id) REFERENCES hib.person
) PARTITION BY LIST (tenant_id);
CREATE TABLE fin.gift_t1 PARTITION OF fin.gift FOR VALUES IN ('t1') PARTITION BY RANGE (given_at);
CREATE TABLE fin.gift_t1_h1 (gone text, campaign text, meta jsonb NOT NULL DEFAULT '{}', amount numeric(12,2) NOT NULL, given_at date NOT NULL, gift_no bigint NOT NULL, tenant_id text NOT NULL, flags bit(4) NOT NULL DEFAULT B'0000', donor_id bigint, fx numeric, currency char(3) NOT NULL DEFAULT 'EUR',
    base numeric GENERATED ALWAYS AS (round(amount * coalesce(fx, 1), 2)) STORED);
ALTER TABLE fin.gift_t1_h1 DROP COLUMN gone;
ALTER TABLE fin.gift_t1 ATTACH PARTITION fin.gift_t1_h1 FOR VALUES FROM ('2026-01-01') TO ('2026-07-01');
CREATE TABLE fin.gift_t1_rest PARTITION OF fin.gift_t1 DEFAULT;
CREATE TABLE fin.gift_t2 PARTITION OF fin.gift FOR VALUES IN ('t2');
CREATE TABLE fin.gift_others PARTITION OF fin.gift DEFAULT;
CREATE TABLE fin.gift_old PARTITION OF fin.gift FOR VALUES IN ('t0');
CREATE TABLE fin.receipt (
    id uuid PRIMARY KEY, tenant_id text NOT NULL, gift_no bigint NOT NULL, given_at date NOT NULL, issued timestamptz NOT NULL, body text NOT NULL, pdf bytea, digest bytea GENERATED ALWAYS AS (sha256(pdf)) STORED, sent app.channel,
    FOREIGN KEY (tenant_id, gift_no, given_at) REFERENCES fin.gift
);
CREATE TABLE fin.pledge (
    tenant_id text NOT NULL, pledge_no integer NOT NULL, donor_id bigint NOT NULL, during daterange NOT NULL, every interval NOT NULL, amount money NOT NULL, until timestamptz NOT NULL DEFAULT 'infinity', target numeric, "order" integer,
    PRIMARY KEY (tenant_id, pledge_no), FOREIGN KEY (tenant_id, donor_id) REFERENCES hib.person, EXCLUDE USING gist (tenant_id WITH =, donor_id WITH =, during WITH &&), UNIQUE (tenant_id, "order") DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE fin.entry (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant_id text NOT NULL, owner text NOT NULL REFERENCES public."User", txn uuid NOT NULL, account ltree NOT NULL, amount numeric(12,2) NOT NULL CHECK (amount <> 0), booked date NOT NULL DEFAULT '2026-06-01', lines app.line[] NOT NULL DEFAULT '{}'
);
CREATE FUNCTION fin.balanced() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT sum(amount) FROM fin.entry WHERE txn = NEW.txn) <> 0 THEN RAISE EXCEPTION 'transaction % does not balance', NEW.txn USING ERRCODE = '23514'; END IF; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT OR UPDATE ON fin.entry DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fin.balanced();

CREATE TABLE app.consent_period (
    tenant_id text NOT NULL, person_id bigint NOT NULL, purpose text NOT NULL, grantee text NOT NULL, during daterange NOT NULL, from_day date GENERATED ALWAYS AS (lower(during)) STORED, to_day date GENERATED ALWAYS AS (upper(during)) STORED, withdrawn_at timestamptz,
    EXCLUDE USING gist (tenant_id WITH =, person_id WITH =, purpose WITH =, grantee WITH =, during WITH &&) WHERE (withdrawn_at IS NULL)
);
CREATE TABLE app.case_file (
    id integer PRIMARY KEY, tenant_id text NOT NULL, person_id bigint NOT NULL, parent integer REFERENCES app.case_file, path ltree NOT NULL, title text NOT NULL, body text, facts jsonb, purpose text NOT NULL, secret boolean, opened tstzrange NOT NULL, tags text[], level app.level, points numeric,
    FOREIGN KEY (tenant_id, person_id) REFERENCES hib.person
);
CREATE INDEX ON app.case_file USING gist (path);
CREATE TABLE app.case_note (case_id integer REFERENCES app.case_file ON DELETE CASCADE, no smallint, author text REFERENCES public."User", body text NOT NULL, at timestamptz NOT NULL DEFAULT '2026-05-05 00:00+00', pinned boolean NOT NULL DEFAULT false, PRIMARY KEY (case_id, no));
CREATE TABLE app.custom_field (id integer PRIMARY KEY, tenant_id text NOT NULL, entity text NOT NULL, name text NOT NULL, kind text NOT NULL, sensitive boolean NOT NULL);
CREATE TABLE app.custom_value (tenant_id text NOT NULL, entity text NOT NULL, entity_id bigint NOT NULL, field_id integer NOT NULL REFERENCES app.custom_field, value text, PRIMARY KEY (tenant_id, entity, entity_id, field_id));
CREATE TABLE app.shift (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(), tenant_id text NOT NULL, who text NOT NULL REFERENCES public."User", during tstzrange NOT NULL, place point, kind text NOT NULL DEFAULT 'kitchen', hours numeric GENERATED ALWAYS AS (round(extract(epoch FROM upper(during) - lower(during)) / 3600, 2)) STORED, note text,
    EXCLUDE USING gist (who WITH =, during WITH &&), CHECK (NOT isempty(during))
);
CREATE TABLE app.job (
    id bigint GENERATED ALWAYS AS IDENTITY (START 500) PRIMARY KEY, owner text NOT NULL REFERENCES public."User", queue text NOT NULL DEFAULT 'default', payload jsonb NOT NULL, run_at timestamptz NOT NULL DEFAULT '2026-05-01 00:00+00', attempts smallint NOT NULL DEFAULT 0, locked_by text, locked_at timestamptz, error text
);
CREATE INDEX ON app.job (queue, run_at) WHERE locked_at IS NULL;
CREATE TABLE app.r1 (r1 integer PRIMARY KEY, attr text NOT NULL, p1 integer, depth integer, id integer, value text, shows boolean, pgconsent text, excluded text, "old" text, "new" text);
CREATE TABLE app.r2 (r1 integer REFERENCES app.r1, r2 integer, attr text, r3 text, PRIMARY KEY (r1, r2));
CREATE TABLE app.event (id bigserial PRIMARY KEY, tenant_id text NOT NULL, owner text NOT NULL, at timestamptz NOT NULL, what text NOT NULL, data hstore);
CREATE TABLE app.event_mail (subject text, CHECK (what LIKE 'mail%')) INHERITS (app.event);
CREATE TABLE app.event_call (seconds integer, CHECK (what LIKE 'call%')) INHERITS (app.event);
CREATE TABLE app.survey (id integer PRIMARY KEY, person text NOT NULL, stream text, question text NOT NULL, day date NOT NULL, score integer, remark text);
CREATE TABLE app.digest (id integer PRIMARY KEY, tenant_id text NOT NULL, posts text[] NOT NULL, body text NOT NULL, made date);
CREATE TABLE app.stock (isbn ext.isbn13 PRIMARY KEY, title text NOT NULL, span ext.seg, copies integer NOT NULL);
CREATE TABLE app.calendar (day date PRIMARY KEY, iso text GENERATED ALWAYS AS (extract(isoyear FROM day)::text || '-W' || lpad(extract(week FROM day)::text, 2, '0')) STORED, closed boolean NOT NULL);
CREATE TABLE app.document (id integer PRIMARY KEY, owner text NOT NULL REFERENCES public."User", title text NOT NULL, iban text, phone text, born date, extra jsonb NOT NULL DEFAULT '{}', body text, size integer);

CREATE FUNCTION hib.full_name(given text, family text) RETURNS text LANGUAGE sql IMMUTABLE RETURN given || coalesce(' ' || family, '');
CREATE FUNCTION app.label(c app.case_file) RETURNS text LANGUAGE sql IMMUTABLE RETURN c.id || ': ' || c.title || coalesce(' (' || c.level || ')', '');
CREATE FUNCTION fin.in_eur(amount numeric, fx numeric DEFAULT 1.0) RETURNS numeric LANGUAGE sql IMMUTABLE RETURN round(amount * coalesce(fx, 1), 2);
CREATE FUNCTION app.cases_of(who bigint) RETURNS SETOF app.case_file LANGUAGE sql STABLE BEGIN ATOMIC SELECT * FROM app.case_file c WHERE c.person_id = who ORDER BY c.id; END;
CREATE FUNCTION app.first_known(VARIADIC xs anycompatiblearray) RETURNS anycompatible LANGUAGE sql IMMUTABLE AS $$ SELECT x FROM unnest(xs) x WHERE x IS NOT NULL LIMIT 1 $$;
CREATE FUNCTION app.mul(state numeric, next numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT coalesce(state, 1) * coalesce(next, 1) $$;
CREATE AGGREGATE app.product(numeric) (SFUNC = app.mul, STYPE = numeric);
CREATE FUNCTION rails.track() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, rails AS $$ BEGIN
    INSERT INTO rails.versions (item_type, item_id, event, whodunnit, object, object_changes, created_at) VALUES ('Comment', coalesce(NEW.id, OLD.id), lower(TG_OP), session_user, CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END, CASE WHEN TG_OP = 'UPDATE' THEN jsonb_build_object('body', jsonb_build_array(OLD.body, NEW.body)) END, '2026-06-01');
    RETURN NULL; END $$;
CREATE FUNCTION rails.touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.updated_at := NEW.updated_at + interval '1 day'; RAISE NOTICE 'touched %', NEW.id; RETURN NEW; END $$;

CREATE VIEW public.active_user AS SELECT id, "tenantId", name, role, "createdAt", score FROM public."User" WHERE "deletedAt" IS NULL;
CREATE VIEW public.directory (id, "Display Name", posts, "last post") AS SELECT u.id, coalesce(u.name, 'n/a'), p.n, p.last FROM public.active_user u LEFT JOIN LATERAL (SELECT count(*) AS n, max(title) AS last FROM public."Post" p WHERE p."authorId" = u.id) p ON true;
CREATE VIEW hib.people AS SELECT p.tenant_id, p.id, y.name, p.given, p.family, y.region, o.id AS org, oy.name AS org_name FROM hib.person p JOIN hib.party y USING (tenant_id, id) LEFT JOIN hib.organisation o ON (o.tenant_id, o.id) = (p.tenant_id, p.employer) LEFT JOIN hib.party oy ON (oy.tenant_id, oy.id) = (o.tenant_id, o.id);
CREATE VIEW fin.gift_month AS SELECT tenant_id, date_trunc('month', given_at)::date AS month, campaign, count(*) AS n, sum(base) AS total, array_agg(DISTINCT currency ORDER BY currency) AS currencies FROM fin.gift GROUP BY 1, 2, GROUPING SETS ((campaign), ());
CREATE VIEW fin.donor_rank AS SELECT g.donor_id, p.name, sum(g.base) AS total, rank() OVER (ORDER BY sum(g.base) DESC) AS place, ntile(4) OVER (ORDER BY sum(g.base)) AS quartile FROM fin.gift g JOIN hib.people p ON (p.tenant_id, p.id) = (g.tenant_id, g.donor_id) GROUP BY g.donor_id, p.name;
CREATE VIEW app.my_shift AS SELECT id, during, kind, note, hours FROM app.shift WHERE kind <> 'night' WITH LOCAL CHECK OPTION;
CREATE VIEW app.kitchen AS SELECT id, during, kind AS "Kind", note FROM app.my_shift WHERE kind LIKE 'kit%' WITH CASCADED CHECK OPTION;
CREATE RECURSIVE VIEW app.case_tree (id, title, depth, trail) AS SELECT id, title, 0, ARRAY[id] FROM app.case_file WHERE parent IS NULL UNION ALL SELECT c.id, c.title, t.depth + 1, t.trail || c.id FROM app.case_file c JOIN case_tree t ON c.parent = t.id;
CREATE VIEW rails.feed AS SELECT 'post' AS kind, id, title AS text, "publishedAt" AT TIME ZONE 'UTC' AS at FROM public."Post" UNION ALL SELECT 'comment', id::text, body, created_at FROM rails.comments WHERE discarded_at IS NULL;
CREATE VIEW app.pivot AS SELECT v.entity_id, max(v.value) FILTER (WHERE f.name = 'size') AS size, max(v.value) FILTER (WHERE f.name = 'colour') AS colour, jsonb_object_agg(f.name, v.value) AS all_values FROM app.custom_value v JOIN app.custom_field f ON f.id = v.field_id WHERE v.entity = 'person' GROUP BY v.entity_id;

INSERT INTO public."Tenant" VALUES ('t1', 'Acme', '{"beta": true, "seats": 5}', '2020-01-01'), ('t2', 'Bolt', '{"beta": false, "seats": 9}', '-infinity'), ('t3', 'Crux', '{}', NULL), ('t0', 'Null', '{}', 'infinity');
INSERT INTO public."User" (id, "tenantId", email, name, role, roles, consent, "createdAt", "updatedAt", "deletedAt", score, locale) SELECT 'u' || lpad(i::text, 2, '0'), 't' || (1 + i % 3 % 2 + (i % 9 = 4)::int), 'user' || i || '@Example.org', CASE WHEN i % 11 > 0 THEN (ARRAY['Ada','Bo','Cy','Dee','Eli'])[1 + i % 5] || ' ' || i END, (ARRAY['ADMIN','MEMBER','GUEST'])[1 + i % 3]::"Role", ARRAY['MEMBER', (ARRAY['ADMIN','GUEST'])[1 + i % 2]]::"Role"[],
    CASE i % 4 WHEN 0 THEN '{"channels": {"directory": {"granted": false}, "email": {"granted": true}}}' WHEN 1 THEN '{"channels": {"directory": {"granted": true, "at": "2026-01-01"}}}' WHEN 2 THEN '{"channels": {"directory": {"granted": "true"}}, "v": 2}' ELSE CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN '{"channels": []}' ELSE '"true"' END END::jsonb,
    timestamp '2026-01-01' + i * interval '31 hours', timestamp '2026-03-01' + i * interval '1 day', CASE WHEN i % 13 = 5 THEN timestamp '2026-04-01' END, CASE WHEN i % 10 = 9 THEN 'NaN' WHEN i % 10 = 8 THEN '-Infinity' ELSE i * 1.5 END, (ARRAY['en','de','fr'])[1 + i % 3] FROM generate_series(1, 60) i;
UPDATE public."User" SET "tenantId" = 't1' WHERE id = 'u07';
INSERT INTO public."Post" (id, "tenantId", "authorId", title, slug, content, state, "publishedAt", meta) SELECT 'p' || i, u."tenantId", u.id, (ARRAY['Spring drive','Food bank','Thank you','Annual report','Volunteer day'])[1 + i % 5] || ' ' || i, 'post-' || i, CASE WHEN i % 9 > 0 THEN (ARRAY['We thank every donor and volunteer','The kitchen served 400 meals','Money raised: 100%','Please give blood or time'])[1 + i % 4] || repeat(' and more', i % 4) END,
    (ARRAY['DRAFT','LIVE','LIVE','GONE','LIVE'])[1 + i % 5]::"PostState", CASE WHEN i % 5 > 0 THEN timestamptz '2026-02-01 10:00+00' + i * interval '19 hours' END, jsonb_build_object('views', i * 7 % 50, 'tags', jsonb_build_array('t' || i % 3, i % 4), 'seo', jsonb_build_object('title', NULL, 'score', i % 10 / 10.0)) FROM generate_series(1, 120) i JOIN public."User" u ON u.id = 'u' || lpad((1 + i * 7 % 60)::text, 2, '0');
INSERT INTO public."Tag" SELECT 'tag' || i, 't' || (1 + i % 2), (ARRAY['News','Urgent','Thanks','Events','Press','Jobs'])[1 + (i - 1) / 2 % 6] FROM generate_series(1, 12) i;
INSERT INTO public."_PostToTag" SELECT p.id, t.id FROM public."Post" p JOIN public."Tag" t ON t."tenantId" = p."tenantId" WHERE (hashtext(p.id || t.id) & 3) = 0;
INSERT INTO public._prisma_migrations VALUES ('a', 'b', '2026_init', '2026-01-01');
INSERT INTO hib.party SELECT t, i, CASE WHEN i > 40 THEN 'Organisation' ELSE 'Person' END, i % 3, CASE WHEN i > 40 THEN 'Org ' ELSE 'Person ' END || i, ('eu.' || (ARRAY['de.be','de.by','fr','at.w'])[1 + i % 4])::ltree, CASE WHEN i % 17 = 0 THEN NULL ELSE i % 13 > 0 END FROM (VALUES ('t1'), ('t2'), ('t3')) t (t), generate_series(1, 50) i;
INSERT INTO hib.party VALUES ('t0', 1, 'Person', 0, 'Old', 'eu', true);
INSERT INTO hib.organisation SELECT tenant_id, id, 'DE' || id * 1000, int4range(id::int, id::int * 10), CASE WHEN id > 42 THEN 41 + id % 2 END FROM hib.party WHERE dtype = 'Organisation' ORDER BY tenant_id, id;
INSERT INTO hib.person SELECT tenant_id, id, (ARRAY['Ann','Ben','Cleo','Dan','Eva','Finn'])[1 + id % 6], CASE WHEN id % 8 > 0 THEN 'Family' || id % 7 END, CASE WHEN id % 12 = 0 THEN NULL WHEN id % 19 = 0 THEN date '-infinity' ELSE date '1950-01-01' + (id * 397)::int END, CASE id % 5 WHEN 0 THEN '{}' WHEN 1 THEN '{email,phone}' WHEN 2 THEN '{post}' WHEN 3 THEN NULL ELSE '{email,phone,visit}' END::text[], CASE id % 3 WHEN 0 THEN '{email}' WHEN 1 THEN '{visit,post}' END::app.channels,
    CASE WHEN id % 7 = 0 THEN timestamptz 'infinity' WHEN id % 7 = 1 THEN timestamptz '2020-01-01 00:00+00' END, ROW('p' || id || '@x.org', ARRAY['+49' || id, '+43' || id], (ARRAY['email','phone'])[1 + id % 2], int4multirange(int4range(8, 12), int4range(13, 13 + (id % 5)::int)))::app.contact, CASE WHEN id % 3 = 0 THEN 41 + id % 10 END,
    CASE WHEN id % 4 > 0 THEN app.weights(id % 4, CASE WHEN id % 9 > 0 THEN id + 10 END::numeric) END, app.levels((ARRAY['low','mid'])[1 + id % 2]::app.level, (ARRAY['high','top'])[1 + id % 2]::app.level, '[]') FROM hib.party WHERE dtype = 'Person';
INSERT INTO hib.person_phones SELECT tenant_id, id, n, '+49 ' || id || '-' || n FROM hib.person, generate_series(0, 1) n WHERE (id + n) % 3 > 0;
INSERT INTO hib.revinfo SELECT i, 1767225600000 + i * 86400000::bigint, 'u' || lpad((1 + i % 60)::text, 2, '0') FROM generate_series(1, 30) i;
INSERT INTO hib.person_aud SELECT tenant_id, id, r, CASE WHEN r < 10 THEN 0 WHEN r < 25 THEN 1 ELSE 2 END, given || r, family FROM hib.person, (VALUES (3), (14), (27)) r (r) WHERE (id + r) % 4 > 0;
INSERT INTO hib.payment SELECT i, d, 't' || (1 + i % 3), 1 + i * 3 % 50, CASE WHEN i % 31 = 0 THEN numeric 'NaN' WHEN i % 37 = 0 THEN numeric 'Infinity' ELSE i * 3.25 END, CASE WHEN d = 'Sepa' THEN 'DE89' || lpad(i::text, 10, '0') END, CASE WHEN d = 'Card' THEN lpad((i * 37 % 10000)::text, 4, '0') END, CASE WHEN d = 'Wallet' THEN jsonb_build_object('kind', 'pay', 'n', i) END, CASE WHEN i % 4 > 0 THEN timestamptz '2026-01-10 00:00+00' + i * interval '17 hours' END FROM generate_series(1, 120) i CROSS JOIN LATERAL (SELECT (ARRAY['Card','Sepa','Wallet'])[1 + i % 7 % 3] AS d) d;
INSERT INTO fin.gift (tenant_id, gift_no, given_at, donor_id, amount, currency, fx, campaign, meta, flags) SELECT 't' || (1 + i % 3), i, date '2026-01-03' + i * 2 % 330, CASE WHEN i % 14 > 0 THEN 1 + i % 40 END, round(i * 13 % 97 + 0.49, 2), (ARRAY['EUR','USD','CHF'])[1 + i / 3 % 3], CASE i / 3 % 3 WHEN 0 THEN NULL WHEN 1 THEN 0.92 ELSE 1.04 END, (ARRAY['spring','summer',NULL,'legacy'])[1 + i / 3 % 4],
    jsonb_build_object('src', (ARRAY['web','mail','box'])[1 + i / 3 % 3], 'utm', jsonb_build_object('n', i % 5), 'path', jsonb_build_array(i, i + 1)), (i % 16)::bit(4) FROM generate_series(1, 360) i;
INSERT INTO fin.gift (tenant_id, gift_no, given_at, donor_id, amount) VALUES ('t0', 1, '2020-01-01', 1, 5);
ALTER TABLE fin.gift DETACH PARTITION fin.gift_old;
INSERT INTO fin.receipt (id, tenant_id, gift_no, given_at, issued, body, pdf, sent) SELECT md5('r' || gift_no)::uuid, tenant_id, gift_no, given_at, given_at + interval '9 days', 'Receipt ' || gift_no || repeat(' thanks', CASE WHEN gift_no % 50 = 0 THEN 2000 ELSE 2 END::int), decode(md5(gift_no::text), 'hex'), (ARRAY['email','post'])[1 + gift_no % 2]::app.channel FROM fin.gift WHERE gift_no % 2 = 0;
INSERT INTO fin.pledge SELECT t, i, 1 + i * 3 % 40, daterange(date '2025-01-01' + i * 9, CASE WHEN i % 4 > 0 THEN date '2026-06-01' + i * 5 END), make_interval(months => 1 + i % 3), (i * 5)::numeric::money, CASE WHEN i % 3 = 0 THEN timestamptz '2027-01-01 00:00+00' ELSE 'infinity' END, CASE WHEN i % 10 = 0 THEN numeric 'Infinity' ELSE i * 100 END, i FROM (VALUES ('t1'), ('t2')) t (t), generate_series(1, 40) i;
INSERT INTO fin.entry (tenant_id, owner, txn, account, amount, booked, lines) SELECT u."tenantId", u.id, md5('x' || i)::uuid, ('assets.' || (ARRAY['bank','cash.box'])[1 + (i + s) % 2])::ltree, s * (i + 1), date '2026-01-01' + i * 3, ARRAY[ROW('ab-' || i % 5, i % 4, i * 1.25)::app.line] FROM generate_series(1, 60) i JOIN public."User" u ON u.id = CASE WHEN i % 2 = 0 THEN 'u07' ELSE 'u' || lpad((1 + i % 60)::text, 2, '0') END, (VALUES (1), (-1)) s (s);
INSERT INTO app.consent_period (tenant_id, person_id, purpose, grantee, during, withdrawn_at) SELECT t, i, p, (ARRAY['team-a','team-b','*'])[1 + i % 3], daterange(date '2025-01-01' + i, CASE i % 4 WHEN 0 THEN date '2025-12-31' WHEN 1 THEN NULL ELSE date '2099-01-01' END), CASE WHEN i % 9 = 0 THEN timestamptz '2026-02-02 00:00+00' END FROM (VALUES ('t1'), ('t2')) t (t), generate_series(1, 40) i, (VALUES ('care'), ('study')) p (p) WHERE p = 'care' OR i % 2 = 0;
INSERT INTO app.consent_period (tenant_id, person_id, purpose, grantee, during) SELECT 't1', i, 'care', 'team-a', daterange('2098-01-01', NULL) FROM generate_series(4, 40, 8) i;
INSERT INTO app.case_file SELECT i, 't' || (1 + i % 2), 1 + i * 3 % 40, NULL, ('top.k' || i % 6 || '.c' || i)::ltree, (ARRAY['Rent arrears','Food parcel','Debt advice','School books'])[1 + i % 4] || ' ' || i, CASE WHEN i % 7 > 0 THEN 'Called twice. ' || repeat('Long story. ', i % 5) END, jsonb_build_object('income', i * 10 % 900, 'kids', jsonb_build_array(jsonb_build_object('age', i % 15), jsonb_build_object('age', i % 7)), 'note', CASE WHEN i % 5 = 0 THEN NULL ELSE 'n' || i END), (ARRAY['care','study'])[1 + i / 2 % 2], CASE WHEN i % 11 = 0 THEN NULL ELSE i % 8 = 0 END,
    tstzrange(timestamptz '2026-01-01 00:00+00' + i * interval '2 days', CASE WHEN i % 3 = 0 THEN timestamptz '2026-12-01 00:00+00' END), CASE WHEN i % 6 > 0 THEN ARRAY['x' || i % 3, 'y'] END, (ARRAY['low','mid','high','top'])[1 + i % 4]::app.level, CASE WHEN i % 20 = 0 THEN 'NaN' ELSE i * 1.1 END FROM generate_series(1, 160) i;
UPDATE app.case_file SET parent = 1 + id % 80 WHERE id > 80;
INSERT INTO app.case_note SELECT c, n, 'u' || lpad((1 + (c * 3 + n * 6) % 60)::text, 2, '0'), 'note ' || n || ' of ' || c, timestamptz '2026-02-01 00:00+00' + c * interval '1 day' + n * interval '5 hours', (c + n) % 5 = 0 FROM generate_series(1, 160) c, generate_series(1, 3) n WHERE (c + n) % 4 > 0;
INSERT INTO app.custom_field SELECT i, 't' || (1 + i % 2), (ARRAY['person','case'])[1 + i / 2 % 2], (ARRAY['size','colour','iban','height'])[1 + i / 4 % 4], (ARRAY['int','text'])[1 + i / 4 % 2], i / 4 % 4 = 2 FROM generate_series(0, 15) i;
INSERT INTO app.custom_value SELECT f.tenant_id, f.entity, e, f.id, CASE WHEN f.kind = 'int' THEN (e * 3 % 11)::text ELSE (ARRAY['red','blue','green'])[1 + e % 3] END FROM app.custom_field f, generate_series(1, 40) e WHERE (e + f.id) % 3 > 0;
INSERT INTO app.shift (id, tenant_id, who, during, place, kind, note) SELECT md5('s' || i)::uuid, u."tenantId", u.id, tstzrange(timestamptz '2026-05-01 08:00+00' + i * interval '9 hours', timestamptz '2026-05-01 11:00+00' + i * interval '9 hours' + (i % 3) * interval '40 minutes'), CASE WHEN i % 5 > 0 THEN point(i % 4, i % 7) END, (ARRAY['kitchen','door','night','kits'])[1 + i % 4], CASE WHEN i % 3 = 0 THEN 'bring ' || i END FROM generate_series(1, 120) i JOIN public."User" u ON u.id = CASE WHEN i % 3 = 0 THEN 'u07' ELSE 'u' || lpad((1 + i % 60)::text, 2, '0') END;
INSERT INTO app.job (owner, queue, payload, run_at, attempts, locked_by, locked_at, error) SELECT CASE WHEN i % 3 = 0 THEN 'u07' ELSE 'u' || lpad((1 + i % 60)::text, 2, '0') END, (ARRAY['default','mail'])[1 + i / 3 % 2], jsonb_build_object('job', (ARRAY['send','sync','purge'])[1 + i / 3 % 3], 'args', jsonb_build_array(i, 'a' || i)), timestamptz '2026-04-01 00:00+00' + i * interval '50 minutes', i / 3 % 4, CASE WHEN i % 4 = 0 THEN 'w' || i % 3 END, CASE WHEN i % 4 = 0 THEN timestamptz '2026-05-01 00:00+00' END, CASE WHEN i % 5 = 0 THEN 'boom ' || i END FROM generate_series(1, 90) i;
INSERT INTO app.r1 SELECT i, CASE WHEN i % 3 = 0 THEN 't1' ELSE 't2' END, i % 4, i % 5, 1000 - i, 'v' || i % 7, i % 2 = 0, 'pc' || i, 'ex' || i % 3, 'o' || i, 'n' || i FROM generate_series(1, 40) i;
INSERT INTO app.r2 SELECT i, n, 'a' || n, 'c' || i FROM generate_series(1, 40) i, generate_series(1, 2) n;
INSERT INTO app.event (tenant_id, owner, at, what, data) SELECT 't1', CASE WHEN i % 2 = 0 THEN 'u07' ELSE 'u03' END, timestamptz '2026-03-01 00:00+00' + i * interval '37 minutes' * (1 + i % 3), (ARRAY['view','click','open'])[1 + i % 3], hstore('n', i::text) FROM generate_series(1, 60) i;
INSERT INTO app.event_mail (tenant_id, owner, at, what, subject) SELECT 't1', CASE WHEN i % 2 = 0 THEN 'u07' ELSE 'u03' END, timestamptz '2026-03-02 00:00+00' + i * interval '3 hours', 'mail ' || i, 'Subject ' || i FROM generate_series(1, 30) i;
INSERT INTO app.event_call (tenant_id, owner, at, what, seconds) SELECT 't1', CASE WHEN i % 2 = 0 THEN 'u07' ELSE 'u03' END, timestamptz '2026-03-03 00:00+00' + i * interval '4 hours', 'call ' || i, i * 11 FROM generate_series(1, 30) i;
INSERT INTO app.survey SELECT i, 'u' || lpad((1 + i % 20)::text, 2, '0'), CASE i % 3 WHEN 0 THEN 'public' WHEN 1 THEN 'counted' END, (ARRAY['q1','q2'])[1 + i / 20 % 2], date '2026-01-01' + i, i % 11, 'remark ' || i FROM generate_series(1, 240) i;
INSERT INTO app.digest SELECT i, 't' || (1 + i % 2), ARRAY['p' || (1 + i * 4 % 120), 'p' || (1 + i * 14 % 120)], 'digest ' || i, date '2026-04-01' + i FROM generate_series(1, 40) i;
INSERT INTO app.digest VALUES (99, 't1', '{}', 'empty', NULL);
INSERT INTO app.digest SELECT 99 + row_number() OVER (ORDER BY id), 't1', array_agg(id) OVER (PARTITION BY "authorId" ORDER BY id ROWS 1 PRECEDING), 'of ' || title, NULL FROM public."Post" WHERE state = 'LIVE';
INSERT INTO app.stock VALUES ('978-0-393-04002-9', 'How to give', '1.5 .. 2.5', 3), ('978-1-86197-271-2', 'Ledgers', '~4', 0);
INSERT INTO app.calendar (day, closed) SELECT d::date, extract(isodow FROM d) > 5 FROM generate_series(timestamp '2026-01-01', timestamp '2026-12-31', interval '1 day') d;
INSERT INTO app.document SELECT i, CASE WHEN i % 2 = 0 THEN 'u07' ELSE 'u' || lpad((1 + i)::text, 2, '0') END, 'Doc ' || i, 'DE' || lpad(i::text, 8, '0'), '+49 30 ' || i * 111, date '1980-01-01' + i * 100, jsonb_build_object('kind', 'k' || i % 3, 'pages', i, 'private', 'secret ' || i), 'Body of ' || i, i * 10 FROM generate_series(1, 50) i;
INSERT INTO rails.comments (commentable_type, commentable_id, user_id, parent_id, body, votes, created_at, discarded_at) SELECT (ARRAY['Post','User','Case'])[1 + i % 3], CASE i % 3 WHEN 0 THEN 'p' || (1 + i * 5 % 120) WHEN 1 THEN 'u' || lpad((1 + i % 60)::text, 2, '0') ELSE 'c' || i END, CASE WHEN i % 4 = 0 THEN 'u07' ELSE 'u' || lpad((1 + i * 7 / 4 % 60)::text, 2, '0') END, NULL, CASE WHEN i % 10 > 0 THEN (ARRAY['Great work','I disagree strongly','See you there','+1'])[1 + i / 3 % 4] || ' #' || i END, i % 9 - 2, timestamp '2026-03-01' + i * interval '5 hours', CASE WHEN i % 12 = 0 THEN timestamp '2026-05-05' END FROM generate_series(1, 300) i;
UPDATE rails.comments SET parent_id = id - 30 WHERE id > 30 AND id % 2 = 0;
INSERT INTO rails.versions (item_type, item_id, event, whodunnit, object, created_at) SELECT (ARRAY['Comment','Post'])[1 + i % 2], i, (ARRAY['create','update'])[1 + i / 2 % 2], 'u' || i, jsonb_build_object('body', 'was ' || i, 'votes', i), timestamp '2026-03-01' + i * interval '1 hour' FROM generate_series(1, 300) i;
INSERT INTO rails.taggings SELECT i, 'tag' || (1 + i % 12), (ARRAY['Post','User'])[1 + i % 2], CASE i % 2 WHEN 0 THEN 'p' || i ELSE 'u' || lpad((1 + i / 2)::text, 2, '0') END, 'tags' FROM generate_series(1, 118) i;
INSERT INTO rails."User" SELECT i, 'login' || i, (ARRAY['Staff','Bot'])[1 + i % 2], CASE WHEN i % 5 > 0 THEN 'u' || lpad(i::text, 2, '0') END FROM generate_series(1, 40) i;
INSERT INTO rails.schema_migrations VALUES ('20260101'), ('20260202');
CREATE TRIGGER track AFTER INSERT OR UPDATE OR DELETE ON rails.comments FOR EACH ROW EXECUTE FUNCTION rails.track();
CREATE TRIGGER touch BEFORE UPDATE ON rails.comments FOR EACH ROW EXECUTE FUNCTION rails.touch();
CREATE MATERIALIZED VIEW fin.daily AS SELECT g.tenant_id, g.given_at AS day, g.donor_id, count(*) AS n, sum(g.base) AS total, bit_or(g.flags) AS flags FROM fin.gift g GROUP BY 1, 2, 3;
CREATE UNIQUE INDEX ON fin.daily (tenant_id, day, donor_id);
ANALYZE;
