SELECT 'account' AS what, count(*), sum(hashtextextended(x::text, 0)) FROM account x WHERE id NOT IN (SELECT id FROM kept_account)
UNION ALL SELECT 'tenant', count(*), sum(hashtextextended(x::text, 0)) FROM tenant x WHERE id <> 't2'
UNION ALL SELECT 'folder', count(*), sum(hashtextextended(x::text, 0)) FROM folder x WHERE id NOT IN (SELECT id FROM kept_folder)
UNION ALL SELECT 'folder_closure', count(*), sum(hashtextextended(x::text, 0)) FROM folder_closure x WHERE above < 61 AND below < 61 AND (above NOT IN (SELECT id FROM kept_folder) OR below NOT IN (SELECT id FROM kept_folder))
UNION ALL SELECT 'document', count(*), sum(hashtextextended(x::text, 0)) FROM document x WHERE (tenant, id) NOT IN (SELECT tenant, id FROM kept_document)
UNION ALL SELECT 'chunk', count(*), sum(hashtextextended(x::text, 0)) FROM chunk x WHERE (tenant, document) NOT IN (SELECT tenant, id FROM kept_document)
UNION ALL SELECT 'thread', count(*), sum(hashtextextended(x::text, 0)) FROM thread x WHERE id NOT IN (SELECT id FROM kept_thread)
UNION ALL SELECT 'participant', count(*), sum(hashtextextended((thread, account, role, joined)::text, 0)) FROM participant x WHERE (thread, account) NOT IN (SELECT thread, account FROM kept_participant)
UNION ALL SELECT 'message', count(*), sum(hashtextextended(x::text, 0)) FROM message x WHERE id NOT IN (SELECT id FROM kept_message)
UNION ALL SELECT 'reaction', count(*), sum(hashtextextended(x::text, 0)) FROM reaction x WHERE message NOT IN (SELECT id FROM kept_message) OR account NOT IN (SELECT id FROM kept_account)
UNION ALL SELECT 'summary', count(*), sum(hashtextextended(x::text, 0)) FROM summary x WHERE id NOT IN (SELECT id FROM kept_summary)
UNION ALL SELECT 'summary_source', count(*), sum(hashtextextended(x::text, 0)) FROM summary_source x WHERE summary NOT IN (SELECT id FROM kept_summary) OR message NOT IN (SELECT id FROM kept_message)
UNION ALL SELECT 'memory', count(*), sum(hashtextextended(x::text, 0)) FROM memory x WHERE id NOT IN (SELECT id FROM kept_memory)
UNION ALL SELECT 'event', count(*), sum(hashtextextended(x::text, 0)) FROM event x WHERE (tenant, id) NOT IN (SELECT tenant, id FROM kept_event)
UNION ALL SELECT 'job', count(*), sum(hashtextextended(x::text, 0)) FROM job x WHERE tenant <> 't2' OR owner <> (SELECT id FROM me)
UNION ALL SELECT 'setting', count(*), sum(hashtextextended(x::text, 0)) FROM setting x WHERE tenant <> 't2'
UNION ALL SELECT 'slot', count(*), sum(hashtextextended(x::text, 0)) FROM slot x WHERE owner <> (SELECT id FROM me)
UNION ALL SELECT 'card', count(*), sum(hashtextextended(x::text, 0)) FROM card x WHERE owner <> (SELECT id FROM me)
UNION ALL SELECT 'run', count(*), sum(hashtextextended(x::text, 0)) FROM run x WHERE owner <> (SELECT id FROM me)
UNION ALL SELECT 'secrets', count(*), sum(hashtextextended(concat(secret, readers, chunks), 0)) FROM document
UNION ALL SELECT 'salaries', count(*), sum(hashtextextended(concat(salary, documents, agents), 0)) FROM account
