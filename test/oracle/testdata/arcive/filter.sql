SET session_replication_role = replica;
DELETE FROM public.memory_participants
WHERE memory_id NOT IN (SELECT id FROM kept_memories) OR person_id NOT IN (SELECT id FROM kept_people);
DELETE FROM public.memories WHERE id NOT IN (SELECT id FROM kept_memories);
DELETE FROM public.people WHERE id NOT IN (SELECT id FROM kept_people);
DELETE FROM public.memory_edges;
