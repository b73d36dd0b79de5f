-- What the assistant of driver 2 of household h2 may see, written without a look at the policy's SQL.
CREATE TEMP TABLE kept_household AS SELECT id FROM household WHERE id = 'h2' OR share_until > now();
CREATE TEMP TABLE kept_driver AS SELECT household_id, no FROM driver WHERE (household_id = 'h2' AND no = 2 OR consent) AND household_id IN (SELECT id FROM kept_household);
CREATE TEMP TABLE kept_asset AS SELECT id FROM asset WHERE household_id = 'h2' OR id NOT IN (SELECT id FROM gadget) AND json_typeof(shared) = 'array' AND shared::jsonb ? 'h2';
CREATE TEMP TABLE my_vehicle AS SELECT DISTINCT vehicle_id AS id FROM trip WHERE household_id = 'h2';
CREATE TEMP TABLE kept_trip AS SELECT id FROM trip t WHERE household_id = 'h2' AND (driver_no IS NULL OR (household_id, driver_no) IN (SELECT * FROM kept_driver)) AND NOT EXISTS (SELECT FROM passenger p LEFT JOIN driver d ON (d.household_id, d.no) = (p.household_id, p.no) WHERE p.trip_id = t.id AND d.consent IS NOT TRUE);
CREATE TEMP TABLE kept_alert AS SELECT id FROM alert WHERE jsonb_typeof(recipients) = 'array' AND recipients ? 'h2' AND (household_id = 'h2' OR level > 1);
