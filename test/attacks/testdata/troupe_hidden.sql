SELECT 'agency' AS what, count(*), sum(hashtextextended(x::text, 0)) FROM agency x
UNION ALL SELECT 'member', count(*), sum(hashtextextended(x::text, 0)) FROM member x
UNION ALL SELECT 'performer', count(*), sum(hashtextextended(x::text, 0)) FROM performer x WHERE id NOT IN (SELECT id FROM kept_performer)
UNION ALL SELECT 'secret', count(*), sum(hashtextextended((id, legal_name, email, phone, attrs, consent, consent_until)::text, 0)) FROM performer x
UNION ALL SELECT 'guardian', count(*), sum(hashtextextended(x::text, 0)) FROM guardian x
UNION ALL SELECT 'category', count(*), sum(hashtextextended(x::text, 0)) FROM performer_category x WHERE performer_id IN (SELECT id FROM performer EXCEPT SELECT id FROM kept_performer)
UNION ALL SELECT 'tag', count(*), sum(hashtextextended(x::text, 0)) FROM tag x WHERE agency_id <> 'nord'
UNION ALL SELECT 'tagged', count(*), sum(hashtextextended(x::text, 0)) FROM performer_tag x WHERE performer_id IN (SELECT id FROM performer WHERE agency_id <> 'nord')
UNION ALL SELECT 'production', count(*), sum(hashtextextended(x::text, 0)) FROM production x WHERE id NOT IN (SELECT id FROM kept_production)
UNION ALL SELECT 'budget', count(budget), sum(budget) FROM production
UNION ALL SELECT 'part', count(*), sum(hashtextextended(x::text, 0)) FROM part x WHERE production_id IN (SELECT id FROM production EXCEPT SELECT id FROM kept_production)
UNION ALL SELECT 'room', count(*), sum(hashtextextended(x::text, 0)) FROM sched.room x
UNION ALL SELECT 'audition', count(*), sum(hashtextextended(x::text, 0)) FROM sched.audition x WHERE part_id IN (SELECT id FROM part EXCEPT SELECT id FROM kept_part) OR performer_id IN (SELECT id FROM performer EXCEPT SELECT id FROM kept_performer)
UNION ALL SELECT 'availability', count(*), sum(hashtextextended(x::text, 0)) FROM sched.availability x WHERE performer_id IN (SELECT id FROM performer EXCEPT SELECT id FROM kept_performer)
UNION ALL SELECT 'reel', count(*), sum(hashtextextended(x::text, 0)) FROM reel x
UNION ALL SELECT 'document', count(*), sum(hashtextextended(x::text, 0)) FROM document x
UNION ALL SELECT 'chunk', count(*), sum(hashtextextended(x::text, 0)) FROM chunk x
UNION ALL SELECT 'message', count(*), sum(hashtextextended(x::text, 0)) FROM message x WHERE performer_id IN (SELECT id FROM performer EXCEPT SELECT id FROM kept_performer)
UNION ALL SELECT 'contract', count(*), sum(hashtextextended(x::text, 0)) FROM contract x
UNION ALL SELECT 'event', count(*), sum(hashtextextended(x::text, 0)) FROM log.event x WHERE agency_id <> 'nord' OR performer_id IN (SELECT id FROM performer EXCEPT SELECT id FROM kept_performer)
UNION ALL SELECT 'note', count(*), sum(hashtextextended(x::text, 0)) FROM note x WHERE author <> 4 OR deleted_at IS NOT NULL
UNION ALL SELECT 'task', count(*), sum(hashtextextended((id, agency_id, assignee, watchers, title, code, done)::text, 0)) FROM task x WHERE agency_id <> 'nord' OR NOT (assignee = 4 OR watchers @> '{4}')
UNION ALL SELECT 'log', count(*), sum(hashtextextended(x::text, 0)) FROM consent_log x
