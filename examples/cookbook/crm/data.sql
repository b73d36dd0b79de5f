INSERT INTO "User" SELECT n, 'rep ' || n FROM unnest(ARRAY[11, 12, 13, 21, 99]) AS n;
INSERT INTO "Company" SELECT n, 'company ' || n, (ARRAY[11, 12, 13, 21])[1 + n % 4] FROM generate_series(1, 20) AS n;
INSERT INTO "Contact"
SELECT n, CASE WHEN n % 9 > 0 THEN 1 + n % 20 END, (ARRAY[11, 12, 13, 21])[1 + n % 4], 'contact ' || n, 'p' || n || '@example.com', date '1960-01-01' + n * 97,
  (ARRAY['consent', 'contract', 'objected', NULL])[1 + n / 4 % 4], CASE WHEN n % 11 = 0 THEN timestamptz '2026-03-01 00:00+00' END,
  jsonb_build_object('likes', 'tea', 'score', n, 'health', 'private ' || n)
FROM generate_series(1, 160) AS n;
INSERT INTO "Deal" SELECT n, 1 + n % 20, (ARRAY[11, 12, 13, 21])[1 + n % 4], 'deal ' || n, n * 100, (ARRAY['lead', 'won', 'lost'])[1 + n % 3], CASE WHEN n % 10 = 0 THEN ARRAY[99] ELSE '{}' END
FROM generate_series(1, 80) AS n;
INSERT INTO "DealContact" SELECT n, 1 + n * 3 % 160 FROM generate_series(1, 80) AS n;
INSERT INTO "Activity" SELECT n, 1 + n % 160, (ARRAY['call', 'mail', 'visit'])[1 + n % 3], 'note ' || n, timestamptz '2026-02-01 00:00+00' + n * interval '2 hours' FROM generate_series(1, 500) AS n;
