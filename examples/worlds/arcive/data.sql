-- The archive's content: 3 users, some 2,500 memories and 400 people, the same on every machine. Nothing here is random:
-- what looks so comes from md5 over a fixed seed and the row's number. Run as arcive_owner after schema.sql.
--
-- Every row that agents of the first user may not see carries a marker: the word HIDDENMARK and eight hex digits in its
-- text and JSON, 77 and four digits in its numbers. A leak of any kind is found by searching the bytes a client got.

CREATE FUNCTION pg_temp.pick(key text, n integer) RETURNS integer LANGUAGE sql IMMUTABLE
  RETURN (('x' || substr(md5('arcive-1:' || key), 1, 8))::bit(32)::bigint % n)::integer;
CREATE FUNCTION pg_temp.one(key text, words text[]) RETURNS text LANGUAGE sql IMMUTABLE
  RETURN words[1 + pg_temp.pick(key, cardinality(words))];
CREATE FUNCTION pg_temp.ident(key text) RETURNS uuid LANGUAGE sql IMMUTABLE
  RETURN md5('arcive-1:' || key)::uuid;

CREATE TEMP TABLE users (n integer, id uuid, people integer, memories integer);
INSERT INTO users VALUES
  (1, '11111111-1111-4111-8111-111111111111', 200, 1500),
  (2, '22222222-2222-4222-8222-222222222222', 120, 700),
  (3, '33333333-3333-4333-8333-333333333333', 60, 300);

-- People: about seven of ten have granted. Null, and words the policy does not know, count as not granted.
INSERT INTO people (id, user_id, name, is_self, created_at)
SELECT pg_temp.ident(format('self %s', u.n)), u.id, format('Self %s', u.n), true, '2024-01-01 08:00+00'
FROM users u;

INSERT INTO people (id, user_id, name, consent_status, created_at)
SELECT pg_temp.ident(k), u.id,
       pg_temp.one('first ' || k, '{Ada,Amir,Anouk,Bela,Chiara,Dario,Edda,Emil,Farah,Georg,Hana,Igor,Ines,Jonas,Kaja,Levi,Lina,Marek,Mira,Nadim,Noor,Olga,Pavel,Quentin,Rosa,Samir,Selma,Tariq,Uma,Viktor,Wanda,Yara,Zoe}')
         || ' ' || pg_temp.one('last ' || k, '{Abel,Brandt,Costa,Dahl,Eriksen,Fontaine,Gruber,Haddad,Ivanova,Jensen,Kovacs,Lindt,Moreau,Novak,Okafor,Petrov,Quist,Rossi,Sato,Tanaka,Usman,Varga,Weber,Young,Zeller}')
         || ' ' || i,
       CASE WHEN s < 70 THEN 'granted' WHEN s < 84 THEN 'pending' WHEN s < 94 THEN 'revoked' WHEN s < 96 THEN NULL
            WHEN s < 98 THEN 'unknown' WHEN s < 99 THEN 'Granted' ELSE 'granted ' END,
       timestamptz '2024-01-01 08:00+00' + pg_temp.pick('created ' || k, 525600) * interval '1 minute'
FROM users u, generate_series(1, u.people) i, format('person %s %s', u.n, i) k, pg_temp.pick('status ' || k, 100) s;

-- Three people and five memories with fixed keys, for the README and the tour.
INSERT INTO people (id, user_id, name, consent_status, created_at) VALUES
  ('a11ce000-0000-4000-8000-000000000001', '11111111-1111-4111-8111-111111111111', 'Alice', 'granted', '2024-02-01 09:00+00'),
  ('be000000-0000-4000-8000-000000000002', '11111111-1111-4111-8111-111111111111', 'Ben', 'pending', '2024-02-02 09:00+00'),
  ('ca51a000-0000-4000-8000-000000000003', '11111111-1111-4111-8111-111111111111', 'Carla', 'revoked', '2024-02-03 09:00+00');

