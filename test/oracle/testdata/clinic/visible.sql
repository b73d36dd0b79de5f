-- What the agent of carer aaaaaaaa… may see, written without a look at the policy's SQL.
CREATE TEMP TABLE kept_patient AS SELECT p."Id" FROM "Clinic"."Patient" p
WHERE p.carer = 'aaaaaaaa-0000-4000-8000-000000000001'
  AND (SELECT count(*) FROM "Clinic"."Share" s WHERE s."Patient" = p."Id") = (SELECT count(*) FROM "Clinic"."Share" s WHERE s."Patient" = p."Id" AND s."Agreed" = 'yes');
