-- The memories: four stacks, and some 280 memories in each of six tables, the same on every machine. Nothing here is
-- random: what looks so comes from md5 over a fixed seed and the row's number. Run as kernle_owner after schema.sql.
--
-- Every memory that the agent bella (si:bella_agent) cannot see, in whatever context, carries a marker: the word HIDDENMARK
-- and eight hex digits. A leak of any kind is found by searching the bytes a client got.

CREATE FUNCTION pg_temp.pick(key text, n integer) RETURNS integer LANGUAGE sql IMMUTABLE
  RETURN (('x' || substr(md5('kernle-1:' || key), 1, 8))::bit(32)::bigint % n)::integer;
CREATE FUNCTION pg_temp.one(key text, words text[]) RETURNS text LANGUAGE sql IMMUTABLE
  RETURN words[1 + pg_temp.pick(key, cardinality(words))];

INSERT INTO stacks VALUES ('ash', 'si:ash'), ('student_123', 'si:tutor_a'), ('mallory', 'si:mallory'), ('rex', 'si:rex');
INSERT INTO guardians VALUES
  ('ash', 'dog:bella', 'human:sean'), ('ash', 'human:kid_123', 'human:mira'), ('student_123', 'human:student_123', 'human:parent_456'),
  ('mallory', 'dog:bella', 'human:mallory'); -- in a stack of her own, where she is nobody's guardian elsewhere
INSERT INTO aliases (stack_id, subject, alias) VALUES
  ('ash', 'dog:bella', 'Bellissima'), ('ash', 'human:kid_123', 'HIDDENMARK Tobias'), ('student_123', 'human:student_123', 'HIDDENMARK Ida');
INSERT INTO privacy_contexts (id, stack_id, context_id, participants, default_access_grants) VALUES
  ('context:1', 'ash', 'ctx:bella_health', '["human:sean", "si:bella_agent"]', '["human:sean", "si:bella_agent", "ctx:bella_health"]'),
  ('context:2', 'ash', 'ctx:dog_park', '["si:bella_agent", "si:rex"]', '[]'),
  ('context:3', 'student_123', 'ctx:student_123_academic', '["human:parent_456", "si:school_agent", "role:tutor"]', '[]'),
  ('context:4', 'mallory', 'ctx:bella_health', '["si:mallory", "human:mallory"]', '["*"]'), -- another stack's context of the same name
  ('context:5', 'ash', 'ctx:broken', '{"human:sean": true}', '["*"'); -- what is no list has nobody in it
INSERT INTO consent_records (id, stack_id, grantor, grantee, scope, granted_at, revoked_at) VALUES
  ('consent:1', 'ash', 'human:sean', 'si:bella_agent', '*', '2026-01-05', NULL),                     -- for dog:bella, as its guardian
  ('consent:2', 'ash', 'human:sean', 'human:sean', '*', '2026-01-05', NULL),
  ('consent:3', 'ash', 'human:sean', 'role:vet', 'ctx:bella_health', '2026-01-06', NULL),            -- through a scope
  ('consent:4', 'ash', 'human:mira', 'si:bella_agent', '*', '2026-01-07', '2026-02-01'),             -- revoked
  ('consent:5', 'ash', 'human:noor', '*', '*', '2026-01-08', NULL),                                  -- to everybody
  ('consent:6', 'student_123', 'human:parent_456', 'si:reading_specialist', 'ctx:student_123_academic', '2026-01-09', NULL),
  ('consent:7', 'student_123', 'human:parent_456', 'human:parent_456', '*', '2026-01-09', NULL),
  ('consent:8', 'mallory', 'human:mira', 'si:bella_agent', '*', '2026-01-10', NULL),                 -- about another stack
  ('consent:9', 'ash', 'human:mira', 'si:bella_agent_2', '*', '2026-01-10', NULL),                   -- to another agent of a longer name
  ('consent:10', 'ash', 'human:lou', 'si:bella_agent', 'episode:0042', '2026-01-11', NULL),          -- about one memory
  ('consent:11', 'ash', 'vet:dr_smith', 'human:sean', '*', '2026-01-12', NULL),                      -- of who tells: what it has told may be told to these
  ('consent:12', 'ash', 'vet:dr_smith', 'si:bella_agent', '*', '2026-01-12', NULL), ('consent:13', 'ash', 'vet:dr_smith', 'si:new_vet', '*', '2026-01-12', NULL);

