-- count-memories
SELECT count(*) FROM memories;

-- count-two-tables
SELECT (SELECT count(*) FROM memories) AS m, (SELECT count(*) FROM people) AS p;

-- all-titles
SELECT id, title FROM memories ORDER BY id;

-- latest-twenty
SELECT id, title, occurred_at FROM memories ORDER BY occurred_at DESC, id LIMIT 20;

-- page-three
SELECT id FROM memories ORDER BY occurred_at, id LIMIT 10 OFFSET 20;

-- star
SELECT * FROM people;

-- star-with-alias
SELECT p.* FROM people AS p;

-- table-command
TABLE memory_participants;

-- point-lookup
SELECT title FROM memories WHERE id = 'd0000000-0000-4000-8000-000000000001';

-- point-lookup-hidden
SELECT title FROM memories WHERE id = 'd0000000-0000-4000-8000-000000000004'::uuid;

-- like
SELECT count(*) FROM memories WHERE title LIKE '%lake%';

-- ilike-all
SELECT count(*) FROM memories WHERE title ILIKE ALL (ARRAY['%a%', '%e%']);

-- in-list
SELECT id, role FROM memory_participants JOIN memories ON id = memory_id WHERE role IN ('author', 'voice');

-- between-dates
SELECT count(*) FROM memories WHERE occurred_at BETWEEN '2025-01-01' AND timestamptz '2025-03-01 00:00+00';

-- not-between
SELECT count(*) FROM memories WHERE NOT occurred_at BETWEEN '2025-01-01' AND '2025-12-31';

-- null-test
SELECT count(*) FROM memories WHERE metadata IS NULL;

-- null-test-and
SELECT count(*) FROM memories WHERE metadata IS NOT NULL AND title > 'M';

-- boolean-column
SELECT name FROM people WHERE is_self;

-- boolean-test
SELECT count(*) FROM people WHERE is_self IS NOT TRUE;

-- boolean-unknown
SELECT count(*) FROM people WHERE (consent_status = 'granted') IS UNKNOWN OR is_self;

-- boolean-literal
SELECT count(*) FROM people WHERE is_self = false;

-- distinct
SELECT DISTINCT role FROM memory_participants;

-- distinct-on
SELECT DISTINCT ON (person_id) person_id, memory_id, role FROM memory_participants ORDER BY person_id, memory_id;

-- group-by-text
SELECT metadata->>'mood' AS mood, count(*) FROM memories GROUP BY metadata->>'mood';

-- group-by-position
SELECT role, count(*) AS n FROM memory_participants GROUP BY 1 ORDER BY 2 DESC, 1;

-- group-by-having
SELECT person_id, count(*) FROM memory_participants GROUP BY person_id HAVING count(*) > 3;

-- group-by-key
SELECT m.id, m.title, count(l.person_id) FROM memories m LEFT JOIN memory_participants l ON l.memory_id = m.id GROUP BY m.id;

-- rollup
SELECT metadata->>'mood', metadata->>'place', count(*), grouping(metadata->>'mood') FROM memories GROUP BY ROLLUP (metadata->>'mood', metadata->>'place');

-- cube
SELECT role, person_id IS NULL, count(*) FROM memory_participants GROUP BY CUBE (role, person_id IS NULL);

-- grouping-sets
SELECT user_id, date_trunc('year', occurred_at AT TIME ZONE 'UTC') AS y, count(*) FROM memories GROUP BY GROUPING SETS ((user_id), (2), ());

-- inner-join
SELECT m.title, p.name FROM memories m JOIN memory_participants l ON l.memory_id = m.id JOIN people p ON p.id = l.person_id;

-- left-join
SELECT p.name, count(l.memory_id) FROM people p LEFT JOIN memory_participants l ON l.person_id = p.id GROUP BY p.name;

-- right-join
SELECT count(*), count(m.id) FROM memories m RIGHT JOIN memory_participants l ON l.memory_id = m.id AND m.title < 'N';

-- full-join
SELECT count(*), count(coalesce(m.id, p.id)) FROM memories m FULL JOIN people p ON p.id = m.id;

