SELECT 'staff', count(*), sum(hashtextextended(x::text, 0)) FROM staff x
UNION ALL SELECT 'patient', count(*), sum(hashtextextended(x::text, 0)) FROM patient x
UNION ALL SELECT 'appointment', count(*), sum(hashtextextended(x::text, 0)) FROM appointment x WHERE patient NOT IN (SELECT id FROM kept_patient)
UNION ALL SELECT 'thread', count(*), sum(hashtextextended(x::text, 0)) FROM thread x WHERE patient IS NULL OR patient NOT IN (SELECT id FROM kept_patient)
UNION ALL SELECT 'message', count(*), sum(hashtextextended(x::text, 0)) FROM message x JOIN thread t ON t.id = x.thread WHERE t.patient IS NULL OR t.patient NOT IN (SELECT id FROM kept_patient)
UNION ALL SELECT 'document', count(*), sum(hashtextextended(x::text, 0)) FROM document x
UNION ALL SELECT 'document_patient', count(*), sum(hashtextextended(x::text, 0)) FROM document_patient x
UNION ALL SELECT 'document_tag', count(*), sum(hashtextextended(x::text, 0)) FROM document_tag x WHERE document NOT IN (SELECT id FROM kept_document)
UNION ALL SELECT 'reading', count(*), sum(hashtextextended(x::text, 0)) FROM reading x
UNION ALL SELECT 'note', count(*), sum(hashtextextended(x::text, 0)) FROM note x
UNION ALL SELECT 'invoice', count(*), sum(hashtextextended(x::text, 0)) FROM invoice x
