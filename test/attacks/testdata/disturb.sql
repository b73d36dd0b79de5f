-- The twin of the oracle's schema works: other values in hidden rows, as many of them.
SET session_replication_role = replica;
UPDATE org SET title = '1', region = 'HIDDENMARK', quota = -1 WHERE code NOT IN (SELECT code FROM kept_org);
UPDATE person SET name = 'abc\', pay = 0, langs = '{HIDDENMARK}', joined = 'infinity' WHERE id NOT IN (SELECT id FROM kept_person);
UPDATE project SET title = '(', budget = 0, tags = NULL, period = 'empty', rank = 'top' WHERE id NOT IN (SELECT id FROM kept_project);
UPDATE task SET title = '7', place = 0, labels = '[]', spent = NULL, weight = 0, hours = NULL WHERE id NOT IN (SELECT id FROM kept_task);
UPDATE note SET body = '1', score = 0, raw = NULL, at = '-infinity', parts = '{}' WHERE id NOT IN (SELECT id FROM kept_note);
UPDATE note_reader SET agreed = NOT agreed WHERE note NOT IN (SELECT id FROM kept_note);
UPDATE event SET kind = '{', amount = 0 WHERE task IS NULL OR task NOT IN (SELECT id FROM kept_task);