-- cross-join
SELECT count(*) FROM people a CROSS JOIN people b WHERE a.name < b.name AND NOT a.is_self;

-- natural-join
SELECT count(*) FROM (SELECT id AS memory_id FROM memories) m NATURAL JOIN memory_participants;

-- join-using
SELECT count(*) FROM memory_participants a JOIN memory_participants b USING (memory_id, role) WHERE a.person_id <> b.person_id;

-- join-alias
SELECT j.role, count(*) FROM (memory_participants l JOIN people p ON p.id = l.person_id) AS j GROUP BY j.role ORDER BY j.role;

-- comma-join
SELECT count(*) FROM memories m, memory_participants l WHERE m.id = l.memory_id AND l.role = 'author';

-- self-join
SELECT count(*) FROM memories a, memories b WHERE a.occurred_at::date = b.occurred_at::date AND a.id < b.id;

-- anti-join
SELECT count(*) FROM memories m WHERE NOT EXISTS (SELECT 1 FROM memory_participants l WHERE l.memory_id = m.id);

-- not-in
SELECT count(*) FROM memories WHERE id NOT IN (SELECT memory_id FROM memory_participants);

-- semi-join
SELECT name FROM people p WHERE EXISTS (SELECT FROM memory_participants l WHERE l.person_id = p.id AND role = 'voice');

-- in-subselect
SELECT count(*) FROM people WHERE id IN (SELECT person_id FROM memory_participants);

-- any-subselect
SELECT count(*) FROM memories WHERE occurred_at > ANY (SELECT coalesce(created_at, now()) FROM people);

-- all-subselect
SELECT id FROM memories WHERE occurred_at >= ALL (SELECT occurred_at FROM memories);

-- row-in-subselect
SELECT count(*) FROM memory_participants WHERE (memory_id, person_id) IN (SELECT m.id, p.id FROM memories m, people p);

-- scalar-subselect
SELECT title FROM memories WHERE occurred_at = (SELECT max(occurred_at) FROM memories);

-- correlated-subselect
SELECT p.name, (SELECT count(*) FROM memory_participants l WHERE l.person_id = p.id) AS n FROM people p;

-- array-subselect
SELECT p.id, ARRAY(SELECT l.memory_id FROM memory_participants l WHERE l.person_id = p.id ORDER BY 1) AS memories FROM people p;

-- derived-table
SELECT avg(n) FROM (SELECT count(*) AS n FROM memory_participants GROUP BY memory_id) x;

-- derived-table-nested
SELECT max(c) FROM (SELECT count(*) AS c FROM (SELECT person_id FROM memory_participants WHERE role = 'present') y GROUP BY person_id) x;

-- lateral
SELECT p.name, x.title FROM people p, LATERAL (SELECT m.title, m.id FROM memories m JOIN memory_participants l ON l.memory_id = m.id WHERE l.person_id = p.id ORDER BY m.occurred_at DESC, m.id LIMIT 1) x;

-- lateral-left
SELECT p.id, x.n FROM people p LEFT JOIN LATERAL (SELECT count(*) AS n FROM memory_participants l WHERE l.person_id = p.id) x ON true;

-- union
SELECT id FROM memories UNION SELECT person_id FROM memory_participants WHERE (role = 'voice') IS NOT TRUE;

-- union-all
SELECT 'm' AS kind, count(*) FROM memories UNION ALL SELECT 'p', count(*) FROM people;

-- union-ordered
SELECT title AS t FROM memories UNION SELECT name FROM people ORDER BY t LIMIT 50;

-- intersect
SELECT id FROM people INTERSECT SELECT person_id FROM memory_participants ORDER BY 1;

-- except
SELECT id FROM people WHERE name IS NOT NULL EXCEPT SELECT person_id FROM memory_participants;

-- except-all-nested
SELECT role FROM memory_participants EXCEPT ALL (SELECT role FROM memory_participants WHERE person_id IN (SELECT id FROM people WHERE is_self));

-- values
VALUES ((SELECT count(*) FROM memories), 'memories'), ((SELECT count(*) FROM people), 'people');

