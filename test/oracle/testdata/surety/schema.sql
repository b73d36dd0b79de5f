-- An insurer's claims desk, several insurers on one system: people and firms as children of parties, policies in versions with ranges of cover and an array of clauses, vehicles, claims under a number that is computed, with a tree of
-- sub-claims, claimants with consents in records, reserves in two times, payments by month and then by currency, documents with a configuration of searches of their own, letters of which two spellings are equal, notes, tasks in an order
-- that is checked at the end, scores that nobody sees, an inbox that a rule empties, a table of settings, a log without a key; names that need quotes, columns named like functions, views of most forms.
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE EXTENSION IF NOT EXISTS ltree;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS "uuid-ossp";
CREATE SCHEMA "Claims";
CREATE SCHEMA ref;

CREATE COLLATION public.loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
CREATE TEXT SEARCH DICTIONARY public.plain_words (TEMPLATE = simple, STOPWORDS = english, ACCEPT = true);
CREATE TEXT SEARCH CONFIGURATION public.letters (COPY = english);
ALTER TEXT SEARCH CONFIGURATION public.letters ALTER MAPPING FOR asciihword, hword_asciipart WITH plain_words;

CREATE TYPE ref.line AS ENUM ('motor', 'home', 'health', 'liability', 'marine');
CREATE TYPE "Claims"."Status" AS ENUM ('reported', 'open', 'disputed', 'settled', 'closed', 'fraud');
CREATE TYPE "Claims"."Role" AS ENUM ('insured', 'claimant', 'witness', 'expert');
CREATE TYPE public.place AS (street text, town text, zip varchar(10), geo point);
CREATE DOMAIN public.iban AS text CHECK (VALUE ~ '^[A-Z]{2}[0-9]{2}[A-Z0-9]{8,30}$');
CREATE DOMAIN public.mail AS citext CHECK (VALUE LIKE '%@%');
CREATE DOMAIN public.share AS numeric(5,4) CHECK (VALUE BETWEEN 0 AND 1);
CREATE DOMAIN public.term AS daterange CHECK (NOT isempty(VALUE));
CREATE TYPE public.sumrange AS RANGE (subtype = numeric, multirange_type_name = public.sums);
CREATE TYPE "Claims".clause AS (code varchar(8), text text, "limit" numeric(12,2), excess public.share);
CREATE DOMAIN "Claims".clauses AS "Claims".clause[] CHECK (cardinality(VALUE) <= 8);

