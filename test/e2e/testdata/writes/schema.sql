-- Tables that agents write. What user 1 does not see says HIDDENMARK.
CREATE TABLE shelves (id int PRIMARY KEY, user_id uuid NOT NULL, name text);
CREATE TYPE size AS (width int, height int);
CREATE TABLE items (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), user_id uuid NOT NULL, state text NOT NULL, title text NOT NULL, body text DEFAULT 'none',
  qty int DEFAULT 1 CHECK (qty >= 0), shelf int REFERENCES shelves, tags text[], dim size, note varchar(20),
  made timestamptz NOT NULL DEFAULT '2026-01-01', loud text GENERATED ALWAYS AS (upper(title)) STORED, code text UNIQUE
);
CREATE TABLE labels (item uuid NOT NULL REFERENCES items ON DELETE CASCADE, label text);
CREATE TABLE slots (user_id uuid NOT NULL, name text NOT NULL, uses int NOT NULL DEFAULT 0, PRIMARY KEY (user_id, name));
CREATE TABLE words (word text PRIMARY KEY, uses int NOT NULL DEFAULT 0, during tsrange, EXCLUDE USING gist (during WITH &&));
CREATE TABLE ideas (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), user_id uuid NOT NULL, state text, idea text);
CREATE TABLE counted (n bigint GENERATED ALWAYS AS IDENTITY, user_id uuid NOT NULL, what text);
CREATE TABLE item_log (at timestamptz DEFAULT now(), who text, what text);

CREATE FUNCTION items_log() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO item_log (who, what) VALUES (session_user, TG_OP);
  RAISE NOTICE 'HIDDENMARK: % items are logged', (SELECT count(*) FROM item_log);
  RETURN NULL;
END $$;
CREATE TRIGGER items_log AFTER INSERT OR UPDATE OR DELETE ON items FOR EACH ROW EXECUTE FUNCTION items_log();
CREATE FUNCTION items_tidy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.title = 'raise' THEN RAISE EXCEPTION 'HIDDENMARK: no such title' USING DETAIL = 'HIDDENMARK', HINT = 'HIDDENMARK'; END IF;
  IF NEW.title = 'vanish' THEN RETURN NULL; END IF;
  IF NEW.title = 'hide' THEN NEW.state := 'HIDDENMARK'; END IF;
  NEW.title := btrim(NEW.title);
  RETURN NEW;
END $$;
CREATE TRIGGER a_items_tidy BEFORE INSERT OR UPDATE ON items FOR EACH ROW EXECUTE FUNCTION items_tidy();

INSERT INTO shelves VALUES
  (1, '11111111-1111-4111-8111-111111111111', 'left'), (2, '11111111-1111-4111-8111-111111111111', 'right'), (3, '22222222-2222-4222-8222-222222222222', 'HIDDENMARK');
INSERT INTO items (id, user_id, state, title, body, qty, shelf, tags, dim, note, code) VALUES
  ('00000000-0000-4000-8000-000000000001', '11111111-1111-4111-8111-111111111111', 'shown', 'apple', 'red', 3, 1, '{a,b}', '(1,2)', 'n', 'c1'),
  ('00000000-0000-4000-8000-000000000002', '11111111-1111-4111-8111-111111111111', 'shown', 'bread', 'brown', 5, 2, '{c}', NULL, NULL, 'c2'),
  ('00000000-0000-4000-8000-000000000003', '11111111-1111-4111-8111-111111111111', 'shown', 'cheese', '', 0, NULL, NULL, '(3,4)', 'n', 'c3'),
  ('00000000-0000-4000-8000-000000000004', '11111111-1111-4111-8111-111111111111', 'shown', 'dates', '7', 7, 1, '{}', NULL, 'm', 'c4'),
  ('00000000-0000-4000-8000-000000000011', '11111111-1111-4111-8111-111111111111', 'HIDDENMARK', 'HIDDENMARK apple', 'HIDDENMARK', 9001, 1, '{HIDDENMARK}', '(9001,9001)', 'HIDDENMARK', 'HIDDENMARK1'),
  ('00000000-0000-4000-8000-000000000012', '11111111-1111-4111-8111-111111111111', 'HIDDENMARK', 'HIDDENMARK bread', 'HIDDENMARK', 0, NULL, NULL, NULL, NULL, 'HIDDENMARK2'),
  ('00000000-0000-4000-8000-000000000021', '22222222-2222-4222-8222-222222222222', 'shown', 'HIDDENMARK apple', 'HIDDENMARK', 9002, 3, NULL, NULL, NULL, 'HIDDENMARK3');
