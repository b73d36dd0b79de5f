SELECT 'tenant' AS what, count(*), sum(hashtextextended(x::text, 0)) FROM tenant x
UNION ALL SELECT 'person', count(*), sum(hashtextextended(x::text, 0)) FROM person x
UNION ALL SELECT 'consent', count(*), sum(hashtextextended(x::text, 0)) FROM mem.consent x
UNION ALL SELECT 'memory', count(*), sum(hashtextextended(x::text, 0)) FROM mem.memory x WHERE id NOT IN (SELECT id FROM kept_memory) AND (tenant_id, author_id) IS DISTINCT FROM ('acme', md5('p4')::uuid)
UNION ALL SELECT 'participant', count(*), sum(hashtextextended(x::text, 0)) FROM mem.participant x WHERE memory_id NOT IN (SELECT id FROM kept_memory)
UNION ALL SELECT 'edge', count(*), sum(hashtextextended(x::text, 0)) FROM mem.edge x WHERE from_id IN (SELECT id FROM mem.memory WHERE tenant_id <> 'acme') OR to_id IN (SELECT id FROM mem.memory WHERE tenant_id <> 'acme')
UNION ALL SELECT 'fact', count(*), sum(hashtextextended(x::text, 0)) FROM mem.fact x
UNION ALL SELECT 'insight', count(*), sum(hashtextextended(x::text, 0)) FROM mem.insight x WHERE owner <> md5('p4')::uuid
UNION ALL SELECT 'source', count(*), sum(hashtextextended(x::text, 0)) FROM mem.source x
UNION ALL SELECT 'document', count(*), sum(hashtextextended(x::text, 0)) FROM "Kb"."Document" x
UNION ALL SELECT 'chunk', count(*), sum(hashtextextended(x::text, 0)) FROM "Kb".chunk x
UNION ALL SELECT 'conversation', count(*), sum(hashtextextended(x::text, 0)) FROM conversation x WHERE id NOT IN (SELECT id FROM kept_conversation) AND user_id <> md5('p4')::uuid
UNION ALL SELECT 'message', count(*), sum(hashtextextended(x::text, 0)) FROM message x WHERE conversation_id NOT IN (SELECT id FROM kept_conversation) AND conversation_id IN (SELECT id FROM conversation WHERE user_id <> md5('p4')::uuid)
UNION ALL SELECT 'call', count(*), sum(hashtextextended(x::text, 0)) FROM "ToolCall" x
UNION ALL SELECT 'event', count(*), sum(hashtextextended(x::text, 0)) FROM event x WHERE actor IS DISTINCT FROM md5('p4')::uuid
UNION ALL SELECT 'checkpoint', count(*), sum(hashtextextended(x::text, 0)) FROM checkpoint x WHERE owner <> md5('p4')::uuid
UNION ALL SELECT 'store', count(*), sum(hashtextextended(x::text, 0)) FROM store x WHERE owner <> md5('p4')::uuid
UNION ALL SELECT 'job', count(*), sum(hashtextextended((id, owner, queue, state, priority, payload, attempts, run_at, last_error)::text, 0)) FROM job x WHERE owner <> md5('p4')::uuid
UNION ALL SELECT 'key', count(*), sum(hashtextextended(x::text, 0)) FROM api_key x