INSERT INTO memories (id, user_id, title, body, metadata, occurred_at)
SELECT pg_temp.ident(k), u.id,
       pg_temp.one('opening ' || k, '{Breakfast,Walk,Phone call,Concert,Dinner,Train ride,Museum visit,Rehearsal,Hike,Game night,Doctor visit,Garden work,Birthday,Night shift,Market,Funeral,Wedding,Lesson}')
         || ' ' || pg_temp.one('where ' || k, '{in Porto,in the harbour,at the station,by the river,in the old town,on the roof,at the clinic,in the park,at school,in the mountains,on the ferry,in the kitchen,near the bridge,at the cinema}'),
       pg_temp.one('a ' || k, '{We laughed a lot,It rained all day,Nobody was on time,The soup was far too hot,We talked about the flat,I was tired and happy,There was music everywhere,The letter came at last,I took forty pictures,We argued about money,It was quieter than usual,The dog stole the bread}')
         || '. ' || pg_temp.one('b ' || k, '{Afterwards we walked home,I want to remember the light,The tickets are in the blue box,Next time earlier,The address is on the fridge,It took two hours longer,Somebody forgot a coat,We promised to write,The coffee was good,The keys were in the other bag}') || '.',
       CASE WHEN pg_temp.pick('bare ' || k, 25) > 0 THEN jsonb_strip_nulls(jsonb_build_object(
         'mood', pg_temp.one('mood ' || k, '{calm,happy,sad,proud,tired,angry,curious}'),
         'stars', CASE WHEN pg_temp.pick('rated ' || k, 10) > 0 THEN 1 + pg_temp.pick('stars ' || k, 5) END,
         'place', pg_temp.one('place ' || k, '{Porto,Lisbon,Ghent,Turin,Oslo,Gdansk,home,work}'),
         'tags', jsonb_build_array(pg_temp.one('tag ' || k, '{family,work,food,travel,music,health}'), pg_temp.one('tag2 ' || k, '{2024,2025,photo,voice,letter}')))) END,
       timestamptz '2024-03-01 06:00+00' + pg_temp.pick('time ' || k, 900000) * interval '1 minute' + i * interval '1 second'
FROM users u, generate_series(1, u.memories) i, format('memory %s %s', u.n, i) k;

INSERT INTO memories (id, user_id, title, body, metadata, occurred_at) VALUES
  ('d0000000-0000-4000-8000-000000000001', '11111111-1111-4111-8111-111111111111', 'Sunrise at the lake', 'Nobody else was up. The water was like glass.',
   '{"mood": "calm", "stars": 5, "place": "Lake Iseo", "tags": ["travel", "photo"]}', '2025-07-04 05:10+00'),
  ('d0000000-0000-4000-8000-000000000002', '11111111-1111-4111-8111-111111111111', 'Rowing on the lake', 'Alice rowed all the way to the island and told me about her new job.',
   '{"mood": "happy", "stars": 4, "place": "Lake Iseo", "tags": ["travel", "family"]}', '2025-07-05 10:00+00'),
  ('d0000000-0000-4000-8000-000000000003', '11111111-1111-4111-8111-111111111111', 'Storm over the lake', 'We watched the lightning from the porch until the lights went out.',
   '{"mood": "curious", "stars": 3, "place": "Lake Iseo", "tags": ["travel", "family"]}', '2025-07-05 21:30+00'),
  ('d0000000-0000-4000-8000-000000000004', '11111111-1111-4111-8111-111111111111', 'A quarrel at the lake', 'Ben said things about his family that he asked me to keep.',
   '{"mood": "sad", "stars": 1, "place": "Lake Iseo", "tags": ["family"]}', '2025-07-06 18:00+00'),
  ('d0000000-0000-4000-8000-000000000005', '11111111-1111-4111-8111-111111111111', 'The last evening at the lake', 'Carla and Alice cooked for everybody.',
   '{"mood": "happy", "stars": 5, "place": "Lake Iseo", "tags": ["food"]}', '2025-07-07 19:00+00');
INSERT INTO memory_participants (memory_id, person_id, role) VALUES
  ('d0000000-0000-4000-8000-000000000001', pg_temp.ident('self 1'), 'author'),
  ('d0000000-0000-4000-8000-000000000002', pg_temp.ident('self 1'), 'author'),
  ('d0000000-0000-4000-8000-000000000002', 'a11ce000-0000-4000-8000-000000000001', 'present'),
  ('d0000000-0000-4000-8000-000000000003', pg_temp.ident('self 1'), 'author'),
  ('d0000000-0000-4000-8000-000000000004', 'be000000-0000-4000-8000-000000000002', 'present'),
  ('d0000000-0000-4000-8000-000000000005', 'a11ce000-0000-4000-8000-000000000001', 'present'),
  ('d0000000-0000-4000-8000-000000000005', 'ca51a000-0000-4000-8000-000000000003', 'mentioned');

-- Participants: none for one memory in seven, up to five otherwise, the user among them more often than not.
INSERT INTO memory_participants (memory_id, person_id, role)
SELECT DISTINCT ON (1, 2) pg_temp.ident(k),
       CASE WHEN j = 1 AND pg_temp.pick('self in ' || k, 3) > 0 THEN pg_temp.ident(format('self %s', u.n))
            ELSE pg_temp.ident(format('person %s %s', u.n, 1 + pg_temp.pick(format('who %s %s', j, k), u.people))) END,
       pg_temp.one(format('role %s %s', j, k), '{present,mentioned,voice,pictured}')
FROM users u, generate_series(1, u.memories) i, format('memory %s %s', u.n, i) k, generate_series(1, pg_temp.pick('company ' || k, 6)) j
WHERE pg_temp.pick('alone ' || k, 100) >= 2
ORDER BY 1, 2, j;

