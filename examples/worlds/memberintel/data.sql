-- The brain's content: some 1,100 entries of one shared corpus and four users, the same on every machine. Nothing here is
-- random: what looks so comes from md5 over a fixed seed and the row's number. Run as memberintel_owner after schema.sql.
--
-- What agents of the first user may never see carries a marker: HIDDENMARK and eight hex digits in texts and JSON, 77 and
-- four digits in numbers. That is every value of the rows of others, and of visible rows the keys that are not on the
-- list (author, path) and values of the wrong type. The content of visible rows has BODYMARK in every line but the first:
-- it may be received where an entry is fetched by its id, and nowhere else.

CREATE FUNCTION pg_temp.pick(key text, n integer) RETURNS integer LANGUAGE sql IMMUTABLE
  RETURN (('x' || substr(md5('memberintel-1:' || key), 1, 8))::bit(32)::bigint % n)::integer;
CREATE FUNCTION pg_temp.one(key text, words text[]) RETURNS text LANGUAGE sql IMMUTABLE
  RETURN words[1 + pg_temp.pick(key, cardinality(words))];
CREATE FUNCTION pg_temp.ident(key text) RETURNS uuid LANGUAGE sql IMMUTABLE
  RETURN md5('memberintel-1:' || key)::uuid;
CREATE FUNCTION pg_temp.mark(word text, key text) RETURNS text LANGUAGE sql IMMUTABLE
  RETURN word || substr(md5('mark ' || key), 1, 8);

CREATE TEMP TABLE shelves (tenant text, collection text, entries integer);
INSERT INTO shelves VALUES
  ('global', 'playbooks', 300), ('global', 'hive_docs', 200), ('global', 'benchmarks', 80),
  ('11111111-1111-4111-8111-111111111111', 'soul', 10), ('11111111-1111-4111-8111-111111111111', 'bible', 30), ('11111111-1111-4111-8111-111111111111', 'memories', 120),
  ('22222222-2222-4222-8222-222222222222', 'soul', 10), ('22222222-2222-4222-8222-222222222222', 'bible', 30), ('22222222-2222-4222-8222-222222222222', 'memories', 160),
  ('33333333-3333-4333-8333-333333333333', 'bible', 20), ('33333333-3333-4333-8333-333333333333', 'memories', 70),
  -- Tenants that almost are one that shows.
  ('Global', 'playbooks', 10), ('global ', 'playbooks', 10), ('', 'playbooks', 10), (NULL, 'playbooks', 10), ('11111111', 'memories', 10);

INSERT INTO brain_entries (id, tenant_id, collection, title, category, last_reviewed, content)
SELECT pg_temp.ident(k), s.tenant, s.collection, t, c, date '2025-01-01' + pg_temp.pick('reviewed ' || k, 540),
       '# ' || t || e'\n\n'
         || pg_temp.one('a ' || k, '{Ask before you suggest,Start with the numbers,Look at last quarter first,Leave room for a no,Write the offer down,Send it on a Tuesday}') || ' ' || m || e'\n'
         || pg_temp.one('b ' || k, '{Three sites did this and kept their members,The median site answers within a day,It took two weeks to show,Nobody complained,The price did not matter}') || ' ' || m
FROM shelves s, generate_series(1, s.entries) i,
  format('entry %s %s %s', coalesce(s.tenant, 'nobody'), s.collection, i) k,
  concat(pg_temp.one('verb ' || k, '{Winning back,Welcoming,Pricing,Asking,Measuring,Teaching,Keeping}'), ' ',
         pg_temp.one('noun ' || k, '{lapsed members,new members,the yearly plan,for feedback,churn,a cohort,the quiet ones}'), ' ', i) t,
  pg_temp.one('category ' || k, '{retention,onboarding,pricing,content,community}') c,
  pg_temp.mark('BODYMARK', k) m;