-- What the lists hold: ids as they are, look-alikes, and lists of several.
CREATE TEMP TABLE lists (n integer PRIMARY KEY, ids text[]);
INSERT INTO lists SELECT row_number() OVER (), string_to_array(l, ' ') FROM unnest(ARRAY[
  '', '', 'human:sean', 'si:bella_agent', 'ctx:bella_health', '*', 'human:sean si:bella_agent ctx:bella_health', 'role:vet', 'ctx:student_123_academic', 'si:bella_agent_2',
  'si:bella', 'si:bella%', 'si:_ella_agent', 'SI:bella_agent', 'si:béllа_agent', 'ctx:bella', 'ctx:dog_park', 'si:reading_specialist ctx:student_123_academic', 'human:sean''', '"si:bella_agent"',
  'si:rex *', 'human:parent_456']) l;
CREATE TEMP TABLE subjects (n integer PRIMARY KEY, ids text[]);
INSERT INTO subjects SELECT row_number() OVER (), string_to_array(l, ' ') FROM unnest(ARRAY[
  '', '', '', 'dog:bella', 'dog:bella', 'human:kid_123', 'human:noor', 'dog:bella human:noor', 'dog:bella human:kid_123', 'si:bella_agent', 'si:bella_agent dog:bella', 'human:student_123', 'human:lou', 'human:mira',
  'dog:bell', 'dog:bella_']) l;

CREATE TEMP TABLE memories AS
SELECT i, k, CASE WHEN i % 20 = 19 THEN 'mallory' WHEN i % 4 = 3 THEN 'student_123' ELSE 'ash' END AS stack_id,
       pg_temp.one('what ' || k, '{Heart murmur,Long walk,Limp after play,New food,Fractions,Reading aloud,Bad night,First snow,Visit to the vet,Lost collar}')
         || ', ' || pg_temp.one('how ' || k, '{calm,restless,better than last week,to be watched,told twice,no follow-up}') || ', ' || i AS content,
       pg_temp.one('source ' || k, ARRAY[NULL, NULL, 'human:sean', 'human:parent_456', 'si:rex', 'vet:dr_smith']) AS source_entity,
       (SELECT ids FROM subjects WHERE n = 1 + pg_temp.pick('subjects ' || k, 16)) AS subject_ids,
       (SELECT ids FROM lists WHERE n = 1 + pg_temp.pick('grants ' || k, 22)) AS access_grants,
       CASE WHEN pg_temp.pick('evidence ' || k, 3) = 0 THEN '{human:mira,human:sean}'::text[] ELSE '{}' END AS consent_grants, -- evidence counts for nothing
       timestamp '2026-01-01 08:00' + i * interval '1 hour' AS created_at,
       NULL::integer AS told_from
FROM generate_series(1, 260) i, format('memory %s', i) k;

-- The cases of the README, by their ids.
INSERT INTO memories VALUES
  (1001, '', 'ash', 'Bella has a heart murmur', 'vet:dr_smith', '{dog:bella}', '{human:sean,si:bella_agent,ctx:bella_health}', '{human:sean}', '2026-02-01', NULL),
  (1002, '', 'ash', 'Vet notes of the care team', NULL, '{dog:bella}', '{ctx:bella_health}', '{}', '2026-02-02', NULL),
  (1003, '', 'ash', 'What I keep to myself', NULL, '{}', '{}', '{}', '2026-02-03', NULL),
  (1004, '', 'ash', 'Heart murmurs in small breeds need exercise monitoring', NULL, '{}', '{*}', '{}', '2026-02-04', NULL),
  (1005, '', 'ash', 'What kid_123 said, granted to all without consent', NULL, '{human:kid_123}', '{*}', '{}', '2026-02-05', NULL),
  (1006, '', 'ash', 'Dog park talk', NULL, '{}', '{ctx:dog_park}', '{}', '2026-02-06', NULL),
  (1007, '', 'student_123', 'Student struggling with algebra concepts', NULL, '{human:student_123}', '{ctx:student_123_academic,si:reading_specialist}', '{}', '2026-02-07', NULL),
  (1008, '', 'mallory', 'In a context of the same name', NULL, '{}', '{ctx:bella_health}', '{}', '2026-02-08', NULL),
  -- What si:rex told si:ash: of two, once in the hearing of si:bella_agent; and once what was granted further than it was told.
  (1009, '', 'rex', 'The park is closed on Mondays', NULL, '{}', '{si:ash,si:bella_agent}', '{}', '2026-02-09', NULL),
  (1010, '', 'rex', 'Where I hide my bones', NULL, '{}', '{si:ash}', '{}', '2026-02-10', NULL),
  (1011, '', 'ash', 'Rex says the park is closed on Mondays', 'si:rex', '{}', '{si:bella_agent}', '{}', '2026-02-11', 1009),
  (1012, '', 'ash', 'Rex says where the bones are', 'si:rex', '{}', '{si:bella_agent,human:sean}', '{}', '2026-02-12', 1010);