-- values-join
SELECT v.mood, count(m.id) FROM (VALUES ('calm'), ('sad')) AS v(mood) LEFT JOIN memories m ON m.metadata->>'mood' = v.mood GROUP BY v.mood;

-- cte
WITH recent AS (SELECT * FROM memories WHERE occurred_at > '2025-01-01') SELECT count(*) FROM recent;

-- cte-twice
WITH l AS (SELECT memory_id, count(*) AS n FROM memory_participants GROUP BY memory_id) SELECT a.n, count(*) FROM l a JOIN l b ON a.memory_id = b.memory_id GROUP BY a.n;

-- cte-materialized
WITH m AS MATERIALIZED (SELECT id, user_id FROM memories), n AS NOT MATERIALIZED (SELECT id FROM m) SELECT count(*) FROM n, m WHERE m.id = n.id;

-- cte-shadows
WITH memories AS (SELECT id, title FROM memories WHERE title < 'F') SELECT count(*), min(title) FROM memories;

-- cte-columns
WITH c(who, n) AS (SELECT person_id, count(*) FROM memory_participants GROUP BY person_id) SELECT n, count(who) FROM c GROUP BY n;

-- cte-nested
WITH a AS (WITH b AS (SELECT id FROM people) SELECT b.id FROM b) SELECT count(*) FROM a;

-- cte-in-subselect
SELECT count(*) FROM memories WHERE id IN (WITH x AS (SELECT memory_id FROM memory_participants WHERE role = 'author') SELECT memory_id FROM x);

-- recursive-numbers
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT i, (SELECT count(*) FROM memories WHERE occurred_at >= date '2024-03-01' + i * 90) FROM n;

-- recursive-graph
WITH RECURSIVE l AS MATERIALIZED (SELECT memory_id, person_id FROM memory_participants WHERE role IS NOT NULL), reach(person_id, d) AS (SELECT id, 0 FROM people WHERE is_self UNION SELECT b.person_id, d + 1 FROM reach r JOIN l a ON a.person_id = r.person_id JOIN l b ON b.memory_id = a.memory_id WHERE d < 2) SELECT count(*), max(d) FROM reach;

-- recursive-search
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i * 2 FROM n WHERE i < 40) SEARCH BREADTH FIRST BY i SET o SELECT i, (SELECT count(*) FROM people) FROM n ORDER BY o;

-- recursive-cycle
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT (i + 1) % 4 FROM n) CYCLE i SET again USING way SELECT i, again, (SELECT count(*) FROM memories) FROM n;

-- window-rank
SELECT id, rank() OVER (ORDER BY occurred_at, id) FROM memories;

-- window-partition
SELECT memory_id, person_id, row_number() OVER (PARTITION BY memory_id ORDER BY person_id) FROM memory_participants WHERE role IN ('author', 'present');

-- window-named
SELECT id, coalesce(lag(title) OVER w, lead(title) OVER w) FROM memories WINDOW w AS (ORDER BY occurred_at, id);

-- window-inherits
SELECT id, count(*) OVER (w ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM memories WINDOW w AS (ORDER BY occurred_at, id);

-- window-range
SELECT id, count(*) OVER (ORDER BY occurred_at RANGE BETWEEN '7 days' PRECEDING AND '7 days' FOLLOWING) FROM memories;

-- window-groups
SELECT id, first_value(coalesce(metadata->>'mood', '')) OVER (ORDER BY title, id GROUPS 1 PRECEDING) FROM memories;

-- window-filter
SELECT id, count(*) FILTER (WHERE metadata->>'mood' = 'sad') OVER (ORDER BY id) FROM memories;

-- window-in-subselect
SELECT title FROM (SELECT title, ntile(4) OVER (ORDER BY occurred_at, id) AS q FROM memories) x WHERE q = 4;

-- window-share
SELECT role, count(*) * 100 / sum(count(*)) OVER () FROM memory_participants GROUP BY role;

-- filter-aggregate
SELECT count(*) FILTER (WHERE role = 'author') AS authors, count(*) FILTER (WHERE role <> 'author') AS others FROM memory_participants;

-- distinct-aggregate
SELECT count(DISTINCT person_id), count(DISTINCT memory_id) FROM memory_participants;

-- ordered-aggregate
SELECT memory_id, string_agg(role, ',' ORDER BY role, person_id) FROM memory_participants GROUP BY memory_id;

-- array-aggregate
SELECT metadata->>'mood', array_agg(title ORDER BY id DESC) FROM memories GROUP BY 1;

-- percentile
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY occurred_at) FROM memories;

