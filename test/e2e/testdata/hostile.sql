-- Statements of an agent that wants one bit about a hidden row. Each runs on two databases that differ only in hidden rows;
-- the transcripts must be equal. One statement per line; lines with -- are comments.
-- errors as oracles
SELECT body::int FROM memories
SELECT id FROM memories WHERE body::int = 1
SELECT id FROM memories WHERE 1/(length(body) - 40) > 0
SELECT id FROM memories WHERE (metadata->>'stars')::int8 / 0 > 0 AND title LIKE 'x%'
SELECT id FROM memories WHERE (metadata->>'stars')::int > 100
SELECT id FROM memories WHERE ('{"a":' || body || '}')::jsonb IS NOT NULL
SELECT id FROM memories WHERE title LIKE 'abc\'
SELECT id FROM memories WHERE body ~ '('
SELECT id FROM memories ORDER BY body::int LIMIT 1
SELECT count(*) FILTER (WHERE body::int > 0) FROM memories
SELECT (SELECT body::int FROM memories m2 WHERE m2.id = m.id) FROM memories m
SELECT m.id FROM memories m JOIN people p ON p.name::int = 1
SELECT m.id FROM memories m LEFT JOIN LATERAL (SELECT m.body::int AS n) x ON true WHERE x.n = 1
SELECT 1 FROM memories GROUP BY user_id HAVING sum(length(body)::int2) > 1
SELECT max(body)::int FROM memories
SELECT string_agg(body, ',')::int FROM memories
SELECT array_agg(title ORDER BY title) FROM memories
SELECT sum((metadata->>'stars')::numeric) FROM memories
SELECT min(occurred_at), max(occurred_at), count(*) FROM memories
SELECT avg((metadata->>'stars')::numeric), stddev((metadata->>'stars')::numeric) FROM memories
SELECT count(*) FROM memories
SELECT count(DISTINCT user_id) FROM memories
SELECT count(*) FROM people
SELECT count(*) FROM memory_participants
SELECT count(*) FROM memories, people
SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM people), (SELECT count(*) FROM memory_participants)
-- the participants must not name the hidden memories
SELECT DISTINCT memory_id FROM memory_participants WHERE memory_id NOT IN (SELECT id FROM memories)
SELECT DISTINCT person_id FROM memory_participants WHERE person_id NOT IN (SELECT id FROM people)
SELECT mp.* FROM memory_participants mp LEFT JOIN memories m ON m.id = mp.memory_id WHERE m.id IS NULL
SELECT mp.* FROM memory_participants mp FULL JOIN people p ON p.id = mp.person_id WHERE p.id IS NULL OR mp.memory_id IS NULL
SELECT role, count(*) FROM memory_participants GROUP BY role
SELECT p.id, count(mp.memory_id) FROM people p LEFT JOIN memory_participants mp ON mp.person_id = p.id GROUP BY p.id
SELECT EXISTS (SELECT 1 FROM people WHERE consent_status <> 'granted')
SELECT DISTINCT consent_status FROM people
SELECT bool_and(consent_status = 'granted') FROM people
SELECT NOT EXISTS (SELECT 1 FROM memories WHERE user_id <> (SELECT user_id FROM memories LIMIT 1))
-- names and scopes
SELECT id FROM public.memories
SELECT memories.id FROM memories
SELECT public.memories.id FROM public.memories
SELECT id FROM "memories"
SELECT id FROM ONLY memories
TABLE memories
TABLE ONLY memories
WITH memories AS (SELECT 1 AS id) SELECT * FROM memories
WITH m AS (SELECT * FROM memories) SELECT count(*) FROM m
WITH memories AS (SELECT * FROM memories) SELECT count(*) FROM memories
WITH RECURSIVE memories AS (SELECT 1 AS n UNION ALL SELECT n+1 FROM memories WHERE n < 5) SELECT * FROM memories
WITH m AS (SELECT * FROM memories), n AS (WITH m AS (SELECT 1 AS x) SELECT x FROM m) SELECT (SELECT count(*) FROM m), (SELECT count(*) FROM n)
WITH a AS MATERIALIZED (SELECT * FROM memories) SELECT count(*) FROM a
SELECT x.id FROM memories AS x (id, b, c)
SELECT m FROM memories m
SELECT m.* FROM memories m
SELECT (m).title FROM memories m
SELECT (m.*)::text FROM memories m
SELECT to_jsonb(m) FROM memories m
SELECT row_to_json(m.*) FROM memories m
SELECT json_agg(m) FROM memories m
SELECT m.to_jsonb FROM memories m
SELECT ROW(m.*)::text FROM memories m
SELECT count(m) FROM memories m
SELECT (SELECT m FROM memories m ORDER BY id LIMIT 1)::text
SELECT tableoid::regclass, count(*) FROM memories GROUP BY 1
SELECT ctid FROM memories
SELECT m.xmin, m.ctid FROM memories m
SELECT (m).ctid FROM memories m
SELECT max(ctid::text) FROM people
SELECT id FROM memories WHERE ctid = '(0,1)'
SELECT * FROM memories TABLESAMPLE SYSTEM (100)
SELECT * FROM memories TABLESAMPLE BERNOULLI (50) REPEATABLE (1)
SELECT * FROM memories FOR UPDATE
SELECT * FROM memories FOR KEY SHARE SKIP LOCKED
SELECT (a OR true)::bool FROM (SELECT user_id IS NULL AS a FROM memories) x
SELECT id FROM memories WHERE (user_id IS NULL OR true)::bool
SELECT id FROM memories WHERE (user_id IS NULL OR true) IS NOT NULL
SELECT id FROM memories WHERE (false OR true) IN (true)
SELECT id FROM memories WHERE true OR true
SELECT id FROM memories WHERE 1=1) OR (1=1
SELECT id FROM memories WHERE 1=1 --) x
SELECT id FROM memories /* ) OR true -- */ WHERE true
SELECT id FROM memories WHERE title = 'a'' OR true --'
SELECT id FROM memories WHERE title = E'a\' OR true --'
SELECT id FROM memories WHERE title = $q$ ' OR 1=1 $q$
SELECT id FROM memories WHERE title = U&'\0061' UESCAPE '!'
-- set operations and nesting
SELECT id FROM memories UNION SELECT id FROM people
SELECT id FROM memories EXCEPT SELECT memory_id FROM memory_participants
SELECT id FROM people INTERSECT SELECT person_id FROM memory_participants
SELECT id FROM memories UNION ALL (SELECT person_id FROM memory_participants EXCEPT SELECT id FROM people)
SELECT count(*) OVER (), row_number() OVER (ORDER BY occurred_at), lag(id) OVER (ORDER BY occurred_at) FROM memories
SELECT ntile(4) OVER (ORDER BY occurred_at), id FROM memories
SELECT percent_rank() OVER (ORDER BY occurred_at), id FROM memories
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY body) FROM memories
SELECT mode() WITHIN GROUP (ORDER BY metadata->>'mood') FROM memories
SELECT grouping(user_id), user_id, count(*) FROM memories GROUP BY GROUPING SETS ((user_id), ())
SELECT * FROM ROWS FROM (generate_series(1, (SELECT count(*)::int FROM memories)), unnest(ARRAY[1,2])) AS r(a, b)
SELECT * FROM generate_series(1, (SELECT count(*) FROM people))
SELECT * FROM (VALUES ((SELECT count(*) FROM memories))) v(n)
SELECT id FROM memories OFFSET (SELECT count(*) FROM memories) - 1
SELECT id FROM memories ORDER BY id FETCH FIRST 3 ROWS WITH TIES
SELECT id FROM memories WHERE id = ANY (SELECT memory_id FROM memory_participants)
SELECT id FROM memories WHERE id > ALL (SELECT memory_id FROM memory_participants)
SELECT ARRAY(SELECT id FROM memories ORDER BY id)
SELECT CASE WHEN EXISTS (SELECT 1 FROM memories WHERE body LIKE '%HIDDEN%') THEN 1/0 ELSE 0 END
SELECT coalesce((SELECT body FROM memories WHERE body LIKE '%HIDDEN%' LIMIT 1), 'none')
-- catalogs and statistics
SELECT reltuples, relpages FROM pg_class WHERE relname = 'memories'
SELECT relname, reltuples FROM pg_catalog.pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
SELECT * FROM pg_stats WHERE tablename = 'memories'
SELECT * FROM pg_catalog.pg_statistic
SELECT * FROM pg_statistic_ext_data
SELECT * FROM pg_stat_user_tables
SELECT * FROM pg_stat_all_tables
SELECT * FROM pg_statio_user_tables
SELECT * FROM pg_stat_activity
SELECT * FROM pg_locks
SELECT * FROM pg_prepared_xacts
SELECT * FROM pg_cursors
SELECT * FROM pg_prepared_statements
SELECT * FROM pg_authid
SELECT * FROM pg_shadow
SELECT * FROM pg_largeobject
SELECT * FROM pg_file_settings
SELECT * FROM pg_hba_file_rules
SELECT * FROM pgconsent.keys
SELECT * FROM pgconsent_signed.public_people
SELECT pgconsent.seal_key()
SELECT pgconsent_signed.attr('user')
SELECT pgconsent_signed.text_is_signed()
SELECT current_setting('pgconsent.seal')
SELECT current_setting('pgconsent' || '.seal')
SELECT setting FROM pg_settings WHERE name LIKE 'pgconsent%'
SELECT set_config('pgconsent.seal', 'x', false)
SELECT set_config('row_security', 'off', false)
UPDATE pg_settings SET setting = 'off' WHERE name = 'row_security'
SELECT pg_relation_size('memories')
SELECT pg_total_relation_size('memories'::regclass), pg_table_size('people'), pg_indexes_size('people'), pg_database_size(current_database())
SELECT pg_stat_get_live_tuples('memories'::regclass), pg_stat_get_numscans('memories'::regclass)
SELECT pg_column_size(m.*) FROM memories m
SELECT col_description('memories'::regclass, 1), obj_description('memories'::regclass)
SELECT pg_get_constraintdef(oid) FROM pg_constraint
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef
SELECT prosrc FROM pg_proc WHERE proname = 'match_memories'
SELECT pg_get_functiondef('match_memories'::regproc)
SELECT pg_get_viewdef('pgconsent_signed.public_people'::regclass)
SELECT polname, pg_get_expr(polqual, polrelid) FROM pg_policy
SELECT * FROM pg_policies
SELECT table_name FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1
SELECT table_name, column_name, column_default FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2
SELECT table_name FROM information_schema.columns WHERE table_schema LIKE 'pgconsent%'
SELECT nspname FROM pg_namespace ORDER BY 1
SELECT count(*) FROM pg_database
SELECT rolname FROM pg_roles ORDER BY 1
-- functions that read behind the parser
SELECT query_to_xml('SELECT * FROM memories', true, false, '')
SELECT table_to_xml('memories'::regclass, true, false, '')
SELECT database_to_xml(true, false, '')
SELECT schema_to_xml('public', true, false, '')
SELECT cursor_to_xml('c', 1, true, false, '')
SELECT ts_stat('SELECT to_tsvector(body) FROM memories')
SELECT * FROM ts_stat('SELECT to_tsvector(body) FROM memories')
SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, ''b''::tsquery')
SELECT pg_read_file('/etc/passwd')
SELECT * FROM pg_ls_dir('.')
SELECT lo_import('/etc/passwd')
SELECT lo_create(4242)
SELECT pg_sleep(0)
SELECT ('0'::float8).pg_sleep
SELECT pg_notify('a', 'b')
SELECT pg_advisory_lock(1)
SELECT pg_try_advisory_lock(1)
SELECT pg_terminate_backend(pg_backend_pid())
SELECT pg_cancel_backend(1)
SELECT nextval('s')
SELECT pg_export_snapshot()
SELECT txid_current()
SELECT pg_current_xact_id()
SELECT pg_current_wal_lsn()
SELECT pg_logical_emit_message(false, 'a', 'b')
SELECT dblink('dbname=x', 'SELECT 1')
SELECT * FROM json_populate_recordset(NULL::memories, '[{"title":"x"}]')
SELECT * FROM memory_edges
SELECT count(*) FROM memory_edges
SELECT 'memory_edges'::regclass
SELECT NULL::memory_edges
SELECT has_table_privilege('memory_edges', 'select')
SELECT * FROM no_such_table
SELECT * FROM public.no_such_table
SELECT * FROM other.people
SELECT no_such_column FROM memories
SELECT no_such_function(1)
-- the pinned function
SELECT count(*) FROM search_memories_semantic('walk', 1000)
SELECT count(*) FROM search_memories_semantic('walk', 1000, false)
SELECT count(*) FROM search_memories_semantic('walk', 1000, respect_consent => false)
SELECT count(*) FROM search_memories_semantic(query_text => 'walk', match_count => 1000, respect_consent => NULL)
SELECT count(*) FROM public.search_memories_semantic('walk', 1000, (SELECT false))
SELECT count(*) FROM search_memories_semantic(VARIADIC ARRAY['walk'])
-- statements that are refused
INSERT INTO memories (title) VALUES ('x')
INSERT INTO people (id) SELECT id FROM people ON CONFLICT DO NOTHING
UPDATE memories SET title = title
DELETE FROM memories
MERGE INTO people p USING people q ON p.id = q.id WHEN MATCHED THEN DO NOTHING
EXPLAIN SELECT * FROM memories
EXPLAIN ANALYZE SELECT * FROM memories
EXPLAIN (COSTS OFF) SELECT * FROM memories
DECLARE c CURSOR FOR SELECT * FROM memories
PREPARE p AS SELECT * FROM memories ORDER BY id
EXECUTE p
PREPARE cast_in (int) AS SELECT id FROM memories WHERE body::int = $1 OR true ORDER BY id
EXECUTE cast_in (1)
PREPARE gone AS SELECT * FROM people WHERE consent_status <> 'granted'; EXECUTE gone; DEALLOCATE gone
BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id, title FROM memories ORDER BY id; MOVE 5 FROM c; FETCH 3 FROM c; MOVE ALL FROM c; FETCH PRIOR FROM c; COMMIT
BEGIN; DECLARE c CURSOR FOR SELECT id FROM memories WHERE body::int = 1 ORDER BY id; FETCH ALL FROM c; COMMIT
ROLLBACK
DECLARE h CURSOR WITH HOLD FOR SELECT name FROM people WHERE consent_status <> 'granted' ORDER BY 1; FETCH ALL FROM h; MOVE BACKWARD ALL FROM h; CLOSE ALL
BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM memories; COMMIT
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE; SELECT count(*) FROM people; COMMIT
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT 1
EXPLAIN SELECT count(*) FROM generate_series(1, 3), match_memories('x', 3)
PREPARE into_table AS SELECT * INTO copied FROM memories
EXECUTE "pgconsent_seal"
EXECUTE p (1)
EXECUTE p
FETCH c
DEALLOCATE ALL
DISCARD ALL
RESET ALL
RESET ROLE
SET ROLE postgres
SET SESSION AUTHORIZATION postgres
SET row_security = off
SET search_path = pgconsent, public
SET standard_conforming_strings = off
SET client_encoding = 'SJIS'
SET client_min_messages = debug5
SET debug_print_plan = on
SET pgconsent.seal = 'x'
SET LOCAL pgconsent.seal = ''
SHOW pgconsent.seal
SHOW ALL
SHOW data_directory
BEGIN ISOLATION LEVEL REPEATABLE READ
SET TRANSACTION SNAPSHOT '00000003-0000001B-1'
LISTEN a
NOTIFY a
LOCK TABLE memories
TRUNCATE memories
VACUUM memories
ANALYZE memories
CREATE TABLE t AS SELECT * FROM memories
CREATE TEMP TABLE t (a int)
SELECT * INTO t FROM memories
CREATE VIEW v AS SELECT * FROM memories
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'
CREATE DOMAIN d AS text
ALTER TABLE memories DISABLE ROW LEVEL SECURITY
ALTER ROLE CURRENT_USER SET row_security = off
DROP TABLE memories
GRANT SELECT ON memories TO PUBLIC
DO $$ BEGIN RAISE NOTICE 'x'; END $$
CALL p()
COPY memories TO '/tmp/x'
COPY memories TO PROGRAM 'cat'
COPY memories FROM STDIN (NULL 1)
COPY memory_edges TO STDOUT
COPY (SELECT * FROM memory_edges) TO STDOUT
COPY (DELETE FROM memories RETURNING *) TO STDOUT
COPY memories TO STDOUT
COPY memories (id, title) TO STDOUT (FORMAT csv, HEADER)
COPY (SELECT count(*) FROM memories) TO STDOUT
COPY pg_class TO STDOUT
SECURITY LABEL ON TABLE memories IS 'x'
LOAD 'x'
CHECKPOINT
-- several statements in one message
SELECT count(*) FROM memories; SELECT count(*) FROM people
SELECT count(*) FROM memories; DELETE FROM memories
SET search_path = pg_temp; SELECT count(*) FROM memories
COMMIT; SELECT count(*) FROM memories
BEGIN; SELECT count(*) FROM memories; ROLLBACK
SELECT 1; SELECT * FROM memory_edges
;;;
-- calls and casts in attribute notation, behind names that hide other names
WITH c AS (SELECT 1 AS pg_stat_get_live_tuples) SELECT (SELECT m.pg_stat_get_live_tuples FROM (c AS m CROSS JOIN c AS k) AS j) FROM to_regclass('memories') AS m
WITH c AS (SELECT 1 AS pg_total_relation_size) SELECT (SELECT 1 FROM c AS m, (c AS x JOIN c AS y ON m.pg_total_relation_size > 0)) FROM to_regclass('memories') AS m
WITH c AS (SELECT 1 AS pg_relation_size) SELECT (SELECT "regclass".pg_relation_size FROM CAST('memories' AS regclass)) FROM c AS "regclass"
WITH c AS (SELECT 1 AS current_setting) SELECT (SELECT m.current_setting FROM (c AS m CROSS JOIN c AS k) AS j) FROM lower('pgconsent.seal') AS m
SELECT ('memories'::regclass).pg_relation_size
SELECT (m.r).pg_relation_size FROM (SELECT 'memories'::regclass AS r) m
SELECT ('{3}'::text)._xid
SELECT age(coalesce(relfrozenxid, '3')) FROM pg_class LIMIT 1
SELECT age((json_populate_record(NULL::pg_class, '{"relfrozenxid": "3"}')).relfrozenxid)
SELECT age(((ARRAY['3'])._xid)[1])
-- scopes of WITH
WITH pg_class AS (SELECT 1 AS reltuples) SELECT * FROM pg_class
WITH memories AS (SELECT 1 AS id) SELECT count(*) FROM public.memories
WITH "public.memories" AS (SELECT 1 AS id) SELECT * FROM "public.memories"
(WITH memories AS (SELECT 1 AS id) SELECT id FROM memories) UNION ALL SELECT count(*) FROM memories
SELECT (WITH memories AS (SELECT 1 AS id) SELECT count(*) FROM memories), (SELECT count(*) FROM memories)
WITH a AS (SELECT count(*) AS n FROM memories), memories AS (SELECT 1 AS id) SELECT n, (SELECT count(*) FROM memories) FROM a
WITH RECURSIVE t(n) AS (SELECT count(*) FROM memories UNION ALL (WITH memories AS (SELECT 1) SELECT n - 1 FROM t, memories WHERE n > 0 LIMIT 1)) SELECT max(n), min(n) FROM t
WITH RECURSIVE people AS (SELECT id FROM public.people UNION SELECT id FROM people) SELECT count(*) FROM people
SELECT * FROM (WITH x AS (TABLE memories) TABLE x) y ORDER BY id LIMIT 2
SELECT x.n FROM memories m, LATERAL (WITH people AS (SELECT m.id) SELECT count(*) AS n FROM people) x ORDER BY 1 LIMIT 1
-- names
SELECT count(*) FROM U&"memor!0069es" UESCAPE '!'
SELECT count(*) FROM U&"\006demories"
SELECT count(*) FROM "Memories"
SELECT count(*) FROM MEMORIES
SELECT count(*) FROM arcive.public.memories
SELECT count(*) FROM public /* x */ . /* y */ memories
SELECT count(*) FROM public/**/./**/"memories"/**/AS/**/m
SELECT m."id" FROM (memories) m LIMIT 0
SELECT count(*) FROM (memories CROSS JOIN people)
SELECT count(*) FROM memories_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
SELECT count(*) AS nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn FROM memories
SELECT count(*) FROM memories *
SELECT count(*) FROM ONLY (memories) AS m (a, b)
SELECT count(*) FROM memories JOIN people USING (user_id) AS j WHERE j.user_id IS NOT NULL
SELECT j.x FROM (memories m JOIN people p ON m.user_id = p.user_id) AS j (x) ORDER BY 1 LIMIT 1
SELECT count(*) FROM memories m NATURAL JOIN people p
TABLE memories ORDER BY id LIMIT 1
TABLE memories UNION ALL TABLE memories ORDER BY 1 LIMIT 1
-- rows as types
SELECT * FROM json_populate_recordset(NULL::memory_participants, (SELECT json_agg(p) FROM memory_participants p)) ORDER BY 1, 2 LIMIT 1
SELECT (SELECT p FROM people p ORDER BY id LIMIT 1)::text::people IS NULL
SELECT ROW(p.*)::people = p, p::text FROM people p ORDER BY p LIMIT 1
SELECT array_agg(m ORDER BY m.id) IS NULL FROM memories m
SELECT unnest(array_agg(p ORDER BY p.id)) FROM people p LIMIT 1
SELECT xmlforest(m.title) FROM memories m ORDER BY m.id LIMIT 1
SELECT x.* FROM memories m, LATERAL (SELECT m.*) x ORDER BY x.id LIMIT 1
SELECT hash_record(m) = hash_record(n) FROM memories m JOIN memories n USING (id) LIMIT 1
SELECT max(m.id::text) FILTER (WHERE m IS NOT NULL) FROM memories m
SELECT DISTINCT ON (user_id) user_id, id FROM memories ORDER BY user_id, id
SELECT id, title, body FROM memories GROUP BY id ORDER BY id LIMIT 1
SELECT (id), title FROM memories GROUP BY ROLLUP (id), title ORDER BY 1, 2 LIMIT 1
SELECT m.id AS x, m.title FROM memories m GROUP BY x ORDER BY x LIMIT 1
SELECT count(*) FROM memories GROUP BY () HAVING count(*) > 0
SELECT first_value(title) OVER w, count(*) OVER w FROM memories WINDOW w AS (ORDER BY occurred_at, id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) LIMIT 1
SELECT sum(1) OVER (ORDER BY length(body) GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM memories
-- rows that stop a statement
SELECT (SELECT id FROM memories WHERE body LIKE '%HIDDEN%')
SELECT id FROM memories WHERE id = (SELECT id FROM memories WHERE title = 'abc')
SELECT 1 / (SELECT count(*) FROM people WHERE consent_status = 'revoked')
SELECT lower(title)::xml FROM memories WHERE title LIKE 'HIDDEN%'
SELECT ('{' || title || '}')::int[] FROM memories WHERE title = 'abc'
SELECT id FROM memories WHERE jsonb_path_exists(metadata, '$.stars ? (@ / 0 > 1)')
SELECT id FROM memories WHERE metadata @@ '$.stars.double() > 1e400'
SELECT id FROM memories WHERE to_tsvector('english', body) @@ to_tsquery('hidden & (')
SELECT id FROM memories WHERE regexp_like(body, 'HIDDEN(', 'z')
SELECT factorial(length(body) * 1000) FROM memories WHERE body LIKE 'HIDDEN%'
SELECT generate_series(1, length(body)) FROM memories WHERE body = 'HIDDEN('
SELECT make_date(2020, 13, 1) FROM memories WHERE title = 'abc'
SELECT setseed(length(title)) FROM memories WHERE title = 'abc'
SELECT id FROM memories WHERE occurred_at = 'infinity' OR extract(epoch FROM occurred_at)::int4 > 0 AND occurred_at > '2100-01-01'
-- casts of names and of types
SELECT 'memories'::regclass, 'memories'::regclass::oid = 0, 'count'::regproc, 'public'::regnamespace
SELECT NULL::pgconsent_signed.public_people
SELECT 'pgconsent.keys'::regclass
SELECT pg_get_object_address('large object', '{42}', '{}')
SELECT '1'::xid
SELECT NULL::_xid
SELECT '(0,1)'::tid
SELECT CAST('x' AS information_schema.sql_identifier)
SELECT $1abc
SELECT 1_000, 0x1F
SELECT 1 OPERATOR(pg_catalog.+) 1, 1 OPERATOR(public.+) 1
-- statements about the session
SET statement_timeout TO DEFAULT
SET timezone FROM CURRENT
SET LOCAL timezone = 'UTC'
SET TIME ZONE LOCAL
SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE
SET default_transaction_isolation = 'repeatable read'
SET timezone = '../../../../etc/passwd'
SET default_text_search_config = 'memories'
SET lock_timeout = '1ms'; SELECT count(*) FROM memories
SET jit = on; SELECT count(*) FROM memories WHERE body::int > 0
SET plan_cache_mode = force_generic_plan; SELECT count(*) FROM memories WHERE title LIKE 'abc\'
SHOW TRANSACTION ISOLATION LEVEL
SHOW SESSION AUTHORIZATION
SHOW search_path
BEGIN; SAVEPOINT a; SELECT body::int FROM memories WHERE title = 'abc'; ROLLBACK TO a; COMMIT AND CHAIN
BEGIN READ ONLY DEFERRABLE; SELECT count(*) FROM people; COMMIT
ROLLBACK AND CHAIN
COPY (SELECT * FROM memories WHERE title = 'abc') TO STDOUT (FORMAT binary)
COPY memories (title) TO STDOUT (FORMAT csv, FORCE_QUOTE *, DELIMITER ';', NULL 'n')
COPY memories (ctid) TO STDOUT
COPY memories TO STDOUT WHERE true
COPY BINARY people TO STDOUT
-- errors at odd places
SELECT 'éèê', no_such FROM memories m JOIN people p ON m.user_id = p.user_id
SELECT '日本', count(*) FROM memories, people WHERE no_such = 1
SELECT memories.no_such FROM memories
SELECT pgconsent_row.id FROM memories
SELECT id FROM memories, people
SELECT m.id FROM memories m GROUP BY m.title
SELECT count(*) FROM memories WHERE count(*) > 1
SELECT * FROM unnest((SELECT array_agg(id ORDER BY id) FROM memories), ARRAY[1, 2]) AS u (a, b) ORDER BY 1, 2 LIMIT 3
SELECT json_object((SELECT array_agg(name ORDER BY id) FROM people), (SELECT array_agg(id::text ORDER BY id) FROM people)) IS NULL