-- The rule once more, in other words than the policy's: what si:bella_agent may see in some context or none.
CREATE TEMP TABLE seen AS
SELECT m.i FROM memories m
WHERE (m.access_grants && '{si:bella_agent,*}'
       OR m.stack_id = 'ash' AND m.access_grants && '{ctx:bella_health,ctx:dog_park}')
  AND (m.told_from IS NULL OR m.told_from IN (SELECT o.i FROM memories o WHERE o.access_grants && '{si:bella_agent,*}'))
  AND m.subject_ids <@ CASE m.stack_id
        WHEN 'ash' THEN CASE WHEN m.i = 42 THEN '{si:bella_agent,dog:bella,human:noor,human:sean,human:lou}'::text[] ELSE '{si:bella_agent,dog:bella,human:noor,human:sean}'::text[] END
        WHEN 'mallory' THEN '{si:bella_agent,human:mira}'::text[]
        ELSE '{si:bella_agent}'::text[] END;
UPDATE memories m SET content = 'HIDDENMARK' || substr(md5('mark' || m.i), 1, 8) || ' ' || m.content WHERE NOT EXISTS (SELECT FROM seen s WHERE s.i = m.i);

CREATE FUNCTION pg_temp.fill(target text, prefix text, cast_to text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format($f$
    INSERT INTO %1$I (id, stack_id, content, source_entity, subject_ids, access_grants, consent_grants, created_at, told_from)
    SELECT %2$L || ':' || lpad(i::text, 4, '0'), stack_id, content, source_entity, %3$s, created_at, %2$L || ':' || told_from FROM memories ORDER BY i $f$,
    target, prefix, CASE cast_to WHEN 'array' THEN 'subject_ids, access_grants, consent_grants'
      WHEN 'jsonb' THEN 'to_jsonb(subject_ids), to_jsonb(access_grants), to_jsonb(consent_grants)'
      ELSE 'to_jsonb(subject_ids)::text, to_jsonb(access_grants)::text, to_jsonb(consent_grants)::text' END);
END $$;
SELECT pg_temp.fill('episodes', 'episode', 'text'), pg_temp.fill('beliefs', 'belief', 'text'), pg_temp.fill('notes', 'note', 'text'), pg_temp.fill('raw_entries', 'raw', 'text'),
       pg_temp.fill('episodes_array', 'episode', 'array'), pg_temp.fill('episodes_jsonb', 'episode', 'jsonb');

-- What older versions of the application, and a careless hand, have left: nobody but the stack's owner sees these.
INSERT INTO episodes (id, stack_id, content, subject_ids, access_grants)
SELECT 'episode:bad_' || row_number() OVER (), 'ash', 'HIDDENMARK' || substr(md5('bad' || coalesce(s, '') || coalesce(g, '')), 1, 8) || ' malformed', s, g
FROM (VALUES (NULL, '["*"]'), ('', '["*"]'), ('{}', '["*"]'), ('null', '["*"]'), ('"si:bella_agent"', '["*"]'), ('["si:bella_agent"', '["*"]'), ('[null]', '["*"]'), ('[["si:bella_agent"]]', '["*"]'),
  ('[1]', '["*"]'), ('si:bella_agent', '["*"]'), ('[]', NULL), ('[]', ''), ('[]', '"*"'), ('[]', '{"*": 1}'), ('[]', '*'), ('[]', '["*"'), ('[]', '[["*"]]'), ('[]', 'null'), ('[]', '["si:bella_agent" "*"]')) v (s, g);
INSERT INTO episodes_array (id, stack_id, content, subject_ids, access_grants)
SELECT 'episode:bad_' || row_number() OVER (), 'ash', 'HIDDENMARK' || substr(md5('bad' || coalesce(s::text, '') || coalesce(g::text, '')), 1, 8) || ' malformed', s, g
FROM (VALUES (NULL::text[], '{*}'::text[]), ('{NULL}', '{*}'), ('{si:bella_agent,NULL}', '{*}'), ('{}', NULL), ('{}', '{NULL}'), ('{}', '{"[\"*\"]"}')) v (s, g);
INSERT INTO episodes_jsonb (id, stack_id, content, subject_ids, access_grants)
SELECT 'episode:bad_' || row_number() OVER (), 'ash', 'HIDDENMARK' || substr(md5('bad' || coalesce(s, '') || coalesce(g, '')), 1, 8) || ' malformed', s::jsonb, g::jsonb
FROM (VALUES (NULL, '["*"]'), ('{}', '["*"]'), ('null', '["*"]'), ('"si:bella_agent"', '["*"]'), ('[null]', '["*"]'), ('[["si:bella_agent"]]', '["*"]'), ('[1]', '["*"]'), ('[]', NULL), ('[]', '"*"'), ('[]', '{"*": 1}'),
  ('[]', '[["*"]]'), ('[]', 'null')) v (s, g);

DROP TABLE seen, memories, subjects, lists;
DROP FUNCTION pg_temp.pick(text, integer), pg_temp.one(text, text[]), pg_temp.fill(text, text, text);