-- percentile-array
SELECT percentile_disc(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY title) FROM memories;

-- mode
SELECT mode() WITHIN GROUP (ORDER BY role) FROM memory_participants;

-- hypothetical-rank
SELECT rank('M'::text) WITHIN GROUP (ORDER BY title) FROM memories;

-- bool-aggregate
SELECT bool_and(is_self), bool_or(is_self), every(name IS NOT NULL) FROM people;

-- min-max
SELECT min(occurred_at), max(occurred_at), max(occurred_at) - min(occurred_at) FROM memories;

-- json-aggregate
SELECT coalesce(jsonb_object_agg(id, title), '{}') FROM memories;

-- json-build
SELECT jsonb_build_object('n', count(*), 'first', min(title)) FROM memories;

-- json-array-of-rows
SELECT jsonb_agg(to_jsonb(p) ORDER BY p.id) FROM people p;

-- json-path
SELECT count(*) FROM memories WHERE metadata @> '{"mood": "calm"}';

-- json-key
SELECT count(*) FROM memories WHERE (metadata ? 'stars') IS TRUE;

-- json-keys-any
SELECT count(*) FROM memories WHERE metadata ?| ARRAY['stars', 'place'] AND NOT metadata ?& ARRAY['stars', 'place'];

-- json-number
SELECT metadata->>'place', sum((metadata->>'stars')::int) FROM memories GROUP BY 1;

-- json-path-query
SELECT id, jsonb_path_query_array(metadata, '$.tags[*]') FROM memories WHERE metadata IS NOT NULL;

-- json-path-operator
SELECT count(*) FROM memories WHERE metadata @@ '$.stars > 3' OR metadata @@ '$.mood == "sad"';

-- json-path-exists
SELECT count(*) FROM memories WHERE jsonb_path_exists(metadata, '$.stars ? (@ > $n)', '{"n": 3}') IS NOT FALSE;

-- json-subscript
SELECT id, metadata['mood'], metadata['tags'][0] FROM memories;

-- json-elements
SELECT tag, count(*) FROM memories, jsonb_array_elements_text(metadata->'tags') AS tag GROUP BY tag;

-- json-each
SELECT e.key, count(*) FROM memories CROSS JOIN LATERAL jsonb_each(metadata) AS e(key, value) GROUP BY e.key;

-- json-record
SELECT x.mood, count(*) FROM memories, jsonb_to_record(metadata) AS x(mood text, stars int) WHERE x.stars >= 4 GROUP BY x.mood;

-- json-record-collate
SELECT min(x.mood) FROM memories, jsonb_to_record(metadata) AS x(mood text COLLATE "C");

-- json-delete
SELECT id, metadata - 'tags' - '{mood}'::text[] FROM memories WHERE metadata IS NOT NULL;

-- json-concatenation
SELECT id, coalesce(metadata, '{}') || jsonb_build_object('title', title) FROM memories;

-- json-set
SELECT jsonb_set(metadata, '{stars}', '0', true) FROM memories WHERE metadata->'stars' IS NOT NULL;

-- full-text
SELECT count(CASE WHEN to_tsvector('english', title || ' ' || body) @@ plainto_tsquery('english', 'lake') THEN 1 END) FROM memories;

-- full-text-rank
SELECT id, ts_rank(to_tsvector('english', body), q) AS r FROM memories, to_tsquery('english', 'laugh | rain') q WHERE to_tsvector('english', body) @@ q ORDER BY r DESC, id LIMIT 25;

-- full-text-headline
SELECT id, ts_headline('english', body, websearch_to_tsquery('english', 'water -storm')) FROM memories WHERE to_tsvector('english', body) @@ websearch_to_tsquery('english', 'water -storm') ORDER BY id;

-- regexp
SELECT count(*) FROM memories WHERE title ~* '^(walk|hike)' OR metadata IS NULL;