CREATE FUNCTION public.stamp_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.changed := timestamptz '2026-06-01 00:00+00'; RETURN NEW; END $$;
CREATE FUNCTION public.good_plate(p text) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN p ~ '^[A-Z0-9 -]{3,12}$';
CREATE FUNCTION "Claims".clause_total(c "Claims".clauses) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT sum(x."limit") FROM unnest(c) AS x $$;
CREATE FUNCTION public.first_of(VARIADIC items anyarray) RETURNS anyelement LANGUAGE sql IMMUTABLE AS $$ SELECT i FROM unnest(items) WITH ORDINALITY u (i, n) WHERE i IS NOT NULL ORDER BY n LIMIT 1 $$;
CREATE FUNCTION public.acc(state numeric, x numeric, w numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT state + coalesce(x * w, 0) $$;
CREATE AGGREGATE public.weighted (numeric, numeric) (SFUNC = public.acc, STYPE = numeric, INITCOND = '0');

CREATE TABLE ref.insurer (
    code char(4) PRIMARY KEY,
    name text NOT NULL,
    licence inet,
    settings hstore NOT NULL DEFAULT '',
    secret_key bytea,
    UNIQUE (name) INCLUDE (licence)
);
CREATE TABLE ref.peril (
    path ltree PRIMARY KEY,
    label text NOT NULL,
    line ref.line,
    weight real NOT NULL DEFAULT 1
);
CREATE INDEX ON ref.peril USING gist (path);
CREATE TABLE ref.rate_of_day (day date, currency char(3), rate numeric(12,6) NOT NULL, PRIMARY KEY (currency, day));
CREATE TABLE public.staff (
    id bigint GENERATED ALWAYS AS IDENTITY (START WITH 100 INCREMENT BY 10) PRIMARY KEY,
    insurer char(4) NOT NULL REFERENCES ref.insurer,
    "user" text NOT NULL,
    mail public.mail NOT NULL,
    boss bigint REFERENCES public.staff,
    team text NOT NULL,
    lines ref.line[] NOT NULL DEFAULT '{}',
    hours numeric(4,1) NOT NULL DEFAULT 40,
    salary money,
    "left" date,
    UNIQUE (insurer, "user")
);
CREATE UNIQUE INDEX staff_mail ON public.staff (lower(mail::text)) INCLUDE ("user");
CREATE TABLE public.party (
    id uuid NOT NULL DEFAULT uuid_generate_v4() PRIMARY KEY,
    insurer char(4) NOT NULL,
    name text NOT NULL,
    mail public.mail,
    phones text[] NOT NULL DEFAULT '{}',
    home public.place,
    iban public.iban,
    risk real,
    since date NOT NULL DEFAULT '2020-01-01'
);
CREATE TABLE public.person (born date, ssn varchar(40), PRIMARY KEY (id)) INHERITS (public.party);
CREATE TABLE public.firm (vat text, board text[], PRIMARY KEY (id)) INHERITS (public.party);
CREATE INDEX party_trgm ON public.party USING gin (name gin_trgm_ops);
CREATE INDEX person_trgm ON public.person USING gin (name gin_trgm_ops);
CREATE TABLE public.permission (
    id serial PRIMARY KEY,
    insurer char(4) NOT NULL,
    party_id uuid NOT NULL,
    given_to text NOT NULL,
    about text NOT NULL,
    from_ timestamptz NOT NULL DEFAULT '2025-01-01 00:00+00',
    until timestamptz,
    withdrawn timestamptz
);
CREATE INDEX ON public.permission USING hash (party_id);

CREATE TABLE "Claims".policy (
    insurer char(4) NOT NULL REFERENCES ref.insurer,
    number text NOT NULL,
    version smallint NOT NULL DEFAULT 1,
    holder uuid NOT NULL,
    line ref.line NOT NULL,
    term public.term NOT NULL,
    sums public.sums NOT NULL DEFAULT '{}',
    clauses "Claims".clauses NOT NULL DEFAULT '{}',
    premium numeric(12,2) NOT NULL CHECK (premium >= 0),
    discount public.share,
    broker text,
    margin numeric(6,3),
    "Is Group" boolean NOT NULL DEFAULT false,
    flags bit(8) NOT NULL DEFAULT B'00000000',
    yearly numeric GENERATED ALWAYS AS (premium * 12) STORED,
    PRIMARY KEY (insurer, number, version),
    EXCLUDE USING gist (insurer WITH =, number WITH =, (term::daterange) WITH &&)
);
CREATE INDEX ON "Claims".policy (holder);
CREATE INDEX policy_dear ON "Claims".policy (insurer, premium DESC) WHERE premium > 100;
CREATE TABLE "Claims".vehicle (
    insurer char(4) NOT NULL,
    number text NOT NULL,
    version smallint NOT NULL,
    plate text NOT NULL CHECK (public.good_plate(plate)),
    made int4range,
    specs jsonb NOT NULL DEFAULT '{}',
    tracker macaddr,
    FOREIGN KEY (insurer, number, version) REFERENCES "Claims".policy ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE UNIQUE INDEX ON "Claims".vehicle (insurer, plate, number, version) NULLS NOT DISTINCT;
CREATE TABLE "Claims"."Claim" (
    "claimId" bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    insurer char(4) NOT NULL REFERENCES ref.insurer,
    "policyNo" text NOT NULL,
    "policyVersion" smallint NOT NULL,
    parent bigint REFERENCES "Claims"."Claim",
    handler bigint REFERENCES public.staff ON DELETE SET NULL,
    team text NOT NULL,
    readers bigint[] NOT NULL DEFAULT '{}',
    peril ltree NOT NULL REFERENCES ref.peril,
    status "Claims"."Status" NOT NULL DEFAULT 'reported',
    happened tstzrange NOT NULL,
    reported timestamptz NOT NULL DEFAULT '2026-05-01 08:00+00',
    "desc" text NOT NULL DEFAULT '',
    "Amount €" numeric(12,2),
    estimate public.sumrange,
    facts jsonb NOT NULL DEFAULT '{}',
    "siu score" double precision,
    opening bigint,
    changed timestamptz,
    ref text GENERATED ALWAYS AS (insurer::text || '-' || "policyNo") STORED,
    search tsvector GENERATED ALWAYS AS (to_tsvector('public.letters', "desc")) STORED,
    FOREIGN KEY (insurer, "policyNo", "policyVersion") REFERENCES "Claims".policy,
    CHECK (parent <> "claimId")
);
CREATE INDEX "Claim_search" ON "Claims"."Claim" USING gin (search);
CREATE INDEX "Claim_facts" ON "Claims"."Claim" USING gin (facts jsonb_path_ops);
CREATE INDEX "Claim_team" ON "Claims"."Claim" (insurer, team, status) INCLUDE ("Amount €");
CREATE INDEX "Claim_reported" ON "Claims"."Claim" USING brin (reported);
CREATE INDEX "Claim_readers" ON "Claims"."Claim" USING gin (readers);
CREATE INDEX "Claim_happened" ON "Claims"."Claim" USING gist (happened);
CREATE INDEX "Claim_open" ON "Claims"."Claim" (handler, reported) WHERE status IN ('reported', 'open');
CREATE TRIGGER changed BEFORE UPDATE ON "Claims"."Claim" FOR EACH ROW EXECUTE FUNCTION public.stamp_changed();
CREATE TABLE "Claims"."ClaimParty" (
    "claimId" bigint NOT NULL REFERENCES "Claims"."Claim" ON DELETE CASCADE,
    "partyId" uuid NOT NULL,
    role "Claims"."Role" NOT NULL,
    share public.share,
    statement text COLLATE public.loose,
    PRIMARY KEY ("claimId", "partyId", role)
);
CREATE INDEX ON "Claims"."ClaimParty" ("partyId");
CREATE TABLE "Claims".reserve (
    id bigserial PRIMARY KEY,
    "claimId" bigint NOT NULL REFERENCES "Claims"."Claim" ON DELETE CASCADE,
    kind text NOT NULL,
    amount numeric(14,2) NOT NULL,
    valid daterange NOT NULL,
    known tstzrange NOT NULL DEFAULT tstzrange('2026-01-01 00:00+00', NULL),
    set_by bigint,
    EXCLUDE USING gist ("claimId" WITH =, kind WITH =, valid WITH &&, known WITH &&)
);
CREATE TABLE "Claims".payment (
    id bigint NOT NULL,
    "claimId" bigint NOT NULL,
    paid date NOT NULL,
    currency char(3) NOT NULL,
    amount numeric(12,2) NOT NULL,
    payee uuid,
    account text,
    reference varchar(20) NOT NULL DEFAULT '',
    PRIMARY KEY (id, paid, currency)
) PARTITION BY RANGE (paid);
CREATE TABLE "Claims".payment_h1 PARTITION OF "Claims".payment FOR VALUES FROM ('2026-01-01') TO ('2026-07-01') PARTITION BY LIST (currency);
CREATE TABLE "Claims".payment_h1_eur PARTITION OF "Claims".payment_h1 FOR VALUES IN ('EUR');
CREATE TABLE "Claims"."payment_h1_Rest" PARTITION OF "Claims".payment_h1 DEFAULT;
CREATE TABLE "Claims".payment_old PARTITION OF "Claims".payment DEFAULT;
CREATE INDEX ON "Claims".payment ("claimId");
CREATE TABLE public.document (
    id uuid PRIMARY KEY DEFAULT uuid_generate_v4(),
    "claimId" bigint REFERENCES "Claims"."Claim" ON DELETE SET NULL,
    title text NOT NULL,
    body text NOT NULL DEFAULT '',
    lang text NOT NULL DEFAULT 'en',
    tags text[] NOT NULL DEFAULT '{}',
    pages int4multirange NOT NULL DEFAULT '{}',
    sha bytea,
    meta hstore,
    private boolean NOT NULL DEFAULT false,
    scanned timestamp,
    words tsvector GENERATED ALWAYS AS (setweight(to_tsvector('public.letters', title), 'A') || to_tsvector('public.letters', body)) STORED
);
CREATE INDEX document_words ON public.document USING gin (words);
CREATE INDEX document_body ON public.document USING gin (to_tsvector('simple'::regconfig, coalesce(body, '')));
CREATE INDEX document_tags ON public.document USING gin (tags);
CREATE INDEX document_title ON public.document USING gin (title gin_trgm_ops);
CREATE INDEX document_spg ON public.document USING spgist (title);
CREATE TABLE public.letter (
    "claimId" bigint NOT NULL,
    no integer NOT NULL,
    subject text COLLATE public.loose NOT NULL,
    body xml,
    sent timestamptz,
    "to" jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY ("claimId", no)
);
CREATE UNIQUE INDEX letter_subject ON public.letter ("claimId", subject);
CREATE TABLE public.note (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    author bigint NOT NULL,
    "claimId" bigint REFERENCES "Claims"."Claim" ON DELETE CASCADE,
    slug citext NOT NULL,
    body text NOT NULL DEFAULT '',
    mood smallint CHECK (mood BETWEEN -3 AND 3),
    data jsonb NOT NULL DEFAULT '{}',
    spent interval NOT NULL DEFAULT '0',
    version integer NOT NULL DEFAULT 1,
    created timestamptz NOT NULL DEFAULT '2026-05-01 00:00+00',
    UNIQUE (author, slug)
);
CREATE TABLE public.task (
    id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    owner bigint NOT NULL,
    "claimId" bigint NOT NULL REFERENCES "Claims"."Claim" ON DELETE CASCADE,
    parent integer,
    pos integer NOT NULL,
    title varchar(60) NOT NULL,
    done boolean NOT NULL DEFAULT false,
    due date,
    labels text[] NOT NULL DEFAULT '{}',
    UNIQUE (owner, id),
    UNIQUE (owner, pos) DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (owner, parent) REFERENCES public.task (owner, id) ON DELETE SET NULL (parent)
);
CREATE TABLE public.score (party_id uuid, model text, value double precision, why jsonb, at timestamptz);
CREATE UNLOGGED TABLE public.log (at timestamptz, actor text, what text);
CREATE TABLE public.inbox (raw text);
CREATE RULE inbox_ignore AS ON INSERT TO public.inbox DO INSTEAD NOTHING;

CREATE FUNCTION "Claims".label(r "Claims".reserve) RETURNS text LANGUAGE sql STABLE AS $$ SELECT r.kind || ' ' || to_char(r.amount, 'FM999990.00') $$;
CREATE FUNCTION "Claims".reserved_for(claim bigint, of_kind text DEFAULT 'indemnity') RETURNS numeric LANGUAGE sql STABLE BEGIN ATOMIC SELECT coalesce(sum(r.amount), 0) FROM "Claims".reserve r WHERE r."claimId" = claim AND r.kind = of_kind; END;
CREATE FUNCTION public.find_documents(query text, n integer DEFAULT 5, also_private boolean DEFAULT false) RETURNS TABLE (id uuid, title text, rank real) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT d.id, d.title, ts_rank(d.words, websearch_to_tsquery('public.letters', query)) AS r FROM public.document d WHERE d.words @@ websearch_to_tsquery('public.letters', query) AND (also_private OR NOT d.private) ORDER BY r DESC, d.id LIMIT n;
END $$;
CREATE FUNCTION public.subtasks(root integer) RETURNS SETOF integer LANGUAGE sql STABLE AS $$ WITH RECURSIVE t AS (SELECT root AS id UNION SELECT c.id FROM public.task c JOIN t ON c.parent = t.id) SELECT id FROM t $$;

INSERT INTO ref.insurer SELECT c, n, a::inet, s::hstore, decode(md5(c), 'hex') FROM (VALUES ('ALFA', 'Alfa Versicherung', '10.1.0.0/16', 'currency=>EUR,tz=>"Europe/Berlin"'), ('BETA', 'Beta Mutual', '10.2.0.0/16', 'currency=>GBP'), ('NOVA', 'Nova Líneas', '2001:db8::/32', 'currency=>NULL')) v (c, n, a, s);
INSERT INTO ref.peril VALUES ('loss', 'Loss', NULL, 1), ('loss.road', 'Road', 'motor', 1.5), ('loss.road.collision', 'Collision', 'motor', 2), ('loss.road.theft', 'Theft', 'motor', 2.5), ('loss.home', 'Home', 'home', 1), ('loss.home.water', 'Water', 'home', 1.2), ('loss.home.fire', 'Fire', 'home', 3), ('loss.body', 'Injury', 'health', 4), ('loss.sea', 'Sea', 'marine', 2);
INSERT INTO ref.rate_of_day SELECT date '2026-01-01' + i, c, CASE c WHEN 'EUR' THEN 1 WHEN 'GBP' THEN 1.15 + i * 0.001 ELSE 0.9 - i * 0.0005 END FROM generate_series(0, 180, 10) i, unnest('{EUR,GBP,USD}'::text[]) c;
INSERT INTO public.staff (insurer, "user", mail, boss, team, lines, hours, salary, "left") SELECT (ARRAY['ALFA', 'ALFA', 'BETA', 'NOVA'])[1 + i % 4], (ARRAY['ann', 'bo', 'cé', 'dee', 'eli'])[1 + i % 5] || i, 'User' || i || '@' || (ARRAY['alfa', 'Alfa', 'beta', 'nova'])[1 + i % 4] || '.example', CASE WHEN i >= 8 THEN 100 + (i % 4) * 10 END,
    (ARRAY['motor', 'home', 'injury'])[1 + i / 4 % 3], CASE i % 3 WHEN 0 THEN '{motor,marine}' WHEN 1 THEN '{home}' ELSE '{}' END::ref.line[], 20 + i % 5 * 5, (3000 + i * 111.5)::numeric::money, CASE WHEN i % 9 = 8 THEN date '2026-02-01' + i END FROM generate_series(0, 39) i;
INSERT INTO public.person (id, insurer, name, mail, phones, home, iban, risk, since, born, ssn)
SELECT md5('p' || i)::uuid, (ARRAY['ALFA', 'ALFA', 'ALFA', 'BETA', 'NOVA'])[1 + i % 5], (ARRAY['Ana', 'Ben', 'Céline', 'Dirk', 'Esra', 'Finn', 'Gülay'])[1 + i % 7] || ' ' || (ARRAY['Meier', 'O''Hara', 'Sørensen', 'de Wit'])[1 + i % 4] || ' ' || i, CASE WHEN i % 6 > 0 THEN 'P' || i || '@Mail.example' END, CASE i % 3 WHEN 0 THEN ARRAY['+49 30 ' || i, NULL] WHEN 1 THEN ARRAY['+49 40 ' || i] ELSE '{}' END,
    CASE WHEN i % 4 > 0 THEN ROW('Weg ' || i, (ARRAY['Berlin', 'Bonn', 'Kiel'])[1 + i % 3], lpad(i::text, 5, '1'), point(50 + i * 0.01, 8))::public.place END, CASE WHEN i % 5 > 0 THEN 'DE89' || lpad(i::text, 18, '37') END, i % 100 / 100.0, date '2019-03-04' + i * 11, CASE WHEN i % 8 > 0 THEN date '1948-05-06' + i * 199 END, 'S' || i FROM generate_series(1, 90) i;
INSERT INTO public.firm (id, insurer, name, mail, phones, risk, since, vat, board)
SELECT md5('f' || i)::uuid, (ARRAY['ALFA', 'BETA', 'ALFA'])[1 + i % 3], (ARRAY['Bäckerei', 'Garage', 'Reederei', 'Praxis'])[1 + i % 4] || ' ' || i, 'firm' || i || '@firm.example', ARRAY['+49 69 ' || i], i / 40.0, date '2018-01-01' + i * 30, 'DE' || i * 1000, ARRAY['Ana ' || i, 'Ben'] FROM generate_series(1, 30) i;
INSERT INTO public.permission (insurer, party_id, given_to, about, until, withdrawn)
SELECT CASE WHEN i <= 90 THEN (ARRAY['ALFA', 'ALFA', 'ALFA', 'BETA', 'NOVA'])[1 + i % 5] ELSE (ARRAY['ALFA', 'BETA', 'ALFA'])[1 + (i - 90) % 3] END, CASE WHEN i <= 90 THEN md5('p' || i) ELSE md5('f' || i - 90) END::uuid, (ARRAY['motor', 'home', '*', 'sales', 'injury'])[1 + i % 5], (ARRAY['claims', '*', 'claims', 'ads'])[1 + i / 3 % 4], CASE i % 7 WHEN 0 THEN timestamptz '2025-12-31 00:00+00' WHEN 1 THEN timestamptz '2099-01-01 00:00+00' END, CASE WHEN i % 11 = 0 THEN timestamptz '2026-01-01 00:00+00' END FROM generate_series(1, 120) i;
INSERT INTO public.permission (insurer, party_id, given_to, about) SELECT insurer, id, 'home', 'claims' FROM public.party WHERE id::text < '9';
INSERT INTO "Claims".policy (insurer, number, version, holder, line, term, sums, clauses, premium, discount, broker, margin, "Is Group", flags)
SELECT CASE WHEN i <= 90 THEN (ARRAY['ALFA', 'ALFA', 'ALFA', 'BETA', 'NOVA'])[1 + i % 5] ELSE (ARRAY['ALFA', 'BETA', 'ALFA'])[1 + (i - 90) % 3] END, 'P' || to_char(i, 'FM0000'), v, CASE WHEN i <= 90 THEN md5('p' || i) ELSE md5('f' || i - 90) END::uuid, (ARRAY['motor', 'home', 'health', 'liability', 'marine'])[1 + i % 5]::ref.line, daterange(date '2025-01-01' + (v - 1) * 365 + i % 3, CASE WHEN v = 2 AND i % 4 = 0 THEN NULL ELSE date '2026-01-01' + (v - 1) * 365 + i % 3 END),
    CASE i % 3 WHEN 0 THEN public.sums(sumrange(0, 1000), sumrange(5000, 10000 + i)) WHEN 1 THEN public.sums(sumrange(100, NULL)) ELSE '{}' END, CASE i % 3 WHEN 0 THEN ARRAY[ROW('GLAS', 'glass', 500 + i, 0.1), ROW('TOW', NULL, NULL, NULL)]::"Claims".clause[] WHEN 1 THEN ARRAY[ROW('WATER', 'pipes; drains', 2500, 0.25)]::"Claims".clause[] ELSE '{}' END,
    20 + i * 1.75 * v, CASE WHEN i % 4 > 0 THEN (i % 20) / 100.0 END, (ARRAY['direct', 'Müller & Co', NULL, 'web'])[1 + i % 4], i / 7.0, i > 90, (i % 256)::bit(8) FROM generate_series(1, 120) i, generate_series(1, 2) v;
INSERT INTO "Claims".vehicle SELECT insurer, number, version, (ARRAY['B', 'HH', 'M'])[1 + (premium::int) % 3] || ' ' || right(number, 3), int4range(2010 + (premium::int) % 10, 2012 + (premium::int) % 10), jsonb_build_object('make', (ARRAY['VW', 'Fiat', 'Škoda'])[1 + (premium::int) % 3], 'kw', (premium::int) % 90 + 40, 'extras', jsonb_build_array('abs', NULL, (premium::int) % 4)), CASE WHEN version = 1 THEN '08:00:2b:01:02:03'::macaddr END FROM "Claims".policy WHERE line = 'motor';
INSERT INTO "Claims"."Claim" ("claimId", insurer, "policyNo", "policyVersion", parent, handler, team, readers, peril, status, happened, reported, "desc", "Amount €", estimate, facts, "siu score")
SELECT i, p.insurer, p.number, p.version, CASE WHEN i > 60 AND i % 4 = 0 THEN i - 60 END, CASE WHEN i % 5 > 0 THEN 100 + i * 7 % 40 * 10 END, (ARRAY['motor', 'home', 'injury'])[1 + i % 3], CASE i % 4 WHEN 0 THEN ARRAY[140, 100 + i % 40 * 10] WHEN 1 THEN ARRAY[NULL::bigint] ELSE '{}' END, (ARRAY['loss.road.collision', 'loss.home.water', 'loss.body', 'loss.road.theft', 'loss.home.fire', 'loss.sea'])[1 + i % 6]::ltree,
    (ARRAY['reported', 'open', 'open', 'disputed', 'settled', 'closed', 'fraud'])[1 + i % 7]::"Claims"."Status", tstzrange(timestamptz '2026-01-01 06:00+00' + i * interval '11 hours', CASE WHEN i % 6 > 0 THEN timestamptz '2026-01-01 06:00+00' + i * interval '11 hours' + i % 5 * interval '1 hour' + interval '5 minutes' END), timestamptz '2026-01-02 09:00+00' + i * interval '12 hours',
    (ARRAY['Rear-end collision at the traffic lights', 'Burst pipe flooded the cellar', 'Whiplash after braking', 'Stolen bicycle, lock broken', 'Kitchen fire; smoke damage', 'Container went overboard'])[1 + i % 6] || CASE WHEN i % 5 = 0 THEN ' (repeat ' || i || ')' ELSE '' END, CASE WHEN i % 7 > 0 THEN 150 + i * 17.35 END, CASE WHEN i % 3 > 0 THEN sumrange(i * 10, i * 25) END,
    jsonb_build_object('weather', (ARRAY['rain', 'dry', NULL])[1 + i % 3], 'speed', CASE WHEN i % 4 > 0 THEN i % 120 END, 'witnesses', CASE WHEN i % 3 = 0 THEN jsonb_build_array(jsonb_build_object('name', 'W' || i, 'sure', i % 2 = 0)) ELSE '[]' END, 'police', i % 2 = 0), (i * 37 % 100) / 100.0 FROM generate_series(1, 200) i JOIN "Claims".policy p ON p.number = 'P' || to_char(1 + i * 7 % 120, 'FM0000') AND p.version = 1 + i % 2;
UPDATE "Claims"."Claim" SET changed = NULL;
INSERT INTO "Claims"."ClaimParty" SELECT "claimId", (SELECT holder FROM "Claims".policy p WHERE (p.insurer, p.number, p.version) = (c.insurer, c."policyNo", c."policyVersion")), 'insured', CASE WHEN "claimId" % 3 > 0 THEN 1 END, 'Ich war''s nicht ' || "claimId" % 3 FROM "Claims"."Claim" c;
INSERT INTO "Claims"."ClaimParty" SELECT i, md5('p' || (1 + i * 13 % 90))::uuid, (ARRAY['claimant', 'witness', 'expert'])[1 + i % 3]::"Claims"."Role", (i % 10) / 10.0, (ARRAY['Déjà vu', 'deja VU', NULL, 'saw nothing'])[1 + i % 4] FROM generate_series(1, 200) i WHERE i % 4 = 0;
INSERT INTO "Claims".reserve ("claimId", kind, amount, valid, known, set_by) SELECT i, k, 100 + i * 3 + length(k), daterange(date '2026-01-01' + q * 60, date '2026-01-01' + (q + 1) * 60), CASE WHEN i % 5 = 0 THEN tstzrange('2026-01-01 00:00+00', '2026-03-01 00:00+00') ELSE tstzrange('2026-01-01 00:00+00', NULL) END, 100 + i % 40 * 10 FROM generate_series(1, 200) i, unnest('{indemnity,costs}'::text[]) k, generate_series(0, 1) q WHERE (i + q) % 3 > 0;
INSERT INTO "Claims".payment SELECT i, 1 + i * 3 % 200, date '2025-11-15' + i, (ARRAY['EUR', 'EUR', 'GBP', 'USD'])[1 + i % 4], CASE WHEN i % 13 = 0 THEN -25.5 ELSE 40 + i * 11 % 900 END, CASE WHEN i % 5 > 0 THEN md5('p' || (1 + i % 90))::uuid END, 'DE' || i, 'R' || i % 50 FROM generate_series(1, 300) i;
INSERT INTO public.document (id, "claimId", title, body, lang, tags, pages, sha, meta, private, scanned) SELECT md5('d' || i)::uuid, CASE WHEN i % 9 > 0 THEN 1 + i * 3 % 200 END, (ARRAY['Police report', 'Repair estimate', 'Doctor''s letter', 'Photos of the damage', 'Invoice'])[1 + i % 5] || ' ' || i, (ARRAY['The rear bumper was damaged in the collision; repairs are estimated.', 'Water damage to walls and floors. Drying takes two weeks.', 'The patient complains of neck pain after whiplash.', ''])[1 + i % 4], (ARRAY['en', 'de'])[1 + i % 2],
    CASE i % 4 WHEN 0 THEN '{urgent}' WHEN 1 THEN ARRAY['urgent', NULL, 'photo'] WHEN 2 THEN '{}' ELSE '{photo,"two words"}' END::text[], CASE WHEN i % 3 > 0 THEN int4multirange(int4range(1, 3), int4range(7, 7 + i % 5)) ELSE '{}' END, decode(md5('d' || i), 'hex'), CASE i % 3 WHEN 0 THEN hstore('dpi', (i % 4 * 100)::text) WHEN 1 THEN 'dpi=>NULL,colour=>yes' END, i % 7 = 0, CASE WHEN i % 8 > 0 THEN timestamp '2026-01-05 10:00' + i * interval '5 hours' END FROM generate_series(1, 220) i;
INSERT INTO public.letter SELECT 1 + i % 200, 1 + i / 200, (ARRAY['Eingangsbestätigung', 'eingangsbestatigung', 'Rückfrage', 'Ablehnung'])[1 + i % 4] || ' ' || i / 200, CASE WHEN i % 3 > 0 THEN ('<letter lang="' || (ARRAY['de', 'en'])[1 + i % 2] || '"><p>Dear party ' || i || '</p><p>Sum: ' || i * 3 || '</p></letter>')::xml END, CASE WHEN i % 4 > 0 THEN timestamptz '2026-02-01 12:00+00' + i * interval '9 hours' END, CASE WHEN i % 2 = 0 THEN jsonb_build_array('p' || i, i, NULL) ELSE '[]' END FROM generate_series(1, 320) i;
INSERT INTO public.note (id, author, "claimId", slug, body, mood, data, spent, version) SELECT md5('n' || i)::uuid, 100 + i % 6 * 10, CASE WHEN i % 5 > 0 THEN 1 + i * 7 % 200 END, 'Note-' || i, (ARRAY['Call the garage', 'Ask for the report', 'Looks fine'])[1 + i % 3] || CASE WHEN i % 4 = 0 THEN '!' ELSE '' END, i % 7 - 3, jsonb_build_object('n', i, 'list', jsonb_build_array(i, i * 2)), i * interval '7 minutes', 1 + i % 4 FROM generate_series(1, 90) i;
INSERT INTO public.task (id, owner, "claimId", parent, pos, title, done, due, labels) SELECT i, 100 + i % 6 * 10, 1 + i * 7 % 200, CASE WHEN i > 30 THEN i - 30 END, i, (ARRAY['Phone', 'Inspect', 'Pay', 'Write'])[1 + i % 4] || ' ' || i, i % 3 = 0, CASE WHEN i % 5 > 0 THEN date '2026-03-01' + i END, CASE i % 3 WHEN 0 THEN '{a,b}' WHEN 1 THEN '{b}' ELSE '{}' END::text[] FROM generate_series(1, 90) i;
SELECT setval(pg_get_serial_sequence('public.task', 'id'), 1000), setval(pg_get_serial_sequence('"Claims"."Claim"', 'claimId'), 1000);
INSERT INTO public.score SELECT md5('p' || i)::uuid, 'm1', i / 90.0, '{"x": "HIDDENMARK"}', '2026-01-01 00:00+00' FROM generate_series(1, 90) i;
INSERT INTO public.log VALUES ('2026-01-01 00:00+00', 'root', 'HIDDENMARK'), ('2026-01-02 00:00+00', 'cron', 'HIDDENMARK');

CREATE VIEW "Claims"."OpenClaim" AS SELECT c."claimId" AS id, c.ref, c.status, c.team, c."Amount €" AS amount, c.reported, p.label AS peril FROM "Claims"."Claim" c JOIN ref.peril p ON p.path = c.peril WHERE c.status IN ('reported', 'open', 'disputed');
CREATE VIEW "Claims".incurred WITH (security_invoker = true) AS SELECT c."claimId", c.ref, r.reserved, p.paid, r.reserved + coalesce(p.paid, 0) AS total FROM "Claims"."Claim" c LEFT JOIN LATERAL (SELECT sum(amount) AS reserved FROM "Claims".reserve x WHERE x."claimId" = c."claimId" AND upper_inf(x.known)) r ON true LEFT JOIN LATERAL (SELECT sum(amount) AS paid FROM "Claims".payment y WHERE y."claimId" = c."claimId") p ON true;
CREATE VIEW "Claims".by_team AS SELECT team, status, count(*) AS n, sum("Amount €") AS amount, grouping(team, status) AS level FROM "Claims"."Claim" GROUP BY ROLLUP (team, status);
CREATE VIEW "Claims".worst AS SELECT DISTINCT ON (team) team, id, amount, rank() OVER (PARTITION BY peril ORDER BY amount DESC NULLS LAST) AS place FROM "Claims"."OpenClaim" ORDER BY team, amount DESC NULLS LAST, id;
CREATE RECURSIVE VIEW "Claims".tree (id, root, depth, trail) AS SELECT "claimId", "claimId", 0, ARRAY["claimId"] FROM "Claims"."Claim" WHERE parent IS NULL UNION ALL SELECT c."claimId", t.root, t.depth + 1, t.trail || c."claimId" FROM "Claims"."Claim" c JOIN tree t ON c.parent = t.id;
CREATE VIEW public.my_open_tasks WITH (security_barrier) AS SELECT id, "claimId", pos, title, due FROM public.task WHERE NOT done WITH LOCAL CHECK OPTION;
CREATE VIEW public.urgent_tasks AS SELECT id, title, due FROM public.my_open_tasks WHERE due < '2026-04-15' WITH CASCADED CHECK OPTION;
CREATE VIEW public.timeline AS SELECT "claimId", reported AS at, 'claim' AS what, "desc" AS text FROM "Claims"."Claim" UNION ALL SELECT "claimId", sent, 'letter', subject COLLATE "default" FROM public.letter UNION ALL SELECT "claimId", paid::timestamp AT TIME ZONE 'UTC', 'payment', reference FROM "Claims".payment;
CREATE MATERIALIZED VIEW public.month_totals AS SELECT c.insurer, date_trunc('month', p.paid::timestamp)::date AS month, p.currency, count(*)::integer AS n, sum(p.amount) AS amount FROM "Claims".payment p JOIN "Claims"."Claim" c USING ("claimId") GROUP BY 1, 2, 3;
CREATE UNIQUE INDEX ON public.month_totals (insurer, month, currency);
COMMENT ON TABLE "Claims"."Claim" IS 'What was reported, one row for each damage';
COMMENT ON COLUMN "Claims"."Claim"."siu score" IS 'of the special investigations unit; internal';
