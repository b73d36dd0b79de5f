-- A casting agency's database as a Supabase project has it: extensions in a schema of their own, performers who have agreed to being shown or have not, guardians who must agree for minors, a tree of categories with a closure in a
-- generated path, tags under a key of each agency, productions with seasons, parts with ranges of age and fee, auditions that exclude one another in a room's time, availability as multiranges, reels that show several performers,
-- documents and chunks of them as RAG code keeps them, threads of messages that answer one another, an event log by month, contracts with a composite fee, notes and tasks that are deleted softly, a materialised summary, plain,
-- security_barrier, nested and updatable views, texts of three collations.
CREATE SCHEMA extensions;
CREATE SCHEMA sched;
CREATE SCHEMA log;
CREATE EXTENSION IF NOT EXISTS btree_gist WITH SCHEMA extensions;
CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA extensions;
CREATE EXTENSION IF NOT EXISTS hstore WITH SCHEMA extensions;
CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA extensions;
CREATE EXTENSION IF NOT EXISTS unaccent WITH SCHEMA extensions;

CREATE TYPE public.consent_state AS ENUM ('pending', 'granted', 'withdrawn');
CREATE TYPE public.member_role AS ENUM ('owner', 'director', 'assistant', 'accountant');
CREATE TYPE public.production_status AS ENUM ('idea', 'casting', 'shooting', 'post', 'released', 'cancelled');
CREATE TYPE sched.audition_status AS ENUM ('planned', 'confirmed', 'done', 'cancelled');
CREATE TYPE public.fee AS (amount numeric(12,2), unit text, currency char(3));
CREATE DOMAIN public.centimetres AS smallint CHECK (VALUE BETWEEN 40 AND 250);
CREATE DOMAIN public.rating AS numeric(3,1) CHECK (VALUE >= 0 AND VALUE <= 10);
CREATE DOMAIN public.handle AS extensions.citext CHECK (VALUE ~ '^[a-z0-9_]{2,30}$');

CREATE FUNCTION public.set_updated_at() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at := timestamptz '2026-06-01 00:00+00';
    RETURN NEW;
END $$;
CREATE FUNCTION public.audition_counts() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    IF TG_OP IN ('INSERT', 'UPDATE') AND NEW.status = 'done' AND NEW.score IS NULL THEN
        NEW.notes := coalesce(NEW.notes, '') || ' [no score]';
    END IF;
    RETURN NEW;
END $$;