-- regexp-functions
SELECT regexp_replace(title, '[aeiou]', '', 'g') AS t, (regexp_match(title, '(\w+)$'))[1] FROM memories;

-- regexp-split
SELECT word, count(*) FROM memories, regexp_split_to_table(lower(title), '\s+') AS word GROUP BY word;

-- similar-to
SELECT count(*) FROM memories WHERE NOT title::varchar SIMILAR TO '(Walk|Hike)%';

-- like-escape
SELECT count(*) FROM memories WHERE title COLLATE "C" NOT LIKE '!%%' ESCAPE '!';

-- string-functions
SELECT upper(left(title, 3)), length(body), substr(title, 2, 3), split_part(title, ' ', 1), lpad(title, 5, '*'), md5(body) FROM memories;

-- sql-string-syntax
SELECT substring(title FROM 1 FOR 4), position('a' IN title), trim(BOTH ' ' FROM title), overlay(title PLACING 'X' FROM 1) COLLATE "C" FROM memories;

-- format
SELECT format('%s (%s)', title, coalesce(metadata->>'mood', 'no mood')) FROM memories;

-- concatenation
SELECT name || ': ' || consent_status FROM people;

-- collate
SELECT name FROM people ORDER BY name COLLATE "C", id LIMIT 15;

-- collate-compare
SELECT count(*) FROM people WHERE name COLLATE "C" < 'M' AND is_self IS FALSE;

-- date-trunc
SELECT date_trunc('month', occurred_at, 'UTC') AS month, count(*) FROM memories GROUP BY 1;

-- extract
SELECT extract(isodow FROM occurred_at AT TIME ZONE 'UTC') AS dow, count(*) FROM memories GROUP BY 1 ORDER BY dow;

-- interval
SELECT count(*) FROM memories WHERE occurred_at < timestamptz '2025-01-01 00:00+00' - INTERVAL '3 months';

-- interval-typmod
SELECT id, occurred_at + INTERVAL '90' MINUTE FROM memories ORDER BY id LIMIT 30;

-- overlaps
SELECT count(*) FROM memories WHERE (occurred_at, occurred_at + interval '1 day') OVERLAPS (timestamptz '2025-01-01 00:00+00', timestamptz '2025-02-01 00:00+00');

-- age
SELECT id, age(timestamptz '2026-01-01 00:00+00', occurred_at) FROM memories;

-- to-char
SELECT to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM') AS ym, count(*) FROM memories GROUP BY ym;

-- date-bin
SELECT date_bin('14 days'::interval, occurred_at, '2024-01-01 00:00+00') AS fortnight, count(*) FROM memories GROUP BY fortnight;

-- calendar
SELECT d::date, count(m.id) FROM generate_series(timestamptz '2025-07-01 00:00+00', '2025-07-10 00:00+00', '1 day') AS d LEFT JOIN memories m ON m.occurred_at >= d AND m.occurred_at < d + '1 day'::interval GROUP BY d ORDER BY d;

-- session-values
SELECT count(*), current_date IS NOT NULL, current_catalog IS NULL FROM memories;

-- case-searched
SELECT id, CASE WHEN metadata IS NULL THEN 'bare' WHEN (metadata->>'stars')::int > 3 THEN 'good' ELSE 'other' END FROM memories;

-- case-simple
SELECT CASE role WHEN 'author' THEN 1 WHEN 'voice' THEN 2 ELSE 3 END AS r, count(*) FROM memory_participants GROUP BY r;

-- case-in-aggregate
SELECT sum(CASE WHEN is_self THEN 1.5 ELSE 0 END) FROM people;

-- coalesce-nullif
SELECT coalesce(nullif(metadata->>'mood', 'sad'), 'none') AS mood, count(*) FROM memories GROUP BY 1;

-- greatest
SELECT greatest(max(title), 'A'), least(min(title), 'Z') FROM memories;

-- is-distinct-from
SELECT count(*) FROM memories WHERE metadata->>'mood' IS DISTINCT FROM (SELECT 'calm'::text);

