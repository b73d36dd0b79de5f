SELECT 'user', count(*), sum(hashtextextended(x::text, 0)) FROM hr."user" x
UNION ALL SELECT 'department', count(*), sum(hashtextextended(x::text, 0)) FROM hr.department x
UNION ALL SELECT 'group', count(*), sum(hashtextextended(x::text, 0)) FROM "group" x WHERE NOT 7 = ANY (members)
UNION ALL SELECT 'patient', count(*), sum(hashtextextended(x::text, 0)) FROM patient x WHERE id NOT IN (SELECT id FROM kept_patient)
UNION ALL SELECT 'encounter', count(*), sum(hashtextextended(x::text, 0)) FROM encounter x WHERE (kind, patient, id) NOT IN (SELECT kind, patient, id FROM kept_encounter)
UNION ALL SELECT 'booking', count(*), sum(hashtextextended(x::text, 0)) FROM booking x WHERE patient NOT IN (SELECT id FROM kept_patient)
UNION ALL SELECT 'observation', count(*), sum(hashtextextended(x::text, 0)) FROM observation x WHERE patient NOT IN (SELECT id FROM kept_patient)
UNION ALL SELECT 'vital', count(*), sum(hashtextextended(x::text, 0)) FROM vital x WHERE patient NOT IN (SELECT id FROM kept_patient)
UNION ALL SELECT 'Result', count(*), sum(hashtextextended(x::text, 0)) FROM "Lab Data"."Result" x WHERE "Patient" NOT IN (SELECT id FROM kept_patient)
UNION ALL SELECT 'prescription', count(*), sum(hashtextextended(x::text, 0)) FROM prescription x WHERE id NOT IN (SELECT id FROM kept_prescription)
UNION ALL SELECT 'document', count(*), sum(hashtextextended(x::text, 0)) FROM document x WHERE id NOT IN (SELECT id FROM kept_document)
UNION ALL SELECT 'document_patient', count(*), sum(hashtextextended(x::text, 0)) FROM document_patient x
UNION ALL SELECT 'remark', count(*), sum(hashtextextended(x::text, 0)) FROM remark x WHERE id NOT IN (SELECT id FROM kept_remark)
UNION ALL SELECT 'code', count(*), sum(hashtextextended(x::text, 0)) FROM code x
