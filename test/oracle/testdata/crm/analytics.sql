-- Everyday questions to the CRM, as agents, dashboards and ORMs ask them.
-- must be answered
SELECT COUNT(*) AS total_accounts FROM account;
SELECT id, name, region, tags, custom FROM account WHERE region = 'NO' ORDER BY name LIMIT 20;
SELECT * FROM account ORDER BY id;
SELECT * FROM contact ORDER BY id;
SELECT * FROM "Ticket" ORDER BY id;
SELECT * FROM "user" ORDER BY id;
WITH ticket_counts AS (
  SELECT t."accountId", COUNT(*) AS ticket_count, COUNT(*) FILTER (WHERE t.status IN ('new', 'open', 'waiting')) AS open_count,
         AVG(EXTRACT(EPOCH FROM (t."resolvedAt" - t."createdAt")) / 3600) AS avg_hours
  FROM "Ticket" t
  WHERE t."createdAt" >= '2024-01-01'::timestamptz
  GROUP BY t."accountId"
)
SELECT a.name, tc.ticket_count, tc.open_count, ROUND(tc.avg_hours::numeric, 2) AS avg_resolution_hours
FROM ticket_counts tc
JOIN account a ON a.id = tc."accountId"
ORDER BY tc.ticket_count DESC, a.name
LIMIT 10;
SELECT DATE_TRUNC('month', "createdAt") AS month, status, COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY status ORDER BY DATE_TRUNC('month', "createdAt")) AS running FROM "Ticket" GROUP BY 1, 2 ORDER BY 1, 2;
SELECT channel, priority, count(*), grouping(channel, priority) FROM "Ticket" GROUP BY ROLLUP (channel, priority) ORDER BY 1 NULLS LAST, 2 NULLS LAST, 4;
SELECT COALESCE(region, 'unknown') AS region, COALESCE(industry, 'n/a') AS industry, sum(revenue) FROM account GROUP BY GROUPING SETS ((region), (industry), ()) ORDER BY 1, 2, 3;
SELECT region, industry, count(*), avg(health)::numeric(6,2) FROM account GROUP BY CUBE (region, industry) ORDER BY 1, 2;
SELECT DISTINCT ON ("accountId") "accountId", id, subject, "createdAt" FROM "Ticket" ORDER BY "accountId", "createdAt" DESC;
SELECT a.id, a.name, last.id AS last_ticket, last."createdAt" FROM account a LEFT JOIN LATERAL (SELECT t.id, t."createdAt" FROM "Ticket" t WHERE t."accountId" = a.id ORDER BY t."createdAt" DESC LIMIT 1) last ON TRUE ORDER BY a.name;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY EXTRACT(EPOCH FROM "firstReplyAt" - "createdAt") / 60) AS median_first_reply, percentile_cont(ARRAY[0.9, 0.99]) WITHIN GROUP (ORDER BY EXTRACT(EPOCH FROM "firstReplyAt" - "createdAt")) FROM "Ticket" WHERE "firstReplyAt" IS NOT NULL;
SELECT priority, mode() WITHIN GROUP (ORDER BY channel) AS usual, percentile_disc(0.5) WITHIN GROUP (ORDER BY "slaMinutes") FROM "Ticket" GROUP BY priority ORDER BY priority;
SELECT a.name, STRING_AGG(c.full_name, ', ' ORDER BY c.last_name, c.id) AS contacts FROM account a JOIN contact c ON c.account = a.id GROUP BY a.name ORDER BY a.name;
SELECT u.name AS agent, COUNT(t.id) AS assigned, COUNT(*) FILTER (WHERE t."resolvedAt" IS NOT NULL) AS solved, ROUND(100.0 * COUNT(*) FILTER (WHERE t."resolvedAt" IS NOT NULL) / NULLIF(COUNT(t.id), 0), 1) AS pct FROM "user" u LEFT JOIN "Ticket" t ON t."assigneeId" = u.id GROUP BY u.id, u.name ORDER BY assigned DESC, u.name;
SELECT custom->>'plan' AS plan, COUNT(*), SUM((custom->>'seats')::int) AS seats FROM account WHERE custom IS NOT NULL GROUP BY custom->>'plan' ORDER BY 2 DESC, 1;
SELECT name, custom #>> '{billing,cycle}' AS cycle, (custom->'billing'->>'vat')::numeric / 100 AS vat FROM account WHERE custom @> '{"billing": {"cycle": "yearly"}}' ORDER BY name;
SELECT f.flag, count(*) FROM account, jsonb_array_elements_text(custom->'flags') AS f(flag) GROUP BY f.flag ORDER BY 2 DESC, 1;
SELECT name FROM account WHERE custom ? 'plan' AND custom ?| ARRAY['seats', 'nothing'] AND custom->>'plan' IN ('pro', 'enterprise') ORDER BY 1;
SELECT name, jsonb_path_query_array(custom, '$.flags[*] ? (@ starts with "f")') FROM account WHERE jsonb_path_exists(custom, '$.seats ? (@ > $n)', '{"n": 20}') ORDER BY 1;
SELECT name, k.key, k.value FROM account CROSS JOIN LATERAL jsonb_each_text(custom) k WHERE k.key <> 'flags' ORDER BY 1, 2;
SELECT jsonb_object_agg(name, health ORDER BY name) FROM account WHERE health > 50;
SELECT json_build_object('region', region, 'accounts', json_agg(json_build_object('id', id, 'name', name) ORDER BY name)) FROM account GROUP BY region ORDER BY region;
SELECT tag, count(*) FROM account, unnest(tags) AS tag GROUP BY tag ORDER BY count(*) DESC, tag;
SELECT name, tags, array_length(tags, 1), cardinality(tags), tags[1], array_position(tags, 'vip') FROM account WHERE tags && ARRAY['vip', 'beta'] ORDER BY name;
SELECT name FROM account WHERE 'vip' = ANY(tags) AND NOT ('churn' = ANY(tags)) ORDER BY name;
SELECT d::date AS day, COUNT(t.id) AS created FROM generate_series('2024-01-01'::date, '2024-01-31'::date, '1 day') AS d LEFT JOIN "Ticket" t ON t."createdAt"::date = d::date GROUP BY d ORDER BY d;
WITH weeks AS (SELECT generate_series(date_trunc('week', timestamptz '2024-01-01 00:00+00'), timestamptz '2024-03-25 00:00+00', interval '1 week') AS week)
SELECT w.week::date, count(t.id) AS n, avg(count(t.id)) OVER (ORDER BY w.week ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS moving FROM weeks w LEFT JOIN "Ticket" t ON date_trunc('week', t."createdAt") = w.week GROUP BY w.week ORDER BY w.week;
SELECT date_bin('6 hours', at, timestamptz '2024-01-01 00:00+00') AS slot, kind, count(*) FROM activity WHERE at >= '2024-01-01' AND at < '2024-02-01' GROUP BY 1, 2 ORDER BY 1, 2;
SELECT r.name, to_char(t."createdAt" AT TIME ZONE r.tz, 'YYYY-MM-DD HH24:MI') AS local, EXTRACT(DOW FROM t."createdAt" AT TIME ZONE r.tz) FROM "Ticket" t JOIN account a ON a.id = t."accountId" JOIN region r ON r.code = a.region ORDER BY t.id LIMIT 30;
SELECT c.full_name, c."timeZone", ("createdAt" AT TIME ZONE c."timeZone")::time FROM "Ticket" t JOIN contact c ON c.id = t."contactId" ORDER BY t.id LIMIT 40;
SELECT EXTRACT(HOUR FROM "createdAt" AT TIME ZONE 'UTC')::int AS hour, COUNT(*), repeat('*', (COUNT(*))::int) FROM "Ticket" GROUP BY hour ORDER BY hour;
WITH RECURSIVE thread AS (
  SELECT m."ticketId", m.seq, m."parentSeq", m.body, 0 AS depth, ARRAY[m.seq] AS path
  FROM "TicketMessage" m WHERE m."parentSeq" IS NULL
  UNION ALL
  SELECT m."ticketId", m.seq, m."parentSeq", m.body, th.depth + 1, th.path || m.seq
  FROM "TicketMessage" m JOIN thread th ON th."ticketId" = m."ticketId" AND th.seq = m."parentSeq"
)
SELECT "ticketId", REPEAT('  ', depth) || LEFT(COALESCE(body, ''), 40) AS line, path FROM thread ORDER BY "ticketId", path;
WITH RECURSIVE chain AS (SELECT id, name, manager, name::text AS path FROM "user" WHERE manager IS NULL UNION SELECT u.id, u.name, u.manager, chain.path || ' > ' || u.name FROM "user" u JOIN chain ON u.manager = chain.id) SELECT id, path FROM chain ORDER BY id;
WITH RECURSIVE t(id, parent, name, lvl) AS (SELECT id, parent, name, 1 FROM tag WHERE parent IS NULL UNION ALL SELECT tag.id, tag.parent, tag.name, lvl + 1 FROM tag JOIN t ON tag.parent = t.id) SEARCH DEPTH FIRST BY id SET ordering CYCLE id SET is_cycle USING cycle_path SELECT t.name, lvl, count(tt.ticket_id) FROM t LEFT JOIN ticket_tag tt ON tt.tag_id = t.id GROUP BY t.id, t.name, lvl, ordering ORDER BY ordering;
SELECT id, subject, ts_rank(search, query) AS rank FROM "Ticket", websearch_to_tsquery('english', 'printer -refund') AS query WHERE search @@ query ORDER BY rank DESC, id LIMIT 10;
SELECT id, ts_rank_cd(search, q, 32), ts_headline('english', coalesce(body, subject), q, 'StartSel=<b>, StopSel=</b>, MaxWords=12, MinWords=4') FROM "Ticket" t CROSS JOIN plainto_tsquery('english', 'invoice') q WHERE t.search @@ q ORDER BY 2 DESC, 1 LIMIT 5;
SELECT id, subject FROM "Ticket" WHERE to_tsvector('english', subject || ' ' || coalesce(body, '')) @@ to_tsquery('english', 'dash:* | login') ORDER BY id;
SELECT id, subject FROM "Ticket" WHERE subject ILIKE '%refund%' OR body ~* 'error code e1\d\M' ORDER BY id;
SELECT (regexp_match(body, 'Error code (E\d+)'))[1] AS code, count(*) FROM "Ticket" WHERE body LIKE '%Error code%' GROUP BY 1 ORDER BY 2 DESC, 1;
SELECT id, (regexp_matches(body, '\d+', 'g'))[1]::bigint FROM "Ticket" ORDER BY 1, 2;
SELECT word, count(*) FROM "Ticket", regexp_split_to_table(lower(body), '\W+') AS word WHERE length(word) > 4 GROUP BY word ORDER BY 2 DESC, 1 LIMIT 15;
SELECT word, ndoc FROM (SELECT unnest(tsvector_to_array(search)) AS word, count(*) AS ndoc FROM "Ticket" GROUP BY 1) x ORDER BY ndoc DESC, word LIMIT 10;
SELECT a.name FROM account a WHERE NOT EXISTS (SELECT 1 FROM "Ticket" t WHERE t."accountId" = a.id) ORDER BY a.name;
SELECT a.name FROM account a WHERE EXISTS (SELECT 1 FROM "Sales"."Deal" d WHERE d.account = a.id AND d.stage = 'Won' AND d.amount > 50000) ORDER BY 1;
SELECT name FROM account WHERE id NOT IN (SELECT account FROM contact) ORDER BY name;
SELECT id FROM account EXCEPT SELECT "accountId" FROM "Ticket" WHERE priority = 1 ORDER BY 1;
SELECT region FROM account INTERSECT SELECT code FROM region ORDER BY 1;
(SELECT 'ticket' AS what, id::text, "createdAt" AS at FROM "Ticket" ORDER BY "createdAt" DESC, id LIMIT 5) UNION ALL (SELECT 'activity', id::text, at FROM activity ORDER BY at DESC, id LIMIT 5) ORDER BY at DESC, 2;
SELECT CASE WHEN health >= 80 THEN 'green' WHEN health >= 50 THEN 'yellow' WHEN health IS NULL THEN 'unknown' ELSE 'red' END AS bucket, count(*), min(health), max(health) FROM account GROUP BY bucket ORDER BY bucket;
SELECT width_bucket(health, 0, 100, 5) AS b, count(*), numrange(min(health), max(health), '[]') FROM account GROUP BY b ORDER BY b;
SELECT ntile(4) OVER (ORDER BY revenue NULLS FIRST, id) AS q, name, revenue FROM account ORDER BY q, name;
SELECT name, revenue, rank() OVER w, dense_rank() OVER w, percent_rank() OVER w, cume_dist() OVER w, revenue - lag(revenue, 1, 0) OVER w AS gap, first_value(name) OVER w FROM account WINDOW w AS (ORDER BY revenue DESC NULLS LAST, id) ORDER BY revenue DESC NULLS LAST, id;
SELECT at::date, kind, count(*) OVER (PARTITION BY kind ORDER BY at RANGE BETWEEN '7 days' PRECEDING AND CURRENT ROW) FROM activity WHERE at < '2023-09-01' ORDER BY at, id;
SELECT id, sum(bytes) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM attachment ORDER BY id;
SELECT kind, sum(took), avg(took), max(took), justify_interval(sum(took)) FROM activity GROUP BY kind ORDER BY kind;
SELECT v.label, count(t.id) FROM (VALUES (1, 'critical'), (2, 'high'), (3, 'normal'), (4, 'low'), (5, 'later')) AS v(priority, label) LEFT JOIN "Ticket" t ON t.priority = v.priority GROUP BY v.priority, v.label ORDER BY v.priority;
WITH rates AS (SELECT DISTINCT ON (currency) currency, rate FROM exchange_rate WHERE day <= '2024-03-15' ORDER BY currency, day DESC) SELECT d.stage, sum(d.amount * COALESCE(r.rate, 1))::numeric(14,2) AS eur FROM "Sales"."Deal" d LEFT JOIN rates r USING (currency) GROUP BY d.stage ORDER BY d.stage;
SELECT d.account, d.no, d.title, sum(l.qty * l.price * (1 - coalesce(l.discount, 0) / 100)) AS net FROM "Sales"."Deal" d JOIN "Sales".deal_line l ON (l.account, l.no) = (d.account, d.no) GROUP BY d.account, d.no ORDER BY net DESC, d.no LIMIT 15;
SELECT d.*, a.name FROM "Sales"."Deal" AS d INNER JOIN account AS a ON a.id = d.account WHERE d.stage NOT IN ('Won', 'Lost') ORDER BY d.account, d.no LIMIT 20;
SELECT stage, count(*), sum(weighted), min("closeDate"), max("closeDate") FROM "Sales"."Deal" GROUP BY stage HAVING count(*) > 3 ORDER BY stage;
SELECT p.name, p.attrs->>'color', sum(l.qty) FROM product p JOIN "Sales".deal_line l ON l.sku = p.sku WHERE p.sold @> date '2024-02-01' GROUP BY p.sku ORDER BY 3 DESC, 1;
SELECT h->>'stage' AS stage, (h->>'at')::date AS at, count(*) FROM "Sales"."Deal", jsonb_array_elements(history) h GROUP BY 1, 2 ORDER BY 1, 2;
SELECT x.stage, x.at FROM "Sales"."Deal" d, jsonb_to_recordset(d.history) AS x(stage text, at date) WHERE d.no < 20 ORDER BY d.no, x.at;
SELECT * FROM "Sales"."Pipeline" ORDER BY stage, currency;
SELECT account, n, oldest, priorities FROM queue ORDER BY n DESC, account;
SELECT * FROM open_tickets WHERE priority = 1 ORDER BY id;
SELECT u.status, count(*) FROM urgent u GROUP BY u.status ORDER BY 1;
SELECT m.month, sum(m.tickets) FROM account_month m GROUP BY m.month ORDER BY m.month;
SELECT a.name, m.month, m.tickets FROM account_month m JOIN account a ON a.id = m.account ORDER BY 3 DESC, 1, 2 LIMIT 10;
SELECT t.id, t.priority, age_hours(t) FROM "Ticket" t ORDER BY 3 DESC, 1 LIMIT 10;
SELECT id, business_days("createdAt"::date, "resolvedAt"::date) FROM "Ticket" WHERE "resolvedAt" IS NOT NULL ORDER BY id LIMIT 20;
-- needs: row security
SELECT title, slug FROM search_kb('printer') ORDER BY id;
-- needs: row security
SELECT k.title, ts_headline('english', k.body, websearch_to_tsquery('english', 'settings')) FROM search_kb('settings') k WHERE k.lang = 'en' ORDER BY k.id;
SELECT n.topic, count(*), array_agg(n.id ORDER BY n.id) FROM contact_note n GROUP BY n.topic ORDER BY n.topic;
SELECT avg(score)::numeric(4,2) AS csat, count(*) FILTER (WHERE score >= 9) - count(*) FILTER (WHERE score <= 6) AS nps FROM survey;
SELECT t.priority, avg(s.score), corr(s.score, t.priority), regr_slope(s.score, t.priority), stddev_pop(s.score) FROM survey s JOIN "Ticket" t ON t.id = s.ticket_id GROUP BY t.priority ORDER BY 1;
SELECT g.name, count(*) FROM ticket_tag tt JOIN tag g ON g.id = tt.tag_id GROUP BY g.id ORDER BY 2 DESC, 1;
SELECT t.id, array_agg(g.name ORDER BY g.name) FILTER (WHERE g.name IS NOT NULL) AS tags FROM "Ticket" t LEFT JOIN ticket_tag tt ON tt.ticket_id = t.id LEFT JOIN tag g ON g.id = tt.tag_id GROUP BY t.id ORDER BY t.id;
SELECT t.id FROM "Ticket" t JOIN ticket_tag x ON x.ticket_id = t.id WHERE x.tag_id IN (3, 6, 9) GROUP BY t.id HAVING count(DISTINCT x.tag_id) >= 2 ORDER BY 1;
SELECT f.filename, pg_size_pretty(f.bytes), encode(f.sha256, 'hex'), octet_length(f.sha256), m.body FROM attachment f JOIN "TicketMessage" m ON m."ticketId" = f.ticket_id AND m.seq = f.seq ORDER BY f.id LIMIT 10;
SELECT mime, count(*), sum(bytes), pg_size_pretty(sum(bytes)) FROM attachment GROUP BY mime ORDER BY 1;
SELECT r.key, count(*) FROM "TicketMessage" m, jsonb_object_keys(m.reactions) AS r(key) GROUP BY 1 ORDER BY 1;
SELECT "ticketId", count(*) AS msgs, max("sentAt") - min("sentAt") AS span, (array_agg(body ORDER BY seq DESC))[1] AS last_body FROM "TicketMessage" GROUP BY "ticketId" HAVING count(*) > 1 ORDER BY 2 DESC, 1;
SELECT m."ticketId", m.seq, m."sentAt" - lag(m."sentAt") OVER (PARTITION BY m."ticketId" ORDER BY m.seq) AS wait FROM "TicketMessage" m ORDER BY 1, 2;
SELECT meta->'browser'->>'name' AS browser, avg((meta->'browser'->>'version')::int) FROM "Ticket" WHERE meta ? 'browser' GROUP BY 1 ORDER BY 1;
SELECT id FROM "Ticket" WHERE meta @? '$.labels[*] ? (@ == "l2")' AND meta @@ '$.reopened > 1' ORDER BY id;
SELECT id, meta || '{"seen": true}'::jsonb, meta - 'labels', jsonb_set(meta, '{reopened}', '0'), jsonb_strip_nulls(meta) FROM "Ticket" ORDER BY id LIMIT 5;
SELECT id, CASE WHEN jsonb_typeof(meta->'score') = 'number' THEN (meta->>'score')::int END AS score FROM "Ticket" ORDER BY id LIMIT 40;
SELECT status, status > 'open' AS past, enum_range(NULL::ticket_state), status::text AS word FROM "Ticket" GROUP BY status ORDER BY status;
SELECT t."isOpen", count(*), bool_and(t."resolvedAt" IS NULL), every(t.priority > 0) FROM "Ticket" t GROUP BY 1 ORDER BY 1;
SELECT "Ticket"."id", "Ticket"."subject", T2."name" FROM "Ticket" INNER JOIN "account" T2 ON ("Ticket"."accountId" = T2."id") WHERE ("Ticket"."status" = 'open' AND UPPER(T2."name"::text) LIKE UPPER('%acme%')) ORDER BY "Ticket"."createdAt" DESC LIMIT 21;
SELECT "public"."Ticket"."id", "public"."Ticket"."subject" FROM "public"."Ticket" WHERE ("public"."Ticket"."priority" = 1 AND ("public"."Ticket"."id") IN (SELECT "t1"."ticketId" FROM "public"."TicketMessage" AS "t1" WHERE ("t1"."body" ILIKE '%printer%' AND "t1"."ticketId" IS NOT NULL))) ORDER BY "public"."Ticket"."id" ASC LIMIT 10 OFFSET 0;
SELECT anon_1.account_id, anon_1.n FROM (SELECT account.id AS account_id, count(contact.id) AS n FROM account LEFT OUTER JOIN contact ON contact.account = account.id GROUP BY account.id) AS anon_1 WHERE anon_1.n > 1 ORDER BY anon_1.n DESC, anon_1.account_id;
SELECT "accounts"."id" AS t0_r0, "accounts"."name" AS t0_r1, "contacts"."id" AS t1_r0 FROM "account" "accounts" LEFT OUTER JOIN "contact" "contacts" ON "contacts"."account" = "accounts"."id" WHERE "accounts"."region" IN ('NO', 'DE') ORDER BY "accounts"."id" ASC, "contacts"."id" ASC;
SELECT EXISTS (SELECT 1 AS one FROM contact WHERE contact.lang = 'de' AND contact.score BETWEEN 20 AND 60 LIMIT 1) AS found;
SELECT c.full_name, c.email, c.address->>'city', c.birthday, age(date '2024-06-01', c.birthday) FROM contact c WHERE c.birthday IS NOT NULL ORDER BY c.id LIMIT 20;
SELECT EXTRACT(YEAR FROM birthday)::int / 10 * 10 AS decade, count(*) FROM contact GROUP BY 1 ORDER BY 1;
SELECT full_name, count(*) OVER (PARTITION BY last_name), row_number() OVER (PARTITION BY account ORDER BY created_at, id) FROM contact ORDER BY id;
SELECT c.id, c.last_name, initcap(lower(c.full_name)), format('%s <%s>', c.full_name, c.email), concat_ws(', ', c.last_name, c.first_name), translate(c.last_name, 'ü''', 'u') FROM contact c ORDER BY c.id LIMIT 12;
SELECT name, similarity FROM (SELECT name, length(name) - length(replace(lower(name), 'o', '')) AS similarity FROM account) s WHERE similarity > 1 ORDER BY 2 DESC, 1;
SELECT credit_limit, credit_limit * 2, credit_limit::numeric FROM account ORDER BY id LIMIT 5;
SELECT name, to_char(revenue, 'FM999G999G990D00') AS revenue, round(revenue / NULLIF(employees, 0), 2) FROM account ORDER BY revenue DESC NULLS LAST, id LIMIT 10;
SELECT tableoid::regclass AS part, count(*) FROM activity GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM activity_2024h1 WHERE kind = 'demo';
SELECT a.name, x.n_tickets, x.n_deals, x.n_acts FROM account a, LATERAL (SELECT (SELECT count(*) FROM "Ticket" t WHERE t."accountId" = a.id) AS n_tickets, (SELECT count(*) FROM "Sales"."Deal" d WHERE d.account = a.id) AS n_deals, (SELECT count(*) FROM activity v WHERE v.account = a.id) AS n_acts) x ORDER BY a.name;
WITH cohort AS (SELECT id, date_trunc('quarter', created_at) AS q FROM account), act AS (SELECT account, date_trunc('quarter', at) AS q FROM activity GROUP BY 1, 2) SELECT c.q::date, act.q::date, count(DISTINCT c.id) FROM cohort c JOIN act ON act.account = c.id GROUP BY 1, 2 ORDER BY 1, 2;
WITH s AS (SELECT account, at, at - lag(at) OVER (PARTITION BY account ORDER BY at) > interval '3 days' AS fresh FROM activity), g AS (SELECT account, at, count(*) FILTER (WHERE fresh) OVER (PARTITION BY account ORDER BY at) AS session FROM s) SELECT account, session, min(at), max(at), count(*) FROM g GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 30;
WITH t AS MATERIALIZED (SELECT * FROM "Ticket" WHERE priority < 3) SELECT t.status, count(*) FROM t GROUP BY t.status UNION ALL SELECT NULL, count(*) FROM t ORDER BY 1;
SELECT count(*) FILTER (WHERE status = 'open') AS "open", count(*) FILTER (WHERE status = 'closed') AS "closed", round(avg("slaMinutes"), 1) AS sla FROM "Ticket" WHERE tags @> '{billing}';
SELECT array_agg(DISTINCT t ORDER BY t) FROM "Ticket", unnest(tags) WITH ORDINALITY AS u(t, n) WHERE n > 1;
SELECT a.region, b.region, count(*) FROM account a CROSS JOIN account b WHERE a.id < b.id AND a.industry = b.industry GROUP BY 1, 2 ORDER BY 1, 2;
SELECT * FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['a', 'b'])) WITH ORDINALITY AS r(n, l, ord);
SELECT region, max(name) FILTER (WHERE health = (SELECT max(health) FROM account b WHERE b.region = a.region)) FROM account a GROUP BY region ORDER BY region;
SELECT name, greatest(health, 50), least(employees, 1000), sign(revenue), ceil(revenue / 1e6), mod(employees, 7), power(health, 2), ln(health + 1) FROM account ORDER BY id;
SELECT md5(string_agg(id::text, ',' ORDER BY id)), count(DISTINCT left(name, 1)) FROM account;
SELECT to_json(t) FROM (SELECT id, subject, tags FROM "Ticket" ORDER BY id LIMIT 3) t;
SELECT row_to_json(a) FROM account a WHERE a.region = 'US' ORDER BY a.id LIMIT 2;
SELECT jsonb_agg(to_jsonb(c) - 'created_at' ORDER BY c.id) FROM contact c WHERE c.id < 60;
SELECT string_agg(DISTINCT industry, '|' ORDER BY industry DESC) FROM account;
SELECT make_date(2024, m, 1) AS month, (SELECT count(*) FROM "Sales"."Deal" d WHERE extract(month FROM d."closeDate") = m) FROM generate_series(1, 12) m;
SELECT d."closeDate", d."closeDate" + 30, d."closeDate" - date '2024-01-01', date_part('week', d."closeDate"), (d."closeDate", d."closeDate" + 10) OVERLAPS (date '2024-05-01', date '2024-05-20') FROM "Sales"."Deal" d WHERE d."closeDate" IS NOT NULL ORDER BY d.no LIMIT 20;
SELECT sku, lower(sold), upper(sold), upper_inf(sold), sold * daterange('2024-01-01', '2024-02-01'), dims[1], dims[1:2], array_to_json(dims) FROM product ORDER BY sku;
SELECT product.sku FROM product LEFT JOIN "Sales".deal_line USING (sku) WHERE deal_line.sku IS NULL ORDER BY 1;
SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema IN ('public', 'Sales') AND table_name IN ('account', 'Ticket', 'Deal', 'product') ORDER BY 1, 2;
SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'Ticket' ORDER BY ordinal_position;
SELECT column_name, udt_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'account' AND column_name IN ('health', 'region', 'tags', 'credit_limit') ORDER BY 1;
SELECT e.enumlabel FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid WHERE t.typname = 'ticket_state' ORDER BY e.enumsortorder;
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull FROM pg_attribute a WHERE a.attrelid = '"Ticket"'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) WHERE i.indrelid = '"Sales"."Deal"'::regclass AND i.indisprimary ORDER BY 1;
SELECT tc.table_name, kcu.column_name, ccu.table_name AS references_table FROM information_schema.table_constraints tc JOIN information_schema.key_column_usage kcu ON kcu.constraint_name = tc.constraint_name AND kcu.constraint_schema = tc.constraint_schema JOIN information_schema.constraint_column_usage ccu ON ccu.constraint_name = tc.constraint_name AND ccu.constraint_schema = tc.constraint_schema WHERE tc.constraint_type = 'FOREIGN KEY' AND tc.table_name = 'ticket_tag' ORDER BY 1, 2, 3;
SELECT current_database() IS NOT NULL, current_schema(), current_setting('server_version_num')::int >= 150000, version() LIKE 'PostgreSQL%';
SHOW TimeZone;
EXPLAIN (COSTS OFF) SELECT 1 + 1;
BEGIN; SET LOCAL TIME ZONE 'Asia/Kolkata'; SELECT id, "createdAt"::date FROM "Ticket" ORDER BY id LIMIT 20; COMMIT;
PREPARE by_status (ticket_state) AS SELECT count(*) FROM "Ticket" WHERE status = $1; EXECUTE by_status('open'); EXECUTE by_status('closed'); DEALLOCATE by_status;
COPY (SELECT id, name, region FROM account ORDER BY id) TO STDOUT WITH (FORMAT csv, HEADER);
COPY region TO STDOUT;
COPY contact (id, full_name, email) TO STDOUT (FORMAT csv);
BEGIN; UPDATE account SET health = greatest(health - 1, 0), tags = array_append(tags, 'reviewed') WHERE region = 'DE' RETURNING id, health, tags; ROLLBACK;
BEGIN; UPDATE "Ticket" SET status = 'solved', "resolvedAt" = '2024-06-01' WHERE status = 'waiting' AND "accountId" IN (SELECT id FROM account WHERE region = 'US'); ROLLBACK;
BEGIN; INSERT INTO ticket_tag (ticket_id, tag_id) SELECT t.id, 20 FROM "Ticket" t WHERE t.priority = 1 ON CONFLICT (ticket_id, tag_id) DO NOTHING; SELECT count(*) FROM ticket_tag WHERE tag_id = 20; ROLLBACK;
BEGIN; WITH moved AS (DELETE FROM ticket_tag WHERE tag_id = 3 RETURNING ticket_id) SELECT count(*), count(DISTINCT ticket_id) FROM moved; ROLLBACK;
BEGIN; UPDATE "Sales"."Deal" d SET stage = 'Qualified', probability = 30 FROM account a WHERE a.id = d.account AND a.region = 'NO' AND d.stage = 'Lead' RETURNING d.no, d.stage, d.weighted; ROLLBACK;
BEGIN; MERGE INTO "Sales"."Deal" d USING (SELECT account, no FROM "Sales".deal_line GROUP BY 1, 2 HAVING sum(qty) > 20) l ON (l.account, l.no) = (d.account, d.no) WHEN MATCHED AND d.stage = 'Proposal' THEN UPDATE SET probability = 90 WHEN MATCHED THEN DO NOTHING; SELECT no, probability FROM "Sales"."Deal" WHERE probability = 90 ORDER BY 1; ROLLBACK;
BEGIN; UPDATE urgent SET priority = 1 WHERE priority = 2; SELECT count(*) FROM urgent WHERE priority = 1; ROLLBACK;
BEGIN; UPDATE contact SET lang = 'en' WHERE lang IS NULL RETURNING id, lang; ROLLBACK;
BEGIN; SELECT id, priority FROM "Ticket" WHERE status = 'new' ORDER BY id LIMIT 3 FOR UPDATE SKIP LOCKED; ROLLBACK;
BEGIN; INSERT INTO attachment (ticket_id, seq, filename) SELECT DISTINCT ON (m."ticketId") m."ticketId", m.seq, 'a.txt' FROM "TicketMessage" m ORDER BY m."ticketId", m.seq; ROLLBACK;
BEGIN; DECLARE c CURSOR FOR SELECT id, name FROM account ORDER BY name, id; FETCH 5 FROM c; MOVE 3 FROM c; FETCH ALL FROM c; CLOSE c; COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM "Ticket"; SELECT count(*) FROM account; COMMIT;
-- may be refused
SELECT xmlelement(name account, name) FROM account ORDER BY id LIMIT 2;
EXPLAIN SELECT * FROM account;
SELECT t.id, t.age_hours FROM "Ticket" t ORDER BY 2 DESC, 1 LIMIT 10;
BEGIN; DECLARE c CURSOR FOR SELECT * FROM account_month ORDER BY 1, 2; FETCH 5 FROM c; COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(tickets) FROM account_month; COMMIT;
