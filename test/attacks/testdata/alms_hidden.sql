SELECT 'tenant' AS what, count(*), sum(hashtextextended(x::text, 0)) FROM public."Tenant" x
UNION ALL SELECT 'user', count(*), sum(hashtextextended(x::text, 0)) FROM public."User" x WHERE id <> 'u07'
UNION ALL SELECT 'me', count(*), sum(hashtextextended((email, role, roles, consent, "deletedAt", "tenantId")::text, 0)) FROM public."User" x WHERE id = 'u07'
UNION ALL SELECT 'post', count(*), sum(hashtextextended(x::text, 0)) FROM public."Post" x WHERE "authorId" <> 'u07'
UNION ALL SELECT 'tag', count(*), sum(hashtextextended(x::text, 0)) FROM public."Tag" x
UNION ALL SELECT 'tagged', count(*), sum(hashtextextended(x::text, 0)) FROM public."_PostToTag" x WHERE "A" NOT IN (SELECT id FROM kept_post) OR "B" NOT IN (SELECT id FROM kept_tag)
UNION ALL SELECT 'comment', count(*), sum(hashtextextended((id, commentable_type, commentable_id, user_id, body, votes, discarded_at)::text, 0)) FROM rails.comments x WHERE user_id <> 'u07' OR (id <= 300 AND id NOT IN (SELECT id FROM kept_comment))
UNION ALL SELECT 'tagging', count(*), sum(hashtextextended(x::text, 0)) FROM rails.taggings x
UNION ALL SELECT 'login', count(*), sum(hashtextextended(x::text, 0)) FROM rails."User" x
UNION ALL SELECT 'party', count(*), sum(hashtextextended(x::text, 0)) FROM hib.party x
UNION ALL SELECT 'person', count(*), sum(hashtextextended(x::text, 0)) FROM hib.person x
UNION ALL SELECT 'aud', count(*), sum(hashtextextended(x::text, 0)) FROM hib.person_aud x
UNION ALL SELECT 'payment', count(*), sum(hashtextextended(x::text, 0)) FROM hib.payment x
UNION ALL SELECT 'gift', count(*), sum(hashtextextended(x::text, 0)) FROM fin.gift x
UNION ALL SELECT 'old', count(*), sum(hashtextextended(x::text, 0)) FROM fin.gift_old x
UNION ALL SELECT 'receipt', count(*), sum(hashtextextended(x::text, 0)) FROM fin.receipt x
UNION ALL SELECT 'pledge', count(*), sum(hashtextextended(x::text, 0)) FROM fin.pledge x WHERE (tenant_id, donor_id) NOT IN (SELECT * FROM kept_person) OR until <= now()
UNION ALL SELECT 'entry', count(*), sum(hashtextextended(x::text, 0)) FROM fin.entry x WHERE owner <> 'u07'
UNION ALL SELECT 'consent', count(*), sum(hashtextextended(x::text, 0)) FROM app.consent_period x
UNION ALL SELECT 'case', count(*), sum(hashtextextended(x::text, 0)) FROM app.case_file x WHERE id NOT IN (SELECT id FROM kept_case)
UNION ALL SELECT 'note', count(*), sum(hashtextextended(x::text, 0)) FROM app.case_note x WHERE case_id NOT IN (SELECT id FROM kept_case)
UNION ALL SELECT 'value', count(*), sum(hashtextextended(x::text, 0)) FROM app.custom_value x
UNION ALL SELECT 'shift', count(*), sum(hashtextextended(x::text, 0)) FROM app.shift x WHERE who <> 'u07'
UNION ALL SELECT 'job', count(*), sum(hashtextextended(x::text, 0)) FROM app.job x WHERE owner <> 'u07'
UNION ALL SELECT 'r1', count(*), sum(hashtextextended(x::text, 0)) FROM app.r1 x
UNION ALL SELECT 'event', count(*), sum(hashtextextended(x::text, 0)) FROM app.event x
UNION ALL SELECT 'digest', count(*), sum(hashtextextended(x::text, 0)) FROM app.digest x
UNION ALL SELECT 'document', count(*), sum(hashtextextended(x::text, 0)) FROM app.document x WHERE owner <> 'u07'
UNION ALL SELECT 'hidden of mine', count(*), sum(hashtextextended((id, iban, phone, born, extra, body)::text, 0)) FROM app.document x WHERE owner = 'u07'
