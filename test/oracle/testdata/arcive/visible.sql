-- What agents of the first user may see, written without a look at the policy's SQL.
CREATE TEMP TABLE kept_people AS
SELECT id FROM public.people WHERE user_id = '11111111-1111-4111-8111-111111111111' AND consent_status = 'granted';

CREATE TEMP TABLE kept_memories AS
SELECT m.id FROM public.memories m WHERE m.user_id = '11111111-1111-4111-8111-111111111111'
EXCEPT
SELECT p.memory_id FROM public.memory_participants p
WHERE NOT EXISTS (SELECT FROM public.people q WHERE q.id = p.person_id AND q.consent_status = 'granted');
