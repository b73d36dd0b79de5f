SELECT 'brand' AS what, count(*), sum(hashtextextended(x::text, 0)) FROM tel.brand x
UNION ALL SELECT 'unit', count(*), sum(hashtextextended(x::text, 0)) FROM ops.unit x
UNION ALL SELECT 'employee', count(*), sum(hashtextextended(x::text, 0)) FROM ops.employee x
UNION ALL SELECT 'subscriber', count(*), sum(hashtextextended(x::text, 0)) FROM tel.subscriber x WHERE id <> 7
UNION ALL SELECT 'seven', count(*), sum(hashtextextended((handle, email, visible_to, prefs, risk, gone)::text, 0)) FROM tel.subscriber x WHERE id = 7
UNION ALL SELECT 'sim', count(*), sum(hashtextextended(x::text, 0)) FROM tel.sim x
UNION ALL SELECT 'call', count(*), sum(hashtextextended(x::text, 0)) FROM tel.call x
UNION ALL SELECT 'ping', count(*), sum(hashtextextended(x::text, 0)) FROM tel.ping x
UNION ALL SELECT 'agreement', count(*), sum(hashtextextended(x::text, 0)) FROM tel.agreement x
UNION ALL SELECT 'voicemail', count(*), sum(hashtextextended(x::text, 0)) FROM tel.voicemail x WHERE id NOT IN (SELECT id FROM kept_voicemail)
UNION ALL SELECT 'contact', count(*), sum(hashtextextended(x::text, 0)) FROM tel.contact x WHERE owner <> 7
UNION ALL SELECT 'group', count(*), sum(hashtextextended(x::text, 0)) FROM tel."group" x WHERE owner <> 7
UNION ALL SELECT 'contact_group', count(*), sum(hashtextextended(x::text, 0)) FROM tel.contact_group x WHERE owner <> 7
UNION ALL SELECT 'activity', count(*), sum(hashtextextended(x::text, 0)) FROM tel.pg_stat_activity x
UNION ALL SELECT 'port', count(*), sum(hashtextextended(x::text, 0)) FROM tel.port x
UNION ALL SELECT 'thread', count(*), sum(hashtextextended(x::text, 0)) FROM msg.thread x
UNION ALL SELECT 'message', count(*), sum(hashtextextended(x::text, 0)) FROM msg.message x WHERE (id NOT IN (SELECT id FROM kept_message) OR author <> 7) AND (author <> 7 OR thread NOT IN (SELECT id FROM kept_thread))
UNION ALL SELECT 'receipt', count(*), sum(hashtextextended(x::text, 0)) FROM msg.receipt x WHERE reader <> 7 OR message NOT IN (SELECT id FROM kept_message)
UNION ALL SELECT 'draft', count(*), sum(hashtextextended(x::text, 0)) FROM msg.draft x WHERE owner <> 7
UNION ALL SELECT 'ticket', count(*), sum(hashtextextended(x::text, 0)) FROM "Care Desk"."Ticket" x WHERE "Id" NOT IN (SELECT id FROM kept_ticket)
UNION ALL SELECT 'note', count(*), sum(hashtextextended(x::text, 0)) FROM "Care Desk"."Note" x
UNION ALL SELECT 'order', count(*), sum(hashtextextended(x::text, 0)) FROM public."Order" x WHERE subscriber <> 7
UNION ALL SELECT 'bill', count(*), sum(hashtextextended(x::text, 0)) FROM public.bill x
UNION ALL SELECT 'reminder', count(*), sum(hashtextextended(x::text, 0)) FROM public.reminder x
