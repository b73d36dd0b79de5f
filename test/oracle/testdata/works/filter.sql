SET session_replication_role = replica;
DELETE FROM org WHERE code NOT IN (SELECT code FROM kept_org);
DELETE FROM person WHERE id NOT IN (SELECT id FROM kept_person);
DELETE FROM project WHERE id NOT IN (SELECT id FROM kept_project);
DELETE FROM task WHERE id NOT IN (SELECT id FROM kept_task);
DELETE FROM note WHERE id NOT IN (SELECT id FROM kept_note);
DELETE FROM note_reader WHERE note NOT IN (SELECT id FROM kept_note);
DELETE FROM event WHERE task IS NULL OR task NOT IN (SELECT id FROM kept_task);