INSERT INTO labels SELECT id, 'HIDDENMARK' FROM items;
INSERT INTO slots VALUES ('11111111-1111-4111-8111-111111111111', 'morning', 1), ('11111111-1111-4111-8111-111111111111', 'noon', 2), ('22222222-2222-4222-8222-222222222222', 'evening', 9003);
INSERT INTO words VALUES ('one', 1, '[2026-01-01,2026-01-02)'), ('two', 2, '[2026-01-03,2026-01-04)');
INSERT INTO ideas (user_id, state, idea) VALUES ('11111111-1111-4111-8111-111111111111', 'agreed', 'walk'), ('11111111-1111-4111-8111-111111111111', 'proposed', 'HIDDENMARK'), ('22222222-2222-4222-8222-222222222222', 'agreed', 'HIDDENMARK');
INSERT INTO counted (user_id, what) VALUES ('11111111-1111-4111-8111-111111111111', 'first'), ('22222222-2222-4222-8222-222222222222', 'HIDDENMARK');
ALTER TABLE shelves OWNER TO arcive_owner; ALTER TABLE items OWNER TO arcive_owner; ALTER TABLE labels OWNER TO arcive_owner; ALTER TABLE slots OWNER TO arcive_owner;
ALTER TABLE words OWNER TO arcive_owner; ALTER TABLE ideas OWNER TO arcive_owner; ALTER TABLE counted OWNER TO arcive_owner; ALTER TABLE item_log OWNER TO arcive_owner;
ALTER FUNCTION items_log() OWNER TO arcive_owner; ALTER TYPE size OWNER TO arcive_owner;
CREATE VIEW full_items AS SELECT title AS name, i.qty, i.body AS text, note, upper(title) AS big, state, made FROM items AS i WHERE qty > 2 WITH LOCAL CHECK OPTION;
CREATE VIEW all_slots WITH (security_barrier) AS SELECT * FROM slots;
CREATE VIEW summed_slots AS SELECT sum(uses) AS uses FROM slots;
CREATE VIEW ruled_slots AS SELECT * FROM slots;
CREATE RULE ruled AS ON DELETE TO ruled_slots DO INSTEAD DELETE FROM slots;
CREATE TABLE cards (id serial PRIMARY KEY, user_id uuid NOT NULL, name text NOT NULL, secret text NOT NULL DEFAULT 'HIDDENMARK', born date, level int DEFAULT 1, note text, open bool NOT NULL DEFAULT true);
INSERT INTO cards (user_id, name, secret, born, level, note, open) VALUES
  ('11111111-1111-4111-8111-111111111111', 'anna', 'HIDDENMARK', '2001-05-05', 1, 'x', true), ('11111111-1111-4111-8111-111111111111', 'bert', 'HIDDENMARK', '1999-09-09', 2, NULL, true),
  ('11111111-1111-4111-8111-111111111111', 'carl', 'HIDDENMARK', NULL, 3, 'x', true), ('11111111-1111-4111-8111-111111111111', 'HIDDENMARK', 'HIDDENMARK', '1980-01-01', 9001, 'HIDDENMARK', false),
  ('22222222-2222-4222-8222-222222222222', 'HIDDENMARK', 'HIDDENMARK', '1981-01-01', 9002, 'HIDDENMARK', true);
ALTER TABLE cards OWNER TO arcive_owner;
CREATE VIEW fair_items AS SELECT name AS label, qty, text, note, big, state FROM full_items WHERE qty < 9000;
CREATE VIEW red_items WITH (security_barrier) AS SELECT label, qty AS n, text AS colour, big, state FROM fair_items WHERE lower(label) <> 'bread' WITH CASCADED CHECK OPTION;
CREATE VIEW loose_items AS SELECT label, n FROM red_items WHERE n <> 4;
CREATE VIEW few_slots WITH (security_invoker) AS SELECT name AS slot, uses FROM all_slots WHERE uses < 100 WITH LOCAL CHECK OPTION;
CREATE VIEW odd_slots (b, a) AS SELECT s.uses, s.slot FROM few_slots s (slot, uses) WHERE s.uses <> 50;
CREATE VIEW over_ruled AS SELECT * FROM ruled_slots;
CREATE VIEW over_summed AS SELECT uses AS total FROM summed_slots;
CREATE VIEW given_slots AS SELECT * FROM all_slots;
ALTER VIEW given_slots ALTER COLUMN uses SET DEFAULT 7;
CREATE VIEW over_given AS SELECT name, uses FROM given_slots;
CREATE VIEW turned_items AS SELECT x.state, x.title FROM items x (id, user_id, title, state) WHERE x.state <> '';
CREATE VIEW short_cards AS SELECT name AS who, level, note FROM cards WHERE level < 9000 WITH CHECK OPTION;
CREATE VIEW noted_cards AS SELECT who, level, note FROM short_cards WHERE who <> 'carl';
