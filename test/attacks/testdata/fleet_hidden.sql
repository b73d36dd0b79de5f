SELECT 'household', count(*), sum(hashtextextended(x::text, 0)) FROM household x
UNION ALL SELECT 'driver', count(*), sum(hashtextextended(x::text, 0)) FROM driver x
UNION ALL SELECT 'asset', count(*), sum(hashtextextended(x::text, 0)) FROM asset x WHERE id NOT IN (SELECT id FROM kept_asset)
UNION ALL SELECT 'vehicle', count(*), sum(hashtextextended(x::text, 0)) FROM vehicle x WHERE id NOT IN (SELECT id FROM kept_asset)
UNION ALL SELECT 'gadget', count(*), sum(hashtextextended(x::text, 0)) FROM gadget x
UNION ALL SELECT 'reading', count(*), sum(hashtextextended(x::text, 0)) FROM telemetry.reading x WHERE vehicle_id NOT IN (SELECT id FROM my_vehicle)
UNION ALL SELECT 'trip', count(*), sum(hashtextextended(x::text, 0)) FROM trip x WHERE household_id <> 'h2' OR driver_no NOT IN (SELECT no FROM kept_driver WHERE household_id = 'h2')
UNION ALL SELECT 'passenger', count(*), sum(hashtextextended(x::text, 0)) FROM passenger x JOIN trip t ON t.id = x.trip_id WHERE t.household_id <> 'h2'
UNION ALL SELECT 'service', count(*), sum(hashtextextended(x::text, 0)) FROM service x
UNION ALL SELECT 'tag', count(*), sum(hashtextextended(x::text, 0)) FROM trip_tag x JOIN trip t ON t.id = x.trip_id WHERE t.household_id <> 'h2'
UNION ALL SELECT 'alert', count(*), sum(hashtextextended(x::text, 0)) FROM alert x WHERE id NOT IN (SELECT id FROM kept_alert)