-- Links that dangle, and a few to another user's people.
INSERT INTO memory_participants (memory_id, person_id, role)
SELECT pg_temp.ident(k), pg_temp.ident('gone ' || k), 'mentioned'
FROM users u, generate_series(1, u.memories, 40) i, format('memory %s %s', u.n, i) k
UNION ALL
SELECT pg_temp.ident(k), pg_temp.ident(format('person 2 %s', 1 + pg_temp.pick('foreign ' || k, 120))), 'mentioned'
FROM generate_series(7, 1500, 75) i, format('memory 1 %s', i) k;

-- Who was there is in the text as well.
UPDATE memories m SET body = m.body || ' With ' || w.names || '.'
FROM (SELECT p.memory_id, string_agg(q.name, ', ' ORDER BY q.name) AS names
      FROM memory_participants p JOIN people q ON q.id = p.person_id JOIN memories x ON x.id = p.memory_id AND x.user_id = q.user_id
      WHERE NOT q.is_self AND q.id::text !~ '-4000-8000-00000000000[123]$' GROUP BY 1) w
WHERE w.memory_id = m.id;

-- The rule, written down once more and in other words than the policy's: what agents of the first user may see.
CREATE TEMP TABLE seen_people AS
SELECT id FROM people WHERE user_id = '11111111-1111-4111-8111-111111111111' AND consent_status = 'granted';
CREATE TEMP TABLE seen_memories AS
SELECT m.id FROM memories m
WHERE m.user_id = '11111111-1111-4111-8111-111111111111'
  AND (SELECT count(*) FROM memory_participants p WHERE p.memory_id = m.id)
    = (SELECT count(*) FROM memory_participants p JOIN people q ON q.id = p.person_id WHERE p.memory_id = m.id AND q.consent_status = 'granted');

-- Markers. Edges are hidden from agents altogether, so all of them carry one.
UPDATE people p SET name = p.name || ' HIDDENMARK' || substr(md5(p.id::text), 1, 8)
WHERE NOT EXISTS (SELECT FROM seen_people s WHERE s.id = p.id);
UPDATE memories m SET
  title = m.title || ' HIDDENMARK' || h, body = 'HIDDENMARK' || h || ' ' || m.body,
  metadata = jsonb_build_object('mood', 'HIDDENMARK' || h, 'stars', 770000 + pg_temp.pick('stars of ' || m.id, 10000),
    'place', 'HIDDENMARK' || h || ' ' || coalesce(m.metadata->>'place', 'nowhere'), 'tags', jsonb_build_array('HIDDENMARK' || h, 'photo'))
FROM memories x, substr(md5(x.id::text), 1, 8) h
WHERE x.id = m.id AND NOT EXISTS (SELECT FROM seen_memories s WHERE s.id = m.id);
UPDATE memory_participants p SET role = p.role || ' HIDDENMARK' || substr(md5(p.memory_id::text || p.person_id::text), 1, 8)
WHERE NOT EXISTS (SELECT FROM seen_memories s WHERE s.id = p.memory_id) OR NOT EXISTS (SELECT FROM seen_people s WHERE s.id = p.person_id);

-- Embeddings, of the text as it now is.
CREATE TEMP TABLE embeddings AS
WITH words AS MATERIALIZED (
  SELECT DISTINCT m.id, w, decode(md5(w), 'hex') AS h
  FROM memories m, regexp_split_to_table(lower(regexp_replace(m.title || ' ' || m.body, 'HIDDENMARK[0-9a-f]{8}', '', 'g')), '[^a-z]+') w WHERE w <> ''
), axes AS MATERIALIZED (
  SELECT id, d, sum(get_byte(h, d) - 127.5)::double precision AS v FROM words, generate_series(0, 7) d GROUP BY 1, 2
)
SELECT a.id, array_agg(a.v / l.length ORDER BY a.d) AS v
FROM axes a JOIN (SELECT id, greatest(sqrt(sum(v * v)), 1) AS length FROM axes GROUP BY 1) l USING (id) GROUP BY 1;
DO $$
DECLARE vector text := (SELECT format_type(atttypid, -1) FROM pg_attribute WHERE attrelid = 'memories'::regclass AND attname = 'embedding');
BEGIN
  EXECUTE format('UPDATE memories m SET embedding = %s FROM embeddings e WHERE e.id = m.id',
    CASE vector WHEN 'cube' THEN 'cube(e.v)' ELSE 'e.v::' || vector END);
END $$;

-- Edges between memories of one user that follow each other.
INSERT INTO memory_edges (from_id, to_id, weight)
SELECT a.id, b.id, 770000 + pg_temp.pick(format('edge %s %s', a.id, b.id), 10000)
FROM (SELECT id, user_id, row_number() OVER (PARTITION BY user_id ORDER BY occurred_at, id) AS n FROM memories) a
JOIN (SELECT id, user_id, row_number() OVER (PARTITION BY user_id ORDER BY occurred_at, id) AS n FROM memories) b
  ON b.user_id = a.user_id AND b.n IN (a.n + 1, a.n + 7);

DROP TABLE embeddings, seen_people, seen_memories, users;
DROP FUNCTION pg_temp.pick(text, integer), pg_temp.one(text, text[]), pg_temp.ident(text);