-- Three entries with fixed keys, for the README and the tour.
INSERT INTO brain_entries (id, tenant_id, collection, title, category, last_reviewed, content) VALUES
  ('b0000000-0000-4000-8000-000000000001', 'global', 'playbooks', 'The first thirty days', 'onboarding', '2026-05-01',
   e'# The first thirty days\n\nWrite to a new member on the first day, the third and the tenth. BODYMARK0001\nAsk one question in each letter. BODYMARK0001'),
  ('b0000000-0000-4000-8000-000000000002', '11111111-1111-4111-8111-111111111111', 'bible', 'How we talk', 'community', '2026-04-02',
   e'# How we talk\n\nNo exclamation marks. BODYMARK0002\nWe say members, never users. BODYMARK0002'),
  ('b0000000-0000-4000-8000-000000000003', '22222222-2222-4222-8222-222222222222', 'bible', 'Numbers of the second user', 'pricing', '2026-04-03',
   e'# Numbers of the second user\n\nMonthly income and the plan to sell. BODYMARK0003');

-- What ingest wrote down. Some of it is of another type than whoever reads it would think; author and path are not for anybody.
UPDATE brain_entries b SET metadata = CASE pg_temp.pick('shape ' || b.id, 40)
    WHEN 0 THEN NULL
    WHEN 1 THEN 'null'::jsonb
    WHEN 2 THEN jsonb_build_array(h)
    WHEN 3 THEN to_jsonb(h)
    WHEN 4 THEN to_jsonb(n)
    ELSE jsonb_build_object(
      'title', CASE pg_temp.pick('title ' || b.id, 12) WHEN 0 THEN 'null'::jsonb WHEN 1 THEN to_jsonb(n) WHEN 2 THEN jsonb_build_object('text', h, 'author', h) ELSE to_jsonb(b.title) END,
      'category', CASE pg_temp.pick('category ' || b.id, 12) WHEN 0 THEN 'null'::jsonb WHEN 1 THEN jsonb_build_array(h) ELSE to_jsonb(b.category) END,
      'last_reviewed', CASE pg_temp.pick('last ' || b.id, 12) WHEN 0 THEN 'null'::jsonb WHEN 1 THEN 'true'::jsonb WHEN 2 THEN to_jsonb(n) ELSE to_jsonb(b.last_reviewed::text) END,
      'author', h, 'path', 'internal/' || h || '.md')
    || CASE WHEN pg_temp.pick('url ' || b.id, 3) > 0 THEN jsonb_build_object('url', CASE pg_temp.pick('urls ' || b.id, 12) WHEN 0 THEN 'null'::jsonb WHEN 1 THEN jsonb_build_object('path', h) ELSE to_jsonb('https://kb.example/' || b.id) END) ELSE '{}' END
    || CASE WHEN pg_temp.pick('summary ' || b.id, 3) > 0 THEN jsonb_build_object('summary', CASE pg_temp.pick('summaries ' || b.id, 12) WHEN 0 THEN 'null'::jsonb WHEN 1 THEN to_jsonb(n) ELSE to_jsonb('In short: ' || lower(b.title)) END) ELSE '{}' END
    || CASE WHEN pg_temp.pick('more ' || b.id, 4) = 0 THEN jsonb_build_object('Title', h, 'title ', h, 'reviewer', h, 'embedding', jsonb_build_array(n, n)) ELSE '{}' END
  END
FROM (SELECT id, pg_temp.mark('HIDDENMARK', id::text) AS h, 770000 + pg_temp.pick('number ' || id, 10000) AS n FROM brain_entries) x
WHERE x.id = b.id;

UPDATE brain_entries SET metadata = jsonb_build_object('title', title, 'category', category, 'last_reviewed', last_reviewed, 'url', 'https://kb.example/first-thirty-days',
  'summary', 'Three letters, three questions.', 'author', pg_temp.mark('HIDDENMARK', 'author'), 'path', 'playbooks/' || pg_temp.mark('HIDDENMARK', 'path') || '.md')
WHERE id = 'b0000000-0000-4000-8000-000000000001';

-- Of rows that are not the first user's and not shared, everything is marked.
UPDATE brain_entries SET title = title || ' ' || h, category = h, content = replace(content, 'BODYMARK', 'HIDDENMARK') || h,
  metadata = CASE WHEN jsonb_typeof(metadata) = 'object' THEN metadata || jsonb_build_object('title', title || ' ' || h, 'summary', h, 'url', 'https://kb.example/' || h, 'category', h) ELSE metadata END
FROM (SELECT id AS hidden, pg_temp.mark('HIDDENMARK', id::text) AS h FROM brain_entries
      WHERE tenant_id IS NULL OR tenant_id NOT IN ('global', '11111111-1111-4111-8111-111111111111')) x
WHERE id = x.hidden;
