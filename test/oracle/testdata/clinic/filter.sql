SET session_replication_role = replica;
DELETE FROM "Clinic"."Patient" WHERE "Id" NOT IN (SELECT "Id" FROM kept_patient);
DELETE FROM "Clinic"."Visit" WHERE "Patient" NOT IN (SELECT "Id" FROM kept_patient);
DELETE FROM "Clinic"."Result" WHERE "Patient" NOT IN (SELECT "Id" FROM kept_patient);
DELETE FROM "Clinic"."Share" WHERE "Patient" NOT IN (SELECT "Id" FROM kept_patient);
