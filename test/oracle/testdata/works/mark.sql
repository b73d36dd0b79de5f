SET session_replication_role = replica;
UPDATE org SET title = 'HIDDENMARK ' || title WHERE code NOT IN (SELECT code FROM kept_org);
UPDATE person SET name = 'HIDDENMARK ' || coalesce(name, ''), pay = pay + 7700000 WHERE id NOT IN (SELECT id FROM kept_person);
UPDATE project SET title = 'HIDDENMARK ' || coalesce(title, ''), tags = tags || 'HIDDENMARK'::text WHERE id NOT IN (SELECT id FROM kept_project);
UPDATE task SET title = 'HIDDENMARK ' || title, labels = labels || '{"s": "HIDDENMARK"}' WHERE id NOT IN (SELECT id FROM kept_task);
UPDATE note SET body = 'HIDDENMARK ' || body, raw = 'HIDDENMARK' WHERE id NOT IN (SELECT id FROM kept_note);
UPDATE event SET kind = 'HIDDENMARK' || kind, amount = amount + 7700000 WHERE task IS NULL OR task NOT IN (SELECT id FROM kept_task);
