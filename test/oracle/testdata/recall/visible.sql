-- What the assistant of user 4 may see, written without a look at the policy's SQL.
CREATE TEMP TABLE my_org AS SELECT id FROM organizations WHERE id IN (md5('org 2')::uuid, md5('org 5')::uuid);
CREATE TEMP TABLE kept_profile AS SELECT id FROM profiles WHERE memory_consent = 'granted' AND (id = md5('user 4')::uuid OR id IN (SELECT user_id FROM org_members WHERE org_id IN (SELECT id FROM my_org)));
CREATE TEMP TABLE kept_collection AS SELECT id FROM collections WHERE visibility = 'public' OR visibility = 'org' AND org_id IN (SELECT id FROM my_org) OR owner_id = md5('user 4')::uuid;
CREATE TEMP TABLE kept_document AS SELECT id FROM documents WHERE deleted_at IS NULL AND collection_id IN (SELECT id FROM kept_collection);
CREATE TEMP TABLE kept_thread AS SELECT id FROM threads t WHERE EXISTS (SELECT FROM thread_participants p WHERE p.thread_id = t.id AND p.user_id = md5('user 4')::uuid)
  AND NOT EXISTS (SELECT FROM thread_participants p LEFT JOIN profiles f ON f.id = p.user_id WHERE p.thread_id = t.id AND f.memory_consent IS DISTINCT FROM 'granted');
CREATE TEMP TABLE kept_message AS SELECT id FROM messages WHERE NOT redacted AND thread_id IN (SELECT id FROM kept_thread);
CREATE TEMP TABLE agreed_message AS SELECT id FROM messages m WHERE NOT redacted AND NOT EXISTS (SELECT FROM thread_participants p LEFT JOIN profiles f ON f.id = p.user_id WHERE p.thread_id = m.thread_id AND f.memory_consent IS DISTINCT FROM 'granted');
CREATE TEMP TABLE kept_memory AS SELECT id FROM memories y WHERE user_id = md5('user 4')::uuid AND (kind = 'preference' OR EXISTS (SELECT FROM memory_sources s WHERE s.memory_id = y.id) AND NOT EXISTS (SELECT FROM memory_sources s WHERE s.memory_id = y.id AND s.message_id NOT IN (SELECT id FROM agreed_message)));
