SELECT 'desk', count(*), sum(hashtextextended(x::text, 0)) FROM desk x
UNION ALL SELECT 'staff', count(*), sum(hashtextextended(x::text, 0)) FROM staff x
UNION ALL SELECT 'informant', count(*), sum(hashtextextended(x::text, 0)) FROM informant x
UNION ALL SELECT 'interview', count(*), sum(hashtextextended(x::text, 0)) FROM interview x
UNION ALL SELECT 'quote', count(*), sum(hashtextextended(x::text, 0)) FROM quote x WHERE interview_id NOT IN (SELECT id FROM kept_interview)
UNION ALL SELECT 'piece', count(*), sum(hashtextextended(x::text, 0)) FROM piece x WHERE house <> 'north' OR kind <> 'column' AND id NOT IN (SELECT id FROM kept_piece)
UNION ALL SELECT 'links', count(*), sum(hashtextextended(x::text, 0)) FROM piece_interview x
UNION ALL SELECT 'digest', count(*), sum(hashtextextended(x::text, 0)) FROM digest x
UNION ALL SELECT 'booking', count(*), sum(hashtextextended(x::text, 0)) FROM booking x WHERE house <> 'north' OR cancelled AND who <> 4
UNION ALL SELECT 'remark', count(*), sum(hashtextextended(x::text, 0)) FROM remark x
UNION ALL SELECT 'event', count(*), sum(hashtextextended(x::text, 0)) FROM log.event x
UNION ALL SELECT 'clip', count(*), sum(hashtextextended(x::text, 0)) FROM clip x
UNION ALL SELECT 'answer', count(*), sum(hashtextextended(x::text, 0)) FROM answer x
UNION ALL SELECT 'expense', count(*), sum(hashtextextended(x::text, 0)) FROM expense x WHERE staff_id <> 4
UNION ALL SELECT 'pref', count(*), sum(hashtextextended(x::text, 0)) FROM pref x WHERE who <> 4
UNION ALL SELECT 'archive', count(*), sum(hashtextextended(x::text, 0)) FROM archive x
