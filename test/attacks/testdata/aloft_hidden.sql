SELECT 'carrier' AS what, count(*), sum(hashtextextended(x::text, 0)) FROM ops.carrier x
UNION ALL SELECT 'airport', count(*), sum(hashtextextended(x::text, 0)) FROM ops.airport x
UNION ALL SELECT 'aircraft', count(*), sum(hashtextextended(x::text, 0)) FROM ops.aircraft x
UNION ALL SELECT 'part', count(*), sum(hashtextextended(x::text, 0)) FROM ops.part x
UNION ALL SELECT 'flight', count(*), sum(hashtextextended(x::text, 0)) FROM ops.flight x WHERE (carrier, day, flno, suffix) NOT IN (SELECT * FROM kept_flight WHERE carrier = 'QX')
UNION ALL SELECT 'own flights', count(*), sum(hashtextextended((carrier, day, flno, suffix, origin, dest, sched, actual, state, tail, codeshare)::text, 0)) FROM ops.flight
UNION ALL SELECT 'person', count(*), sum(hashtextextended(x::text, 0)) FROM crew.person x
UNION ALL SELECT 'duty', count(*), sum(hashtextextended(x::text, 0)) FROM crew.duty x WHERE person NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'swap', count(*), sum(hashtextextended(x::text, 0)) FROM crew.swap x WHERE giver <> 7
UNION ALL SELECT 'note', count(*), sum(hashtextextended(x::text, 0)) FROM crew.note x WHERE author <> 7 AND (about <> 7 AND readers && '{ops,chief,*}') IS NOT TRUE
UNION ALL SELECT 'bid', count(*), sum(hashtextextended(x::text, 0)) FROM crew.bid x WHERE person <> 7
UNION ALL SELECT 'member', count(*), sum(hashtextextended(x::text, 0)) FROM loyal.member x
UNION ALL SELECT 'permission', count(*), sum(hashtextextended(x::text, 0)) FROM loyal.permission x
UNION ALL SELECT 'ledger', count(*), sum(hashtextextended(x::text, 0)) FROM loyal.ledger x
UNION ALL SELECT 'incident', count(*), sum(hashtextextended(x::text, 0)) FROM loyal.incident x
UNION ALL SELECT 'fare', count(*), sum(hashtextextended(x::text, 0)) FROM sales.fare x
UNION ALL SELECT 'booking', count(*), sum(hashtextextended(x::text, 0)) FROM sales.booking x
UNION ALL SELECT 'pax', count(*), sum(hashtextextended(x::text, 0)) FROM sales.pax x
UNION ALL SELECT 'coupon', count(*), sum(hashtextextended(x::text, 0)) FROM sales.coupon x WHERE (pnr, made) NOT IN (SELECT * FROM kept_booking) OR (carrier, day, flno, suffix) NOT IN (SELECT * FROM kept_flight)
UNION ALL SELECT 'coupons', count(*), sum(hashtextextended((pnr, made, seq, leg, carrier, day, flno, suffix, seat, used)::text, 0)) FROM sales.coupon
UNION ALL SELECT 'letter', count(*), sum(hashtextextended(x::text, 0)) FROM sales.letter x
UNION ALL SELECT 'task', count(*), sum(hashtextextended(x::text, 0)) FROM sales.task x WHERE owner <> 7
