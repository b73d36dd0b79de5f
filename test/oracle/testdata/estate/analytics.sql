-- must be answered
SELECT * FROM core.tenant;
SELECT * FROM core.party;
SELECT * FROM party ORDER BY no LIMIT 10 OFFSET 3;
SELECT * FROM core.party_version ORDER BY tenant, no, valid;
SELECT * FROM flat;
SELECT * FROM lease;
SELECT * FROM co_holder;
SELECT * FROM closure;
SELECT * FROM attribute ORDER BY id;
SELECT * FROM value;
SELECT * FROM remark;
SELECT * FROM desk.remark;
SELECT * FROM desk.party;
SELECT * FROM event;
SELECT * FROM read_mark;
SELECT * FROM place;
SELECT * FROM visit;
SELECT * FROM setting;
SELECT * FROM draft;
SELECT * FROM folder;
SELECT * FROM file;
SELECT * FROM payout;
SELECT * FROM desk."Öffentliche Aushänge ""am Brett"" im Treppenhaus, OG/EG; --";
SELECT * FROM core.tables;
SELECT * FROM product;
SELECT * FROM tenant_month;
SELECT * FROM now_known;
SELECT * FROM core.gap;
SELECT * FROM desk.gap;
SELECT * FROM entity;
SELECT * FROM my_draft;
SELECT * FROM short_draft;
SELECT * FROM folder_path;
SELECT * FROM timeline;
SELECT * FROM stream;
TABLE core.tables;
VALUES (1, 'a'), (2, (SELECT name FROM party ORDER BY no LIMIT 1));
-- Django
SELECT "core_party"."tenant", "core_party"."no", "core_party"."name" FROM "core"."party" "core_party" WHERE ("core_party"."name"::text LIKE 'Z%' AND NOT ("core_party"."kind" = 'firm')) ORDER BY "core_party"."no" ASC LIMIT 21;
SELECT COUNT(*) AS "__count" FROM "core"."party" INNER JOIN "core"."lease" ON ("core"."party"."tenant" = "core"."lease"."tenant" AND "core"."party"."no" = "core"."lease"."holder") WHERE "core"."lease"."state" IN ('signed', 'draft');
SELECT (1) AS "a" FROM "desk"."draft" WHERE "desk"."draft"."slug" = 'title-b-a' LIMIT 1;
SELECT DISTINCT "remark"."subject_type" FROM "core"."remark" WHERE EXISTS(SELECT 1 AS "a" FROM "core"."party" U0 WHERE (U0."tenant" = ("core"."remark"."tenant") AND U0."no" = ("core"."remark"."subject_no")) LIMIT 1) ORDER BY 1;
SELECT DATE_TRUNC('month', "desk"."event"."at" AT TIME ZONE 'UTC') AS "month", COUNT("desk"."event"."stream") AS "c" FROM "desk"."event" GROUP BY 1 ORDER BY 1 ASC;
SELECT "core"."party"."no", "core"."party"."uid", COALESCE(SUM(("core"."lease"."rent")."amount"), 0) AS "total" FROM "core"."party" LEFT OUTER JOIN "core"."lease" ON ("core"."party"."no" = "core"."lease"."holder") GROUP BY "core"."party"."tenant", "core"."party"."no", "core"."party"."uid" HAVING COUNT("core"."lease"."no") > 0 ORDER BY "total" DESC, 1;
-- SQLAlchemy
SELECT party_1.no AS party_1_no, anon_1.n AS anon_1_n FROM core.party AS party_1 LEFT OUTER JOIN (SELECT lease.holder AS holder, count(*) AS n FROM core.lease GROUP BY lease.holder) AS anon_1 ON party_1.no = anon_1.holder ORDER BY party_1.no;
SELECT anon_1.no, anon_1.name, lease_1.no AS lease_no FROM (SELECT core.party.no AS no, core.party.name AS name FROM core.party ORDER BY core.party.no LIMIT 5 OFFSET 1) AS anon_1 LEFT OUTER JOIN core.lease AS lease_1 ON anon_1.no = lease_1.holder ORDER BY anon_1.no, lease_1.no;
SELECT CAST(core.flat.meta ->> 'n' AS INTEGER) AS n, core.flat.code FROM core.flat WHERE (core.flat.meta ->> 'heat') = 'gas' ORDER BY 1 DESC NULLS LAST;
-- Prisma
SELECT "place"."x" FROM (SELECT "code" AS "x" FROM "desk"."place") AS "core_place" JOIN LATERAL (SELECT "core_place"."x" AS "x") AS "place" ON true ORDER BY "place"."x";
SELECT "t0"."no", "t0"."name", COALESCE("t1"."__prisma_data__", '[]'::jsonb) AS leases FROM "core"."party" AS "t0" LEFT JOIN LATERAL (SELECT JSONB_AGG("__prisma_data__") AS "__prisma_data__" FROM (SELECT JSONB_BUILD_OBJECT('no', "t2"."no", 'flat', "t2"."flat") AS "__prisma_data__" FROM "core"."lease" AS "t2" WHERE ("t0"."tenant", "t0"."no") = ("t2"."tenant", "t2"."holder") ORDER BY "t2"."no", "t2"."version") AS "t3") AS "t1" ON true ORDER BY "t0"."no";
SELECT "desk"."file"."id", "desk"."file"."name" FROM "desk"."file" LEFT JOIN "desk"."folder" AS "j0" ON ("j0"."id") = ("desk"."file"."folder") WHERE ("j0"."name" ILIKE '%older 1%' AND ("j0"."id" IS NOT NULL)) ORDER BY "desk"."file"."id" ASC LIMIT 10 OFFSET 0;
-- Rails
SELECT "party".* FROM "core"."party" WHERE "party"."tenant" = 't5' AND "party"."kind" IN ('person', 'firm') ORDER BY "party"."score" DESC NULLS LAST, "party"."no" LIMIT 5;
SELECT "remark"."id", "remark"."body" FROM "core"."remark" WHERE "remark"."subject_type" = 'flat' AND "remark"."subject_code" IN (SELECT "flat"."code" FROM "core"."flat" WHERE "flat"."listed" = TRUE) ORDER BY 1;
SELECT COUNT(DISTINCT "lease"."holder") FROM "core"."lease" WHERE "lease"."starts" BETWEEN '2022-01-01 00:00:00' AND '2023-12-31 23:59:59.999999';
SELECT 1 AS one FROM "desk"."setting" WHERE "setting"."tenant" = 't5' AND "setting"."slug" = 'theme' LIMIT 1;
-- Hibernate
SELECT p1_0.tenant, p1_0.no, p1_0.name, l1_0.no, l1_0.version FROM core.party p1_0 JOIN core.lease l1_0 ON p1_0.tenant = l1_0.tenant AND p1_0.no = l1_0.holder WHERE p1_0.name LIKE 'A%' ESCAPE '' ORDER BY p1_0.no, l1_0.no FETCH FIRST 7 ROWS ONLY;
SELECT CASE WHEN (count(d1_0.id) > 0) THEN true ELSE false END FROM desk.draft d1_0 WHERE d1_0.words > 20;
SELECT treat.stream, max(treat.version) FROM desk.event treat GROUP BY treat.stream HAVING max(treat.version) >= ALL (SELECT e.version FROM desk.event e WHERE e.stream = treat.stream) ORDER BY 1;
-- Metabase and Superset
SELECT CAST(DATE_TRUNC('quarter', "core"."lease"."starts") AS DATE) AS "starts", COUNT(*) AS "count", SUM(("core"."lease"."rent").amount) AS "sum" FROM "core"."lease" GROUP BY CAST(DATE_TRUNC('quarter', "core"."lease"."starts") AS DATE) ORDER BY CAST(DATE_TRUNC('quarter', "core"."lease"."starts") AS DATE) ASC;
SELECT "source"."house", "source"."avg" FROM (SELECT "core"."flat"."house" AS "house", AVG("core"."flat"."area") AS "avg" FROM "core"."flat" GROUP BY "core"."flat"."house") "source" WHERE "source"."avg" > 60 ORDER BY 1 LIMIT 1048575;
SELECT FLOOR((("core"."flat"."area" - 20.0) / 25.0)) * 25.0 + 20.0 AS "area", COUNT(*) FROM "core"."flat" GROUP BY 1 ORDER BY 1;
SELECT DATE_TRUNC('week', at) AS __timestamp, kind AS kind, COUNT(*) AS count, count(*) * 100.0 / sum(count(*)) OVER () AS share FROM desk.event WHERE at >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY kind, DATE_TRUNC('week', at) ORDER BY 1, 2;
SELECT state, percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY (rent).amount) AS q FROM lease GROUP BY state ORDER BY state;
-- dbt
WITH source AS (SELECT * FROM core.lease), renamed AS (SELECT tenant, no AS lease_no, version, flat, holder, lower(term) AS starts_at, upper(term) AS ends_at, (rent).amount AS rent_amount, (rent).currency AS currency FROM source), final AS (SELECT *, row_number() OVER (PARTITION BY flat ORDER BY starts_at, lease_no) AS nth FROM renamed) SELECT * FROM final WHERE nth = 1 ORDER BY lease_no;
SELECT count(*) AS failures, count(*) <> 0 AS should_warn, count(*) <> 0 AS should_error FROM (SELECT holder AS from_field FROM core.lease WHERE holder IS NOT NULL) AS child LEFT JOIN (SELECT no AS to_field FROM core.party) AS parent ON child.from_field = parent.to_field WHERE parent.to_field IS NULL;
SELECT count(*) FROM (SELECT uid AS unique_field, count(*) AS n_records FROM core.party WHERE uid IS NOT NULL GROUP BY uid HAVING count(*) > 1) dbt_internal_test;
-- ranges and two times
SELECT flat, range_agg(term ORDER BY no) AS let, range_intersect_agg(term) FILTER (WHERE NOT isempty(term)) AS both FROM lease GROUP BY flat ORDER BY flat;
SELECT l.flat, unnest(tstzmultirange(tstzrange('2022-01-01 00:00+00', '2026-01-01 00:00+00')) - range_agg(l.term)) AS free FROM lease l GROUP BY l.flat ORDER BY 1, 2;
SELECT v.no, v.name, v.valid FROM party_version v WHERE v.valid @> timestamptz '2023-05-05 00:00+00' AND v.known @> timestamptz '2024-06-06 00:00+00' ORDER BY v.no;
SELECT a.no, b.no, a.term * b.term AS overlap FROM lease a JOIN lease b ON a.flat <> b.flat AND a.no < b.no AND a.term && b.term ORDER BY 1, 2, a.version, b.version;
SELECT no, paid, (SELECT sum(upper(r) - lower(r)) FROM unnest(paid) r) AS long FROM lease ORDER BY no;
SELECT date_trunc('month', d) AS month, count(l.no) FROM generate_series(timestamptz '2022-01-01 00:00+00', '2024-12-01 00:00+00', interval '1 month') d LEFT JOIN lease l ON l.term @> d GROUP BY 1 ORDER BY 1;
SELECT code, open, lower(open), upper(open) - lower(open) AS hours FROM flat WHERE open @> time '09:30' ORDER BY code;
SELECT slot, lower_inc(slot), upper_inf(slot), slot -|- slot AS beside FROM visit ORDER BY slot;
SELECT range_agg(int4range(no, no, '[]')) FROM party;
SELECT flat, lag(upper(term)) OVER w AS before, lower(term) - lag(upper(term)) OVER w AS idle FROM lease WINDOW w AS (PARTITION BY flat ORDER BY term) ORDER BY flat, term;
SELECT core.length(valid), count(*) FROM party_version GROUP BY 1 ORDER BY 1 NULLS LAST;
-- composites and domains
SELECT no, (rent).amount * 12 AS year, (rent).currency, rent IS NULL AS none FROM lease ORDER BY no, version;
SELECT no, (home).zip, ((home).rents[1]).amount, (home).spot[0] FROM party WHERE (home).line IS NOT NULL ORDER BY no;
SELECT ROW((home).line, (home).zip), home IS NOT DISTINCT FROM NULL FROM party ORDER BY no;
SELECT p.no, r.amount, r.currency FROM party p CROSS JOIN LATERAL unnest((p.home).rents) r ORDER BY 1;
SELECT row_to_json(x) FROM (SELECT no, rent, stage FROM lease ORDER BY no, version LIMIT 5) x;
SELECT to_jsonb(rent), jsonb_populate_record(NULL::core.sum, '{"amount": 3}') FROM lease WHERE rent IS NOT NULL ORDER BY no, version;
SELECT max((rent).amount) OVER (PARTITION BY flat), rent FROM lease ORDER BY no, version;
SELECT (ROW(5, 'EUR')::core.sum).amount, ROW(1, 'CHF')::core.sum < ROW(2, 'CHF')::core.sum;
SELECT features, cardinality(features), features || 'x'::text FROM flat WHERE 'lift' = ANY (features) ORDER BY code;
SELECT jsonb_typeof(meta), meta -> 'heat', meta @> '{"heat": "gas"}' FROM flat ORDER BY code;
-- entity, attribute, value
SELECT v.party, max(v.v_text) FILTER (WHERE a.name = 'language') AS language, max(v.v_date) FILTER (WHERE a.name = 'moved') AS moved, bool_or(v.v_flag) FILTER (WHERE a.name = 'pets') AS pets FROM value v JOIN attribute a ON a.id = v.attribute GROUP BY v.party ORDER BY 1;
SELECT a.name, a.type, count(v.id), count(DISTINCT v.party) FROM attribute a LEFT JOIN value v ON v.attribute = a.id GROUP BY a.id ORDER BY a.id;
SELECT p.name, jsonb_object_agg(a.name, coalesce(v.v_text, v.v_number::text, v.v_date::text, v.v_flag::text) ORDER BY a.name) FROM party p JOIN value v USING (tenant) JOIN attribute a ON a.id = v.attribute WHERE v.party = p.no GROUP BY p.tenant, p.no ORDER BY p.no;
SELECT party, attributes ->> 'language' AS language, income FROM entity ORDER BY party;
SELECT a.name, mode() WITHIN GROUP (ORDER BY v.v_text), percentile_disc(0.5) WITHIN GROUP (ORDER BY v.v_number) FROM value v JOIN attribute a ON a.id = v.attribute GROUP BY a.name ORDER BY 1;
SELECT party FROM value WHERE attribute = 1 AND v_text = 'de' INTERSECT SELECT party FROM value WHERE attribute = 4 AND v_flag ORDER BY 1;
SELECT num_nonnulls(v_text, v_number, v_date, v_flag), num_nulls(party, flat), count(*) FROM value GROUP BY 1, 2;
-- events
SELECT stream, version, payload #>> '{body,title}' AS title, payload -> 'people' -> 0 AS first FROM event ORDER BY stream, version;
SELECT e.stream, p.n, p.who, party.name FROM event e CROSS JOIN LATERAL unnest(e.people) WITH ORDINALITY p (who, n) LEFT JOIN party ON party.uid = p.who ORDER BY 1, e.version, 2;
SELECT stream, jsonb_agg(payload -> 'body' ORDER BY version) AS state, array_agg(kind ORDER BY version DESC) FROM event GROUP BY stream ORDER BY stream;
SELECT jsonb_path_query(payload, '$.body.n ? (@ > 3)') FROM event ORDER BY stream, version;
SELECT DISTINCT ON (stream) stream, version, kind FROM event ORDER BY stream, version DESC;
SELECT kind, count(*), max(lsn), min(xid::text) FROM event GROUP BY kind ORDER BY kind;
SELECT lsn - lag(lsn) OVER (ORDER BY lsn) AS bytes FROM event ORDER BY lsn;
SELECT stream, sum((payload #>> '{body,n}')::int) OVER (PARTITION BY stream ORDER BY version GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM event ORDER BY stream, version;
SELECT r.reader, e.stream, e.version - r.version AS behind FROM read_mark r JOIN (SELECT stream, max(version) AS version FROM event GROUP BY stream) e USING (stream) ORDER BY 2;
SELECT people && ARRAY['96d72af7-666f-377d-9b93-9c9c813ad5f4']::uuid[], count(*) FROM event GROUP BY 1;
SELECT tableoid::regclass, count(*) FROM event GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM event_2;
SELECT key, count(*) FROM event, jsonb_each(payload) GROUP BY key ORDER BY key;
SELECT x.title, x.n FROM event e, jsonb_to_record(e.payload -> 'body') AS x (title text, n integer) ORDER BY 1;
-- trees
WITH RECURSIVE t AS (SELECT id, parent, name, 0 AS depth FROM folder WHERE parent IS NULL UNION ALL SELECT f.id, f.parent, f.name, t.depth + 1 FROM folder f JOIN t ON f.parent = t.id) SEARCH DEPTH FIRST BY name SET ord SELECT name, depth FROM t ORDER BY ord;
WITH RECURSIVE t AS (SELECT id, parent FROM remark WHERE parent IS NULL UNION ALL SELECT r.id, r.parent FROM remark r JOIN t ON r.parent = t.id) SEARCH BREADTH FIRST BY id SET ord CYCLE id SET looped USING path SELECT id, looped FROM t ORDER BY ord;
WITH RECURSIVE up (no, top) AS (SELECT ancestor, ancestor FROM closure WHERE depth = 0 UNION SELECT c.descendant, up.top FROM up JOIN closure c ON c.ancestor = up.no AND c.depth = 1) SELECT top, count(*) FROM up GROUP BY top ORDER BY top;
SELECT path, depth, repeat(' ', depth) || path FROM folder_path ORDER BY path;
SELECT c.ancestor, string_agg(p.name, ' > ' ORDER BY c.depth) FROM closure c JOIN party p ON p.tenant = c.tenant AND p.no = c.descendant GROUP BY c.ancestor ORDER BY 1;
SELECT r.id, (SELECT count(*) FROM remark k WHERE k.parent = r.id) AS answers FROM remark r ORDER BY 1;
-- aggregates and windows
SELECT house, floor, count(*), grouping(house, floor) FROM flat GROUP BY GROUPING SETS ((house, floor), (house), ()) ORDER BY 1, 2, 4;
SELECT house, rooms, sum(area) FROM flat GROUP BY CUBE (house, rooms) HAVING sum(area) > 100 ORDER BY 1 NULLS FIRST, 2 NULLS FIRST;
SELECT house, floor, count(*) FROM flat GROUP BY DISTINCT ROLLUP (house, floor), ROLLUP (house) ORDER BY 1, 2;
SELECT name, ntile(4) OVER w, cume_dist() OVER w, percent_rank() OVER w, dense_rank() OVER w, first_value(name) OVER w, nth_value(name, 2) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM party WINDOW w AS (ORDER BY score DESC NULLS LAST, no) ORDER BY no;
SELECT no, avg(score) OVER (ORDER BY no RANGE BETWEEN 12 PRECEDING AND 12 FOLLOWING EXCLUDE GROUP) FROM party ORDER BY no;
SELECT starts, count(*) OVER (ORDER BY starts RANGE BETWEEN interval '90 days' PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM lease ORDER BY 1, no, version;
SELECT width_bucket(area, 30, 160, 5) AS b, count(*), min(area), max(area) FROM flat GROUP BY 1 ORDER BY 1;
SELECT width_bucket(score, ARRAY[20, 50, 100]::numeric[]) AS b, count(*) FROM party GROUP BY 1 ORDER BY 1;
SELECT corr(area, rooms), regr_slope(area, floor), stddev_samp(area), var_pop(rooms), regr_count(area, rooms) FROM flat;
SELECT rank(60) WITHIN GROUP (ORDER BY score), percent_rank(60) WITHIN GROUP (ORDER BY score) FROM party;
SELECT json_object_agg(code, area ORDER BY code), jsonb_agg(DISTINCT rooms), array_agg(features ORDER BY code) FILTER (WHERE features <> '{}') FROM flat;
SELECT bit_and(rooms), bit_or(rooms), bit_xor(rooms), every(listed), bool_or(listed) FROM flat;
SELECT xmlagg(xmlelement(name flat, xmlattributes(code AS id), house) ORDER BY code) FROM flat;
SELECT xmlforest(no, name) FROM party ORDER BY no LIMIT 3;
SELECT string_agg(DISTINCT left(name, 1), '' ORDER BY left(name, 1)) FROM party;
SELECT kind, count(*) FILTER (WHERE home IS NULL), sum(count(*)) OVER () FROM party GROUP BY kind ORDER BY kind;
-- texts
SELECT code, ts_rank(search, q), ts_headline('simple', house, q) FROM flat, to_tsquery('simple', 'house & 3') q WHERE search @@ q ORDER BY code;
SELECT id, ts_headline('english', body, websearch_to_tsquery('english', 'water -gas')) FROM remark WHERE to_tsvector('english', body) @@ websearch_to_tsquery('english', 'water') ORDER BY 1;
SELECT name, unaccent(name), upper(unaccent(name)) FROM party ORDER BY no;
SELECT regexp_replace(name, '\d+', '#') AS shape, count(*) FROM party GROUP BY 1 ORDER BY 1;
SELECT m[1], count(*) FROM remark, regexp_matches(body, '(\w+)', 'g') m GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10;
SELECT format('%s lives at %L', name, (home).line), overlay(name PLACING 'xx' FROM 1 FOR 2), position(' ' IN name) FROM party ORDER BY no;
SELECT encode(digest(name, 'sha256'), 'hex') FROM party ORDER BY no;
SELECT md5(name), sha256(name::bytea), normalize(name, NFD) = name FROM party ORDER BY no;
SELECT normalize("é", NFC), U&"e\0301", "count(*)", "NULL", " ", "*" FROM desk."Öffentliche Aushänge ""am Brett"" im Treppenhaus, OG/EG; --" ORDER BY "*";
SELECT tone, tone || 'x' COLLATE "C" FROM desk.party ORDER BY tone COLLATE "C", no;
-- joins of all kinds
SELECT p.no, d.role, d.since FROM core.party p LEFT JOIN desk.party d USING (tenant, no) ORDER BY 1, 2;
SELECT * FROM core.party AS p NATURAL JOIN desk.party ORDER BY no, role;
SELECT core.remark.body, desk.remark.body FROM desk.remark LEFT JOIN core.remark ON core.remark.tenant = desk.remark.tenant AND core.remark.stars = desk.remark.id ORDER BY 1, 2;
SELECT r.body, dr.body FROM core.remark r FULL JOIN desk.remark dr ON dr.id = r.stars ORDER BY 1, 2;
SELECT p.no FROM party p WHERE NOT EXISTS (SELECT FROM lease l WHERE l.tenant = p.tenant AND l.holder = p.no) ORDER BY 1;
SELECT no FROM party EXCEPT ALL SELECT holder FROM lease ORDER BY 1;
SELECT f.code, l.no, l.state FROM flat f LEFT JOIN LATERAL (SELECT * FROM lease WHERE (lease.tenant, lease.flat) = (f.tenant, f.code) ORDER BY starts DESC, no LIMIT 1) l ON true ORDER BY 1;
SELECT a.name FROM (party CROSS JOIN (VALUES (1)) one (n)) AS a WHERE a.no IN (4, 34, 94);
SELECT t.name, m.month, m.leases, sum(m.rent) OVER (PARTITION BY t.id ORDER BY m.month) FROM tenant t JOIN tenant_month m ON m.tenant = t.id ORDER BY 2;
SELECT l.no, array_agg(p.name ORDER BY s.n) FROM lease l CROSS JOIN LATERAL unnest(l.signers) WITH ORDINALITY s (uid, n) JOIN party p ON p.uid = s.uid GROUP BY l.tenant, l.no, l.version ORDER BY 1;
SELECT c.lease, sum(c.share), string_agg(p.name, ', ' ORDER BY p.no) FROM co_holder c JOIN party p ON (p.tenant, p.no) = (c.tenant, c.party) GROUP BY c.tenant, c.lease ORDER BY 1;
SELECT p.ref, (p.total).amount, l.state, p.due - lower(l.term)::date AS days FROM payout p JOIN lease l ON (l.tenant, l.no, l.version) = (p.tenant, p.lease, p.version) ORDER BY 1;
SELECT v.on_day, v.slot, f.house FROM visit v JOIN flat f ON f.tenant = v.tenant AND f.code = v.flat ORDER BY 1;
SELECT title, isbn::text, ean::text, weight::text FROM product ORDER BY title;
SELECT f.code, round(earth_distance(f.at, g.at)) FROM flat f JOIN flat g ON f.code < g.code WHERE earth_distance(f.at, g.at) < 200000 ORDER BY 1, 2;
-- functions of the owner
SELECT label(f), f.label FROM flat f ORDER BY f.code;
-- needs: row security
SELECT * FROM core.leases_of(10);
-- needs: row security
SELECT p.no, l.* FROM party p, leases_of(p.no) l ORDER BY p.no, l.lease;
SELECT first_of(NULL, score, 0), first_of(VARIADIC ARRAY[NULL, name]) FROM party ORDER BY no;
-- needs: row security
SELECT * FROM as_of();
-- needs: row security
SELECT count(*) FROM as_of(moment => '2024-01-01 00:00+00');
-- psql, DBeaver, pgAdmin
SELECT n.nspname AS "Schema", c.relname AS "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' END AS "Type" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p') AND n.nspname = 'nothere' ORDER BY 1, 2;
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated FROM pg_catalog.pg_attribute a WHERE a.attrelid = 'core.lease'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
SELECT column_name, data_type, is_nullable, ordinal_position FROM information_schema.columns WHERE table_schema = 'core' AND table_name = 'flat' ORDER BY ordinal_position;
SELECT e.enumlabel FROM pg_catalog.pg_enum e WHERE e.enumtypid = 'core.state'::regtype ORDER BY e.enumsortorder;
SELECT current_schema(), current_schemas(false);
SELECT count(*) FROM information_schema.tables WHERE table_schema = 'core' AND table_name IN ('lease', 'flat', 'gap');
-- writing, and COPY
BEGIN; INSERT INTO remark (tenant, subject_type, subject_no, body) VALUES ('t5', 'party', 4, 'seen') RETURNING tenant, subject_no, body, stars; ROLLBACK;
BEGIN; UPDATE lease SET rent = ROW((rent).amount + 1, 'EUR') WHERE no = 4 RETURNING no, rent; ROLLBACK;
BEGIN; UPDATE party SET notes = 'x', score = 1 WHERE no < 30 RETURNING no, notes, score; ROLLBACK;
BEGIN; UPDATE value SET v_text = 'de' WHERE attribute = 1 AND party = 4 RETURNING party, v_text; ROLLBACK;
BEGIN; INSERT INTO setting (tenant, key, value) VALUES ('t5', 'New', '{"v": 1}') ON CONFLICT (tenant, key) DO UPDATE SET value = excluded.value RETURNING key, slug; ROLLBACK;
BEGIN; INSERT INTO setting (tenant, key, value) VALUES ('t5', 'THEME', '{"v": 1}') ON CONFLICT (tenant, slug) DO UPDATE SET value = excluded.value RETURNING key, slug, value; ROLLBACK;
BEGIN; MERGE INTO setting s USING (VALUES ('Theme', '{"v": 9}'::jsonb), ('Other', '{}')) v (k, d) ON s.key = v.k WHEN MATCHED THEN UPDATE SET value = v.d WHEN NOT MATCHED THEN INSERT (tenant, key, value) VALUES ('t5', v.k, v.d); SELECT key, value FROM setting ORDER BY key; ROLLBACK;
BEGIN; INSERT INTO flat (tenant, code, house, floor) VALUES ('t5', 'F900', 'New house', 2) RETURNING tenant, code, search, features, meta; ROLLBACK;
BEGIN; UPDATE my_draft SET body = 'shorter' WHERE words > 50 RETURNING title, words; ROLLBACK;
BEGIN; DELETE FROM folder WHERE name = 'Folder 3' RETURNING name; ROLLBACK;
BEGIN; DELETE FROM read_mark WHERE stream = 's4' RETURNING reader; ROLLBACK;
BEGIN; DECLARE c SCROLL CURSOR FOR SELECT code FROM flat ORDER BY code; FETCH 3 FROM c; FETCH BACKWARD 1 FROM c; CLOSE c; COMMIT;
COPY core.flat (code, house) TO STDOUT;
COPY (SELECT no, name FROM party ORDER BY no) TO STDOUT WITH (FORMAT csv, HEADER);
-- may be refused
SELECT * FROM core.party NATURAL JOIN desk.party ORDER BY no, role;
SELECT core.party.no, desk.party.role, core.party.name FROM core.party, desk.party WHERE core.party.no = desk.party.no AND core.party.tenant = desk.party.tenant ORDER BY 1, 2;
