-- Questions to a retrieval and chat database, as its libraries, its dashboards and agents write them.
-- must be answered
SELECT langchain_pg_embedding.collection_id AS collection_id, langchain_pg_embedding.document AS document, langchain_pg_embedding.cmetadata AS cmetadata, langchain_pg_embedding.id AS id, langchain_pg_embedding.embedding <-> '(0.1, 0.2, 0.3, 0.4)' AS distance FROM langchain_pg_embedding JOIN langchain_pg_collection ON langchain_pg_embedding.collection_id = langchain_pg_collection.uuid WHERE langchain_pg_embedding.collection_id = md5('lc 2')::uuid ORDER BY distance ASC, id LIMIT 4;
SELECT langchain_pg_collection.uuid AS langchain_pg_collection_uuid, langchain_pg_collection.name AS langchain_pg_collection_name, langchain_pg_collection.cmetadata AS langchain_pg_collection_cmetadata FROM langchain_pg_collection WHERE langchain_pg_collection.name = 'lc-3' LIMIT 1;
SELECT id, document FROM langchain_pg_embedding WHERE jsonb_path_match(cmetadata, '$.page > 2') AND cmetadata @> '{"owner": "public"}' ORDER BY embedding <-> '(0.5,0.5,0.5,0.5)'::cube, id LIMIT 10;
SELECT id FROM langchain_pg_embedding WHERE (cmetadata ->> 'page')::integer BETWEEN 1 AND 3 AND cmetadata ->> 'source' IN ('file1.pdf', 'file2.pdf', 'file3.pdf') ORDER BY id;
SELECT cmetadata ->> 'source' AS source, count(*), min(embedding <-> '(0,0,0,0)') FROM langchain_pg_embedding GROUP BY 1 ORDER BY 1;
SELECT id, content, metadata, embedding <-> '(0.2,0.4,0.6,0.8)'::cube AS distance FROM chunks WHERE embedding IS NOT NULL ORDER BY embedding <-> '(0.2,0.4,0.6,0.8)'::cube, id LIMIT 5;
SELECT c.id, c.content, d.title, d.source_url, 1 - (c.embedding <-> '(0.3,0.3,0.3,0.3)') AS score FROM chunks c JOIN documents d ON d.id = c.document_id WHERE d.state = 'indexed' AND c.metadata @> '{"lang": "en"}' AND c.embedding <-> '(0.3,0.3,0.3,0.3)' < 0.6 ORDER BY c.embedding <-> '(0.3,0.3,0.3,0.3)', c.id LIMIT 8;
SELECT id, (SELECT sqrt(sum(power(cube_ll_coord(embedding, i) - (ARRAY[0.1,0.2,0.3,0.4])[i], 2))) FROM generate_series(1, 4) i) AS d FROM chunks WHERE embedding IS NOT NULL ORDER BY d, id LIMIT 5;
SELECT cube_dim(embedding), cube_ll_coord(embedding, 1), embedding ~> 2, cube_distance(embedding, '(0,0,0,0)'), embedding <#> '(0,0,0,0)', embedding <=> '(0,0,0,0)' FROM chunks WHERE embedding IS NOT NULL ORDER BY id LIMIT 5;
SELECT id FROM chunks WHERE embedding <@ '(0,0,0,0),(0.4,0.4,0.9,0.9)'::cube ORDER BY id;
SELECT a.id, b.id, a.embedding <-> b.embedding AS d FROM memories a CROSS JOIN LATERAL (SELECT m.id, m.embedding FROM memories m WHERE m.id <> a.id ORDER BY m.embedding <-> a.embedding, m.id LIMIT 2) b ORDER BY a.id, d, b.id;
-- needs: row security
SELECT * FROM match_documents('(0.1,0.2,0.3,0.4)'::cube, 5);
-- needs: row security
SELECT id, content, similarity FROM match_documents(query_embedding => cube(ARRAY[0.5,0.5,0.5,0.5]), match_count => 7, filter => '{"lang": "de"}') WHERE similarity > 0.5 ORDER BY similarity DESC, id;
-- needs: row security
SELECT d.title, m.content, m.similarity FROM match_documents('(0.9,0.1,0.5,0.2)', 10, '{}') m JOIN documents d ON d.id = m.document_id ORDER BY m.similarity DESC, m.id;
-- needs: row security
SELECT "match_documents".* FROM "public"."match_documents"("query_embedding" := '(0.1,0.2,0.3,0.4)', "match_count" := 3) LIMIT 3 OFFSET 0;
-- needs: row security
WITH pgrst_source AS (SELECT "pgrst_call".* FROM "public"."match_documents"("query_embedding" := '(0.1,0.2,0.3,0.4)') AS "pgrst_call") SELECT null::bigint AS total_result_set, pg_catalog.count(_postgrest_t) AS page_total, coalesce(json_agg(_postgrest_t), '[]') AS body FROM (SELECT "pgrst_source"."id", "pgrst_source"."content" FROM "pgrst_source" LIMIT 2 OFFSET 0) _postgrest_t;
-- needs: row security
SELECT id, fact, importance FROM match_memories('(0.2,0.2,0.2,0.2)', 0.3, 6);
-- needs: row security
SELECT (match_memories('(0.2,0.2,0.2,0.2)', 0.3, 3)).fact;
-- needs: row security
SELECT * FROM hybrid_search('refund OR hotel', '(0.4,0.3,0.2,0.1)', 10);
-- needs: row security
SELECT m.seq, m.role, text_of(m.content) FROM get_thread_messages(md5('thread 13')::uuid, NULL, 5) m ORDER BY m.seq;
-- needs: row security
SELECT t.id, g.seq, g.role FROM threads t CROSS JOIN LATERAL get_thread_messages(t.id, 4, 2) g ORDER BY t.id, g.seq;
WITH full_text AS (SELECT id, row_number() OVER (ORDER BY ts_rank_cd(fts, websearch_to_tsquery('refund windows')) DESC, id) AS rank_ix FROM chunks WHERE fts @@ websearch_to_tsquery('refund windows') ORDER BY rank_ix LIMIT 20), semantic AS (SELECT id, row_number() OVER (ORDER BY embedding <-> '(0.4,0.3,0.2,0.1)', id) AS rank_ix FROM chunks ORDER BY rank_ix LIMIT 20) SELECT chunks.id, chunks.content, coalesce(1.0 / (60 + full_text.rank_ix), 0.0) + coalesce(1.0 / (60 + semantic.rank_ix), 0.0) AS rrf FROM full_text FULL OUTER JOIN semantic ON full_text.id = semantic.id JOIN chunks ON coalesce(full_text.id, semantic.id) = chunks.id ORDER BY rrf DESC, chunks.id LIMIT 10;
WITH q AS (SELECT '(0.4,0.3,0.2,0.1)'::cube AS v, plainto_tsquery('english', 'liability caps') AS t) SELECT c.id, 0.7 * (1 / (1 + (c.embedding <-> q.v))) + 0.3 * ts_rank(c.fts, q.t) AS score FROM chunks c, q WHERE c.embedding IS NOT NULL ORDER BY score DESC, c.id LIMIT 10;
WITH nearest AS (SELECT c.*, c.embedding <-> '(0.7,0.2,0.1,0.9)' AS d, row_number() OVER (PARTITION BY c.document_id ORDER BY c.embedding <-> '(0.7,0.2,0.1,0.9)', c.id) AS rn FROM chunks c WHERE c.embedding IS NOT NULL) SELECT n.document_id, d.title, n.content, n.d FROM nearest n JOIN documents d ON d.id = n.document_id WHERE n.rn = 1 ORDER BY n.d, n.id LIMIT 6;
SELECT c.id, c.content, (SELECT string_agg(x.content, E'\n' ORDER BY x.chunk_index) FROM chunks x WHERE x.document_id = c.document_id AND x.chunk_index BETWEEN c.chunk_index - 1 AND c.chunk_index + 1) AS context FROM chunks c ORDER BY c.embedding <-> '(0.2,0.9,0.4,0.5)', c.id LIMIT 4;
SELECT id, title, ts_rank(fts, q) AS rank, ts_headline('english', content, q, 'MaxFragments=2, FragmentDelimiter=" ... "') FROM documents, websearch_to_tsquery('english', 'travel "hotel limits" -meeting') q WHERE fts @@ q ORDER BY rank DESC, id LIMIT 10;
SELECT id, title FROM documents WHERE unaccent(content) ILIKE '%cafe naive%' ORDER BY id LIMIT 5;
SELECT id, title, similarity(title, 'refnd guide') FROM documents WHERE title % 'refund guide' ORDER BY 3 DESC, id LIMIT 5;
SELECT id FROM documents WHERE fts @@ phraseto_tsquery('english', 'access reviews') OR metadata->'tags' ? 't1' ORDER BY id;
SELECT metadata->>'source' AS source, state, count(*), max((metadata->>'page')::int) FROM documents GROUP BY ROLLUP (1, 2) ORDER BY 1 NULLS LAST, 2 NULLS LAST;
SELECT t.tag, count(*) FROM documents d CROSS JOIN LATERAL jsonb_array_elements_text(d.metadata->'tags') AS t (tag) GROUP BY t.tag ORDER BY 2 DESC, 1;
SELECT metadata #>> '{author,name}' AS author, count(DISTINCT collection_id), array_agg(id ORDER BY id) FROM documents WHERE metadata ? 'author' GROUP BY 1 ORDER BY 1;
SELECT regexp_replace(source_url, '^https?://([^/]+)/([^/]+)/.*$', '\1 \2') AS part, count(*) FROM documents GROUP BY 1 ORDER BY 1 NULLS LAST;
SELECT (regexp_match(source_url, '/(\w+)/(\d+)$'))[1], split_part(source_url, '/', 4), checksum = md5(content) AS same FROM documents ORDER BY id LIMIT 9;
SELECT checksum, count(*) FROM documents GROUP BY checksum HAVING count(*) > 1;
SELECT error, count(*) FROM documents WHERE state = 'failed' GROUP BY error ORDER BY error;
SELECT c.name, c.visibility, count(d.*) AS documents, count(*) FILTER (WHERE d.state = 'indexed') AS indexed, max(d.updated_at) FROM collections c LEFT JOIN documents d ON d.collection_id = c.id GROUP BY c.id ORDER BY c.id;
SELECT c.id, c.name, c.cmetadata->>'splitter', (c.cmetadata->>'size')::int, json_typeof(c.cmetadata) FROM collections c ORDER BY c.id;
SELECT d.id, count(k.id) AS chunks, sum(k.token_count) AS tokens, avg(k.token_count)::numeric(8,1), bool_or(k.embedding IS NULL) AS missing FROM documents d LEFT JOIN chunks k ON k.document_id = d.id GROUP BY d.id ORDER BY d.id;
SELECT d.id FROM documents d WHERE NOT EXISTS (SELECT 1 FROM chunks k WHERE k.document_id = d.id AND k.embedding IS NULL) ORDER BY d.id;
SELECT document_id, chunk_index, chunk_index - lag(chunk_index) OVER w AS gap, sum(token_count) OVER (w ROWS UNBOUNDED PRECEDING) FROM chunks WINDOW w AS (PARTITION BY document_id ORDER BY chunk_index) ORDER BY 1, 2 LIMIT 30;
SELECT metadata->'loc'->>'from' AS f, (metadata#>>'{loc,to}')::int - (metadata#>>'{loc,from}')::int AS len FROM chunks ORDER BY id LIMIT 7;
SELECT * FROM searchable WHERE metadata @> '{"source": "wiki"}' ORDER BY embedding <-> '(0.1,0.1,0.1,0.1)', id LIMIT 5;
SELECT title, count(*) FROM searchable GROUP BY title ORDER BY title LIMIT 10;
SELECT id, title, model, messages, tokens, last_at, last_text FROM thread_overview ORDER BY id;
SELECT model, avg(messages)::numeric(6,2), sum(tokens) FROM thread_overview GROUP BY model ORDER BY model;
SELECT day, model, sum(prompt), sum(completion), round(sum(cost), 4) FROM usage_daily GROUP BY day, model ORDER BY day, model;
SELECT t.id, t.title, t.updated_at FROM threads t WHERE NOT t.archived AND (t.updated_at, t.id) < ('2024-03-20 00:00+00', 'ffffffff-ffff-ffff-ffff-ffffffffffff') ORDER BY t.updated_at DESC, t.id DESC LIMIT 10;
SELECT t.id, last.role, last.txt FROM threads t LEFT JOIN LATERAL (SELECT m.role, m.content->0->>'text' AS txt FROM messages m WHERE m.thread_id = t.id ORDER BY m.seq DESC LIMIT 1) last ON true ORDER BY t.id;
SELECT m.role, m.content FROM messages m WHERE m.thread_id = md5('thread 13')::uuid ORDER BY m.seq DESC LIMIT 6;
SELECT json_agg(json_build_object('role', role, 'content', content) ORDER BY seq) FROM messages WHERE thread_id = md5('thread 13')::uuid;
SELECT m.id, p->>'type' AS type, p->>'text' AS text, n FROM messages m CROSS JOIN LATERAL jsonb_array_elements(m.content) WITH ORDINALITY AS x (p, n) ORDER BY m.id, n LIMIT 40;
SELECT p->>'type' AS type, count(*) FROM messages, jsonb_array_elements(content) AS p GROUP BY 1 ORDER BY 1;
SELECT id, jsonb_path_query_array(content, '$[*] ? (@.type == "text").text') AS texts FROM messages ORDER BY id LIMIT 10;
SELECT id FROM messages WHERE content @> '[{"type": "image_url"}]' ORDER BY id;
SELECT id FROM messages WHERE content @? '$[*] ? (@.text like_regex "error [0-9]+" flag "i")' ORDER BY id;
SELECT id, ts_rank(fts, q) FROM messages, to_tsquery('english', 'hotel | build:*') q WHERE fts @@ q ORDER BY 2 DESC, 1 LIMIT 10;
SELECT text_of(content) AS txt, length(text_of(content)) FROM messages ORDER BY id LIMIT 8;
WITH RECURSIVE branch AS (SELECT id, parent_id, seq, 1 AS depth FROM messages WHERE thread_id = md5('thread 13')::uuid AND seq = 8 UNION ALL SELECT m.id, m.parent_id, m.seq, b.depth + 1 FROM messages m JOIN branch b ON m.id = b.parent_id) SELECT depth, seq FROM branch ORDER BY depth;
WITH budget AS (SELECT id, thread_id, seq, tokens, sum(coalesce(tokens, 0)) OVER (PARTITION BY thread_id ORDER BY seq DESC) AS total FROM messages) SELECT thread_id, count(*), max(total) FROM budget WHERE total < 900 GROUP BY thread_id ORDER BY thread_id;
SELECT role, count(*), sum(tokens), avg(tokens)::int, percentile_cont(0.9) WITHIN GROUP (ORDER BY tokens) FROM messages GROUP BY role ORDER BY role;
SELECT thread_id, seq, created_at - lag(created_at) OVER (PARTITION BY thread_id ORDER BY seq) AS wait FROM messages ORDER BY thread_id, seq LIMIT 30;
SELECT date_trunc('hour', created_at AT TIME ZONE 'UTC') AS hour, count(*) FILTER (WHERE role = 'user') AS asked, count(*) FILTER (WHERE role = 'assistant') AS answered FROM messages GROUP BY 1 ORDER BY 1 LIMIT 40;
WITH days AS (SELECT generate_series(date '2024-03-01', date '2024-03-20', interval '1 day')::date AS day) SELECT d.day, count(DISTINCT m.thread_id) AS threads, count(m.id) FROM days d LEFT JOIN messages m ON m.created_at >= d.day AND m.created_at < d.day + 1 GROUP BY d.day ORDER BY d.day;
SELECT finish_reason, model, count(*), GROUPING(finish_reason, model) FROM messages GROUP BY CUBE (finish_reason, model) ORDER BY 4, 1, 2;
SELECT m.thread_id, string_agg(format('%s: %s', m.role, left(m.content->0->>'text', 20)), ' | ' ORDER BY m.seq) FROM messages m GROUP BY m.thread_id ORDER BY 1 LIMIT 6;
SELECT name, status, count(*), avg(duration), percentile_disc(0.95) WITHIN GROUP (ORDER BY duration) FROM tool_calls GROUP BY name, status ORDER BY 1, 2;
SELECT name, count(*) FILTER (WHERE status = 'error') * 100.0 / count(*) AS pct FROM tool_calls GROUP BY name ORDER BY pct DESC, name;
SELECT id, (arguments->>'limit')::int, result->>'rows', (result->>'ok')::boolean, EXTRACT(milliseconds FROM duration) FROM tool_calls ORDER BY id LIMIT 20;
SELECT m.thread_id, t.name, count(*) FROM tool_calls t JOIN messages m ON m.id = t.message_id GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 10;
SELECT t.id FROM tool_calls t WHERE t.result IS NULL AND t.ended_at IS NOT NULL ORDER BY t.id;
SELECT f.score, count(*), round(avg(f.score), 3) FROM feedback f GROUP BY f.score ORDER BY f.score;
SELECT m.model, sum(f.score), count(*) FILTER (WHERE f.score = 1) AS up, count(*) FILTER (WHERE f.score = -1) AS down FROM feedback f JOIN messages m ON m.id = f.message_id GROUP BY m.model ORDER BY m.model;
SELECT tag, count(*) FROM feedback, unnest(tags) AS tag GROUP BY tag ORDER BY 2 DESC, tag;
SELECT f.id, f.comment, p.full_name FROM feedback f LEFT JOIN profiles p ON p.id = f.user_id ORDER BY f.id;
SELECT p.id, p.username, p.full_name, p.bio, p.preferences->>'tone' AS tone FROM profiles p ORDER BY p.id;
SELECT p.preferences, count(*) FROM profiles p GROUP BY 1 ORDER BY 1;
SELECT username FROM profiles WHERE username = 'HANDLE4' OR username LIKE 'handle1%' ORDER BY username;
SELECT o.name, o.plan, count(m.user_id), count(p.id) FROM organizations o JOIN org_members m ON m.org_id = o.id LEFT JOIN profiles p ON p.id = m.user_id GROUP BY o.id ORDER BY o.name;
SELECT o.*, (SELECT count(*) FROM threads t WHERE t.org_id = o.id) FROM organizations o ORDER BY o.id;
SELECT id, fact, importance, metadata->'categories' FROM memories WHERE valid @> timestamptz '2024-04-01 00:00+00' AND superseded_by IS NULL ORDER BY importance DESC, id;
SELECT fact, embedding <-> '(0.5,0.1,0.9,0.3)' AS d, importance * exp(-EXTRACT(epoch FROM timestamptz '2024-07-01 00:00+00' - created_at) / 8640000) AS weight FROM memories ORDER BY d, id LIMIT 6;
SELECT kind, agent_id, count(*), max(importance), avg((metadata->>'confidence')::float8)::numeric(5,3) FROM memories GROUP BY kind, agent_id ORDER BY 1, 2 NULLS LAST;
SELECT m.fact, s.weight, x.role, x.content->0->>'text' FROM memories m JOIN memory_sources s ON s.memory_id = m.id LEFT JOIN messages x ON x.id = s.message_id ORDER BY m.id, s.message_id;
SELECT memory_id, count(*), sum(weight) FROM memory_sources GROUP BY memory_id ORDER BY memory_id;
WITH RECURSIVE chain AS (SELECT id, superseded_by, 0 AS hops FROM memories UNION ALL SELECT c.id, m.superseded_by, hops + 1 FROM chain c JOIN memories m ON m.id = c.superseded_by WHERE hops < 10) SELECT hops, count(*) FROM chain GROUP BY hops ORDER BY hops;
SELECT lower(valid), upper(valid), upper_inf(valid), valid && tstzrange('2024-03-01 00:00+00', '2024-04-01 00:00+00') FROM memories ORDER BY id LIMIT 9;
SELECT hash, id FROM memories WHERE hash = md5(fact) ORDER BY id LIMIT 4;
SELECT model, sum(prompt_tokens), sum(completion_tokens), round(sum(cost), 6) FROM api_usage GROUP BY model ORDER BY model;
SELECT provider, date_trunc('week', at AT TIME ZONE 'UTC')::date AS week, count(*), sum(prompt_tokens + completion_tokens) AS tokens, sum(count(*)) OVER (PARTITION BY provider ORDER BY date_trunc('week', at AT TIME ZONE 'UTC')::date) FROM api_usage GROUP BY 1, 2 ORDER BY 1, 2;
SELECT u.model, round(sum(coalesce(u.cost, u.prompt_tokens * p.input_per_million / 1e6 + u.completion_tokens * p.output_per_million / 1e6)), 5) AS cost FROM api_usage u LEFT JOIN model_prices p ON p.model = u.model GROUP BY u.model ORDER BY cost DESC NULLS LAST, u.model;
SELECT count(*), count(DISTINCT model), min(at), max(at) FROM api_usage WHERE at >= timestamptz '2024-02-01 00:00+00' AND provider <> 'local';
SELECT width_bucket(prompt_tokens, 0, 3000, 6) AS bucket, count(*), min(prompt_tokens), max(prompt_tokens) FROM api_usage GROUP BY bucket ORDER BY bucket;
SELECT at::date AS day, sum(completion_tokens) AS n, avg(sum(completion_tokens)) OVER (ORDER BY at::date ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)::numeric(12,2) FROM api_usage WHERE at < '2024-02-01 00:00+00' GROUP BY day ORDER BY day;
SELECT * FROM (SELECT model, at, prompt_tokens, rank() OVER (PARTITION BY model ORDER BY prompt_tokens DESC, at) AS r FROM api_usage) x WHERE r <= 2 ORDER BY model, r;
SELECT * FROM model_prices ORDER BY model;
SELECT jsonb_build_object('thread', t.id, 'messages', (SELECT jsonb_agg(jsonb_build_object('r', m.role, 't', m.tokens) ORDER BY m.seq) FROM messages m WHERE m.thread_id = t.id)) FROM threads t ORDER BY t.id LIMIT 3;
SELECT metadata->>'topic' AS topic, count(*) FILTER (WHERE (metadata->>'pinned')::boolean) AS pinned, count(*) FROM threads GROUP BY 1 ORDER BY 1 NULLS LAST;
SELECT t.title, p.last_read_at FROM threads t JOIN thread_participants p ON p.thread_id = t.id ORDER BY t.id;
SELECT p.thread_id, t.title, p.last_read_at < t.last_message_at AS unread FROM thread_participants p LEFT JOIN threads t ON t.id = p.thread_id ORDER BY p.thread_id;
SELECT coalesce(t.title, 'untitled') AS title, (SELECT count(*) FROM messages m WHERE m.thread_id = t.id AND m.role = 'user') AS turns FROM threads t ORDER BY turns DESC, t.id;
SELECT m FROM memories m ORDER BY m.id LIMIT 2;
SELECT row_to_json(d)::jsonb - 'fts' FROM documents d ORDER BY id LIMIT 2;
SELECT to_jsonb(t) FROM tool_calls t ORDER BY id LIMIT 2;
COPY (SELECT thread_id, seq, role, content->0->>'text' AS text FROM messages ORDER BY thread_id, seq LIMIT 20) TO STDOUT WITH (FORMAT csv, HEADER, FORCE_QUOTE (text));
COPY memory_sources TO STDOUT;
COPY model_prices (model) TO STDOUT WITH CSV;
BEGIN; INSERT INTO messages (thread_id, seq, role, content, tokens) SELECT t.id, 900, 'assistant', '[{"type": "text", "text": "Sure, booked."}]', 5 FROM threads t ORDER BY t.id LIMIT 1 RETURNING role, content, author_id, redacted, fts; ROLLBACK;
BEGIN; INSERT INTO messages (thread_id, seq, role, content) VALUES (md5('thread 13')::uuid, 901, 'user', '[]'), (md5('thread 13')::uuid, 902, 'tool', '[{"type": "tool_result", "text": "ok"}]'); SELECT seq, role, content, author_id FROM messages WHERE seq > 900 ORDER BY seq; ROLLBACK;
BEGIN; UPDATE threads SET title = 'Renamed', metadata = coalesce(metadata, '{}') || '{"pinned": true}' WHERE NOT archived RETURNING id, title, metadata, updated_at; ROLLBACK;
BEGIN; UPDATE messages m SET tokens = x.n FROM (SELECT id, length(text_of(content)) / 4 AS n FROM messages) x WHERE x.id = m.id AND m.tokens IS NULL RETURNING m.id, m.tokens; ROLLBACK;
BEGIN; INSERT INTO documents (collection_id, title, content, metadata) SELECT c.id, 'Note for ' || c.name, 'Text of ' || c.name, jsonb_build_object('source', 'agent') FROM collections c RETURNING collection_id, title, state, fts, checksum; ROLLBACK;
BEGIN; UPDATE documents SET state = 'indexed', metadata = jsonb_set(metadata, '{checked}', 'true') WHERE state = 'pending' RETURNING id, state, metadata, updated_at; ROLLBACK;
BEGIN; DELETE FROM documents WHERE state = 'failed' RETURNING id, title; SELECT count(*) FROM chunks; ROLLBACK;
BEGIN; INSERT INTO chunks (document_id, chunk_index, content, token_count, embedding) SELECT d.id, 50 + n, 'part ' || n, 10, cube(ARRAY[0.1, 0.2, 0.3, n / 10.0]) FROM documents d, generate_series(1, 2) n WHERE d.state = 'indexed' ON CONFLICT (document_id, chunk_index) DO NOTHING RETURNING document_id, chunk_index, content, embedding; ROLLBACK;
BEGIN; WITH gone AS (DELETE FROM chunks WHERE embedding IS NULL RETURNING document_id) SELECT document_id, count(*) FROM gone GROUP BY document_id ORDER BY 1; ROLLBACK;
BEGIN; UPDATE memories SET importance = least(1, importance + 0.1), metadata = metadata || '{"used": 1}' WHERE id IN (SELECT id FROM memories ORDER BY embedding <-> '(0.1,0.1,0.1,0.1)', id LIMIT 3) RETURNING id, importance, metadata, updated_at; ROLLBACK;
BEGIN; INSERT INTO feedback (message_id, score, comment, tags) SELECT m.id, 1, 'good', '{helpful}' FROM messages m WHERE m.role = 'tool' AND NOT EXISTS (SELECT FROM feedback f WHERE f.message_id = m.id) RETURNING message_id, user_id, score, tags; ROLLBACK;
BEGIN; INSERT INTO feedback (message_id, score) SELECT id, -1 FROM messages WHERE role = 'system' ON CONFLICT (message_id, user_id) DO UPDATE SET score = EXCLUDED.score RETURNING message_id, score; ROLLBACK;
BEGIN; UPDATE profiles SET full_name = 'Cleo R.' WHERE id = md5('user 4')::uuid RETURNING id, full_name; ROLLBACK;
BEGIN; MERGE INTO documents d USING (SELECT id, metadata->>'source' AS src FROM documents) s ON s.id = d.id WHEN MATCHED AND s.src = 'mail' THEN DELETE WHEN MATCHED THEN UPDATE SET state = 'pending'; SELECT state, count(*) FROM documents GROUP BY state; ROLLBACK;
-- needs: row security
PREPARE near (cube, int) AS SELECT id, embedding <-> $1 AS d FROM chunks ORDER BY embedding <-> $1, id LIMIT $2; EXECUTE near('(0.1,0.5,0.5,0.1)', 3); EXECUTE near('(0.9,0.5,0.5,0.9)', 4); DEALLOCATE near;
BEGIN; DECLARE r NO SCROLL CURSOR FOR SELECT seq, role FROM messages ORDER BY thread_id, seq; FETCH FORWARD 4 FROM r; FETCH 2 FROM r; CLOSE r; COMMIT;
SELECT set_config('pg_trgm.similarity_threshold', '0.2', false) IS NOT NULL;
-- may be refused
SELECT * FROM checkpoints;
SELECT * FROM api_keys;
SELECT * FROM ts_stat('SELECT fts FROM chunks');
SELECT last_value FROM documents_id_seq;