-- is-not-distinct-from
SELECT count(*) FROM memories a JOIN memories b ON a.metadata->'stars' IS NOT DISTINCT FROM b.metadata->'stars' AND a.title = b.title;

-- float-arithmetic
SELECT count(*) * 0.5, count(*) / 2.0, -count(*), @ (count(*) - 10) FROM people;

-- round
SELECT round(avg((metadata->>'stars')::numeric(10, 2)), 3) FROM memories WHERE metadata->>'stars' IS NOT NULL;

-- bits
SELECT b'101' & b'110', x'1F', count(*) FROM memories;

-- arrays
SELECT count(*) FROM memories WHERE ARRAY[metadata->>'mood', title] && ARRAY['calm', 'sad'];

-- array-slice
SELECT (array_agg(title ORDER BY title, id))[1:3] FROM memories;

-- array-any
SELECT count(*) FROM people WHERE consent_status = ANY ('{granted,pending}'::text[]) AND name IS NOT NULL;

-- array-element
SELECT (string_to_array(name, ' '))[2] AS last, count(*) FROM people GROUP BY 1 ORDER BY last;

-- array-of-arrays
SELECT ARRAY[[min(id::text), max(id::text)], ['a', 'b']] FROM memories;

-- unnest-ordinality
SELECT t.n, count(*) FROM memories, unnest(string_to_array(title, ' ')) WITH ORDINALITY AS t(word, n) GROUP BY t.n;

-- rows-from
SELECT x.a, x.b, (SELECT count(*) FROM memories) FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['u', 'v'])) AS x(a, b);

-- function-in-from
SELECT count FROM generate_series(1, 2) AS g, (SELECT count(*) FROM people) AS x(count);

-- set-returning-in-list
SELECT id, generate_subscripts(string_to_array(name, ' '), 1) FROM people WHERE name IS NOT NULL;

-- row-comparison
SELECT count(*) FROM memories WHERE (occurred_at, id) > (timestamptz '2025-01-01 00:00+00', '00000000-0000-0000-0000-000000000000'::uuid);

-- row-constructor
SELECT ROW(m.id, m.title) FROM memories m WHERE m.title LIKE 'W%';

-- row-is-null
SELECT count(*) FROM memories m LEFT JOIN memory_participants l ON l.memory_id = m.id WHERE ROW(l.role, l.person_id) IS NULL;

-- whole-row
SELECT m FROM memory_participants m;

-- whole-row-count
SELECT count(p) FROM people p;

-- whole-row-field
SELECT (p).name FROM people AS p;

-- whole-row-json
SELECT row_to_json(x) FROM (SELECT id, title FROM memories) AS x;

-- whole-row-null
SELECT count(*) FROM memories m LEFT JOIN people p ON p.id = m.id WHERE p.* IS NULL;

-- tableoid
SELECT tableoid::regclass::text, count(*) FROM people GROUP BY tableoid;

-- only
SELECT count(*) FROM ONLY memories;

-- schema-qualified
SELECT public.people.name FROM public.people WHERE public.people.is_self IS TRUE;

-- quoted-names
SELECT "m"."title" AS "Title of it" FROM "public"."memories" AS "m" ORDER BY "Title of it", "m"."id" LIMIT 12;

-- operator-schema
SELECT count(*) FROM memories WHERE greatest(title, body) OPERATOR(pg_catalog.~~) 'W%';

-- order-using
SELECT title FROM memories ORDER BY title USING >, id LIMIT 7;

-- order-nulls
SELECT metadata->>'stars' AS s, id FROM memories ORDER BY s DESC NULLS LAST, id LIMIT 40;

-- order-by-expression
SELECT id FROM memories ORDER BY length(title), title DESC, id FETCH FIRST 9 ROWS ONLY;

-- with-ties
SELECT role FROM memory_participants ORDER BY role FETCH FIRST 1 ROWS WITH TIES;

-- limit-subselect
SELECT id FROM people ORDER BY id LIMIT (SELECT count(*) / 10 FROM people);

-- limit-null
SELECT id FROM people WHERE NOT is_self LIMIT NULL;

-- named-argument
SELECT id, make_interval(days => length(title)) FROM memories;

