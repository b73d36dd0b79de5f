INSERT INTO items (title, code) VALUES ('x', 'HIDDENMARK1')
INSERT INTO items (id, title) VALUES ('00000000-0000-4000-8000-000000000011', 'x')
INSERT INTO items (id, title) VALUES ('00000000-0000-4000-8000-000000000011', 'x') ON CONFLICT DO NOTHING
INSERT INTO items (id, title) VALUES ('00000000-0000-4000-8000-000000000011', 'x') ON CONFLICT (id) DO UPDATE SET qty = 1
INSERT INTO items SELECT * FROM items
INSERT INTO items VALUES (gen_random_uuid(), '11111111-1111-4111-8111-111111111111', 'shown', 'x')
INSERT INTO items (title, shelf) VALUES ('x', 3)
INSERT INTO items (title, shelf) VALUES ('x', 4)
INSERT INTO items (title, shelf) VALUES ('x', 77) ON CONFLICT DO NOTHING
INSERT INTO items (title, shelf) VALUES ('x', 99)
INSERT INTO items (title, shelf) SELECT 'x', n FROM generate_series(3, 80) n
INSERT INTO items (title) VALUES ('hide')
INSERT INTO items (title) VALUES ('hide') RETURNING title
INSERT INTO items (title, body) VALUES ('x', 'forbidden')
INSERT INTO items (title) SELECT what FROM item_log
INSERT INTO items (title) SELECT label FROM labels
INSERT INTO labels VALUES ('00000000-0000-4000-8000-000000000001', 'x')
INSERT INTO shelves VALUES (3, '11111111-1111-4111-8111-111111111111', 'x')
INSERT INTO item_log (what) VALUES ('x')
INSERT INTO pg_class (relname) VALUES ('x')
INSERT INTO pgconsent.keys (kid) VALUES (1)
INSERT INTO pgconsent_signed.public_people VALUES (1)
INSERT INTO ideas (idea) VALUES ('x') RETURNING id
INSERT INTO ideas (idea) VALUES ('x') ON CONFLICT (id) DO UPDATE SET idea = 'y'
INSERT INTO ideas (idea, state) VALUES ('x', 'agreed')
INSERT INTO counted (n, what) OVERRIDING SYSTEM VALUE VALUES (2, 'x')
INSERT INTO slots (name, user_id) VALUES ('night', '22222222-2222-4222-8222-222222222222') ON CONFLICT DO NOTHING
INSERT INTO slots (name) VALUES ('night') ON CONFLICT (user_id, name) DO UPDATE SET user_id = '22222222-2222-4222-8222-222222222222'
INSERT INTO slots (name) SELECT name FROM slots
INSERT INTO words (word) VALUES ((SELECT string_agg(title, ',') FROM items))
INSERT INTO words (word) VALUES (nextval('counted_n_seq'))
INSERT INTO words (word) VALUES (currval('counted_n_seq'))
INSERT INTO words (word) VALUES (lastval())
INSERT INTO words (word) VALUES (items_log())
UPDATE items SET user_id = '22222222-2222-4222-8222-222222222222'
UPDATE items SET state = 'x'
UPDATE items SET made = now()
UPDATE items SET id = gen_random_uuid()
UPDATE items SET code = 'k7'
UPDATE items SET (title, state) = ('a', 'b')
UPDATE items SET shelf = 3
UPDATE items SET shelf = 4 WHERE title = 'apple'
UPDATE items SET shelf = 99 WHERE title = 'apple'
UPDATE items SET title = 'hide' WHERE title = 'apple'
UPDATE items SET title = 'raise' WHERE title = 'apple'
UPDATE items SET body = 'forbidden' WHERE title = 'apple'
UPDATE items SET qty = 1 WHERE title = 'HIDDENMARK apple' RETURNING *
UPDATE items SET qty = 1 WHERE 1 / (qty - 9001) > 0
UPDATE items SET qty = body::int
UPDATE items SET qty = 1 WHERE ctid = '(0,5)'
UPDATE items SET qty = 1 WHERE xmin::text <> '0'
UPDATE items SET qty = 1 RETURNING ctid
UPDATE items SET qty = 1 FROM item_log
UPDATE items SET qty = 1 FROM labels l WHERE l.item = items.id
UPDATE shelves SET name = 'x'
UPDATE labels SET label = 'x'
UPDATE pg_settings SET setting = 'off' WHERE name = 'row_security'
UPDATE slots SET name = 'evening' WHERE name = 'noon'
UPDATE slots SET user_id = '22222222-2222-4222-8222-222222222222'
UPDATE counted SET what = 'x'
DELETE FROM items WHERE title LIKE '%HIDDENMARK%' RETURNING *
DELETE FROM items USING labels l WHERE l.item = items.id
DELETE FROM shelves
DELETE FROM shelves WHERE id = 3
DELETE FROM item_log
DELETE FROM labels
DELETE FROM ideas
DELETE FROM items WHERE body::int > 0
TRUNCATE items
MERGE INTO items i USING item_log l ON true WHEN MATCHED THEN DELETE
MERGE INTO items i USING shelves s ON i.shelf = s.id WHEN MATCHED THEN UPDATE SET state = 'x'
MERGE INTO items i USING shelves s ON false WHEN NOT MATCHED THEN INSERT (title, code) VALUES ('x', 'k1')
MERGE INTO items i USING shelves s ON false WHEN NOT MATCHED THEN INSERT (title, shelf) VALUES ('x', 3)
MERGE INTO items i USING (SELECT 3 AS n) v ON i.shelf = v.n WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (title) VALUES ('x')
MERGE INTO shelves s USING items i ON s.id = i.shelf WHEN MATCHED THEN DELETE
MERGE INTO ideas USING items ON false WHEN NOT MATCHED THEN INSERT (idea, state) VALUES ('x', 'agreed')
WITH x AS (DELETE FROM shelves RETURNING *) SELECT * FROM x
WITH x AS (UPDATE items SET state = 'x' RETURNING *) SELECT * FROM x
WITH x AS (INSERT INTO items (title) VALUES ('x') RETURNING id) INSERT INTO labels SELECT id, 'x' FROM x
SELECT * FROM (UPDATE items SET qty = 1 RETURNING *) x
COPY (DELETE FROM shelves RETURNING *) TO STDOUT
SELECT pg_sequence_last_value('counted_n_seq')
SELECT setval('counted_n_seq', 1)
SELECT * FROM counted_n_seq
SELECT currval('counted_n_seq')
INSERT INTO ideas (idea, state, user_id) VALUES ('x', 'agreed', '22222222-2222-4222-8222-222222222222')
SELECT * FROM shelves FOR UPDATE
SELECT * FROM items, shelves FOR SHARE
SELECT * FROM ideas FOR UPDATE
SELECT * FROM item_log FOR UPDATE
SELECT title FROM items WHERE title LIKE 'HIDDENMARK%' FOR UPDATE
SELECT count(*) FROM items FOR UPDATE
UPDATE items SET qty = 1 WHERE CURRENT OF c
UPDATE full_items SET state = 'secret'
UPDATE full_items SET big = 'x'
INSERT INTO full_items (name, qty, state) VALUES ('egg', 3, 'shown')
INSERT INTO full_items VALUES ('egg', 3)
INSERT INTO full_items VALUES ('egg', 3, 'forbidden')
UPDATE full_items SET qty = 9 WHERE name LIKE 'HIDDENMARK%' OR qty > 9000 RETURNING *
UPDATE full_items SET text = 'forbidden'
UPDATE full_items SET name = 'hide'
DELETE FROM full_items WHERE name::int > 0
INSERT INTO all_slots VALUES ('22222222-2222-4222-8222-222222222222', 'evening', 1)
INSERT INTO all_slots (user_id, name) VALUES ('22222222-2222-4222-8222-222222222222', 'evening')
UPDATE all_slots SET user_id = '22222222-2222-4222-8222-222222222222'
UPDATE ruled_slots SET uses = 1
DELETE FROM ruled_slots
DELETE FROM summed_slots
INSERT INTO summed_slots VALUES (1)
UPDATE pgconsent_rows.public_all_slots SET uses = 1
MERGE INTO all_slots a USING slots s ON a.name = s.name WHEN MATCHED THEN DELETE
UPDATE cards SET secret = 'mine'
UPDATE cards SET note = secret
UPDATE cards SET born = '2001-01-01'
UPDATE cards SET name = 'x' WHERE secret = 'HIDDENMARK'
UPDATE cards SET name = 'x' WHERE level > 9000 RETURNING *
UPDATE cards SET id = 1000
UPDATE cards SET open = true
INSERT INTO cards (name, secret) VALUES ('x', 'y')
INSERT INTO cards (name, user_id) VALUES ('x', '22222222-2222-4222-8222-222222222222')
INSERT INTO cards VALUES (1, 'x')
INSERT INTO cards (name, born) VALUES ('x', '2001-01-01')
INSERT INTO cards (name, level) VALUES ('x', 1) RETURNING secret
INSERT INTO cards (name) VALUES ('x') RETURNING ctid
DELETE FROM cards WHERE name::int = 1
DELETE FROM cards WHERE level > 9000
SELECT * FROM cards FOR UPDATE
MERGE INTO cards c USING items i ON i.title = c.name WHEN MATCHED THEN DELETE
UPDATE pgconsent_rows.public_cards SET level = 1
UPDATE pgconsent_rows.filtered_public_cards SET level = 1
COPY cards (name, secret) FROM STDIN
SELECT secret FROM cards
UPDATE red_items SET n = 9 WHERE label LIKE 'HIDDENMARK%' OR n > 9000 RETURNING *
UPDATE red_items SET n = 9 WHERE 1 / (n - 9001) > 0
UPDATE red_items SET state = 'secret'
UPDATE red_items SET big = 'x'
UPDATE red_items SET colour = 'forbidden'
UPDATE red_items SET label = 'hide' WHERE label = 'apple'
UPDATE red_items SET label = 'raise' WHERE label = 'apple'
UPDATE red_items SET n = colour::int
UPDATE red_items SET n = 1 / (n - 7)
UPDATE red_items SET user_id = '22222222-2222-4222-8222-222222222222'
UPDATE red_items SET n = 9 RETURNING ctid
UPDATE red_items SET n = 9 RETURNING tableoid
INSERT INTO red_items VALUES ('egg', 3, 'x', 'X', 'secret')
INSERT INTO red_items (label, n, state) VALUES ('egg', 3, 'HIDDENMARK')
INSERT INTO red_items (label, n) VALUES ('hide', 3) RETURNING label
INSERT INTO red_items (label, n, colour) VALUES ('egg', 3, 'forbidden')
INSERT INTO red_items (label, n) SELECT label, 5 FROM labels
INSERT INTO red_items (label, n) VALUES ('egg', 3) ON CONFLICT (code) DO UPDATE SET n = 5
DELETE FROM red_items WHERE label::int > 0
DELETE FROM red_items WHERE n > 8999 RETURNING *
MERGE INTO red_items r USING shelves s ON r.n = s.id WHEN MATCHED THEN DELETE
UPDATE fair_items SET qty = 5
DELETE FROM fair_items
UPDATE few_slots SET uses = 5
INSERT INTO few_slots (slot) VALUES ('evening')
UPDATE pgconsent_rows.public_fair_items SET qty = 5
UPDATE pgconsent_rows.public_red_items SET n = 5
UPDATE pgconsent_rows.filtered_public_red_items SET n = 5
UPDATE odd_slots SET b = 1 WHERE a IN ('evening', 'night') RETURNING *
UPDATE odd_slots SET a = 'evening' WHERE a = 'noon' RETURNING a
INSERT INTO odd_slots (a) VALUES ('night') RETURNING a
DELETE FROM odd_slots WHERE a::int = 9003
UPDATE over_ruled SET uses = 1
DELETE FROM over_ruled
DELETE FROM over_summed
UPDATE over_summed SET total = 1
INSERT INTO over_given (name) VALUES ('evening')
INSERT INTO over_given (name, uses) VALUES ('evening', 1)
UPDATE turned_items SET title = 'secret'
INSERT INTO turned_items (title, state) VALUES ('secret', 'egg')
UPDATE noted_cards SET level = 1 WHERE level > 9000 OR who = 'HIDDENMARK' RETURNING *
UPDATE noted_cards SET note = secret
INSERT INTO noted_cards (who, user_id) VALUES ('x', '22222222-2222-4222-8222-222222222222')
DELETE FROM noted_cards WHERE who::int = 1
SELECT * FROM red_items FOR UPDATE
COPY red_items (label, n) FROM STDIN
