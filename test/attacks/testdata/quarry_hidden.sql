SELECT 'people', count(*), sum(hashtextextended(x::text, 0)) FROM people x WHERE id NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'documents', count(*), sum(hashtextextended(x::text, 0)) FROM documents x WHERE id NOT IN (SELECT id FROM kept_document) AND (space NOT IN ('red', 'blue') OR deleted_at IS NOT NULL)
UNION ALL SELECT 'chunks', count(*), sum(hashtextextended(x::text, 0)) FROM chunks x WHERE space NOT IN ('red', 'blue')
UNION ALL SELECT 'messages', count(*), sum(hashtextextended(x::text, 0)) FROM messages x WHERE id NOT IN (SELECT id FROM kept_message) AND author_id NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'memories', count(*), sum(hashtextextended(x::text, 0)) FROM memories x WHERE id NOT IN (SELECT id FROM kept_memory)
UNION ALL SELECT 'memory_sources', count(*), sum(hashtextextended(x::text, 0)) FROM memory_sources x
UNION ALL SELECT 'pictures', count(*), sum(hashtextextended(x::text, 0)) FROM pictures x
UNION ALL SELECT 'langchain', count(*), sum(hashtextextended(x::text, 0)) FROM langchain_pg_embedding x WHERE cmetadata->>'space' NOT IN ('public', 'red', 'blue')
UNION ALL SELECT 'llamaindex', count(*), sum(hashtextextended(x::text, 0)) FROM data_llamaindex x
UNION ALL SELECT 'items', count(*), sum(hashtextextended(x::text, 0)) FROM shop_item x
