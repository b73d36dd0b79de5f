-- What is near is searched for exactly on the copy.
DO $$ DECLARE i regclass; BEGIN
  FOR i IN SELECT c.oid::regclass FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE a.amname IN ('hnsw', 'ivfflat') AND NOT c.relispartition LOOP EXECUTE 'DROP INDEX ' || i; END LOOP;
END $$;
ALTER TABLE people DROP COLUMN email;
SET session_replication_role = replica;
DELETE FROM memory_sources WHERE memory_id NOT IN (SELECT id FROM kept_memory);
DELETE FROM memories WHERE id NOT IN (SELECT id FROM kept_memory);
DELETE FROM messages WHERE id NOT IN (SELECT id FROM kept_message);
DELETE FROM chunks WHERE document_id NOT IN (SELECT id FROM kept_document);
DELETE FROM documents WHERE id NOT IN (SELECT id FROM kept_document);
DELETE FROM pictures WHERE person_id NOT IN (SELECT id FROM kept_person);
DELETE FROM shop_item WHERE seller_id NOT IN (SELECT id FROM kept_person);
DELETE FROM langchain_pg_embedding WHERE cmetadata->>'space' NOT IN ('public', 'red', 'blue');
DELETE FROM data_llamaindex WHERE metadata_->>'space' NOT IN ('red', 'blue');
DELETE FROM people WHERE id NOT IN (SELECT id FROM kept_person);
SET session_replication_role = origin;