-- typed-literals
SELECT count(*), '1'::int4 + int '2', numeric '1.50', 'x'::varchar(3), date '2025-01-01' FROM memories;

-- regclass
SELECT 'memories'::regclass::text, count(*) FROM memories WHERE title <> '';

-- xml-element
SELECT xmlelement(NAME memory, xmlattributes(m.title AS title), m.metadata->>'mood')::text FROM memories m;

-- xml-forest
SELECT xmlforest(p.name, p.is_self AS self)::text FROM people p;

-- xml-aggregate
SELECT xmlserialize(CONTENT xmlagg(xmlelement(NAME p, id) ORDER BY id) AS text) FROM people;

-- xml-table
SELECT x.w, count(*) FROM memories, XMLTABLE('/r/w' PASSING (xmlelement(NAME r, xmlelement(NAME w, metadata->>'mood'))) COLUMNS w text PATH '.') AS x GROUP BY x.w;

-- statistics
SELECT corr(1, 1), regr_count(length(title), length(body)), var_pop(length(title)::numeric) FROM memories;

-- top-companions
WITH l AS MATERIALIZED (SELECT memory_id, person_id FROM memory_participants) SELECT p.name, count(*) AS together FROM l a JOIN l b ON b.memory_id = a.memory_id AND b.person_id <> a.person_id JOIN people p ON p.id = b.person_id WHERE a.person_id = (SELECT id FROM people WHERE is_self ORDER BY id LIMIT 1) GROUP BY p.id, p.name HAVING count(*) >= 2 ORDER BY together DESC, p.name LIMIT 10;

-- streaks
WITH days AS (SELECT DISTINCT (occurred_at AT TIME ZONE 'UTC')::date AS d FROM memories), runs AS (SELECT d, d - (row_number() OVER (ORDER BY d))::int AS run FROM days) SELECT min(d), count(*) FROM runs GROUP BY run HAVING count(*) > 3 ORDER BY 2 DESC, 1 LIMIT 5;

-- mood-pivot
SELECT to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY') AS y, count(*) FILTER (WHERE metadata->>'mood' = 'calm') AS calm, count(*) FILTER (WHERE metadata->>'mood' IN ('sad', 'angry')) AS low, round(100.0 * count(metadata) / nullif(count(*), 0), 1) FROM memories GROUP BY 1 ORDER BY 1;

-- gaps
SELECT x.id, x.gap FROM (SELECT id, occurred_at - lag(occurred_at) OVER (ORDER BY occurred_at, id) AS gap FROM memories) x WHERE x.gap > interval '2 days' AND x.gap IS NOT NULL;

-- duplicates
SELECT title, array_agg(id ORDER BY id) FROM memories GROUP BY title HAVING count(*) BETWEEN 2 AND 3;

-- everything-of-one
SELECT m.title, coalesce(x.names, ARRAY[]::text[]) FROM memories m LEFT JOIN LATERAL (SELECT array_agg(p.name ORDER BY p.name) AS names FROM memory_participants l JOIN people p ON p.id = l.person_id WHERE l.memory_id = m.id) x ON true WHERE m.id = 'd0000000-0000-4000-8000-000000000002';

-- never-with
SELECT p.name FROM people p WHERE p.id <> ALL (SELECT l.person_id FROM memory_participants l) AND NOT p.is_self;

-- sum-of-sums
SELECT sum(n::int) FROM (SELECT count(*) AS n FROM memories UNION ALL SELECT count(*) FROM people UNION ALL SELECT count(*) FROM memory_participants) t;

-- constants-only
SELECT 1 + 1 AS two, 'a' || 'b', true AND NOT false, NULL IS NULL;

-- empty-list
SELECT FROM people WHERE is_self;

-- vector-nearest
-- needs: vector
SELECT id FROM memories ORDER BY embedding <-> (SELECT embedding FROM memories WHERE id = 'd0000000-0000-4000-8000-000000000001'), id LIMIT 10;

-- vector-distance
-- needs: vector
SELECT a.id, a.embedding <-> b.embedding AS d FROM memories a, memories b WHERE b.id = 'd0000000-0000-4000-8000-000000000002' ORDER BY d, a.id LIMIT 5;
