-- The same on every machine: what looks random is taken from md5. What agents of ana, in her relationship with ben, are never to
-- see carries a marker.
CREATE FUNCTION pg_temp.pick(seed text, n integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT (('x' || substr(md5(seed), 1, 7))::bit(28)::integer) % n $$;
CREATE FUNCTION pg_temp.one(seed text, choices text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT choices[1 + (('x' || substr(md5(seed), 1, 7))::bit(28)::integer) % cardinality(choices)] $$;
CREATE FUNCTION pg_temp.mark(hidden boolean, id text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN hidden IS NOT FALSE THEN ' HIDDENMARK' || substr(md5(id), 1, 8) ELSE '' END $$;

INSERT INTO "Relationship"
SELECT 'rel-' || n, CASE WHEN n <= 2 THEN 'user-ana' ELSE 'user-a' || n END, CASE n WHEN 1 THEN 'user-ben' WHEN 2 THEN 'user-cleo' ELSE 'user-b' || n END,
  'ACTIVE', '2025-01-01 00:00:00+00'::timestamptz + n * interval '3 days'
FROM generate_series(1, 12) n;

-- Four sessions of each relationship; the last is active. And one of ana's that ben has not joined.
INSERT INTO "Session"
SELECT 'ses-' || n || '-' || k, r.id, r."userAId", r."userBId", CASE WHEN k < 4 THEN 4 ELSE 1 END, CASE WHEN k < 4 THEN 'COMPLETED' ELSE 'ACTIVE' END,
  CASE WHEN k > 1 THEN 'ses-' || n || '-' || k - 1 END, 'notes' || pg_temp.mark(n > 1, r.id || k),
  r."createdAt" + k * interval '7 days', CASE WHEN k < 4 THEN r."createdAt" + k * interval '7 days 2 hours' END
FROM generate_series(1, 12) n JOIN "Relationship" r ON r.id = 'rel-' || n CROSS JOIN generate_series(1, 4) k;
INSERT INTO "Session" (id, "relationshipId", "userAId", stage, status, notes) VALUES ('ses-1-solo', 'rel-1', 'user-ana', 0, 'ACTIVE', 'notes');

-- An open turn of each user in each active session, and two that are sealed.
INSERT INTO "Turn"
SELECT 'turn-' || s.id || '-' || u || '-' || k, s.id, u, CASE k WHEN 3 THEN 'I would like to talk about yesterday' ELSE 'HIDDENMARK' || substr(md5(s.id || u || k), 1, 8) || ' said' END,
  3, 'planning', NULL, NULL, CASE WHEN k < 3 THEN s."createdAt" + k * interval '5 minutes' END
FROM "Session" s CROSS JOIN LATERAL (VALUES (s."userAId"), (s."userBId")) AS v (u) CROSS JOIN generate_series(1, 3) k
WHERE s.status = 'ACTIVE' AND u IS NOT NULL;

INSERT INTO "SessionOutcome"
SELECT 'out-' || s.id || '-' || k, s.id, pg_temp.one('kind ' || s.id || k, ARRAY['agreement', 'insight', 'next step']),
  pg_temp.one('sum ' || s.id || k, ARRAY['we listen first', 'ten minutes each evening', 'ask before advice', 'a walk on sundays']) || pg_temp.mark(s."relationshipId" <> 'rel-1', s.id || k),
  s."completedAt"
FROM "Session" s CROSS JOIN generate_series(1, 2) k WHERE s.status = 'COMPLETED';

INSERT INTO "UserVessel"
SELECT 'uv-' || s.id || '-' || u, u, s.id FROM "Session" s CROSS JOIN LATERAL (VALUES (s."userAId"), (s."userBId")) AS v (u) WHERE u IS NOT NULL;

-- Whose content ana's agents may see, where the stage allows.
CREATE TEMP TABLE vessel AS
SELECT v.id, v."userId", s."createdAt", (v."userId" <> 'user-ana' OR s."relationshipId" <> 'rel-1') AS hidden FROM "UserVessel" v JOIN "Session" s ON s.id = v."sessionId";

INSERT INTO "UserEvent" (id, "vesselId", content, "createdAt")
SELECT 'evt-' || v.id || '-' || k, v.id, pg_temp.one('event ' || v.id || k, ARRAY['we argued about money', 'he was late again', 'she listened to me', 'nobody asked me', 'we laughed at dinner', 'I felt alone on the way home'])
  || pg_temp.mark(v.hidden, v.id || k), v."createdAt" + k * interval '9 minutes'
FROM vessel v CROSS JOIN generate_series(1, 5) k;
INSERT INTO "EmotionalReading" (id, "vesselId", emotion, intensity, "createdAt")
SELECT 'emo-' || v.id || '-' || k, v.id, pg_temp.one('emotion ' || v.id || k, ARRAY['sad', 'angry', 'calm', 'hopeful', 'afraid']) || pg_temp.mark(v.hidden, 'e' || v.id || k),
  1 + pg_temp.pick('intensity ' || v.id || k, 10), v."createdAt" + k * interval '11 minutes'
FROM vessel v CROSS JOIN generate_series(1, 3) k;
INSERT INTO "Need" (id, "vesselId", name, confirmed, "createdAt")
SELECT 'need-' || v.id || '-' || k, v.id, pg_temp.one('need ' || v.id || k, ARRAY['rest', 'to be heard', 'safety', 'closeness', 'autonomy', 'play']) || pg_temp.mark(v.hidden, 'n' || v.id || k),
  CASE k WHEN 1 THEN true WHEN 2 THEN pg_temp.pick('confirmed ' || v.id, 2) = 0 END, v."createdAt" + k * interval '13 minutes'
FROM vessel v CROSS JOIN generate_series(1, 3) k;
INSERT INTO "Boundary"
SELECT 'bound-' || v.id, v.id, pg_temp.one('boundary ' || v.id, ARRAY['not after ten', 'no shouting', 'not in front of the children']) || pg_temp.mark(v.hidden, 'b' || v.id), v."createdAt"
FROM vessel v;

INSERT INTO "SharedVessel" SELECT 'sv-' || substr(id, 5), id, "createdAt" FROM "Relationship";

-- Twelve contents of each relationship, six to each of the two. What a record says: granted, revoked, denied, pending, not active,
-- gone, none at all.
CREATE TEMP TABLE shared AS
SELECT 'content-' || substr(r.id, 5) || '-' || k AS id, r.id AS rel, k, CASE WHEN k % 2 = 0 THEN r."userAId" ELSE r."userBId" END AS source,
  CASE WHEN k % 2 = 0 THEN r."userBId" ELSE r."userAId" END AS addressee, (ARRAY['granted', 'granted', 'granted', 'granted', 'revoked', 'revoked', 'denied', 'pending', 'inactive', 'unknown', 'gone', 'none'])[k] AS how
FROM "Relationship" r CROSS JOIN generate_series(1, 12) k;
INSERT INTO "ConsentRecord"
SELECT 'rec-' || id, rel, source, addressee, CASE how WHEN 'denied' THEN 'DENIED' WHEN 'pending' THEN 'PENDING' ELSE 'GRANTED' END, '2025-02-01 00:00:00+00',
  CASE WHEN how = 'revoked' THEN '2025-03-01 00:00:00+00'::timestamptz END
FROM shared WHERE how NOT IN ('gone', 'none');
INSERT INTO "ConsentedContent" (id, "sharedVesselId", "sourceUserId", "addresseeId", "consentRecordId", kind, "transformedContent", "consentActive", "createdAt")
SELECT id, 'sv-' || substr(rel, 5), source, addressee, CASE WHEN how <> 'none' THEN 'rec-' || id END, CASE WHEN k <= 2 THEN 'need' ELSE 'reflection' END,
  pg_temp.one('content ' || id, ARRAY['I need quiet after work', 'I hear that it hurt', 'I would like to be asked', 'time with you matters to me'])
    || pg_temp.mark(rel <> 'rel-1' OR addressee <> 'user-ana' OR how <> 'granted', id),
  CASE how WHEN 'inactive' THEN false WHEN 'unknown' THEN NULL ELSE true END, '2025-02-01 00:00:00+00'::timestamptz + k * interval '1 hour'
FROM shared;

INSERT INTO "CommonGround"
SELECT 'ground-' || substr(r.id, 5) || '-' || k, 'sv-' || substr(r.id, 5), pg_temp.one('ground ' || r.id || k, ARRAY['both want rest', 'both want to be heard', 'both care for the children'])
  || pg_temp.mark(r.id <> 'rel-1', 'g' || r.id || k), k <= 3, CASE WHEN k <= 2 THEN true WHEN k = 3 THEN false END, r."createdAt" + k * interval '1 day'
FROM "Relationship" r CROSS JOIN generate_series(1, 4) k;
INSERT INTO "Agreement"
SELECT 'agree-' || substr(r.id, 5) || '-' || k, 'sv-' || substr(r.id, 5), pg_temp.one('agreement ' || r.id || k, ARRAY['no phones at dinner', 'a walk on sundays', 'we ask before we advise'])
  || pg_temp.mark(r.id <> 'rel-1' OR k > 3, 'a' || r.id || k), CASE WHEN k <= 3 THEN 'AGREED' ELSE 'PROPOSED' END, true, CASE WHEN k <= 3 THEN true WHEN k = 4 THEN false END, r."createdAt" + k * interval '2 days'
FROM "Relationship" r CROSS JOIN generate_series(1, 5) k;
INSERT INTO "MicroExperiment"
SELECT 'exp-' || substr(r.id, 5) || '-' || k, 'sv-' || substr(r.id, 5), pg_temp.one('experiment ' || r.id || k, ARRAY['one week of evening walks', 'a question before each answer'])
  || pg_temp.mark(r.id <> 'rel-1', 'x' || r.id || k), CASE WHEN k <= 2 THEN 'it helped' END, CASE WHEN k <= 2 THEN 'DONE' ELSE 'OPEN' END, r."createdAt" + k * interval '4 days'
FROM "Relationship" r CROSS JOIN generate_series(1, 4) k;

-- Of the syntheses only the planner sees any: that of its own session.
INSERT INTO "AISynthesis" SELECT 'syn-' || s.id, s.id, 'map of ' || s.id || pg_temp.mark(s.id <> 'ses-1-4', 'y' || s.id), s."createdAt" FROM "Session" s;

-- Contributed are those from 41 on: ten as they should be, two that name somebody, five withdrawn, three that nobody was asked about, and two
-- whose embeddings are still those of what the user wrote.
INSERT INTO "GlobalExperiment" (id, title, suggestion, origin, "optInActive", "anonymizedAt", "embeddedAt")
SELECT 'lib-' || k, pg_temp.one('title ' || k, ARRAY['evening check-in', 'listening in turns', 'a letter']) || m, pg_temp.one('suggestion ' || k, ARRAY['sit down for ten minutes', 'repeat what you heard', 'write before you speak']) || m,
  CASE WHEN k <= 40 THEN 'curated' ELSE 'contributed' END, CASE WHEN k <= 40 THEN NULL WHEN k <= 52 OR k > 60 THEN true WHEN k <= 57 THEN false END, CASE WHEN k BETWEEN 41 AND 50 OR k > 52 THEN '2025-04-01 00:00:00+00'::timestamptz END,
  CASE WHEN k <= 60 THEN '2025-04-01 00:01:00+00'::timestamptz WHEN k = 62 THEN '2025-03-31 23:59:00+00' END
FROM generate_series(1, 62) k CROSS JOIN LATERAL pg_temp.mark(k > 50, 'l' || k) AS m;

-- Embeddings of the texts: each word points somewhere, and the sum is scaled to length one.
CREATE FUNCTION pg_temp.embed(text) RETURNS double precision[] LANGUAGE sql IMMUTABLE AS $$
  WITH axes AS (
    SELECT d, coalesce(sum(get_byte(decode(md5(w), 'hex'), d) - 127.5), 0)::double precision AS v
    FROM generate_series(0, 7) d LEFT JOIN (SELECT DISTINCT w FROM regexp_split_to_table(lower(regexp_replace($1, 'HIDDENMARK[0-9a-f]{8}', '')), '[^a-z]+') w WHERE w <> '') words ON true GROUP BY d
  )
  SELECT array_agg(v / l ORDER BY d) FROM axes, (SELECT greatest(sqrt(sum(v * v)), 1) AS l FROM axes) n
$$;
DO $$
DECLARE
  vector text := (SELECT format_type(atttypid, -1) FROM pg_attribute WHERE attrelid = '"UserEvent"'::regclass AND attname = 'embedding');
  what   text[];
BEGIN
  FOREACH what SLICE 1 IN ARRAY ARRAY[['UserEvent', 'content'], ['EmotionalReading', 'emotion'], ['Need', 'name'], ['ConsentedContent', 'transformedContent'], ['GlobalExperiment', 'suggestion']] LOOP
    EXECUTE format('UPDATE %I SET embedding = %s', what[1], format(CASE vector WHEN 'cube' THEN 'cube(pg_temp.embed(%I))' ELSE 'pg_temp.embed(%I)::' || vector END, what[2]));
  END LOOP;
END $$;
DROP TABLE vessel, shared;
DROP FUNCTION pg_temp.embed(text), pg_temp.pick(text, integer), pg_temp.one(text, text[]), pg_temp.mark(boolean, text);
