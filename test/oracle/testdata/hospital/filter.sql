SET session_replication_role = replica;
DELETE FROM staff WHERE id NOT IN (SELECT id FROM kept_staff);
DELETE FROM appointment WHERE patient NOT IN (SELECT id FROM kept_patient);
DELETE FROM thread WHERE id NOT IN (SELECT id FROM kept_thread);
DELETE FROM message WHERE thread NOT IN (SELECT id FROM kept_thread);
DELETE FROM document WHERE id NOT IN (SELECT id FROM kept_document);
DELETE FROM document_patient WHERE document NOT IN (SELECT id FROM kept_document) OR patient NOT IN (SELECT id FROM kept_patient);
DELETE FROM document_tag WHERE document NOT IN (SELECT id FROM kept_document);
DELETE FROM reading WHERE patient NOT IN (SELECT id FROM kept_patient);
DELETE FROM note WHERE patient NOT IN (SELECT id FROM kept_patient);
DELETE FROM patient WHERE id NOT IN (SELECT id FROM kept_patient);
ALTER TABLE staff DROP COLUMN email;
ALTER TABLE patient ALTER COLUMN initials DROP EXPRESSION;
UPDATE staff SET hired = date_trunc('year', hired);
UPDATE patient SET family = left(family, 2), born = date_trunc('year', born), phone = NULL,
  contacts = CASE jsonb_typeof(contacts) WHEN 'object' THEN jsonb_build_object('kin', contacts->'kin', 'n', contacts->'n', 'urgent', contacts->'urgent') END;
ALTER TABLE patient DROP COLUMN mrn, DROP COLUMN email, DROP COLUMN home, DROP COLUMN updated_at;
