-- A company's memory for its agents: tenants, people with a chart in an ltree, consents by purpose with an expiry, memories of several participants, an edge table between memories, facts with ranges of dates, documents in a folder tree with
-- access lists and chunks for retrieval, conversations, messages in monthly partitions, tool calls with a composite cost, an append-only event table with a BRIN index, checkpoints and a store as LangGraph writes them, a queue of jobs, sources with
-- a child by inheritance, a materialised view of topics, views plain, security_invoker and with a check option, names in quotes and three schemas.
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE EXTENSION IF NOT EXISTS ltree;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE SCHEMA mem;
CREATE SCHEMA "Kb";

CREATE TYPE public.plan_tier AS ENUM ('free', 'team', 'enterprise');
CREATE TYPE public.msg_role AS ENUM ('system', 'user', 'assistant', 'tool');
CREATE TYPE public.job_state AS ENUM ('queued', 'running', 'done', 'failed');
CREATE TYPE mem.kind AS ENUM ('episodic', 'semantic', 'procedural', 'preference');
CREATE TYPE mem.relation AS ENUM ('causes', 'follows', 'contradicts', 'about');
CREATE TYPE mem.consent_state AS ENUM ('pending', 'granted', 'denied', 'withdrawn');
CREATE TYPE "Kb"."DocStatus" AS ENUM ('Draft', 'Published', 'Archived');
CREATE TYPE public.contact AS (street text, city text, zip varchar(10));
CREATE TYPE public.usage_cost AS (amount numeric(12,6), currency char(3));
CREATE DOMAIN public.probability AS double precision CHECK (VALUE BETWEEN 0 AND 1);
CREATE DOMAIN public.slug AS text CHECK (VALUE ~ '^[a-z0-9-]+$');
CREATE DOMAIN mem.embedding AS real[] CHECK (array_length(VALUE, 1) = 4);

CREATE FUNCTION public.set_updated() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.updated_at := '2026-06-01 00:00+00'; RETURN NEW; END $$;
CREATE FUNCTION mem.dot(a real[], b real[]) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT sum(x::float8 * y) FROM unnest(a, b) AS u (x, y) $$;
CREATE FUNCTION mem.similarity_of(a real[], b real[]) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$ SELECT mem.dot(a, b) / nullif(sqrt(mem.dot(a, a)) * sqrt(mem.dot(b, b)), 0) $$;

