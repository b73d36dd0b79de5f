INSERT INTO items (title) VALUES ('egg')
INSERT INTO items (title, qty) VALUES ('egg', 2), ('fig', DEFAULT) RETURNING title, body, qty, state, loud
INSERT INTO items (title, user_id, state) VALUES ('egg', '22222222-2222-4222-8222-222222222222', 'secret') RETURNING user_id, state
INSERT INTO items (id, title, loud, code) VALUES (DEFAULT, ' egg ', DEFAULT, DEFAULT), (DEFAULT, 'fig', DEFAULT, DEFAULT) RETURNING title, loud, code
INSERT INTO items (title, made) VALUES ('egg', '2025-05-05') RETURNING made
INSERT INTO items AS i (title, tags[1], tags[2], dim.width) VALUES ('egg', 'x', 'y', 8) RETURNING i.tags, (i.dim).width
INSERT INTO items (title, shelf) VALUES ('egg', 2) RETURNING shelf
INSERT INTO items (title, qty) SELECT title || '!', qty + 1 FROM items WHERE qty > 2 RETURNING title, qty
INSERT INTO items (title) SELECT name FROM shelves
INSERT INTO items (title, qty) SELECT s.name, count(i.id)::int FROM shelves s LEFT JOIN items i ON i.shelf = s.id GROUP BY s.name RETURNING title, qty
INSERT INTO items (title) SELECT 'n' || n FROM generate_series(1, 20) n RETURNING title
INSERT INTO items (title) VALUES ((SELECT max(title) FROM items) || '+')
INSERT INTO items (title, body) WITH v AS (SELECT min(title) AS a, max(body) AS b FROM items) SELECT a, b FROM v RETURNING title, body
INSERT INTO items (title) VALUES (NULL)
INSERT INTO items (title, qty) VALUES ('egg', -1)
INSERT INTO items (title, note) VALUES ('egg', repeat('x', 30))
INSERT INTO items (title, qty) VALUES ('egg', 'three')
INSERT INTO items (title) VALUES ('vanish') RETURNING title
INSERT INTO items (title, body) VALUES ('egg', 'x') ON CONFLICT DO NOTHING
INSERT INTO items (title) VALUES ('raise')
INSERT INTO items DEFAULT VALUES
INSERT INTO words VALUES ('three', 3) RETURNING *
INSERT INTO words VALUES ('one', 3)
INSERT INTO words VALUES ('one', 3), ('four', 4) ON CONFLICT DO NOTHING RETURNING word
INSERT INTO words (word, uses) VALUES ('one', 10), ('four', 4) ON CONFLICT (word) DO UPDATE SET uses = words.uses + excluded.uses WHERE words.uses < 5 RETURNING word, uses
INSERT INTO words AS w (word) VALUES ('two') ON CONFLICT ON CONSTRAINT words_pkey DO UPDATE SET (uses, word) = (SELECT w.uses + 1, excluded.word || '2') RETURNING w.*
INSERT INTO words (word, during) VALUES ('five', '[2026-01-01,2026-01-05)')
INSERT INTO words (word, during) VALUES ('five', '[2026-01-01,2026-01-05)') ON CONFLICT DO NOTHING
INSERT INTO words (word) SELECT lower(title) FROM items ON CONFLICT (word) DO NOTHING
INSERT INTO slots (name) VALUES ('evening'), ('night') RETURNING name, uses, user_id
INSERT INTO slots (name) VALUES ('noon')
INSERT INTO slots (name) VALUES ('noon'), ('dawn') ON CONFLICT (user_id, name) DO UPDATE SET uses = slots.uses + 1 RETURNING name, uses
INSERT INTO slots (name, uses) VALUES ('noon', 5), ('evening', 5) ON CONFLICT DO NOTHING RETURNING name
UPDATE items SET qty = qty + 1
UPDATE items SET qty = qty + 1 RETURNING title, qty
UPDATE items SET qty = 0 WHERE body = 'red' RETURNING *
UPDATE items i SET title = i.title || '-' || s.name, body = DEFAULT FROM shelves s WHERE s.id = i.shelf RETURNING i.title, i.body, s.name
UPDATE items SET (note, qty, tags[1]) = (SELECT s.name, s.id, 'x' FROM shelves s WHERE s.id = items.shelf) RETURNING title, note, qty, tags
UPDATE items SET (body, qty) = ROW (title, DEFAULT) RETURNING body, qty
UPDATE items SET qty = (SELECT count(*) FROM items) RETURNING qty
UPDATE items SET qty = (SELECT sum(qty) FROM items j WHERE j.title <> items.title) RETURNING title, qty
UPDATE items SET shelf = 2 WHERE shelf = 1 RETURNING title, shelf
UPDATE items SET shelf = NULL RETURNING title
UPDATE items SET tags[2] = 'z', dim.height = 7 RETURNING title, tags, (dim).height
UPDATE items SET qty = -qty WHERE qty > 0
UPDATE items SET qty = 1 / qty
UPDATE items SET qty = body::int WHERE title = 'dates' RETURNING qty
UPDATE items SET qty = body::int WHERE body IS NOT NULL AND title = 'apple'
UPDATE items SET title = NULL
UPDATE ONLY items AS t SET body = t.title WHERE t.title LIKE '%e%' RETURNING t.body
UPDATE items SET qty = 1 WHERE id = '00000000-0000-4000-8000-000000000011' RETURNING title
UPDATE items SET qty = 1 WHERE EXISTS (SELECT FROM shelves s WHERE s.id = items.shelf AND s.name = 'left') RETURNING title
UPDATE items SET qty = n.n FROM (SELECT id, row_number() OVER (ORDER BY title) AS n FROM items) n WHERE n.id = items.id RETURNING title, items.qty
UPDATE items SET qty = s.id FROM items j JOIN shelves s ON s.id = j.shelf WHERE j.title = 'bread' AND items.title = 'apple' RETURNING items.title, j.title, items.qty
UPDATE words SET word = 'two' WHERE word = 'one'
UPDATE words SET uses = uses + 1 RETURNING word, uses
UPDATE slots SET name = name || '!' RETURNING name
UPDATE slots SET name = 'noon' WHERE name = 'morning'
UPDATE items SET title = 'vanish' WHERE title = 'apple' RETURNING title
DELETE FROM items
DELETE FROM items RETURNING title, qty
DELETE FROM items WHERE qty > 2 RETURNING title
DELETE FROM items i USING shelves s WHERE s.id = i.shelf AND s.name = 'left' RETURNING i.title, s.name
DELETE FROM items WHERE id IN (SELECT id FROM items ORDER BY title LIMIT 2) RETURNING title
DELETE FROM items WHERE title = 'HIDDENMARK apple'
DELETE FROM items WHERE 10 / (qty - 9001) > 100
DELETE FROM slots WHERE name IN ('noon', 'evening') RETURNING name
DELETE FROM words WHERE uses > 1 RETURNING *
DELETE FROM counted RETURNING what
MERGE INTO items i USING (VALUES ('apple', 9), ('egg', 8)) v (t, q) ON i.title = v.t WHEN MATCHED THEN UPDATE SET qty = v.q WHEN NOT MATCHED THEN INSERT (title, qty) VALUES (v.t, v.q)
MERGE INTO items USING shelves s ON s.id = items.shelf WHEN MATCHED AND s.name = 'left' THEN DELETE WHEN MATCHED THEN UPDATE SET body = s.name, note = DEFAULT
MERGE INTO slots t USING (SELECT title FROM items UNION VALUES ('noon'), ('evening')) v ON t.name = v.title WHEN MATCHED THEN UPDATE SET uses = t.uses + 1 WHEN NOT MATCHED THEN INSERT (name) VALUES (v.title)
MERGE INTO items i USING items j ON i.title = j.title WHEN MATCHED AND j.qty > 4 THEN DO NOTHING WHEN MATCHED THEN DELETE
MERGE INTO words w USING (SELECT 'one' AS x UNION ALL SELECT 'one') v ON w.word = v.x WHEN MATCHED THEN DELETE
WITH gone AS (DELETE FROM items WHERE qty > 2 RETURNING title, qty) INSERT INTO items (title, qty) SELECT title || '?', qty FROM gone RETURNING title, qty
WITH up AS (UPDATE items SET qty = qty + 1 RETURNING title, qty) SELECT count(*), sum(qty) FROM up
WITH a AS (INSERT INTO words VALUES ('six', 6) RETURNING word), b AS (UPDATE slots SET uses = 7 RETURNING name), c AS (DELETE FROM items WHERE qty = 0 RETURNING title) SELECT * FROM a, b, c
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 4), made AS (INSERT INTO items (title, qty) SELECT 't' || n, n FROM t RETURNING title) SELECT * FROM made
WITH moved AS (DELETE FROM slots RETURNING name, uses) INSERT INTO words (word, uses) SELECT name, uses FROM moved RETURNING word, uses
WITH x AS (SELECT title FROM items) UPDATE words SET uses = (SELECT count(*) FROM x) RETURNING uses
COPY (UPDATE items SET qty = qty + 1 RETURNING title, qty) TO STDOUT
COPY (DELETE FROM slots RETURNING name) TO STDOUT (FORMAT csv)
INSERT INTO slots (name) VALUES ('a'); UPDATE slots SET uses = 3; DELETE FROM slots WHERE name = 'noon' RETURNING name, uses
INSERT INTO slots (name) VALUES ('a'); SELECT 1 / 0
SELECT title FROM items ORDER BY title FOR UPDATE
SELECT i.title, s.name FROM items i JOIN shelves s ON s.id = i.shelf ORDER BY 1 LIMIT 2 FOR NO KEY UPDATE OF i SKIP LOCKED
SELECT title FROM items WHERE 1 / (qty - 9001) < 1 ORDER BY 1 FOR SHARE NOWAIT
SELECT * FROM (SELECT title FROM items WHERE qty > 2) x, shelves ORDER BY 1, 2 FOR KEY SHARE OF x
WITH d AS (SELECT id FROM items ORDER BY qty DESC LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE items SET note = 'taken' FROM d WHERE items.id = d.id RETURNING title
PREPARE w1 AS INSERT INTO slots (name, uses) VALUES ($1, $2) RETURNING name, uses; EXECUTE w1 ('evening', 4); EXECUTE w1 ('night', 5); DEALLOCATE w1
PREPARE w2 (text) AS UPDATE items SET note = $1 WHERE qty > 2 RETURNING title, note; EXECUTE w2 ('seen'); DEALLOCATE w2
INSERT INTO full_items (name, qty) VALUES ('egg', 4) RETURNING name, qty, text, big, state
INSERT INTO full_items (name, qty) VALUES ('egg', 1)
INSERT INTO full_items AS f (name, qty, text) VALUES (' egg ', 3, DEFAULT), ('fig', 9, 'x') RETURNING f.name, f.text
INSERT INTO full_items (name, qty) SELECT name || '!', qty + 1 FROM full_items RETURNING name, qty
UPDATE full_items SET qty = qty + 1 RETURNING name, qty
UPDATE full_items SET qty = 0
UPDATE public.full_items SET (name, note) = ('x', 'y') WHERE name = 'apple' RETURNING full_items.*
UPDATE full_items f SET text = s.name FROM shelves s WHERE s.id = f.qty - 2 RETURNING f.name, f.text
UPDATE full_items SET name = 'n' || (SELECT count(*) FROM full_items) || (SELECT count(*) FROM items)
DELETE FROM full_items WHERE qty > 4 RETURNING name, big
DELETE FROM full_items f USING items i WHERE i.title = f.name AND i.shelf = 1 RETURNING f.name, i.title
WITH w AS (UPDATE full_items SET note = 'w' RETURNING name) SELECT count(*), (SELECT count(*) FROM full_items WHERE note = 'w') FROM w
INSERT INTO all_slots (name) VALUES ('evening') RETURNING name, uses
INSERT INTO all_slots (name) VALUES ('noon') ON CONFLICT DO NOTHING
INSERT INTO all_slots (name, uses) VALUES ('noon', 5), ('night', 1) ON CONFLICT (user_id, name) DO UPDATE SET uses = all_slots.uses + excluded.uses RETURNING name, uses
UPDATE all_slots SET uses = uses * 10 RETURNING *
DELETE FROM all_slots
INSERT INTO cards (name) VALUES ('dora') RETURNING name, born, level, note
INSERT INTO cards (name, level) VALUES ('dora', DEFAULT), ('emil', 7) RETURNING name, level, born, cards IS NOT NULL
INSERT INTO cards (name, note) SELECT name || '!', born::text FROM cards WHERE born < '2000-01-01' RETURNING name, note
INSERT INTO cards (name) VALUES (NULL)
INSERT INTO cards (name) VALUES ('dora') ON CONFLICT DO NOTHING RETURNING name
UPDATE cards SET level = level + 1 RETURNING *
UPDATE cards SET note = born::text WHERE born = '2001-01-01' RETURNING name, note
UPDATE cards c SET note = i.title FROM items i WHERE i.qty = c.level RETURNING c.name, c.note
UPDATE cards SET (name, note) = (SELECT max(name), count(*)::text FROM cards) WHERE level = 3 RETURNING name, note
WITH w AS (UPDATE cards SET note = 'w' WHERE level > 1 RETURNING name) SELECT count(*), (SELECT count(*) FROM cards WHERE note = 'x') FROM w
DELETE FROM cards WHERE born IS NULL RETURNING name
DELETE FROM cards USING slots s WHERE s.uses = cards.level RETURNING cards.name, s.name
UPDATE items SET note = c.name FROM cards c WHERE c.level = items.qty - 2 RETURNING title, items.note
INSERT INTO red_items (label, n) VALUES ('egg', 3) RETURNING *
INSERT INTO red_items (label, n, colour) VALUES (' egg ', 3, DEFAULT), ('fig', 9, 'x') RETURNING label, colour, big, state
INSERT INTO red_items (label, n) VALUES ('egg', 2)
INSERT INTO red_items (label, n) VALUES ('bread', 3)
INSERT INTO red_items (label, n) VALUES ('egg', 9000)
INSERT INTO red_items (label, n) VALUES ('egg', -1)
INSERT INTO red_items (label, n) SELECT label || '!', n + 1 FROM red_items RETURNING label, n
INSERT INTO red_items AS r (label, n) SELECT s.name, 5 FROM shelves s RETURNING r.label, r.n
INSERT INTO red_items (label, n) VALUES ('egg', 3) ON CONFLICT DO NOTHING RETURNING label
INSERT INTO loose_items (label, n) VALUES ('egg', 4), ('fig', 5) RETURNING label, n
INSERT INTO loose_items (label, n) VALUES ('egg', 2)
UPDATE red_items SET n = n + 1 RETURNING label, n
UPDATE red_items SET n = 0
UPDATE red_items SET n = 9000 WHERE label = 'apple'
UPDATE red_items SET label = 'bread' WHERE label = 'apple'
UPDATE red_items r SET (label, colour) = (SELECT s.name, r.big FROM shelves s WHERE s.id = 1) WHERE n = 7 RETURNING r.label, r.colour
UPDATE red_items SET colour = i.body FROM items i WHERE i.title = 'bread' RETURNING red_items.label, colour, i.title
UPDATE red_items SET label = 'n' || (SELECT count(*) FROM red_items) || (SELECT count(*) FROM items)
UPDATE loose_items SET n = 4 RETURNING label, n
UPDATE loose_items SET n = 1
UPDATE ONLY loose_items SET n = n * 2 WHERE label < 'b' RETURNING *
DELETE FROM red_items WHERE n > 2 RETURNING label, big
DELETE FROM red_items r USING items i WHERE i.title = r.label AND i.shelf = 1 RETURNING r.label, i.title
DELETE FROM loose_items
WITH w AS (UPDATE red_items SET colour = 'w' RETURNING label) SELECT count(*), (SELECT count(*) FROM full_items WHERE text = 'w') FROM w
WITH w AS (DELETE FROM loose_items RETURNING label) INSERT INTO red_items (label, n) SELECT label || '2', 3 FROM w RETURNING label
INSERT INTO odd_slots (a) VALUES ('evening') RETURNING a, b
INSERT INTO odd_slots VALUES (3, 'evening'), (50, 'dawn') RETURNING a, b
INSERT INTO odd_slots (a, b) VALUES ('evening', 100)
INSERT INTO odd_slots (a) VALUES ('noon')
INSERT INTO odd_slots (a) VALUES ('noon'), ('dawn') ON CONFLICT DO NOTHING RETURNING a
UPDATE odd_slots SET b = b * 10 RETURNING *
UPDATE odd_slots SET b = 100
UPDATE odd_slots SET b = 50 WHERE a = 'noon' RETURNING a, b
UPDATE odd_slots SET a = 'noon' WHERE a = 'morning'
DELETE FROM odd_slots WHERE b > 1 RETURNING a
UPDATE over_given SET uses = uses + 1 RETURNING name, uses
DELETE FROM over_given
UPDATE turned_items SET state = 'x' || title RETURNING state, title
INSERT INTO turned_items (state) VALUES ('egg') RETURNING state
INSERT INTO noted_cards (who) VALUES ('dora') RETURNING who, level, note
INSERT INTO noted_cards (who, level) VALUES ('dora', 9000)
INSERT INTO noted_cards (who, level) VALUES ('carl', 7) RETURNING who
UPDATE noted_cards SET level = level + 1 RETURNING *
UPDATE short_cards SET note = who RETURNING who, note
UPDATE noted_cards SET level = 9000 WHERE who = 'anna'
UPDATE noted_cards c SET note = i.title FROM items i WHERE i.qty = c.level RETURNING c.who, c.note
DELETE FROM noted_cards WHERE note IS NULL RETURNING who
DELETE FROM short_cards
