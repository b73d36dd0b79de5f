INSERT INTO clinic.patients SELECT md5('patient ' || n)::uuid, 'patient ' || n, date '1940-06-01' + n * 211, 'X' || n FROM generate_series(1, 40) AS n;
INSERT INTO clinic.practitioners SELECT ('00000000-0000-4000-8000-00000000000' || n)::uuid, 'practitioner ' || n FROM generate_series(1, 4) AS n;
INSERT INTO clinic.care_team
SELECT md5('patient ' || n)::uuid, ('00000000-0000-4000-8000-00000000000' || p)::uuid, date '2025-01-01', CASE WHEN n % 7 = 0 THEN date '2025-12-31' END
FROM generate_series(1, 40) AS n, generate_series(1, 4) AS p WHERE (n + p) % 3 = 0;
INSERT INTO clinic.consents
SELECT md5('patient ' || n)::uuid, 'assistant', (ARRAY['permit', 'permit', 'permit', 'deny'])[1 + n % 4] FROM generate_series(1, 40) AS n WHERE n % 10 > 0;
INSERT INTO clinic.notes
SELECT md5('note ' || n)::uuid, md5('patient ' || 1 + n % 40)::uuid, ('00000000-0000-4000-8000-00000000000' || 1 + n % 4)::uuid,
  CASE WHEN n % 6 = 0 THEN 'restricted' ELSE 'normal' END, 'assistant', 'note ' || n, timestamptz '2026-01-01 08:00+00' + n * interval '5 hours',
  CASE WHEN n % 13 = 0 THEN timestamptz '2026-02-01 00:00+00' END
FROM generate_series(1, 400) AS n;
