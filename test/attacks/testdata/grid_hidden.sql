SELECT 'household' AS what, count(*), sum(hashtextextended(x::text, 0)) FROM household x WHERE id NOT IN (SELECT id FROM kept_household)
UNION ALL SELECT 'own households', count(*), sum(hashtextextended((id, ref, coop, display_name, address, status, referred_by, meta, floor_area, created_at, archived_at)::text, 0)) FROM household
UNION ALL SELECT 'member', count(*), sum(hashtextextended(x::text, 0)) FROM member x
UNION ALL SELECT 'consent_event', count(*), sum(hashtextextended(x::text, 0)) FROM consent_event x
UNION ALL SELECT 'smart_meter', count(*), sum(hashtextextended(x::text, 0)) FROM smart_meter x
UNION ALL SELECT 'reading', count(*), sum(hashtextextended(x::text, 0)) FROM telemetry.reading x
UNION ALL SELECT 'tariff', count(*), sum(hashtextextended(x::text, 0)) FROM billing.tariff x
UNION ALL SELECT 'contract', count(*), sum(hashtextextended(x::text, 0)) FROM contract x
UNION ALL SELECT 'invoice', count(*), sum(hashtextextended(x::text, 0)) FROM billing.invoice x
UNION ALL SELECT 'payment', count(*), sum(hashtextextended(x::text, 0)) FROM billing.payment x
UNION ALL SELECT 'ticket', count(*), sum(hashtextextended(x::text, 0)) FROM ticket x WHERE id NOT IN (SELECT id FROM kept_ticket)
UNION ALL SELECT 'ticket_note', count(*), sum(hashtextextended(x::text, 0)) FROM ticket_note x WHERE id NOT IN (SELECT id FROM kept_note) AND author_id <> 7
UNION ALL SELECT 'digest', count(*), sum(hashtextextended(x::text, 0)) FROM digest x WHERE owner_id <> 7
UNION ALL SELECT 'outage', count(*), sum(hashtextextended(x::text, 0)) FROM telemetry.outage x
UNION ALL SELECT 'device', count(*), sum(hashtextextended(x::text, 0)) FROM telemetry.device x WHERE id NOT IN (SELECT id FROM kept_device)
UNION ALL SELECT 'referral', count(*), sum(hashtextextended(x::text, 0)) FROM referral x
UNION ALL SELECT 'WorkOrder', count(*), sum(hashtextextended(x::text, 0)) FROM "WorkOrder" x
UNION ALL SELECT 'annotation', count(*), sum(hashtextextended(x::text, 0)) FROM annotation x WHERE owner_id <> 7
UNION ALL SELECT 'staff_shift', count(*), sum(hashtextextended(x::text, 0)) FROM staff_shift x
UNION ALL SELECT 'api_key', count(*), sum(hashtextextended(x::text, 0)) FROM api_key x
