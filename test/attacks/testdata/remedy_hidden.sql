SELECT 'clinic' AS what, count(*), sum(hashtextextended(x::text, 0)) FROM clinic x
UNION ALL SELECT 'staff', count(*), sum(hashtextextended(x::text, 0)) FROM staff x
UNION ALL SELECT 'sharing', count(*), sum(hashtextextended(x::text, 0)) FROM sharing x
UNION ALL SELECT 'person', count(*), sum(hashtextextended(x::text, 0)) FROM person x WHERE id NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'secret', count(*), sum(hashtextextended((id, clinic_id, mrn, born, phone, prefs, secret, deleted_at)::text, 0)) FROM person x
UNION ALL SELECT 'guardian', count(*), sum(hashtextextended(x::text, 0)) FROM guardian x
UNION ALL SELECT 'consent', count(*), sum(hashtextextended(x::text, 0)) FROM consent x
UNION ALL SELECT 'code', count(*), sum(hashtextextended(x::text, 0)) FROM code x
UNION ALL SELECT 'resource', count(*), sum(hashtextextended(x::text, 0)) FROM fhir.resource x WHERE person_id IS NULL OR person_id NOT IN (SELECT id FROM kept_person) OR kind = 'DocumentReference' AND clinic_id <> 'alder'
UNION ALL SELECT 'observation', count(*), sum(hashtextextended(x::text, 0)) FROM fhir.observation x
UNION ALL SELECT 'event', count(*), sum(hashtextextended(x::text, 0)) FROM fhir.event x WHERE person_id NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'call', count(*), sum(hashtextextended(x::text, 0)) FROM voice.call x
UNION ALL SELECT 'speaker', count(*), sum(hashtextextended(x::text, 0)) FROM voice.speaker x
UNION ALL SELECT 'segment', count(*), sum(hashtextextended(x::text, 0)) FROM voice.segment x
UNION ALL SELECT 'summary', count(*), sum(hashtextextended(x::text, 0)) FROM voice.summary x
UNION ALL SELECT 'slot', count(*), sum(hashtextextended(x::text, 0)) FROM slot x WHERE clinic_id <> 'alder' OR person_id NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'note', count(*), sum(hashtextextended(x::text, 0)) FROM note x WHERE author <> 5
UNION ALL SELECT 'task', count(*), sum(hashtextextended(x::text, 0)) FROM task x WHERE clinic_id <> 'alder' OR person_id NOT IN (SELECT id FROM kept_person)
