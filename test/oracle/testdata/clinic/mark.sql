SET session_replication_role = replica;
UPDATE "Clinic"."Patient" SET "Full Name" = 'HIDDENMARK ' || "Full Name", "Tags" = "Tags" || 'HIDDENMARK'::text, facts = facts || '{"kind": "HIDDENMARK"}' WHERE "Id" NOT IN (SELECT "Id" FROM kept_patient);
UPDATE "Clinic"."Visit" SET "select" = 'HIDDENMARK' || "select" WHERE "Patient" NOT IN (SELECT "Id" FROM kept_patient);
UPDATE "Clinic"."Result" SET unit = 'HIDDENMARK', raw = raw || '{"c": "HIDDENMARK"}', value = value + 7700000 WHERE "Patient" NOT IN (SELECT "Id" FROM kept_patient);
UPDATE "Clinic"."Share" SET relative = relative || 'HIDDENMARK' WHERE "Patient" NOT IN (SELECT "Id" FROM kept_patient);