CREATE TABLE public.tenant (
    id text PRIMARY KEY,
    name text NOT NULL,
    tier public.plan_tier NOT NULL,
    region text NOT NULL,
    settings jsonb NOT NULL DEFAULT '{}',
    retention interval NOT NULL DEFAULT '365 days',
    created_at timestamptz NOT NULL
);
CREATE TABLE public.person (
    id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES public.tenant,
    email citext NOT NULL UNIQUE,
    full_name text NOT NULL,
    manager_id uuid REFERENCES public.person,
    dept ltree NOT NULL,
    title varchar(40),
    skills text[] NOT NULL DEFAULT '{}',
    traits hstore,
    address public.contact,
    born date,
    salary numeric(10,2),
    started date NOT NULL,
    consent mem.consent_state NOT NULL DEFAULT 'pending',
    consent_until timestamptz,
    active boolean NOT NULL DEFAULT true,
    prefs jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX ON public.person (tenant_id);
CREATE INDEX ON public.person USING gist (dept);
CREATE INDEX person_name_trgm ON public.person USING gin (full_name gin_trgm_ops);
CREATE TABLE mem.consent (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    grantor text NOT NULL,
    grantee text NOT NULL,
    purpose text NOT NULL,
    given_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz
);
CREATE INDEX ON mem.consent (grantor, purpose);
CREATE TABLE mem.memory (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES public.tenant,
    author_id uuid NOT NULL REFERENCES public.person,
    kind mem.kind NOT NULL DEFAULT 'episodic',
    title text NOT NULL,
    body text NOT NULL DEFAULT '',
    salience real NOT NULL DEFAULT 0.5,
    tags text[] NOT NULL DEFAULT '{}',
    occurred_at timestamptz NOT NULL,
    valid tstzrange,
    embedding mem.embedding,
    meta jsonb NOT NULL DEFAULT '{}',
    pinned boolean,
    secret_note text,
    deleted_at timestamptz,
    updated_at timestamptz,
    search tsvector GENERATED ALWAYS AS (setweight(to_tsvector('english', title), 'A') || setweight(to_tsvector('english', body), 'B')) STORED,
    words integer GENERATED ALWAYS AS (cardinality(string_to_array(body, ' '))) STORED
);
CREATE INDEX memory_search ON mem.memory USING gin (search);
CREATE INDEX memory_title_trgm ON mem.memory USING gin (title gin_trgm_ops);
CREATE INDEX memory_tags ON mem.memory USING gin (tags);
CREATE INDEX memory_meta ON mem.memory USING gin (meta jsonb_path_ops);
CREATE INDEX memory_when ON mem.memory (tenant_id, occurred_at DESC) WHERE deleted_at IS NULL;
CREATE TRIGGER set_updated BEFORE UPDATE ON mem.memory FOR EACH ROW EXECUTE FUNCTION public.set_updated();
CREATE TABLE mem.participant (
    memory_id uuid NOT NULL REFERENCES mem.memory ON DELETE CASCADE,
    person_id uuid NOT NULL REFERENCES public.person,
    role text NOT NULL DEFAULT 'mentioned',
    share numeric(4,3),
    PRIMARY KEY (memory_id, person_id)
);
CREATE INDEX ON mem.participant (person_id);
CREATE TABLE mem.edge (
    id bigserial PRIMARY KEY,
    from_id uuid NOT NULL REFERENCES mem.memory ON DELETE CASCADE,
    to_id uuid NOT NULL REFERENCES mem.memory ON DELETE CASCADE,
    relation mem.relation NOT NULL,
    weight double precision NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    UNIQUE (from_id, to_id, relation)
);
CREATE INDEX ON mem.edge (to_id);
CREATE TABLE mem.fact (
    id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    tenant_id text NOT NULL,
    subject text NOT NULL,
    about jsonb,
    predicate text NOT NULL,
    object text NOT NULL,
    confidence public.probability NOT NULL DEFAULT 0.5,
    valid daterange NOT NULL,
    observed int4multirange,
    memory_ids uuid[] NOT NULL DEFAULT '{}',
    EXCLUDE USING gist (tenant_id WITH =, subject WITH =, predicate WITH =, valid WITH &&)
);
CREATE TABLE mem.insight (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    owner uuid NOT NULL,
    memory_ids uuid[] NOT NULL,
    body text NOT NULL,
    model text NOT NULL DEFAULT 'small',
    tokens integer CHECK (tokens >= 0),
    made_at timestamptz NOT NULL
);
CREATE TABLE mem.source (
    id integer PRIMARY KEY,
    tenant_id text NOT NULL,
    uri text NOT NULL,
    fetched_at timestamptz,
    bytes bigint,
    checksum bytea
);
CREATE TABLE mem.mail_source (
    sender citext,
    headers hstore,
    importance smallint
) INHERITS (mem.source);
ALTER TABLE mem.mail_source ADD PRIMARY KEY (id);

CREATE TABLE "Kb"."Document" (
    "Id" integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    "tenantId" text NOT NULL,
    "Title" text NOT NULL,
    "folder" ltree NOT NULL,
    "ownerId" uuid NOT NULL,
    "status" "Kb"."DocStatus" NOT NULL DEFAULT 'Draft',
    "acl" jsonb NOT NULL DEFAULT '[]',
    "Meta Data" jsonb NOT NULL DEFAULT '{}',
    "lang" text NOT NULL DEFAULT 'english',
    "pages" integer,
    "sizeMB" numeric,
    "publishedAt" timestamp,
    "internalRating" integer,
    "order" integer NOT NULL DEFAULT 0
);
CREATE INDEX ON "Kb"."Document" USING gist ("folder");
CREATE INDEX ON "Kb"."Document" USING gin ("acl");
CREATE TABLE "Kb".chunk (
    document_id integer NOT NULL REFERENCES "Kb"."Document" ON DELETE CASCADE,
    seq integer NOT NULL,
    content text NOT NULL,
    heading text[] NOT NULL DEFAULT '{}',
    span int4range,
    token_count integer NOT NULL,
    embedding mem.embedding,
    meta jsonb,
    tsv tsvector GENERATED ALWAYS AS (to_tsvector('english', content)) STORED,
    PRIMARY KEY (document_id, seq)
);
CREATE INDEX chunk_tsv ON "Kb".chunk USING gin (tsv);
CREATE INDEX chunk_trgm ON "Kb".chunk USING gin (content gin_trgm_ops);

CREATE TABLE public.conversation (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL,
    user_id uuid NOT NULL,
    members uuid[] NOT NULL DEFAULT '{}',
    title text,
    model text NOT NULL,
    temperature numeric(3,2),
    started_at timestamptz NOT NULL,
    ended_at timestamptz,
    archived boolean NOT NULL DEFAULT false,
    labels hstore
);
CREATE TABLE public.message (
    id bigint GENERATED ALWAYS AS IDENTITY,
    conversation_id uuid NOT NULL,
    role public.msg_role NOT NULL,
    content text NOT NULL,
    parts jsonb,
    tokens_in integer,
    tokens_out integer,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (id, created_at)
) PARTITION BY RANGE (created_at);
CREATE TABLE public.message_2026_01 PARTITION OF public.message FOR VALUES FROM ('2026-01-01 00:00+00') TO ('2026-02-01 00:00+00');
CREATE TABLE public.message_2026_02 PARTITION OF public.message FOR VALUES FROM ('2026-02-01 00:00+00') TO ('2026-03-01 00:00+00');
CREATE TABLE public.message_2026_03 PARTITION OF public.message FOR VALUES FROM ('2026-03-01 00:00+00') TO ('2026-04-01 00:00+00');
CREATE TABLE public.message_rest PARTITION OF public.message DEFAULT;
CREATE INDEX ON public.message (conversation_id, created_at);
CREATE TABLE public."ToolCall" (
    "callId" uuid PRIMARY KEY,
    "conversationId" uuid NOT NULL,
    "toolName" text NOT NULL,
    "args" jsonb NOT NULL,
    "result" json,
    "latency" interval,
    "cost" public.usage_cost,
    "ok" boolean NOT NULL,
    "retries" smallint NOT NULL DEFAULT 0,
    "startedAt" timestamp(3) NOT NULL
);
CREATE INDEX ON public."ToolCall" ("conversationId");
CREATE TABLE public.event (
    id bigserial PRIMARY KEY,
    at timestamptz NOT NULL,
    tenant_id text NOT NULL,
    actor uuid,
    kind text NOT NULL,
    payload jsonb NOT NULL DEFAULT '{}',
    ip inet,
    mac macaddr,
    flags bit(4) NOT NULL DEFAULT B'0000'
);
CREATE INDEX event_brin ON public.event USING brin (at);
CREATE TABLE public.checkpoint (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL DEFAULT '',
    checkpoint_id text NOT NULL,
    parent_checkpoint_id text,
    owner uuid NOT NULL,
    checkpoint jsonb NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (owner, thread_id, checkpoint_ns, checkpoint_id)
);
CREATE TABLE public.store (
    owner uuid NOT NULL,
    prefix text NOT NULL,
    key public.slug NOT NULL,
    value jsonb NOT NULL,
    hits integer NOT NULL DEFAULT 0,
    score numeric(6,2),
    expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT '2026-05-01 00:00+00',
    updated_at timestamptz,
    PRIMARY KEY (owner, prefix, key)
);
CREATE TRIGGER set_updated BEFORE UPDATE ON public.store FOR EACH ROW EXECUTE FUNCTION public.set_updated();
CREATE TABLE public.job (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    owner uuid NOT NULL,
    queue text NOT NULL DEFAULT 'default',
    state public.job_state NOT NULL DEFAULT 'queued',
    priority integer NOT NULL DEFAULT 0,
    payload jsonb NOT NULL DEFAULT '{}',
    attempts integer NOT NULL DEFAULT 0,
    run_at timestamptz NOT NULL DEFAULT '2026-05-01 00:00+00',
    last_error text,
    parent_id uuid REFERENCES public.job ON DELETE SET NULL
);
CREATE INDEX ON public.job (queue, priority DESC, run_at) WHERE state = 'queued';
CREATE TABLE public.api_key (id serial PRIMARY KEY, tenant_id text, hash text, secret text);

CREATE FUNCTION mem.sentence(f mem.fact) RETURNS text LANGUAGE sql STABLE AS $$ SELECT f.predicate || ': ' || f.object || ' (' || round(f.confidence::numeric, 2) || ')' $$;
CREATE FUNCTION "Kb".match_chunks(query text, k integer DEFAULT 5, in_english boolean DEFAULT false) RETURNS TABLE (document_id integer, seq integer, content text, rank real) LANGUAGE sql STABLE AS $$
    SELECT c.document_id, c.seq, c.content, ts_rank(c.tsv, websearch_to_tsquery('english', query)) AS rank FROM "Kb".chunk c WHERE c.tsv @@ websearch_to_tsquery('english', query) AND (NOT in_english OR c.meta ->> 'lang' = 'en') ORDER BY rank DESC, c.document_id, c.seq LIMIT k $$;
CREATE FUNCTION public.tokens_of(c uuid) RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT coalesce(sum(coalesce(tokens_in, 0) + coalesce(tokens_out, 0)), 0) FROM public.message WHERE conversation_id = c $$;

INSERT INTO public.tenant SELECT t, initcap(t) || ' Inc', (ARRAY['team', 'enterprise', 'free', 'team'])[n]::plan_tier, (ARRAY['eu', 'us', 'eu', 'apac'])[n], jsonb_build_object('locale', (ARRAY['de', 'en', 'fr', 'ja'])[n], 'limits', jsonb_build_object('rpm', n * 100)), n * interval '180 days', timestamptz '2024-01-01 00:00+00' + n * interval '40 days' FROM (VALUES (1, 'acme'), (2, 'globex'), (3, 'initech'), (4, 'umbrella')) v (n, t);
INSERT INTO public.person (id, tenant_id, email, full_name, manager_id, dept, title, skills, traits, address, born, salary, started, consent, consent_until, active, prefs)
SELECT md5('p' || i)::uuid, (ARRAY['acme', 'acme', 'globex', 'initech', 'acme', 'umbrella'])[1 + i % 6], 'User' || i || '@' || (ARRAY['Acme', 'acme', 'Globex', 'initech', 'acme', 'umbrella'])[1 + i % 6] || '.example',
    (ARRAY['Ada', 'Björn', 'Chloé', 'Dmitri', 'Eve', 'Farid', 'Greta', 'Hana'])[1 + i % 8] || ' ' || (ARRAY['Lovelace', 'O''Neil', 'Müller', 'Ivanova', 'Santos'])[1 + i % 5],
    CASE WHEN i > 12 THEN md5('p' || (i % 6 + CASE WHEN i % 2 = 0 THEN 6 ELSE 0 END))::uuid END,
    (ARRAY['eng.platform', 'eng.ml.research', 'sales.emea', 'legal', 'eng.ml', 'ops.support.night'])[1 + i % 6 * i % 6]::ltree, (ARRAY['Engineer', 'Manager', NULL, 'Counsel', 'Analyst'])[1 + i % 5],
    CASE i % 4 WHEN 0 THEN '{sql,python}' WHEN 1 THEN '{python}' WHEN 2 THEN '{}' ELSE ARRAY['go', 'sql', NULL] END::text[],
    CASE WHEN i % 3 > 0 THEN hstore(ARRAY['lang', (ARRAY['de', 'en'])[1 + i % 2], 'tz', CASE WHEN i % 5 > 0 THEN 'Europe/Berlin' END]) END,
    CASE WHEN i % 4 > 0 THEN ROW('Main ' || i, (ARRAY['Jena', 'Bern', 'Oslo'])[1 + i % 3], lpad(i::text, 5, '0'))::contact END,
    CASE WHEN i % 7 > 0 THEN date '1960-03-07' + i * 211 END, 30000 + i * 777.5, date '2019-01-15' + i * 23,
    (ARRAY['granted', 'granted', 'granted', 'pending', 'withdrawn', 'granted', 'denied'])[1 + i % 7]::mem.consent_state, CASE i % 5 WHEN 1 THEN timestamptz '2099-01-01 00:00+00' WHEN 2 THEN CASE WHEN i % 4 = 0 THEN timestamptz '2025-01-01 00:00+00' END END, i % 11 <> 3,
    jsonb_build_object('theme', (ARRAY['dark', 'light'])[1 + i % 2], 'digest', i % 3 = 0, 'ssn', 'x' || i)
FROM generate_series(1, 72) i;
INSERT INTO mem.consent (grantor, grantee, purpose, given_at, expires_at, revoked_at)
SELECT md5('p' || i)::uuid::text, (ARRAY['assist', 'research', '*', 'ads'])[1 + i % 4], (ARRAY['*', 'employment', 'health', 'skill'])[1 + i % 3], timestamptz '2025-02-01 00:00+00' + i * interval '1 day', CASE i % 6 WHEN 2 THEN timestamptz '2025-12-01 00:00+00' WHEN 3 THEN timestamptz '2098-01-01 00:00+00' END, CASE WHEN i % 9 = 4 THEN timestamptz '2025-09-01 00:00+00' END FROM generate_series(1, 72) i;
INSERT INTO mem.consent (grantor, grantee, purpose, given_at) SELECT md5('p' || i)::uuid::text, 'assist', '*', '2025-05-05 00:00+00' FROM generate_series(1, 72, 5) i;
INSERT INTO mem.memory (id, tenant_id, author_id, kind, title, body, salience, tags, occurred_at, valid, embedding, meta, pinned, secret_note, deleted_at)
SELECT md5('m' || i)::uuid, (ARRAY['acme', 'acme', 'globex', 'acme', 'initech'])[1 + i % 5], md5('p' || (1 + i % 72))::uuid, (ARRAY['episodic', 'semantic', 'procedural', 'preference'])[1 + i % 4]::mem.kind,
    (ARRAY['Quarterly planning', 'Customer escalation', 'Lunch in Jena', 'Incident review', 'Prefers tea', 'Onboarding checklist', 'Release retro'])[1 + i % 7] || ' #' || i,
    (ARRAY['discussed the budget and the roadmap', 'an outage of the billing service was escalated', 'talked about climbing and coffee', 'root cause was a missing index', '', 'signed the contract for the new office'])[1 + i % 6] || CASE WHEN i % 3 = 0 THEN ' with follow ups' ELSE '' END,
    (i % 10) / 10.0, CASE i % 5 WHEN 0 THEN '{work,planning}' WHEN 1 THEN '{work}' WHEN 2 THEN '{personal,food}' WHEN 3 THEN '{}' ELSE ARRAY['work', 'incident', NULL] END::text[],
    timestamptz '2025-06-01 08:00+00' + i * interval '31 hours 7 minutes', CASE i % 4 WHEN 0 THEN tstzrange('2025-06-01 00:00+00', '2026-01-01 00:00+00') WHEN 1 THEN tstzrange(NULL, '2025-10-01 00:00+00') WHEN 2 THEN 'empty' END,
    CASE WHEN i % 6 > 0 THEN ARRAY[(i % 7) - 3, (i % 5) - 2, 1, (i % 3) - 1]::real[] END,
    jsonb_build_object('source', (ARRAY['slack', 'mail', 'call'])[1 + i % 3], 'score', i % 20, 'loc', jsonb_build_object('city', (ARRAY['Jena', 'Bern', 'Oslo'])[1 + i % 3], 'floor', i % 4), 'links', jsonb_build_array(i, i + 1, 'x' || i)) || CASE WHEN i % 8 = 0 THEN '{"reviewed": true}' ELSE '{}' END::jsonb,
    CASE i % 5 WHEN 0 THEN true WHEN 1 THEN false END, 'secret ' || i, CASE WHEN i % 13 = 5 THEN timestamptz '2026-01-01 00:00+00' END
FROM generate_series(1, 240) i;
INSERT INTO mem.participant SELECT DISTINCT ON (m, p) md5('m' || m)::uuid, md5('p' || p)::uuid, (ARRAY['speaker', 'mentioned', 'recipient'])[1 + (m + k) % 3], (k % 4) / 4.0 FROM generate_series(1, 240) m, generate_series(1, 3) k, LATERAL (SELECT 1 + (m * 7 + k * 5) % 72) v (p) WHERE (m + k) % 4 > 1 AND m % 17 > 0 ORDER BY m, p, k;
INSERT INTO mem.edge (from_id, to_id, relation, weight, created_at) SELECT md5('m' || i)::uuid, md5('m' || (1 + (i + k * 10 - 1) % 240))::uuid, (ARRAY['causes', 'follows', 'contradicts', 'about'])[1 + (i + k) % 4]::mem.relation, 1.0 / (1 + (i + k) % 5), timestamptz '2026-01-01 00:00+00' + i * interval '1 hour' FROM generate_series(1, 240) i, generate_series(1, 2) k;
INSERT INTO mem.fact (id, tenant_id, subject, about, predicate, object, confidence, valid, observed, memory_ids)
SELECT i, (ARRAY['acme', 'acme', 'globex'])[1 + i % 3], md5('p' || (1 + i % 60))::uuid::text, CASE WHEN i % 4 = 0 THEN jsonb_build_array(md5('p' || (1 + (i * 3) % 72))::uuid::text) ELSE jsonb_build_array(md5('p' || (1 + i % 60))::uuid::text) END, (ARRAY['employment', 'skill', 'health', 'likes', 'lives_in'])[1 + i / 60 % 5], (ARRAY['Acme GmbH', 'SQL', 'asthma', 'tea', 'Jena', 'coffee', 'Bern'])[1 + i % 7], (i % 21) / 20.0,
    CASE i % 3 WHEN 0 THEN daterange('2020-01-01', '2022-01-01') WHEN 1 THEN daterange('2023-01-01', NULL) ELSE daterange('2021-05-05', '2025-05-05', '[]') END, CASE WHEN i % 2 = 0 THEN int4multirange(int4range(i, i + 5), int4range(i + 10, i + 12)) END, CASE WHEN i % 5 > 0 THEN ARRAY[md5('m' || (1 + i % 240))::uuid] ELSE '{}' END FROM generate_series(1, 180) i;
INSERT INTO mem.insight (id, owner, memory_ids, body, model, tokens, made_at) SELECT md5('i' || i)::uuid, md5('p' || (1 + i % 9))::uuid, CASE WHEN i % 10 = 9 THEN '{}' WHEN i % 4 > 0 THEN ARRAY[md5('m' || i)::uuid] ELSE ARRAY[md5('m' || i)::uuid, md5('m' || (i + 3))::uuid] END, 'Insight ' || i || ': people talk about ' || (ARRAY['coffee', 'budget', 'index'])[1 + i % 3], (ARRAY['small', 'large'])[1 + i % 2], i * 10, timestamptz '2026-02-01 00:00+00' + i * interval '3 hours' FROM generate_series(1, 180) i;
INSERT INTO mem.source SELECT i, (ARRAY['acme', 'globex', 'acme'])[1 + i % 3], 'https://wiki.' || (ARRAY['acme', 'globex'])[1 + i % 2] || '.example/page/' || i, CASE WHEN i % 4 > 0 THEN timestamptz '2026-01-05 00:00+00' + i * interval '5 hours' END, i * 1024, decode(md5('s' || i), 'hex') FROM generate_series(1, 30) i;
INSERT INTO mem.mail_source SELECT i, (ARRAY['acme', 'globex', 'acme'])[1 + i % 3], 'imap://mail/' || i, timestamptz '2026-01-07 00:00+00' + i * interval '7 hours', i * 99, NULL, 'Bob' || i % 4 || '@x.example', hstore('subject', 'Re: ' || i) || hstore('x-spam', CASE WHEN i % 2 = 0 THEN 'no' END), i % 5 FROM generate_series(101, 125) i;
INSERT INTO "Kb"."Document" SELECT i, (ARRAY['acme', 'acme', 'globex'])[1 + i % 3], (ARRAY['Employee handbook', 'Security policy', 'API guide', 'Sales playbook', 'Runbook: billing'])[1 + i % 5] || ' v' || i, (ARRAY['hr.policies', 'sec', 'eng.api.v2', 'sales.emea', 'eng.runbooks'])[1 + i % 5]::ltree, md5('p' || (1 + i % 20))::uuid, (ARRAY['Published', 'Published', 'Draft', 'Published', 'Archived'])[1 + i % 5]::"Kb"."DocStatus",
    CASE i % 4 WHEN 0 THEN '["*"]' WHEN 1 THEN '["assist", "eng"]' WHEN 2 THEN '["legal"]' ELSE '["eng", 7]' END::jsonb, jsonb_build_object('author', 'User ' || i, 'tags', jsonb_build_array((ARRAY['policy', 'guide'])[1 + i % 2], 'v' || i), 'rev', i % 4, 'draftNotes', 'n' || i), 'english', CASE WHEN i % 6 > 0 THEN i * 3 END, round(i / 7.0, 3), CASE WHEN i % 5 <> 2 THEN timestamp '2025-11-01 09:00' + i * interval '2 days' END, i % 5, i % 3 FROM generate_series(1, 45) i;
INSERT INTO "Kb".chunk SELECT d, s, (ARRAY['Employees may work from home on two days.', 'Rotate every secret after ninety days and report incidents.', 'The search endpoint returns ranked chunks of documents.', 'Discounts above ten percent need approval of the manager.', 'Restart the billing worker, then check the index.'])[1 + (d + s) % 5] || ' Section ' || s || ' of ' || d || '.', ARRAY['Part ' || (1 + s / 3), 'Section ' || s], int4range(s * 100, s * 100 + 90), 20 + (d * s) % 37, CASE WHEN (d + s) % 5 > 0 THEN ARRAY[(d % 5) - 2, (s % 4) - 1, 1, (d + s) % 3]::real[] END, CASE WHEN s % 3 > 0 THEN jsonb_build_object('page', s, 'lang', (ARRAY['en', 'de'])[1 + d % 2], 'bbox', jsonb_build_array(s, d, s + 1)) END FROM generate_series(1, 45) d, generate_series(1, 5) s;
INSERT INTO public.conversation SELECT md5('c' || i)::uuid, (ARRAY['acme', 'globex', 'acme'])[1 + i % 3], md5('p' || (1 + i % 9))::uuid, CASE WHEN i % 4 = 0 THEN ARRAY[md5('p4')::uuid, md5('p' || (1 + i % 30))::uuid] ELSE ARRAY[md5('p' || (1 + i % 30))::uuid] END, CASE WHEN i % 6 > 0 THEN (ARRAY['Plan the offsite', 'Debug billing', 'Draft a contract'])[1 + i % 3] || ' ' || i END, (ARRAY['opal-1', 'opal-2', 'mini'])[1 + i % 3], (i % 11) / 10.0, timestamptz '2026-01-03 10:00+00' + i * interval '29 hours', CASE WHEN i % 3 > 0 THEN timestamptz '2026-01-03 11:30+00' + i * interval '29 hours' END, i % 7 = 0, CASE WHEN i % 2 = 0 THEN hstore('channel', (ARRAY['web', 'slack'])[1 + i % 4 / 2]) END FROM generate_series(1, 70) i;
INSERT INTO public.message (conversation_id, role, content, parts, tokens_in, tokens_out, created_at) SELECT md5('c' || c)::uuid, (ARRAY['system', 'user', 'assistant', 'user', 'tool', 'assistant'])[k]::msg_role, (ARRAY['You are helpful.', 'How do I restart billing?', 'Restart the worker; then check the index.', 'Thanks! And who approves the budget?', '{"rows": 3}', 'Your manager approves the budget.'])[k] || CASE WHEN c % 5 = 0 THEN ' [' || c || ']' ELSE '' END, CASE k WHEN 5 THEN jsonb_build_object('type', 'tool_result', 'rows', c % 4) WHEN 3 THEN jsonb_build_array(jsonb_build_object('type', 'text', 'text', 'Restart'), jsonb_build_object('type', 'image', 'w', c)) END, CASE WHEN k IN (2, 4) THEN 10 + (c * k) % 90 END, CASE WHEN k IN (3, 6) THEN 20 + (c * k) % 200 END, timestamptz '2026-01-03 10:00+00' + c * interval '29 hours' + k * interval '47 seconds' FROM generate_series(1, 70) c, generate_series(1, 6) k WHERE (c + k) % 8 > 0 ORDER BY c, k;
INSERT INTO public."ToolCall" SELECT md5('t' || i)::uuid, md5('c' || (1 + i % 70))::uuid, (ARRAY['search', 'sql', 'http', 'mail.send'])[1 + i % 4], jsonb_build_object('q', (ARRAY['billing', 'budget', 'coffee'])[1 + i % 3], 'limit', i % 7, 'auth', 'tok' || i), CASE WHEN i % 5 > 0 THEN json_build_object('rows', i % 6, 'token', 'r' || i) END, CASE WHEN i % 6 > 0 THEN (i % 50) * interval '40 milliseconds' END, CASE WHEN i % 3 > 0 THEN ROW(i * 0.0015, (ARRAY['EUR', 'USD'])[1 + i % 2])::usage_cost END, i % 7 > 0, i % 3, timestamp '2026-01-05 00:00' + i * interval '9 hours 13 minutes' FROM generate_series(1, 160) i;
INSERT INTO public.event (at, tenant_id, actor, kind, payload, ip, mac, flags) SELECT timestamptz '2026-01-01 00:00+00' + i * interval '3 hours', (ARRAY['acme', 'globex', 'acme', 'umbrella'])[1 + i % 4], CASE WHEN i % 6 > 0 THEN md5('p' || (1 + i % 9))::uuid END, (ARRAY['login', 'search', 'export', 'consent.changed', 'error'])[1 + i % 5], jsonb_build_object('ms', i % 300, 'path', '/v1/' || (ARRAY['memories', 'chat'])[1 + i % 2], 'err', CASE WHEN i % 5 = 4 THEN 'E' || i % 3 END), ('10.' || i % 3 || '.' || i % 200 || '.7')::inet, CASE WHEN i % 4 = 0 THEN ('08:00:2b:01:02:' || lpad(to_hex(i % 256), 2, '0'))::macaddr END, (i % 16)::bit(4) FROM generate_series(1, 500) i;
INSERT INTO public.checkpoint SELECT 'thread-' || i % 7, CASE WHEN i % 4 = 0 THEN 'sub' ELSE '' END, to_char(i, 'FM0000'), CASE WHEN i > 9 THEN to_char(i - 9, 'FM0000') END, md5('p' || (1 + i % 9))::uuid, jsonb_build_object('v', 1, 'channel_values', jsonb_build_object('messages', i, 'step', i % 5)), jsonb_build_object('source', (ARRAY['loop', 'input'])[1 + i % 2], 'step', i % 12) FROM generate_series(1, 126) i;
INSERT INTO public.store (owner, prefix, key, value, hits, score, expires_at) SELECT md5('p' || (1 + i % 6))::uuid, (ARRAY['users.prefs', 'users.facts', 'cache'])[1 + i % 3], 'k-' || i, jsonb_build_object('n', i, 't', (ARRAY['a', 'b'])[1 + i % 2], 'list', jsonb_build_array(i, i * 2)), i % 13, CASE WHEN i % 4 > 0 THEN i * 1.25 END, CASE i % 5 WHEN 1 THEN timestamptz '2026-03-01 00:00+00' WHEN 2 THEN timestamptz '2090-01-01 00:00+00' END FROM generate_series(1, 120) i;
INSERT INTO public.job (id, owner, queue, state, priority, payload, attempts, run_at, last_error, parent_id) SELECT md5('j' || i)::uuid, md5('p' || (1 + i % 5))::uuid, (ARRAY['default', 'embed', 'mail'])[1 + i % 3], (ARRAY['queued', 'queued', 'running', 'done', 'failed'])[1 + i / 5 % 5]::job_state, i % 4, jsonb_build_object('doc', i, 'kind', (ARRAY['a', 'b'])[1 + i % 2]), i % 3, timestamptz '2026-04-01 00:00+00' + i * interval '50 minutes', CASE WHEN i / 5 % 5 = 4 THEN 'timeout after ' || i END, CASE WHEN i > 50 THEN md5('j' || (i - 50))::uuid END FROM generate_series(1, 100) i;
INSERT INTO public.api_key (tenant_id, hash, secret) VALUES ('acme', 'h1', 'HIDDENMARK'), ('globex', 'h2', 'HIDDENMARK');

CREATE VIEW mem.timeline AS SELECT m.id, m.title, m.kind, m.occurred_at, p.full_name AS author, (SELECT count(*) FROM mem.participant x WHERE x.memory_id = m.id) AS people FROM mem.memory m JOIN public.person p ON p.id = m.author_id;
CREATE VIEW mem.current_fact WITH (security_invoker = true) AS SELECT id, subject, predicate, object, confidence, lower(valid) AS since, upper(valid) AS until FROM mem.fact WHERE valid @> date '2024-06-01';
CREATE VIEW public.tool_usage AS SELECT t."toolName" AS tool, date_trunc('month', t."startedAt") AS month, count(*) AS calls, count(*) FILTER (WHERE NOT t."ok") AS failures, avg(extract(epoch FROM t."latency"))::numeric(10,4) AS latency, sum((t."cost").amount) AS cost FROM public."ToolCall" t GROUP BY 1, 2;
CREATE VIEW public.last_message AS SELECT DISTINCT ON (conversation_id) conversation_id, id, role, content, created_at FROM public.message ORDER BY conversation_id, created_at DESC, id DESC;
CREATE VIEW public.queue WITH (security_barrier) AS SELECT id, queue, state, priority, payload, attempts, run_at FROM public.job WHERE state IN ('queued', 'running') WITH CHECK OPTION;
CREATE VIEW public.prefs AS SELECT prefix, key, value, hits FROM public.store WHERE prefix = 'users.prefs';
CREATE RECURSIVE VIEW public.chart (id, full_name, depth, path) AS SELECT id, full_name, 0, ARRAY[full_name] FROM public.person WHERE manager_id IS NULL UNION ALL SELECT p.id, p.full_name, c.depth + 1, c.path || p.full_name FROM public.person p JOIN chart c ON p.manager_id = c.id;
CREATE MATERIALIZED VIEW mem.topic AS SELECT tenant_id, t AS tag, count(*)::integer AS n, max(occurred_at) AS latest FROM mem.memory, unnest(tags) t WHERE t IS NOT NULL AND deleted_at IS NULL GROUP BY 1, 2;
CREATE UNIQUE INDEX ON mem.topic (tenant_id, tag);
COMMENT ON TABLE mem.memory IS 'What agents remember';
COMMENT ON COLUMN mem.memory.salience IS 'between 0 and 1';
