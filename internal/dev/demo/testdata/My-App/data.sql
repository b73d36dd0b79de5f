INSERT INTO notes SELECT i, CASE WHEN i % 3 = 0 THEN 'n' ELSE 's' END, 'note ' || i FROM generate_series(1, 30) i;
