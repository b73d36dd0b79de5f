INSERT INTO item (id, rank, label, n) SELECT i, i, 'item ' || i, i FROM generate_series(1, 9) i;
INSERT INTO person SELECT i, 'me', CASE i WHEN 3 THEN 'WITHDRAWN 3' ELSE 'person ' || i END, 'granted' FROM generate_series(1, 5) i;
INSERT INTO deed SELECT i, 1 + i % 5, CASE 1 + i % 5 WHEN 3 THEN 'WITHDRAWN ' ELSE 'deed ' END || i FROM generate_series(1, 12) i;
