SELECT 'users', count(*), sum(hashtextextended(x::text, 0)) FROM auth.users x
UNION ALL SELECT 'organizations', count(*), sum(hashtextextended(x::text, 0)) FROM organizations x
UNION ALL SELECT 'org_members', count(*), sum(hashtextextended(x::text, 0)) FROM org_members x
UNION ALL SELECT 'profiles', count(*), sum(hashtextextended(x::text, 0)) FROM profiles x WHERE id <> md5('user 4')::uuid
UNION ALL SELECT 'collections', count(*), sum(hashtextextended(x::text, 0)) FROM collections x
UNION ALL SELECT 'documents', count(*), sum(hashtextextended(x::text, 0)) FROM documents x WHERE id NOT IN (SELECT id FROM kept_document) AND (collection_id NOT IN (SELECT id FROM kept_collection) OR deleted_at IS NOT NULL)
UNION ALL SELECT 'chunks', count(*), sum(hashtextextended(x::text, 0)) FROM chunks x JOIN documents d ON d.id = document_id WHERE d.collection_id NOT IN (SELECT id FROM kept_collection)
UNION ALL SELECT 'embeddings', count(*), sum(hashtextextended(x::text, 0)) FROM langchain_pg_embedding x
UNION ALL SELECT 'threads', count(*), sum(hashtextextended(x::text, 0)) FROM threads x WHERE id NOT IN (SELECT id FROM kept_thread)
UNION ALL SELECT 'participants', count(*), sum(hashtextextended(x::text, 0)) FROM thread_participants x
UNION ALL SELECT 'messages', count(*), sum(hashtextextended(x::text, 0)) FROM messages x WHERE thread_id NOT IN (SELECT id FROM kept_thread) OR redacted
UNION ALL SELECT 'tool_calls', count(*), sum(hashtextextended(x::text, 0)) FROM tool_calls x
UNION ALL SELECT 'feedback', count(*), sum(hashtextextended(x::text, 0)) FROM feedback x WHERE message_id NOT IN (SELECT id FROM messages WHERE thread_id IN (SELECT id FROM kept_thread))
UNION ALL SELECT 'memories', count(*), sum(hashtextextended(x::text, 0)) FROM memories x WHERE id NOT IN (SELECT id FROM kept_memory)
UNION ALL SELECT 'memory_sources', count(*), sum(hashtextextended(x::text, 0)) FROM memory_sources x
UNION ALL SELECT 'checkpoints', count(*), sum(hashtextextended(x::text, 0)) FROM checkpoints x
UNION ALL SELECT 'api_usage', count(*), sum(hashtextextended(x::text, 0)) FROM api_usage x
UNION ALL SELECT 'api_keys', count(*), sum(hashtextextended(x::text, 0)) FROM api_keys x
