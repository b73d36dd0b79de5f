-- The twin: changes invisible rows only, in every way that keeps their number: texts that are numbers and numbers that are
-- not, other keys in JSON, other times, other statuses, other people behind the links.
SET session_replication_role = replica;

CREATE TEMP TABLE kept_people AS
SELECT id FROM public.people WHERE user_id = '11111111-1111-4111-8111-111111111111' AND consent_status = 'granted';

CREATE TEMP TABLE kept_memories AS
SELECT m.id FROM public.memories m WHERE m.user_id = '11111111-1111-4111-8111-111111111111'
EXCEPT
SELECT p.memory_id FROM public.memory_participants p
WHERE NOT EXISTS (SELECT FROM public.people q WHERE q.id = p.person_id AND q.consent_status = 'granted');

UPDATE public.people SET name = '1', created_at = created_at + interval '1 day',
  consent_status = CASE consent_status WHEN 'revoked' THEN 'pending' ELSE 'revoked' END
WHERE id NOT IN (SELECT id FROM kept_people) AND user_id = '11111111-1111-4111-8111-111111111111';
UPDATE public.people SET name = 'HIDDENMARKother', is_self = NOT is_self WHERE user_id <> '11111111-1111-4111-8111-111111111111';
UPDATE public.memories SET title = 'abc', body = '1', metadata = '{"stars": 1, "mood": "HIDDENMARKmood", "extra": [1, 2]}', occurred_at = occurred_at + interval '3 years'
WHERE id NOT IN (SELECT id FROM kept_memories) AND md5(id::text) < '8';
UPDATE public.memories SET title = 'HIDDENMARKx\', body = 'HIDDENMARK(', metadata = NULL, embedding = NULL, occurred_at = 'infinity'
WHERE id NOT IN (SELECT id FROM kept_memories) AND md5(id::text) >= '8';
UPDATE public.memory_participants SET role = 'HIDDENMARKrole'
WHERE memory_id NOT IN (SELECT id FROM kept_memories) OR person_id NOT IN (SELECT id FROM kept_people);
UPDATE public.memory_edges SET weight = weight + 1;

DROP TABLE kept_people, kept_memories;
RESET session_replication_role;
