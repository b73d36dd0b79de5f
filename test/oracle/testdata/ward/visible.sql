-- What user 7 of the departments 3 and 4 may see, written without a look at the policy's SQL.
CREATE TEMP TABLE kept_patient AS SELECT id FROM patient WHERE department IN (3, 4) AND research = 'granted' AND deleted_at IS NULL;
CREATE TEMP TABLE kept_encounter AS SELECT kind, patient, id FROM encounter WHERE deleted_at IS NULL AND patient IN (SELECT id FROM kept_patient);
CREATE TEMP TABLE kept_document AS SELECT id FROM document d WHERE (author = 7 OR md5('user 7')::uuid = ANY (readers))
  AND NOT EXISTS (SELECT FROM document_patient l LEFT JOIN patient p ON p.id = l.patient WHERE l.document = d.id AND p.research IS DISTINCT FROM 'granted');
CREATE TEMP TABLE kept_prescription AS SELECT id FROM prescription WHERE patient IN (SELECT id FROM kept_patient) AND (ended IS NULL OR ended > '2024-01-20');
CREATE TEMP TABLE kept_remark AS SELECT id FROM remark WHERE private IS NOT TRUE AND (encounter_kind, encounter_patient, encounter) IN (SELECT kind, patient, id FROM kept_encounter);
