-- must be answered
-- Django
SELECT "django_content_type"."id", "django_content_type"."app_label", "django_content_type"."model" FROM "django_content_type" WHERE ("django_content_type"."app_label" = 'legal' AND "django_content_type"."model" = 'hearing') LIMIT 21;
SELECT "auth_user"."id", "auth_user"."username", "auth_user"."first_name", "auth_user"."last_name", "auth_user"."is_staff", "auth_user"."is_active", "auth_user"."date_joined" FROM "auth_user" WHERE "auth_user"."id" = 6 LIMIT 21;
SELECT COUNT(*) AS "__count" FROM "legal_matter" WHERE ("legal_matter"."status" IN ('open', 'stayed') AND NOT ("legal_matter"."lead_id" IS NULL));
SELECT "legal_matter"."office", "legal_matter"."year", "legal_matter"."number", "legal_matter"."title", "legal_matter"."status", "legal_matter"."history", "legal_matter"."opened", "legal_matter"."budget", "legal_matter"."doc" FROM "legal_matter" WHERE UPPER("legal_matter"."title"::text) LIKE UPPER('%okoro%') ORDER BY "legal_matter"."year" DESC, "legal_matter"."number" ASC LIMIT 10;
SELECT (1) AS "a" FROM "legal_matter" WHERE ("legal_matter"."office" = 'NOR' AND "legal_matter"."lead_id" = 6) LIMIT 1;
SELECT "legal_matter"."status", COUNT(*) AS "n", SUM("legal_matter"."budget") AS "b" FROM "legal_matter" GROUP BY "legal_matter"."status" HAVING COUNT(*) > 1 ORDER BY "n" DESC, "legal_matter"."status";
SELECT "legal_person"."id", "legal_person"."name", COUNT("legal_party"."role") AS "roles", MAX("legal_party"."share") AS "m" FROM "legal_person" LEFT OUTER JOIN "legal_party" ON ("legal_person"."id" = "legal_party"."person_id") GROUP BY "legal_person"."id" ORDER BY "roles" DESC, "legal_person"."id" ASC;
SELECT "legal_task"."id", "legal_task"."title", "legal_task"."due", T3."title" AS "parent" FROM "legal_task" LEFT OUTER JOIN "legal_task" T3 ON ("legal_task"."parent_id" = T3."id") WHERE ("legal_task"."content_type_id" = 1 AND "legal_task"."object_id" IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)) ORDER BY "legal_task"."id";
SELECT DISTINCT "auth_group"."name" FROM "auth_group" INNER JOIN "auth_user_groups" ON ("auth_group"."id" = "auth_user_groups"."group_id") INNER JOIN "auth_user" U ON (U."id" = "auth_user_groups"."user_id") WHERE U."is_active" ORDER BY 1;
SELECT "legal_hearing"."id", "legal_hearing"."room", "legal_hearing"."during" FROM "legal_hearing" WHERE "legal_hearing"."during" && '[2024-03-03 00:00:00+00:00,2024-03-09 00:00:00+00:00)'::tstzrange ORDER BY lower("legal_hearing"."during");
SELECT "legal_timeentry"."user_id", DATE_TRUNC('month', "legal_timeentry"."worked" AT TIME ZONE 'UTC') AS "m", SUM("legal_timeentry"."spent") AS "s" FROM "legal_timeentry" GROUP BY 1, 2 ORDER BY 1, 2;
SELECT "django_admin_log"."id", "django_admin_log"."action_time", "django_admin_log"."object_repr", "django_content_type"."model" FROM "django_admin_log" LEFT OUTER JOIN "django_content_type" ON ("django_admin_log"."content_type_id" = "django_content_type"."id") ORDER BY "django_admin_log"."action_time" DESC LIMIT 10;
SELECT COUNT(*) FROM (SELECT DISTINCT "legal_document"."office" AS "c1", "legal_document"."year" AS "c2", "legal_document"."number" AS "c3" FROM "legal_document") subquery;
DECLARE "_django_curs_140_sync_1" NO SCROLL CURSOR WITH HOLD FOR SELECT "legal_matter"."ref" FROM "legal_matter" ORDER BY 1; FETCH 5 FROM "_django_curs_140_sync_1"; CLOSE "_django_curs_140_sync_1";
SELECT "legal_matter"."ref", (SELECT U0."title" FROM "legal_document" U0 WHERE (U0."office" = ("legal_matter"."office") AND U0."year" = ("legal_matter"."year") AND U0."number" = ("legal_matter"."number")) ORDER BY U0."filed" DESC LIMIT 1) AS "latest", EXISTS(SELECT 1 AS "a" FROM "legal_hearing" U0 WHERE (U0."office" = "legal_matter"."office" AND U0."year" = "legal_matter"."year" AND U0."number" = "legal_matter"."number") LIMIT 1) AS "heard" FROM "legal_matter" ORDER BY 1;
SELECT "legal_matter"."ref", ("legal_matter"."doc" #> '{court,name}') AS "court", ("legal_matter"."doc" -> 'court') ->> 'room' AS "room" FROM "legal_matter" WHERE ("legal_matter"."doc" #> '{court,name}') = '"High"'::jsonb ORDER BY 1;
SELECT "legal_matter"."ref", ts_rank("legal_matter"."search", plainto_tsquery('simple'::regconfig, 'claim')) AS "rank" FROM "legal_matter" WHERE "legal_matter"."search" @@ (plainto_tsquery('simple'::regconfig, 'claim')) ORDER BY "rank" DESC, 1 LIMIT 5;
UPDATE "legal_person" SET "note" = 'Called' WHERE "legal_person"."id" = 8;
BEGIN; UPDATE "legal_matter" SET "title" = CONCAT("legal_matter"."title", ' (2)') WHERE "legal_matter"."status" = 'open'; SELECT ref, title, history FROM legal_matter ORDER BY ref; ROLLBACK;
BEGIN; UPDATE legal_matter SET status = 'closed', opened = daterange(lower(opened), '2024-12-31') WHERE parent_number IS NOT NULL RETURNING ref, status, history, opened; ROLLBACK;
BEGIN; UPDATE legal_matter m SET budget = budget * 1.1, doc = jsonb_set(doc, '{reviewed}', 'true') FROM auth_user u WHERE u.id = m.lead_id AND u.username = 'user6' RETURNING m.ref, m.budget, m.doc->'reviewed', u.first_name; ROLLBACK;
-- Keys, collations, domains, composite types
SELECT office, year, number, title FROM legal_matter WHERE (office, year, number) IN (('NOR', 2023, 4), ('NOR', 2022, 6), ('SOU', 2024, 5), ('HQ', 2022, 3)) ORDER BY 3;
SELECT * FROM legal_matter WHERE (office, year, number) > ('NOR', 2022, 30) ORDER BY office, year, number LIMIT 4;
SELECT code, name, code || '|', length(code), octet_length(code::text), code = 'NOR  ' FROM legal_office ORDER BY code;
SELECT count(*), min(id), min(name) = max(name) AS same FROM legal_person GROUP BY name ORDER BY count(*) DESC, min(id);
SELECT name FROM legal_person WHERE name = 'müller 3' OR name = 'OKORO 2' ORDER BY id;
SELECT DISTINCT ON (name) name, id FROM legal_person ORDER BY name, id;
SELECT id, (home).city, (home).zip, (home) IS NULL AS none FROM legal_person ORDER BY id;
SELECT (home).city AS city, count(*) FROM legal_person WHERE home IS NOT NULL GROUP BY (home).city ORDER BY 1;
SELECT p.id, f.kind, f.number, f.best FROM legal_person p, unnest(p.phones) AS f (kind, number, best) ORDER BY 1, 2;
SELECT p.id, (p.phones[1]).number, cardinality(p.phones) FROM legal_person p WHERE (p.phones[1]).best ORDER BY 1;
SELECT id FROM legal_person WHERE ROW('home', '555-9', true)::phone = ANY (phones) OR phones @> ARRAY[ROW('work', '555-16', false)::phone] ORDER BY 1;
SELECT person_id, (contact).*, contact FROM legal_party WHERE contact IS NOT NULL ORDER BY 1, 2 LIMIT 20;
SELECT id, row_to_json(home) AS home, to_jsonb(phones) AS phones FROM legal_person ORDER BY id LIMIT 10;
SELECT history, status = ANY (history) AS again, history || status AS all, array_position(history, 'open') FROM legal_matter ORDER BY ref;
SELECT s, count(*) FROM legal_matter, unnest(history || status) AS s GROUP BY s ORDER BY s;
SELECT e.v, count(m.ref) FROM unnest(enum_range(NULL::matter_state)) WITH ORDINALITY AS e (v, n) LEFT JOIN legal_matter m ON m.status = e.v GROUP BY e.v, e.n ORDER BY e.n;
SELECT status, min(status) OVER (), max(status) OVER (), status > 'open' FROM legal_matter ORDER BY ref;
SELECT user_id, desk, trunc(desk), desk & 'ff:ff:ff:00:00:00:00:00'::macaddr8 AS vendor, shifts, lower(shifts), shifts @> 12 AS noon, range_merge(shifts) FROM legal_employee ORDER BY user_id;
SELECT id, pages, upper(pages) - lower(pages) AS span, (SELECT sum(upper(r) - lower(r)) FROM unnest(pages) AS r) AS n, flags, flags & B'000111' AS low, bit_count(flags), get_bit(flags, 5) FROM legal_document ORDER BY filed;
SELECT id, xpath('/doc/p/text()', body)::text AS p, (xpath('/doc/@no', body))[1]::text::int AS no, body IS DOCUMENT AS ok FROM legal_document WHERE body IS NOT NULL ORDER BY filed;
SELECT id, encode(digest, 'hex'), length(digest), substring(digest FROM 1 FOR 4) FROM legal_document WHERE digest IS NOT NULL ORDER BY filed LIMIT 12;
SELECT id, embargo, isempty(embargo), upper_inf(embargo), embargo @> timestamptz '2024-02-01 00:00+00', lower(embargo) - interval '1 month' FROM legal_document ORDER BY filed;
SELECT range_agg(during), min(lower(during)), max(upper(during)) FROM legal_hearing;
SELECT room, count(*), range_agg(during) AS taken, tstzmultirange(tstzrange('2024-03-05 00:00+00', '2024-03-06 00:00+00')) - range_agg(during) AS free FROM legal_hearing GROUP BY room ORDER BY room;
SELECT opened, lower(opened), upper(opened), opened * daterange('2023-06-01', '2023-12-31') AS within, opened -|- daterange('2024-06-01', NULL) AS next FROM legal_matter WHERE NOT isempty(opened) ORDER BY ref;
SELECT budget, budget::numeric, budget / 2, budget > '10000'::money, to_char(budget::numeric, 'FM999G999D00') FROM legal_matter WHERE budget IS NOT NULL ORDER BY ref;
SELECT justify_interval(sum(spent::interval)), avg(spent), max(seconds), extract(epoch FROM sum(spent::interval)) / 3600 AS hours FROM legal_timeentry;
SELECT id, estimate, make_interval(mins => 90) > estimate AS short, due - estimate AS start_by, age(due, timestamptz '2024-04-10 00:00+00') FROM legal_task WHERE estimate IS NOT NULL ORDER BY id;
SELECT path, split_part(path, '/', 2) AS root, string_to_array(trim(leading '/' FROM path), '/')::int[] AS ids FROM legal_matter WHERE path ~ '^/[0-9]+/' ORDER BY path;
SELECT ref, title FROM legal_matter WHERE path LIKE '/1%' ORDER BY path;
-- Trees
WITH RECURSIVE t AS (SELECT id, parent_id, title, 0 AS depth, ARRAY[id] AS trail FROM legal_task WHERE parent_id IS NULL UNION ALL SELECT c.id, c.parent_id, c.title, t.depth + 1, trail || c.id FROM legal_task c JOIN t ON c.parent_id = t.id) SELECT depth, count(*), max(trail) FROM t GROUP BY depth ORDER BY depth;
WITH RECURSIVE up (id, parent_id, n) AS (SELECT id, parent_id, 1 FROM legal_task UNION ALL SELECT up.id, p.parent_id, n + 1 FROM up JOIN legal_task p ON p.id = up.parent_id) SELECT id, max(n) FROM up GROUP BY id ORDER BY id;
WITH RECURSIVE m AS (SELECT office, year, number, parent_office, parent_year, parent_number, ref FROM legal_matter WHERE parent_number IS NULL UNION SELECT c.office, c.year, c.number, c.parent_office, c.parent_year, c.parent_number, c.ref FROM legal_matter c JOIN m ON (c.parent_office, c.parent_year, c.parent_number) = (m.office, m.year, m.number)) SEARCH DEPTH FIRST BY ref SET o CYCLE ref SET looped USING seen SELECT ref, looped, o FROM m ORDER BY o;
SELECT * FROM legal_tree ORDER BY trail;
SELECT t.depth, count(*), max(array_length(t.trail, 1)) FROM legal_tree t JOIN legal_matter m USING (office, year, number) WHERE m.status <> 'closed' GROUP BY t.depth ORDER BY 1;
-- Views
SELECT * FROM legal_open ORDER BY ref;
SELECT lead, count(*) FROM legal_open_barrier WHERE since < '2024-01-01' GROUP BY lead ORDER BY lead;
SELECT month, sum(entries), sum(spent), sum(billed_seconds) FROM legal_billing GROUP BY ROLLUP (month) ORDER BY month;
SELECT ref, title, status FROM legal_entry WHERE status = 'open' ORDER BY ref;
SELECT o.ref, b.month, b.spent FROM legal_open o JOIN legal_billing b USING (office, year, number) ORDER BY 1, 2;
-- Functions, aggregates
SELECT matter_ref(office, year, number) = ref, label(m) FROM legal_matter m ORDER BY ref;
SELECT m.label FROM legal_matter m ORDER BY m.ref;
SELECT label(legal_matter.*) FROM legal_matter ORDER BY 1;
-- needs: row security
SELECT ref, title FROM search_matters('claim') ORDER BY ref;
-- needs: row security
SELECT ref FROM search_matters(q => 'okoro', most => 3) ORDER BY ref;
SELECT status, first(title ORDER BY ref) FROM legal_matter GROUP BY status ORDER BY status;
SELECT first(title) OVER (PARTITION BY status ORDER BY ref) FROM legal_matter ORDER BY ref;
-- Analysts
SELECT office, year, grouping(office, year), count(*), array_agg(number ORDER BY number) FROM legal_matter GROUP BY CUBE (office, year) ORDER BY office NULLS LAST, year NULLS LAST;
WITH hours AS (SELECT office, year, number, user_id, sum(seconds) / 3600.0 AS h FROM legal_timeentry GROUP BY 1, 2, 3, 4) SELECT m.ref, u.username, round(h.h, 2), rank() OVER (PARTITION BY m.ref ORDER BY h.h DESC, u.id) AS r, round(h.h / sum(h.h) OVER (PARTITION BY m.ref), 3) AS part FROM hours h JOIN legal_matter m USING (office, year, number) LEFT JOIN auth_user u ON u.id = h.user_id ORDER BY 1, 4;
SELECT m.ref, l.id, l.during FROM legal_matter m CROSS JOIN LATERAL (SELECT id, during FROM legal_hearing h WHERE (h.office, h.year, h.number) = (m.office, m.year, m.number) ORDER BY during LIMIT 1) l ORDER BY 1;
SELECT percentile_cont(ARRAY[0.25, 0.5, 0.9]) WITHIN GROUP (ORDER BY seconds), mode() WITHIN GROUP (ORDER BY user_id), percentile_disc(0.5) WITHIN GROUP (ORDER BY worked) FROM legal_timeentry;
SELECT worked, sum(seconds) OVER (ORDER BY worked RANGE BETWEEN interval '7 days' PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM legal_timeentry ORDER BY worked, id;
SELECT d::date, count(t.id) FROM generate_series('2024-01-01'::date, '2024-02-15', '7 days') d LEFT JOIN legal_timeentry t ON t.worked >= d AND t.worked < d + interval '7 days' GROUP BY d ORDER BY d;
SELECT tableoid::regclass, count(*) FROM legal_timeentry GROUP BY 1 ORDER BY 1;
SELECT count(*), sum(seconds) FROM legal_timeentry_h1;
SELECT user_id, count(*) FROM legal_timeentry_h1_old GROUP BY 1 ORDER BY 1;
SELECT key, count(*), jsonb_agg(DISTINCT jsonb_typeof(value)) FROM legal_matter, jsonb_each(doc) GROUP BY key ORDER BY key;
SELECT ref, jsonb_path_query_array(doc, '$.amounts[*] ? (@ > 20)'), doc @? '$.court ? (@.room == 2)', (SELECT sum(x::numeric) FROM jsonb_array_elements_text(doc->'amounts') AS x) FROM legal_matter ORDER BY ref;
SELECT s.id, s.summary FROM legal_share s ORDER BY s.id;
SELECT name, body FROM legal_template WHERE office IS NULL OR office = 'NOR' ORDER BY id;
SELECT g.ward_id, w.name, g.guardian_id, p.name, g.valid FROM legal_guardian g JOIN legal_person w ON w.id = g.ward_id LEFT JOIN legal_person p ON p.id = g.guardian_id ORDER BY 1, 3;
SELECT p.id FROM legal_person p WHERE NOT EXISTS (SELECT FROM legal_party y WHERE y.person_id = p.id) ORDER BY 1;
SELECT p.id FROM legal_person p WHERE p.id NOT IN (SELECT person_id FROM legal_document_subjects) ORDER BY 1;
SELECT d.title, array_agg(p.name ORDER BY p.id) FROM legal_document d JOIN legal_document_subjects s ON s.document_id = d.id JOIN legal_person p ON p.id = s.person_id GROUP BY d.id, d.title ORDER BY d.id;
(SELECT 'person' AS kind, id FROM legal_person ORDER BY id LIMIT 3) UNION ALL (SELECT 'hearing', id FROM legal_hearing ORDER BY id DESC LIMIT 3) EXCEPT SELECT 'person', 1 ORDER BY 1, 2;
SELECT "t0"."id", "t0"."title", "t1"."data" FROM "public"."legal_task" AS "t0" LEFT JOIN LATERAL (SELECT COALESCE(JSONB_AGG("__prisma_data__"), '[]') AS "data" FROM (SELECT JSONB_BUILD_OBJECT('id', "t2"."id", 'title', "t2"."title") AS "__prisma_data__" FROM (SELECT "t3".* FROM "public"."legal_task" AS "t3" WHERE "t0"."id" = "t3"."parent_id" ORDER BY "t3"."id" ASC) AS "t2") AS "t4") AS "t1" ON TRUE ORDER BY "t0"."id" ASC LIMIT 10;
COPY (SELECT ref, title, budget FROM legal_matter ORDER BY ref) TO STDOUT WITH (FORMAT csv, HEADER);
COPY legal_hearing (id, room, during) TO STDOUT;
PREPARE q (char(3), int) AS SELECT ref FROM legal_matter WHERE office = $1 AND number > $2 ORDER BY 1; EXECUTE q ('NOR', 20); EXECUTE q ('SOU', 0); DEALLOCATE q;
-- Writes
BEGIN; INSERT INTO legal_hearing (office, year, number, room, during, judge) SELECT office, year, number, 'Room 9', tstzrange('2025-01-01 09:00+00', '2025-01-01 10:00+00'), 'Judge X' FROM legal_matter ORDER BY ref LIMIT 1 RETURNING room, during; ROLLBACK;
BEGIN; UPDATE legal_hearing SET during = tstzrange(lower(during) + interval '1 year', upper(during) + interval '1 year') RETURNING id, during; ROLLBACK;
BEGIN; DELETE FROM legal_hearing h USING legal_matter m WHERE (h.office, h.year, h.number) = (m.office, m.year, m.number) AND m.status = 'open' RETURNING h.id, m.ref; ROLLBACK;
BEGIN; UPDATE legal_task SET done = true, estimate = estimate + interval '5 minutes', watchers = watchers || 6 WHERE content_type_id = 3 RETURNING id, done, estimate, watchers; ROLLBACK;
BEGIN; INSERT INTO legal_task (content_type_id, object_id, position, title) VALUES (3, 6, 900, 'Write'), (3, 6, 901, 'Send') RETURNING title, done, watchers; ROLLBACK;
BEGIN; INSERT INTO legal_party (office, year, number, person_id, role, share, contact) SELECT m.office, m.year, m.number, p.id, 'Expert', 0.1, ROW('x', 'y', true)::phone FROM legal_matter m CROSS JOIN (SELECT min(id) AS id FROM legal_person) p WHERE m.status = 'open' ON CONFLICT (office, year, number, person_id, role) DO UPDATE SET share = excluded.share RETURNING person_id, role, share, contact; ROLLBACK;
BEGIN; MERGE INTO legal_party t USING (SELECT office, year, number, person_id, role FROM legal_party WHERE role = 'witness') s ON (t.office, t.year, t.number, t.person_id, t.role) = (s.office, s.year, s.number, s.person_id, s.role) WHEN MATCHED AND t.share IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET share = 0.5; SELECT * FROM legal_party ORDER BY 1, 2, 3, 4, 5; ROLLBACK;
BEGIN; UPDATE legal_timeentry SET billed = NOT billed, memo = upper(memo) WHERE worked < '2024-01-20' RETURNING id, user_id, memo, billed; ROLLBACK;
BEGIN; WITH moved AS (UPDATE legal_person SET note = 'moved' WHERE (home).city = 'Ulm' RETURNING id, note) SELECT count(*), min(note) FROM moved; ROLLBACK;
BEGIN; SELECT id FROM legal_hearing WHERE judge = 'Judge 2' ORDER BY id FOR UPDATE SKIP LOCKED; ROLLBACK;
BEGIN; UPDATE legal_open SET title = title || '!' WHERE status = 'intake' RETURNING ref, title; ROLLBACK;
-- Several collations that do not meet
SELECT "legal_person"."id", "legal_person"."name", EXTRACT(YEAR FROM "legal_person"."born") AS "y" FROM "legal_person" WHERE (EXTRACT(YEAR FROM "legal_person"."born") >= 1960 AND "legal_person"."tags" @> (ARRAY['t1'])::text[]) ORDER BY "legal_person"."id" ASC;
SELECT role, count(*), count(DISTINCT person_id), string_agg(DISTINCT role COLLATE "C", ',') FROM legal_party GROUP BY role ORDER BY lower(role COLLATE "C");
SELECT jsonb_agg(to_jsonb(p) - 'tags' ORDER BY p.id) FROM legal_person p WHERE p.minor;
SELECT name, area, center(area), area(area), outline @> point '(1,1)' AS has, npoints(outline), networks[1], masklen(networks[1]), '10.1.2.3'::inet <<= ANY (networks) AS local FROM legal_office ORDER BY name COLLATE "C";
SELECT COALESCE(json_agg("root"), '[]') AS "root" FROM (SELECT row_to_json((SELECT "_e" FROM (SELECT "_root.base"."ref" AS "ref", "_root.or.parties"."parties" AS "parties") AS "_e")) AS "root" FROM (SELECT * FROM "public"."legal_matter" WHERE ((("public"."legal_matter"."status") = (('open')::matter_state))) ORDER BY "ref" LIMIT 5) AS "_root.base" LEFT OUTER JOIN LATERAL (SELECT coalesce(json_agg("parties" ORDER BY "parties"->>'person_id'), '[]') AS "parties" FROM (SELECT row_to_json((SELECT "_e" FROM (SELECT "_p"."person_id" AS "person_id", "_p"."role" AS "role") AS "_e")) AS "parties" FROM (SELECT * FROM "public"."legal_party" WHERE (("_root.base"."office") = ("office")) AND (("_root.base"."year") = ("year")) AND (("_root.base"."number") = ("number"))) AS "_p") AS "_x") AS "_root.or.parties" ON ('true')) AS "_rows";
-- may be refused
-- Others
SELECT title =~ 'APPEAL' FROM legal_matter;
SELECT id FROM legal_person WHERE name LIKE 'Ok%' ORDER BY id;
BEGIN; UPDATE legal_entry SET title = 'x' WHERE status = 'open'; ROLLBACK;
EXPLAIN SELECT * FROM legal_matter;
SET CONSTRAINTS ALL IMMEDIATE;
SELECT * FROM django_session;
SELECT * FROM legal_consent;
SELECT * FROM legal_matter TABLESAMPLE BERNOULLI (50);
SELECT ctid, xmin FROM legal_matter;
-- needs: row security
SELECT ref FROM search_matters('okoro', true);