CREATE TABLE public.agency (
    id text PRIMARY KEY,
    name text NOT NULL,
    plan text NOT NULL DEFAULT 'free' CHECK (plan IN ('free', 'team', 'studio')),
    settings jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL
);
CREATE TABLE public.member (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agency_id text NOT NULL REFERENCES public.agency ON DELETE CASCADE,
    handle public.handle NOT NULL,
    email extensions.citext NOT NULL,
    password_hash text,
    role public.member_role NOT NULL DEFAULT 'assistant',
    reports_to bigint REFERENCES public.member ON DELETE SET NULL,
    prefs extensions.hstore NOT NULL DEFAULT '',
    joined date NOT NULL,
    deactivated_at timestamptz,
    UNIQUE (agency_id, handle)
);
CREATE TABLE public.category (
    id integer PRIMARY KEY,
    parent_id integer REFERENCES public.category ON DELETE CASCADE,
    slug text COLLATE "C" NOT NULL UNIQUE,
    name text NOT NULL,
    sort smallint NOT NULL DEFAULT 0
);
CREATE INDEX ON public.category (parent_id);
CREATE TABLE public.performer (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    agency_id text NOT NULL REFERENCES public.agency,
    code text COLLATE "C" NOT NULL,
    stage_name text COLLATE "de-x-icu" NOT NULL,
    legal_name text,
    email extensions.citext,
    phone text,
    born date,
    height public.centimetres,
    languages text[] NOT NULL DEFAULT '{}',
    attrs jsonb NOT NULL DEFAULT '{}',
    measures extensions.hstore,
    rate public.fee,
    bio text,
    consent public.consent_state NOT NULL DEFAULT 'pending',
    consent_until timestamptz,
    rating public.rating,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT '2026-05-01 00:00+00',
    updated_at timestamptz,
    slug text GENERATED ALWAYS AS (lower(code) || '-' || left(md5(code), 4)) STORED,
    search tsvector GENERATED ALWAYS AS (setweight(to_tsvector('english', coalesce(code, '')), 'A') || setweight(to_tsvector('english', coalesce(bio, '')), 'B')) STORED,
    UNIQUE (agency_id, code)
);
CREATE INDEX performer_search ON public.performer USING gin (search);
CREATE INDEX performer_bio_trgm ON public.performer USING gin (bio extensions.gin_trgm_ops);
CREATE INDEX performer_languages ON public.performer USING gin (languages);
CREATE INDEX performer_attrs ON public.performer USING gin (attrs jsonb_path_ops);
CREATE INDEX ON public.performer (agency_id, created_at DESC, id);
CREATE INDEX ON public.performer (agency_id, rating DESC NULLS LAST);
CREATE TRIGGER touch BEFORE UPDATE ON public.performer FOR EACH ROW EXECUTE FUNCTION public.set_updated_at();
CREATE TABLE public.guardian (
    performer_id uuid NOT NULL REFERENCES public.performer ON DELETE CASCADE,
    seq smallint NOT NULL,
    name text NOT NULL,
    agreed public.consent_state NOT NULL DEFAULT 'pending',
    PRIMARY KEY (performer_id, seq)
);
CREATE TABLE public.performer_category (
    performer_id uuid NOT NULL REFERENCES public.performer ON DELETE CASCADE,
    category_id integer NOT NULL REFERENCES public.category ON DELETE CASCADE,
    level smallint,
    PRIMARY KEY (performer_id, category_id)
);
CREATE INDEX ON public.performer_category (category_id);
CREATE TABLE public.tag (
    id bigserial PRIMARY KEY,
    agency_id text NOT NULL REFERENCES public.agency,
    label extensions.citext NOT NULL,
    colour char(7) NOT NULL DEFAULT '#888888',
    UNIQUE (agency_id, label)
);
CREATE TABLE public.performer_tag (
    performer_id uuid NOT NULL REFERENCES public.performer ON DELETE CASCADE,
    tag_id bigint NOT NULL REFERENCES public.tag ON DELETE CASCADE,
    added_by bigint REFERENCES public.member ON DELETE SET NULL,
    added_at timestamptz NOT NULL DEFAULT '2026-05-01 00:00+00',
    PRIMARY KEY (performer_id, tag_id)
);
CREATE INDEX ON public.performer_tag (tag_id);
CREATE TABLE public.production (
    id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    agency_id text NOT NULL REFERENCES public.agency,
    code text NOT NULL,
    title text NOT NULL,
    status public.production_status NOT NULL DEFAULT 'idea',
    period daterange,
    budget numeric(14,2),
    doc jsonb NOT NULL DEFAULT '{}',
    previous_id integer REFERENCES public.production ON DELETE SET NULL,
    confidential boolean NOT NULL DEFAULT false,
    team bigint[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT '2026-05-01 00:00+00',
    UNIQUE (agency_id, code)
);
CREATE INDEX production_title_trgm ON public.production USING gin (title extensions.gin_trgm_ops);
CREATE INDEX production_doc ON public.production USING gin (doc);
CREATE TABLE public.part (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    production_id integer NOT NULL REFERENCES public.production ON DELETE CASCADE,
    name text NOT NULL,
    brief text NOT NULL DEFAULT '',
    age int4range,
    fee_range int8range,
    needs text[] NOT NULL DEFAULT '{}',
    open boolean NOT NULL DEFAULT true,
    position integer NOT NULL DEFAULT 0,
    UNIQUE (production_id, name)
);
CREATE INDEX ON public.part USING gist (age);
CREATE TABLE sched.room (
    id integer PRIMARY KEY,
    agency_id text NOT NULL REFERENCES public.agency,
    name text NOT NULL,
    capacity smallint NOT NULL,
    tz text NOT NULL DEFAULT 'Europe/Berlin',
    features jsonb NOT NULL DEFAULT '{}'
);
CREATE TABLE sched.audition (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    agency_id text NOT NULL REFERENCES public.agency,
    room_id integer REFERENCES sched.room,
    part_id integer NOT NULL REFERENCES public.part ON DELETE CASCADE,
    performer_id uuid NOT NULL REFERENCES public.performer ON DELETE CASCADE,
    during tstzrange NOT NULL,
    status sched.audition_status NOT NULL DEFAULT 'planned',
    score public.rating,
    notes text,
    created_by bigint REFERENCES public.member ON DELETE SET NULL,
    created_at timestamptz NOT NULL DEFAULT '2026-05-01 00:00+00',
    updated_at timestamptz,
    minutes integer GENERATED ALWAYS AS ((extract(epoch FROM upper(during) - lower(during)) / 60)::integer) STORED,
    EXCLUDE USING gist (room_id WITH =, during WITH &&) WHERE (status <> 'cancelled')
);
CREATE INDEX ON sched.audition (performer_id);
CREATE INDEX ON sched.audition (part_id, status);
CREATE INDEX ON sched.audition USING gist (during);
CREATE TRIGGER counts BEFORE INSERT OR UPDATE ON sched.audition FOR EACH ROW EXECUTE FUNCTION public.audition_counts();
CREATE TRIGGER touch BEFORE UPDATE ON sched.audition FOR EACH ROW EXECUTE FUNCTION public.set_updated_at();
CREATE TABLE sched.availability (
    performer_id uuid PRIMARY KEY REFERENCES public.performer ON DELETE CASCADE,
    free tstzmultirange NOT NULL DEFAULT '{}',
    days datemultirange NOT NULL DEFAULT '{}',
    remark text
);
CREATE TABLE public.reel (
    id uuid PRIMARY KEY,
    agency_id text NOT NULL REFERENCES public.agency,
    production_id integer REFERENCES public.production ON DELETE SET NULL,
    title text NOT NULL,
    seconds integer NOT NULL,
    formats jsonb NOT NULL DEFAULT '[]',
    url text,
    shot_on date
);
CREATE TABLE public.reel_performer (
    reel_id uuid NOT NULL REFERENCES public.reel ON DELETE CASCADE,
    performer_id uuid NOT NULL REFERENCES public.performer ON DELETE CASCADE,
    at int4range,
    PRIMARY KEY (reel_id, performer_id)
);
CREATE INDEX ON public.reel_performer (performer_id);
CREATE TABLE public.document (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agency_id text NOT NULL REFERENCES public.agency,
    performer_id uuid REFERENCES public.performer ON DELETE CASCADE,
    kind text NOT NULL,
    title text NOT NULL,
    body text NOT NULL DEFAULT '',
    meta jsonb NOT NULL DEFAULT '{}',
    version integer NOT NULL DEFAULT 1,
    parent_id bigint REFERENCES public.document ON DELETE SET NULL,
    created_at timestamptz NOT NULL,
    tsv tsvector GENERATED ALWAYS AS (to_tsvector('english', title || ' ' || body)) STORED
);
CREATE INDEX document_tsv ON public.document USING gin (tsv);
CREATE INDEX document_meta ON public.document USING gin (meta);
CREATE INDEX ON public.document (performer_id);
CREATE TABLE public.chunk (
    document_id bigint NOT NULL REFERENCES public.document ON DELETE CASCADE,
    seq integer NOT NULL,
    content text NOT NULL,
    tokens integer NOT NULL,
    heading text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (document_id, seq)
);
CREATE INDEX chunk_words ON public.chunk USING gin (to_tsvector('english', content));
CREATE TABLE public.message (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    performer_id uuid NOT NULL REFERENCES public.performer ON DELETE CASCADE,
    reply_to bigint REFERENCES public.message ON DELETE CASCADE,
    sender bigint REFERENCES public.member ON DELETE SET NULL,
    direction text NOT NULL CHECK (direction IN ('in', 'out')),
    body text NOT NULL,
    attachments jsonb,
    read_by bigint[] NOT NULL DEFAULT '{}',
    sent_at timestamptz NOT NULL
);
CREATE INDEX ON public.message (performer_id, sent_at);
CREATE INDEX ON public.message (reply_to);
CREATE TABLE public.contract (
    id integer PRIMARY KEY,
    performer_id uuid NOT NULL REFERENCES public.performer,
    part_id integer NOT NULL REFERENCES public.part,
    agreed public.fee,
    bank jsonb,
    terms jsonb NOT NULL DEFAULT '{}',
    status text NOT NULL DEFAULT 'draft',
    signed_on date,
    term daterange,
    UNIQUE (performer_id, part_id)
);
CREATE TABLE log.event (
    id bigint GENERATED BY DEFAULT AS IDENTITY,
    at timestamptz NOT NULL,
    agency_id text NOT NULL,
    actor bigint,
    kind text NOT NULL,
    performer_id uuid,
    payload jsonb NOT NULL DEFAULT '{}',
    ip inet,
    took interval,
    PRIMARY KEY (id, at)
) PARTITION BY RANGE (at);
CREATE TABLE log.event_2026_01 PARTITION OF log.event FOR VALUES FROM ('2026-01-01 00:00+00') TO ('2026-02-01 00:00+00');
CREATE TABLE log.event_2026_02 PARTITION OF log.event FOR VALUES FROM ('2026-02-01 00:00+00') TO ('2026-03-01 00:00+00');
CREATE TABLE log.event_2026_03 PARTITION OF log.event FOR VALUES FROM ('2026-03-01 00:00+00') TO ('2026-04-01 00:00+00');
CREATE TABLE log.event_rest PARTITION OF log.event DEFAULT;
CREATE INDEX ON log.event (agency_id, at DESC);
CREATE INDEX ON log.event (performer_id);
CREATE INDEX ON log.event USING gin (payload jsonb_path_ops);
CREATE TABLE public.note (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    author bigint NOT NULL REFERENCES public.member ON DELETE CASCADE,
    slug extensions.citext NOT NULL,
    performer_id uuid REFERENCES public.performer ON DELETE SET NULL,
    body text NOT NULL DEFAULT '',
    tags text[] NOT NULL DEFAULT '{}',
    data jsonb NOT NULL DEFAULT '{}',
    mood public.rating,
    remind_at timestamp,
    version integer NOT NULL DEFAULT 1,
    deleted_at timestamptz,
    updated_at timestamptz,
    UNIQUE (author, slug)
);
CREATE INDEX note_tags ON public.note USING gin (tags);
CREATE TRIGGER touch BEFORE UPDATE ON public.note FOR EACH ROW EXECUTE FUNCTION public.set_updated_at();
CREATE TABLE public.task (
    id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    agency_id text NOT NULL,
    parent_id integer REFERENCES public.task ON DELETE CASCADE,
    assignee bigint REFERENCES public.member ON DELETE SET NULL,
    watchers bigint[] NOT NULL DEFAULT '{}',
    title text NOT NULL,
    code text COLLATE "C" NOT NULL DEFAULT '',
    done boolean NOT NULL DEFAULT false,
    priority smallint NOT NULL DEFAULT 0,
    due date,
    effort interval,
    checklist jsonb NOT NULL DEFAULT '[]'
);
CREATE INDEX ON public.task (assignee, due) WHERE NOT done;
CREATE TABLE public.consent_log (id bigserial PRIMARY KEY, performer_id uuid NOT NULL, state public.consent_state NOT NULL, at timestamptz NOT NULL, ip inet);
CREATE TABLE public.api_token (id bigserial PRIMARY KEY, member_id bigint NOT NULL, token_hash text NOT NULL);

CREATE FUNCTION public.per_day(f public.fee) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT CASE f.unit WHEN 'hour' THEN f.amount * 8 WHEN 'day' THEN f.amount END $$;
CREATE FUNCTION public.search_documents(query text, k integer DEFAULT 5, kinds text[] DEFAULT NULL) RETURNS TABLE (id bigint, title text, rank real) LANGUAGE sql STABLE AS $$
    SELECT d.id, d.title, ts_rank(d.tsv, websearch_to_tsquery('english', query)) AS rank FROM public.document d WHERE d.tsv @@ websearch_to_tsquery('english', query) AND (kinds IS NULL OR d.kind = ANY (kinds)) ORDER BY rank DESC, d.id LIMIT k $$;

INSERT INTO public.agency SELECT a, initcap(a) || ' Casting', (ARRAY['studio', 'team', 'free'])[n], jsonb_build_object('locale', (ARRAY['de-DE', 'fr-FR', 'en-GB'])[n], 'currency', (ARRAY['EUR', 'EUR', 'GBP'])[n], 'webhook', 'https://' || a || '.example/secret' || n), timestamptz '2019-01-01 00:00+00' + n * interval '200 days' FROM (VALUES (1, 'nord'), (2, 'sued'), (3, 'west')) v (n, a);
INSERT INTO public.member (agency_id, handle, email, password_hash, role, reports_to, prefs, joined, deactivated_at)
SELECT (ARRAY['nord', 'nord', 'sued', 'west'])[1 + i % 4], 'm_' || i, 'Member' || i || '@' || (ARRAY['Nord', 'nord', 'sued', 'west'])[1 + i % 4] || '.example', md5('pw' || i), (ARRAY['assistant', 'director', 'owner', 'accountant'])[1 + i % 4]::member_role, CASE WHEN i > 5 THEN i - 4 - i % 2 END, CASE i % 3 WHEN 0 THEN 'theme=>dark' WHEN 1 THEN 'theme=>light,beta=>NULL' ELSE '' END::extensions.hstore, date '2020-01-15' + i * 37, CASE WHEN i % 9 = 0 THEN timestamptz '2025-06-01 00:00+00' END FROM generate_series(1, 32) i;
INSERT INTO public.category VALUES (1, NULL, 'screen', 'Screen', 1), (2, NULL, 'voice', 'Voice', 2), (3, NULL, 'stage', 'Stage', 3), (4, 1, 'film', 'Film', 1), (5, 1, 'series', 'Series', 2), (6, 1, 'commercial', 'Commercials', 3), (7, 2, 'dubbing', 'Dubbing', 1), (8, 2, 'audiobook', 'Audio books', 2), (9, 3, 'musical', 'Musical', 1), (10, 9, 'dance', 'Dance', 1), (11, 10, 'ballet', 'Ballet', 1), (12, 4, 'stunt', 'Stunts', 9), (13, NULL, 'misc', 'Others', 99);
INSERT INTO public.performer (id, agency_id, code, stage_name, legal_name, email, phone, born, height, languages, attrs, measures, rate, bio, consent, consent_until, rating, deleted_at, created_at)
SELECT md5('p' || i)::uuid, (ARRAY['nord', 'nord', 'sued', 'nord', 'west'])[1 + i % 5], 'P-' || to_char(i, 'FM0000'), (ARRAY['Anna', 'Björn', 'Chloé', 'Dvořák', 'Élise', 'Ömer', 'Zoë'])[1 + i % 7] || ' ' || (ARRAY['Wagner', 'Østby', 'Straße', 'O''Hara', 'de Vries'])[1 + i / 7 % 5] || CASE WHEN i > 70 THEN ' ' || i ELSE '' END, 'Legal ' || i, CASE WHEN i % 6 > 0 THEN 'Talent.' || i || '@Mail.example' END, CASE WHEN i % 4 > 0 THEN '+49 30 ' || lpad(i::text, 6, '0') END, CASE WHEN i % 8 > 0 THEN date '1955-03-04' + i * 151 END, CASE WHEN i % 5 > 0 THEN (150 + i % 50)::smallint END,
    CASE i % 4 WHEN 0 THEN '{de}' WHEN 1 THEN '{de,en}' WHEN 2 THEN '{en,fr,es}' ELSE '{}' END::text[], jsonb_build_object('eyes', (ARRAY['blue', 'brown', 'green'])[1 + i % 3], 'hair', jsonb_build_object('colour', (ARRAY['black', 'red', 'grey', 'blond'])[1 + i % 4], 'length', i % 60), 'driving', i % 2 = 0, 'skills', CASE i % 3 WHEN 0 THEN '["fencing", "piano"]' WHEN 1 THEN '["riding"]' ELSE '[]' END::jsonb, 'medical', 'note ' || i),
    CASE WHEN i % 3 > 0 THEN extensions.hstore(ARRAY['shoe', (36 + i % 12)::text, 'hat', CASE WHEN i % 2 = 0 THEN (52 + i % 10)::text END]) END, CASE WHEN i % 6 > 0 THEN ROW(200 + i * 12.5, (ARRAY['day', 'hour', 'flat'])[1 + i % 3], 'EUR')::fee END,
    (ARRAY['Trained in Berlin, plays the piano and fences well.', 'A dancer who rides horses; known from three series.', 'Voice of many audio books. Warm and deep.', NULL, 'Comedy, slapstick, stunts: falls off any roof.', 'Child actor, learned lines quickly; riding lessons.'])[1 + i * 5 % 6] || CASE WHEN i % 9 = 0 THEN ' Agent recommends.' ELSE '' END,
    (ARRAY['granted', 'granted', 'pending', 'granted', 'withdrawn', 'granted', 'granted'])[1 + i % 7]::consent_state, CASE i % 5 WHEN 0 THEN timestamptz '2025-12-31 00:00+00' WHEN 1 THEN timestamptz '2099-01-01 00:00+00' END, CASE WHEN i % 4 > 0 THEN (i * 7 % 100) / 10.0 END, CASE WHEN i % 13 = 0 THEN timestamptz '2026-02-02 00:00+00' END, timestamptz '2024-03-01 09:00+00' + i * interval '53 hours' FROM generate_series(1, 140) i;
INSERT INTO public.guardian SELECT md5('p' || i)::uuid, k, 'Parent ' || i || '/' || k, CASE WHEN (i + k) % 4 = 0 THEN 'pending' WHEN (i * k) % 7 = 6 THEN 'withdrawn' ELSE 'granted' END::consent_state FROM generate_series(100, 140) i, generate_series(1, 2) k WHERE (i + k) % 3 > 0;
INSERT INTO public.performer_category SELECT md5('p' || i)::uuid, 4 + (i * k) % 9, (1 + (i + k) % 5)::smallint FROM generate_series(1, 140) i, generate_series(1, 3) k ON CONFLICT DO NOTHING;
INSERT INTO public.tag (agency_id, label, colour) SELECT a, l, '#' || left(md5(a || l), 6) FROM unnest('{nord,sued,west}'::text[]) a, unnest('{Lead,newcomer,Reliable,late,VIP,on-hold}'::text[]) l;
INSERT INTO public.performer_tag SELECT p.id, t.id, 1 + (ascii(p.code) + t.id * 3) % 32, timestamptz '2026-01-01 00:00+00' + t.id * interval '5 hours' FROM public.performer p JOIN public.tag t ON t.agency_id = p.agency_id WHERE (right(p.code, 3)::int + t.id) % 3 = 0;
INSERT INTO public.production (agency_id, code, title, status, period, budget, doc, previous_id, confidential, team, created_at)
SELECT (ARRAY['nord', 'nord', 'sued', 'west'])[1 + i % 4], 'PR' || i, (ARRAY['The Silent Harbour', 'Night Train', 'Königskinder', 'Paper Moons', 'Ms. Brown''s Garden'])[1 + i % 5] || CASE WHEN i > 20 THEN ' ' || (i / 20 + 1) ELSE '' END, (ARRAY['casting', 'shooting', 'idea', 'post', 'released', 'cancelled', 'casting'])[1 + i % 7]::production_status, CASE WHEN i % 6 > 0 THEN daterange(date '2026-01-01' + i * 5, CASE WHEN i % 8 > 0 THEN date '2026-03-01' + i * 6 END) END, CASE WHEN i % 5 > 0 THEN 100000 + i * 4321.5 END,
    jsonb_build_object('genre', (ARRAY['drama', 'comedy', 'crime'])[1 + i % 3], 'crew', jsonb_build_array(jsonb_build_object('role', 'director', 'name', 'Dir ' || i), jsonb_build_object('role', 'producer', 'name', 'Pro ' || i, 'share', i % 40)), 'streaming', i % 2 = 0, 'year', 2024 + i % 3), CASE WHEN i > 20 THEN i - 20 END, i % 6 = 1, CASE i % 5 WHEN 1 THEN ARRAY[3, 4] WHEN 2 THEN ARRAY[1 + i % 32] ELSE '{}' END::bigint[], timestamptz '2025-05-01 00:00+00' + i * interval '4 days' FROM generate_series(1, 48) i;
INSERT INTO public.part (production_id, name, brief, age, fee_range, needs, open, position)
SELECT p, (ARRAY['Lead', 'Villain', 'Neighbour', 'Narrator'])[k], (ARRAY['A quiet hero with a secret.', 'Charming, dangerous; rides a horse.', 'Comic relief who plays piano.', 'Off-screen voice, warm.'])[1 + (p + k) % 4], CASE WHEN (p + k) % 5 > 0 THEN int4range(18 + (p * k) % 17, 35 + (p * k) % 40) END, CASE WHEN k < 4 THEN int8range(100 * k, 100 * k + 50 * p) END, CASE (p + k) % 3 WHEN 0 THEN '{piano,de}' WHEN 1 THEN '{riding}' ELSE '{}' END::text[], (p + k) % 4 > 0, k FROM generate_series(1, 48) p, generate_series(1, 4) k WHERE (p + k) % 6 > 0 ORDER BY p, k;
INSERT INTO sched.room SELECT i, (ARRAY['nord', 'sued', 'west'])[1 + i % 3], (ARRAY['Studio', 'Black box', 'Loft'])[1 + i / 3 % 3] || ' ' || i, (4 + i * 3)::smallint, (ARRAY['Europe/Berlin', 'Europe/Paris', 'Europe/London'])[1 + i % 3], jsonb_build_object('piano', i % 2 = 0, 'mirrors', i) FROM generate_series(1, 12) i;
INSERT INTO sched.audition (id, agency_id, room_id, part_id, performer_id, during, status, score, notes, created_by, created_at)
SELECT md5('a' || i)::uuid, q.agency_id, (SELECT min(r.id) + i % 4 * 3 FROM sched.room r WHERE r.agency_id = q.agency_id), t.id, md5('p' || (1 + i * 11 % 140))::uuid, tstzrange(timestamptz '2026-01-05 08:00+00' + i * interval '95 minutes', timestamptz '2026-01-05 08:00+00' + i * interval '95 minutes' + (20 + i % 4 * 15) * interval '1 minute'), (ARRAY['planned', 'confirmed', 'done', 'done', 'cancelled'])[1 + i % 5]::sched.audition_status, CASE WHEN i % 5 IN (2, 3) THEN (i * 13 % 100) / 10.0 END, CASE WHEN i % 3 = 0 THEN (ARRAY['strong voice', 'came late', 'very funny', 'call back!'])[1 + i % 4] END, 1 + i % 32, timestamptz '2025-12-01 00:00+00' + i * interval '3 hours'
    FROM generate_series(1, 400) i JOIN public.part t ON t.id = 1 + (i * 7) % (SELECT count(*) FROM public.part) JOIN public.production q ON q.id = t.production_id;
INSERT INTO sched.availability SELECT md5('p' || i)::uuid, tstzmultirange(tstzrange(timestamptz '2026-02-01 08:00+00' + i * interval '6 hours', timestamptz '2026-02-01 16:00+00' + i * interval '6 hours'), tstzrange(timestamptz '2026-03-01 08:00+00' + i * interval '3 hours', NULL)), datemultirange(daterange(date '2026-02-01' + i % 20, date '2026-02-10' + i % 20), daterange('2026-06-01', '2026-07-01')), CASE WHEN i % 3 = 0 THEN 'mornings only' END FROM generate_series(1, 140) i WHERE i % 4 > 0;
INSERT INTO public.reel SELECT md5('r' || i)::uuid, (ARRAY['nord', 'nord', 'sued', 'west'])[1 + i % 4], CASE WHEN i % 3 > 0 THEN 1 + i % 48 END, (ARRAY['Showreel', 'Scene', 'Screen test'])[1 + i % 3] || ' ' || i, 30 + i * 7 % 300, jsonb_build_array(jsonb_build_object('codec', 'h264', 'mb', i * 3), jsonb_build_object('codec', 'av1', 'mb', i)), 'https://cdn.example/' || md5('u' || i), CASE WHEN i % 4 > 0 THEN date '2025-01-01' + i END FROM generate_series(1, 90) i;
INSERT INTO public.reel_performer SELECT md5('r' || i)::uuid, md5('p' || (1 + (i * 3 + k * 17) % 140))::uuid, int4range(k * 10, k * 10 + i % 20) FROM generate_series(1, 90) i, generate_series(1, 3) k WHERE (i + k) % 4 > 0 AND i % 11 > 0 ON CONFLICT DO NOTHING;
INSERT INTO public.document (agency_id, performer_id, kind, title, body, meta, version, parent_id, created_at)
SELECT (ARRAY['nord', 'nord', 'sued', 'nord', 'west'])[1 + i % 5], CASE WHEN i % 4 > 0 THEN md5('p' || (1 + i * 9 % 140))::uuid END, (ARRAY['cv', 'guideline', 'review', 'contract'])[1 + i % 4], (ARRAY['Curriculum vitae', 'House rules for auditions', 'Press review', 'Framework agreement'])[1 + i % 4] || ' ' || i, (ARRAY['Played Hamlet in Hamburg. Sings, dances, plays the piano.', 'Be on time. Bring two monologues. Horses are not allowed in the studio.', 'A dazzling performance, said the critics; the audience loved it.', 'The performer agrees to the terms below. Payment within 30 days.'])[1 + i % 4] || CASE WHEN i % 7 = 0 THEN ' Urgent.' ELSE '' END, jsonb_build_object('pages', i % 12, 'lang', (ARRAY['en', 'de'])[1 + i % 2], 'labels', CASE WHEN i % 3 = 0 THEN '["urgent", "signed"]' ELSE '["draft"]' END::jsonb), 1 + i % 3, CASE WHEN i > 60 THEN i - 60 END, timestamptz '2025-09-01 00:00+00' + i * interval '19 hours' FROM generate_series(1, 180) i;
INSERT INTO public.chunk SELECT d, s, (ARRAY['Played Hamlet in Hamburg and sang in the choir.', 'Bring two monologues and be on time.', 'The audience loved the dancing horse.', 'Payment within thirty days of the invoice.'])[1 + (d + s) % 4], 5 + (d * s) % 40, CASE WHEN s % 2 = 0 THEN ARRAY['Part ' || s] ELSE ARRAY['Part ' || s, 'Section ' || d % 3] END FROM generate_series(1, 180) d, generate_series(1, 3) s WHERE (d + s) % 5 > 0;
INSERT INTO public.message (performer_id, reply_to, sender, direction, body, attachments, read_by, sent_at)
SELECT md5('p' || (1 + i / 3 % 140))::uuid, CASE WHEN i % 3 > 0 AND i > 2 THEN i - 1 END, CASE WHEN i % 3 <> 1 THEN 1 + i % 32 END, CASE WHEN i % 3 = 1 THEN 'in' ELSE 'out' END, (ARRAY['Are you free for an audition next week?', 'Yes, any time in the morning. Where is it?', 'Great, see you in the black box at 100%.'])[1 + i % 3] || CASE WHEN i % 10 = 0 THEN ' #' || i ELSE '' END, CASE WHEN i % 4 = 0 THEN jsonb_build_array(jsonb_build_object('name', 'script' || i || '.pdf', 'kb', i)) END, CASE i % 3 WHEN 0 THEN ARRAY[4, 1 + i % 32] ELSE '{}' END::bigint[], timestamptz '2025-12-15 08:00+00' + i * interval '41 minutes' FROM generate_series(1, 420) i;
INSERT INTO public.contract SELECT i, md5('p' || (1 + i * 5 % 140))::uuid, 1 + i * 3 % 150, ROW(500 + i * 25, 'flat', 'EUR')::fee, jsonb_build_object('iban', 'DE' || i), jsonb_build_object('days', i % 30, 'exclusive', i % 3 = 0, 'buyout', jsonb_build_object('tv', i % 2 = 0, 'web', true)), (ARRAY['draft', 'sent', 'signed', 'void'])[1 + i % 4], CASE WHEN i % 4 = 2 THEN date '2026-01-10' + i END, daterange(date '2026-02-01' + i, date '2026-03-01' + i * 2) FROM generate_series(1, 130) i ON CONFLICT DO NOTHING;
INSERT INTO log.event (at, agency_id, actor, kind, performer_id, payload, ip, took)
SELECT timestamptz '2026-01-01 00:00+00' + i * interval '4 hours 7 minutes', (ARRAY['nord', 'nord', 'sued', 'west'])[1 + i % 4], 1 + i % 32, (ARRAY['viewed', 'shortlisted', 'mailed', 'login', 'exported'])[1 + i % 5], CASE WHEN i % 5 < 3 THEN md5('p' || (1 + i * 13 % 140))::uuid END, jsonb_build_object('source', (ARRAY['web', 'app', 'api'])[1 + i % 3], 'ms', i * 17 % 900, 'page', jsonb_build_object('path', '/p/' || i % 20)), ('10.0.' || i % 4 || '.' || i % 250)::inet, (i * 17 % 900) * interval '1 millisecond' FROM generate_series(1, 600) i;
INSERT INTO public.note (id, author, slug, performer_id, body, tags, data, mood, remind_at, version, deleted_at) SELECT md5('n' || i)::uuid, 1 + i % 6, 'Note-' || i, CASE WHEN i % 3 > 0 THEN md5('p' || (1 + i % 140))::uuid END, (ARRAY['Call back about the horse', 'Great laugh, keep in mind', 'Ask for a new showreel'])[1 + i % 3], CASE i % 3 WHEN 0 THEN '{todo,call}' WHEN 1 THEN '{idea}' ELSE '{}' END::text[], jsonb_build_object('n', i, 'stars', i % 5), (i % 50) / 5.0, CASE WHEN i % 4 > 0 THEN timestamp '2026-05-01 09:00' + i * interval '5 hours' END, 1 + i % 4, CASE WHEN i % 8 = 0 THEN timestamptz '2026-03-03 00:00+00' END FROM generate_series(1, 120) i;
INSERT INTO public.task (agency_id, parent_id, assignee, watchers, title, code, done, priority, due, effort, checklist) SELECT (ARRAY['nord', 'nord', 'sued'])[1 + i % 3], CASE WHEN i > 30 THEN i - 30 END, CASE WHEN i % 7 > 0 THEN 1 + i % 6 END, CASE i % 4 WHEN 0 THEN ARRAY[4, 5] WHEN 1 THEN ARRAY[1 + i % 9] ELSE '{}' END::bigint[], (ARRAY['Book the loft', 'Send script', 'Update profile', 'Émile: rückrufen'])[1 + i % 4] || ' ' || i, 'T' || to_char(i % 40, 'FM00'), i % 5 = 0, (i % 4)::smallint, CASE WHEN i % 6 > 0 THEN date '2026-04-01' + i % 40 END, CASE WHEN i % 3 > 0 THEN i * interval '10 minutes' END, jsonb_build_array(jsonb_build_object('step', 'draft', 'done', i % 2 = 0), jsonb_build_object('step', 'send', 'done', false)) FROM generate_series(1, 150) i;
INSERT INTO public.consent_log (performer_id, state, at) SELECT id, consent, created_at FROM public.performer;
INSERT INTO public.api_token (member_id, token_hash) VALUES (1, 'HIDDENMARK'), (2, 'HIDDENMARK');

CREATE VIEW public.castable WITH (security_barrier) AS SELECT p.id, p.agency_id, p.code, p.stage_name, p.height, p.languages, p.rating, p.search FROM public.performer p WHERE p.rating >= 5;
CREATE VIEW sched.agenda AS SELECT a.id, lower(a.during) AS starts, upper(a.during) AS ends, a.status, r.name AS room, q.title AS production, t.name AS part, p.stage_name AS performer, a.score FROM sched.audition a JOIN public.part t ON t.id = a.part_id JOIN public.production q ON q.id = t.production_id JOIN public.performer p ON p.id = a.performer_id LEFT JOIN sched.room r ON r.id = a.room_id;
CREATE VIEW public.part_stats AS SELECT t.production_id, t.id AS part_id, t.name, count(a.id) AS auditions, count(DISTINCT a.performer_id) AS people, avg(a.score) AS average, max(a.score) AS best FROM public.part t LEFT JOIN sched.audition a ON a.part_id = t.id AND a.status <> 'cancelled' GROUP BY t.id;
CREATE VIEW public.production_stats WITH (security_invoker = true) AS SELECT q.id, q.title, q.status, sum(s.auditions) AS auditions, max(s.best) AS best, rank() OVER (ORDER BY sum(s.auditions) DESC NULLS LAST) AS place FROM public.production q LEFT JOIN public.part_stats s ON s.production_id = q.id GROUP BY q.id;
CREATE VIEW public.my_task AS SELECT id, agency_id, assignee, title, code, done, priority, due, checklist FROM public.task WHERE NOT done WITH LOCAL CHECK OPTION;
CREATE RECURSIVE VIEW public.category_tree (id, name, depth, trail) AS SELECT id, name, 0, ARRAY[name] FROM public.category WHERE parent_id IS NULL UNION ALL SELECT c.id, c.name, t.depth + 1, t.trail || c.name FROM public.category c JOIN category_tree t ON c.parent_id = t.id;
CREATE VIEW log.daily AS SELECT agency_id, date_trunc('day', at, 'UTC') AS day, kind, count(*) AS n, count(DISTINCT performer_id) AS people, avg((payload ->> 'ms')::numeric) AS ms FROM log.event GROUP BY 1, 2, 3;
CREATE MATERIALIZED VIEW public.agency_month AS SELECT agency_id, date_trunc('month', at, 'UTC') AS month, count(*)::integer AS events, percentile_cont(0.9) WITHIN GROUP (ORDER BY (payload ->> 'ms')::numeric) AS p90 FROM log.event GROUP BY 1, 2;
CREATE UNIQUE INDEX ON public.agency_month (agency_id, month);
COMMENT ON TABLE public.performer IS 'People whom an agency represents';
COMMENT ON COLUMN public.performer.attrs IS 'free form; medical is confidential';
