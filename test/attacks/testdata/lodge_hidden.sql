SELECT 'brand' AS what, count(*), sum(hashtextextended(x::text, 0)) FROM brand x
UNION ALL SELECT 'hotel', count(*), sum(hashtextextended(x::text, 0)) FROM hotel x
UNION ALL SELECT 'type', count(*), sum(hashtextextended(x::text, 0)) FROM room_type x
UNION ALL SELECT 'room', count(*), sum(hashtextextended(x::text, 0)) FROM room x
UNION ALL SELECT 'rate', count(*), sum(hashtextextended(x::text, 0)) FROM rate x
UNION ALL SELECT 'staff', count(*), sum(hashtextextended(x::text, 0)) FROM staff x
UNION ALL SELECT 'guest', count(*), sum(hashtextextended(x::text, 0)) FROM guest x
UNION ALL SELECT 'consent', count(*), sum(hashtextextended(x::text, 0)) FROM guest_consent x
UNION ALL SELECT 'booking', count(*), sum(hashtextextended(x::text, 0)) FROM res.booking x WHERE guest_id NOT IN (SELECT id FROM kept_guest) OR hotel_id NOT IN (SELECT id FROM kept_hotel)
UNION ALL SELECT 'risk', count(*) FILTER (WHERE risk IS NOT NULL), sum(risk)::numeric FROM res.booking
UNION ALL SELECT 'companion', count(*), sum(hashtextextended(x::text, 0)) FROM res.companion x WHERE booking_id IN (SELECT id FROM res.booking WHERE guest_id NOT IN (SELECT id FROM kept_guest)) OR guest_id NOT IN (SELECT id FROM kept_guest)
UNION ALL SELECT 'line', count(*), sum(hashtextextended(x::text, 0)) FROM res.line x WHERE booking_id IN (SELECT id FROM res.booking WHERE guest_id NOT IN (SELECT id FROM kept_guest))
UNION ALL SELECT 'payment', count(*), sum(hashtextextended(x::text, 0)) FROM res.payment x
UNION ALL SELECT 'review', count(*), sum(hashtextextended(x::text, 0)) FROM review x
UNION ALL SELECT 'message', count(*), sum(hashtextextended(x::text, 0)) FROM message x WHERE booking_id IN (SELECT id FROM res.booking WHERE guest_id NOT IN (SELECT id FROM kept_guest))
UNION ALL SELECT 'points', count(*), sum(hashtextextended(x::text, 0)) FROM points x
UNION ALL SELECT 'spa', count(*), sum(hashtextextended(x::text, 0)) FROM "SpaAppointment" x
UNION ALL SELECT 'task', count(*), sum(hashtextextended((id, hotel_id, assignee, watchers, title, state, priority, due, checklist, effort)::text, 0)) FROM task x WHERE assignee <> md5('s1')::uuid
UNION ALL SELECT 'note', count(*), sum(hashtextextended(x::text, 0)) FROM note x WHERE author <> md5('s1')::uuid
UNION ALL SELECT 'audit', count(*), sum(hashtextextended(x::text, 0)) FROM audit_log x
