INSERT INTO item SELECT 'you', i, i, 'HIDDENMARK more ' || i, 60 FROM generate_series(3, 40) i;
INSERT INTO item SELECT 'they', i, 100 - i, 'HIDDENMARK other ' || i, -i FROM generate_series(1, 9) i;
INSERT INTO person VALUES (102, 'me', 'HIDDENMARK f', 'withdrawn');
INSERT INTO deed SELECT i, 102, 'HIDDENMARK g' FROM generate_series(100, 130) i;
