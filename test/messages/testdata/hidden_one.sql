INSERT INTO item SELECT 'you', i, i, 'HIDDENMARK ' || i, 50 FROM generate_series(1, 4) i;
INSERT INTO person VALUES (100, 'you', 'HIDDENMARK a', 'granted'), (101, 'me', 'HIDDENMARK b', 'pending');
INSERT INTO deed VALUES (100, 100, 'HIDDENMARK c'), (101, 101, 'HIDDENMARK d');
INSERT INTO secret VALUES (1, 'HIDDENMARK e');
