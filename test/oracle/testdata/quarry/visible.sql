-- What the assistant of person 4 may see, written without a look at the policy's SQL.
CREATE TEMP TABLE kept_person AS SELECT id FROM people WHERE id = 4 OR consent = 'granted' AND space IN ('red', 'blue');
CREATE TEMP TABLE kept_document AS SELECT id FROM documents WHERE space IN ('red', 'blue') AND deleted_at IS NULL AND (visibility = 'shared' OR owner_id = 4);
CREATE TEMP TABLE kept_message AS SELECT id FROM messages WHERE author_id IN (SELECT id FROM kept_person);
CREATE TEMP TABLE agreed_message AS SELECT id FROM kept_message;
CREATE TEMP TABLE kept_memory AS SELECT id FROM memories m WHERE person_id = 4 AND EXISTS (SELECT FROM memory_sources s WHERE s.memory_id = m.id) AND NOT EXISTS (SELECT FROM memory_sources s WHERE s.memory_id = m.id AND s.message_id NOT IN (SELECT id FROM agreed_message));
