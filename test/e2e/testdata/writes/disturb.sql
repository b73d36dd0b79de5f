-- The twin: other hidden rows, with keys, links and values that statements reach for.
DELETE FROM items WHERE title = 'HIDDENMARK bread';
UPDATE items SET code = 'HIDDENMARK9', body = 'HIDDENMARK other', qty = 12 WHERE qty = 9001;
INSERT INTO shelves VALUES (4, '22222222-2222-4222-8222-222222222222', 'HIDDENMARK'), (77, '22222222-2222-4222-8222-222222222222', 'HIDDENMARK');
INSERT INTO items (user_id, state, title, body, code, shelf) SELECT '22222222-2222-4222-8222-222222222222', 'shown', 'HIDDENMARK ' || n, 'HIDDENMARK', 'k' || n, 77 FROM generate_series(1, 50) n;
INSERT INTO labels SELECT id, 'HIDDENMARK' FROM items;
INSERT INTO slots VALUES ('22222222-2222-4222-8222-222222222222', 'night', 5), ('22222222-2222-4222-8222-222222222222', 'morning', 5), ('22222222-2222-4222-8222-222222222222', 'dawn', 5);
INSERT INTO ideas (user_id, state, idea) VALUES ('11111111-1111-4111-8111-111111111111', 'proposed', 'HIDDENMARK too');
