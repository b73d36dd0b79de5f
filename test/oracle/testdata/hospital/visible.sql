-- What the agent of the site NOR may see, written without a look at the policy's SQL.
CREATE TEMP TABLE kept_patient AS SELECT id FROM patient WHERE site = 'NOR' AND research = 'yes';
CREATE TEMP TABLE kept_staff AS SELECT id FROM staff WHERE site = 'NOR';
CREATE TEMP TABLE kept_thread AS SELECT id FROM thread WHERE patient IN (SELECT id FROM kept_patient);
CREATE TEMP TABLE kept_document AS SELECT d.id FROM document d WHERE NOT confidential
  AND NOT EXISTS (SELECT FROM document_patient l LEFT JOIN patient p ON p.id = l.patient WHERE l.document = d.id AND (p.research <> 'yes' OR p.research IS NULL));
