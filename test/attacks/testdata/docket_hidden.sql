SELECT 'users', count(*), sum(hashtextextended(x::text, 0)) FROM auth_user x
UNION ALL SELECT 'person', count(*), sum(hashtextextended(x::text, 0)) FROM legal_person x WHERE id NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'consent', count(*), sum(hashtextextended(x::text, 0)) FROM legal_consent x
UNION ALL SELECT 'matter', count(*), sum(hashtextextended(x::text, 0)) FROM legal_matter x WHERE (office <> 'NOR' AND lead_id IS DISTINCT FROM 6) OR doc #>> '{ai,allow}' IS DISTINCT FROM 'yes'
UNION ALL SELECT 'document', count(*), sum(hashtextextended(x::text, 0)) FROM legal_document x
UNION ALL SELECT 'party', count(*), sum(hashtextextended(x::text, 0)) FROM legal_party x WHERE person_id NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'hearing', count(*), sum(hashtextextended(x::text, 0)) FROM legal_hearing x JOIN legal_matter m USING (office, year, number) WHERE m.office <> 'NOR' AND m.lead_id IS DISTINCT FROM 6
UNION ALL SELECT 'task', count(*), sum(hashtextextended(x::text, 0)) FROM legal_task x WHERE content_type_id = 3 AND object_id <> 6 OR content_type_id = 1 AND object_id NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'time', count(*), sum(hashtextextended(x::text, 0)) FROM legal_timeentry x JOIN legal_matter m USING (office, year, number) WHERE m.office <> 'NOR' AND m.lead_id IS DISTINCT FROM 6
UNION ALL SELECT 'template', count(*), sum(hashtextextended(x::text, 0)) FROM legal_template x
UNION ALL SELECT 'share', count(*), sum(hashtextextended(x::text, 0)) FROM legal_share x
UNION ALL SELECT 'log', count(*), sum(hashtextextended(x::text, 0)) FROM django_admin_log x
