-- The twin of the oracle's schema hospital: other values in hidden rows and columns, some hidden rows less and others more.
SET session_replication_role = replica;
UPDATE patient SET mrn = 'X' || lpad(id::text, 6, '0'), email = 'other@' || id, phone = id::text, home = NULL, updated_at = 'infinity';
UPDATE patient SET contacts = contacts || '{"secret": 1, "more": [], "other": 2}' WHERE jsonb_typeof(contacts) = 'object';
UPDATE staff SET email = id || '@twin', hired = date_trunc('year', hired) + interval '3 days' WHERE hired IS NOT NULL;
UPDATE patient SET born = date_trunc('year', born) + interval '33 days' WHERE born IS NOT NULL;
UPDATE staff SET name = '1', wards = NULL, role = NULL WHERE id NOT IN (SELECT id FROM kept_staff);
UPDATE patient SET given = '1', family = 'Lund', research = 'asked', contacts = '7', languages = '{5}', insured = NULL, born = '1940-11-19', created_at = '2019-01-01'
WHERE id NOT IN (SELECT id FROM kept_patient) AND (research IS DISTINCT FROM 'yes');
UPDATE appointment SET reason = '12', priority = NULL, cost = ROW(210, NULL), codes = '{}', meta = '{"room": 4}', slot = 'empty', state = 'done', staff = NULL WHERE patient NOT IN (SELECT id FROM kept_patient);
UPDATE thread SET topic = '5', closed = NOT closed WHERE id NOT IN (SELECT id FROM kept_thread);
UPDATE message SET body = '7', readers = '{3}', files = '{}', sent = NULL WHERE thread NOT IN (SELECT id FROM kept_thread);
UPDATE document SET title = 'blood', body = '6', sha = '\x', size = 0, meta = '[]', labels = NULL, author = 1 WHERE id NOT IN (SELECT id FROM kept_document);
UPDATE document_tag SET weight = 1 WHERE document NOT IN (SELECT id FROM kept_document);
UPDATE reading SET value = 40, unit = '1', device = NULL WHERE patient NOT IN (SELECT id FROM kept_patient);
UPDATE note SET body = '1' WHERE patient NOT IN (SELECT id FROM kept_patient);
UPDATE invoice SET total = NULL;
DELETE FROM appointment WHERE patient NOT IN (SELECT id FROM kept_patient) AND no % 5 = 1 AND NOT EXISTS (SELECT FROM thread t WHERE t.no = appointment.no);
DELETE FROM invoice;
DELETE FROM message WHERE thread NOT IN (SELECT id FROM kept_thread) AND seq > 2;
DELETE FROM reading WHERE patient NOT IN (SELECT id FROM kept_patient) AND kind = 'temp';
DELETE FROM note WHERE patient NOT IN (SELECT id FROM kept_patient) AND id % 2 = 0;
DELETE FROM document_tag WHERE document NOT IN (SELECT id FROM kept_document) AND tag > 9;
INSERT INTO note SELECT 5000 + i, 2, 'HIDDENMARK' FROM generate_series(1, 40) i;
INSERT INTO reading SELECT id, timestamp '2024-06-01' + id * interval '1 day', 'pulse', -1, 'HIDDENMARK' FROM patient WHERE id NOT IN (SELECT id FROM kept_patient);
SELECT setval('patient_id_seq', 7777), setval('ticket_no', 99);
REFRESH MATERIALIZED VIEW load_by_site;
