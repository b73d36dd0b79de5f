-- The physically filtered copy: deletes every row that agents of the first user may not see. Written without a look at the
-- policy's SQL, and run with triggers and foreign keys off, so that nothing but the rule decides.
SET session_replication_role = replica;

CREATE TEMP TABLE kept_people AS
SELECT id FROM public.people WHERE user_id = '11111111-1111-4111-8111-111111111111' AND consent_status = 'granted';

CREATE TEMP TABLE kept_memories AS
SELECT m.id FROM public.memories m WHERE m.user_id = '11111111-1111-4111-8111-111111111111'
EXCEPT
SELECT p.memory_id FROM public.memory_participants p
WHERE NOT EXISTS (SELECT FROM public.people q WHERE q.id = p.person_id AND q.consent_status = 'granted');

DELETE FROM public.memory_participants
WHERE memory_id NOT IN (SELECT id FROM kept_memories) OR person_id NOT IN (SELECT id FROM kept_people);
DELETE FROM public.memories WHERE id NOT IN (SELECT id FROM kept_memories);
DELETE FROM public.people WHERE id NOT IN (SELECT id FROM kept_people);
DELETE FROM public.memory_edges;

DROP TABLE kept_people, kept_memories;
RESET session_replication_role;
