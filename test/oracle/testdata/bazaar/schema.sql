-- A marketplace as an object-relational mapper makes it: serial keys, created_at and updated_at with defaults, polymorphic associations, join tables
-- without keys, enumerations as checks, citext, hstore, uuid-ossp and pgcrypto defaults, trigram search, JSON settings, soft deletion by discarded_at,
-- deferrable constraints, single table inheritance by "type", nested sets, slugs, counters, the tables of migrations, sessions and of stored files.
CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE EXTENSION IF NOT EXISTS "uuid-ossp";
CREATE EXTENSION IF NOT EXISTS pgcrypto;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE TABLE schema_migrations (version character varying NOT NULL PRIMARY KEY);
CREATE TABLE ar_internal_metadata (key character varying NOT NULL PRIMARY KEY, value character varying, created_at timestamp(6) NOT NULL, updated_at timestamp(6) NOT NULL);
CREATE TABLE _prisma_migrations (id varchar(36) PRIMARY KEY, checksum varchar(64) NOT NULL, finished_at timestamptz, migration_name varchar(255) NOT NULL, logs text, applied_steps_count integer NOT NULL DEFAULT 0);
CREATE TABLE django_session (session_key varchar(40) PRIMARY KEY, session_data text NOT NULL, expire_date timestamptz NOT NULL);
CREATE TABLE users (
  id uuid PRIMARY KEY DEFAULT uuid_generate_v4(), email citext NOT NULL UNIQUE, encrypted_password character varying NOT NULL DEFAULT '', name character varying, username citext UNIQUE, role character varying NOT NULL DEFAULT 'buyer' CHECK (role IN ('buyer', 'seller', 'admin')),
  settings json NOT NULL DEFAULT '{}', preferences hstore NOT NULL DEFAULT '', reset_token character varying, sign_in_count integer NOT NULL DEFAULT 0, last_sign_in_ip inet, locale character varying(5) DEFAULT 'en', ai_consent character varying NOT NULL DEFAULT 'unset' CHECK (ai_consent IN ('unset', 'granted', 'denied')),
  created_at timestamp(6) without time zone NOT NULL DEFAULT now(), updated_at timestamp(6) without time zone NOT NULL DEFAULT now(), discarded_at timestamp(6) without time zone
);
CREATE TABLE shops (id serial PRIMARY KEY, slug citext NOT NULL UNIQUE, name character varying NOT NULL, currency char(3) NOT NULL DEFAULT 'EUR', time_zone character varying DEFAULT 'UTC', settings jsonb NOT NULL DEFAULT '{}', products_count integer NOT NULL DEFAULT 0, created_at timestamp(6) NOT NULL DEFAULT now());
CREATE TABLE memberships (shop_id integer NOT NULL REFERENCES shops ON DELETE CASCADE, user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE, role character varying NOT NULL DEFAULT 'staff');
CREATE UNIQUE INDEX index_memberships_on_shop_id_and_user_id ON memberships (shop_id, user_id);
CREATE TABLE categories (id serial PRIMARY KEY, parent_id integer REFERENCES categories ON DELETE SET NULL, name character varying NOT NULL, lft integer NOT NULL, rgt integer NOT NULL, depth integer NOT NULL DEFAULT 0);
CREATE TABLE products (
  id bigserial PRIMARY KEY, shop_id integer NOT NULL REFERENCES shops, type character varying, title character varying NOT NULL, slug citext, description text, price numeric(10,2) CHECK (price >= 0), currency char(3) NOT NULL DEFAULT 'EUR', properties hstore, tags character varying[] NOT NULL DEFAULT '{}',
  status character varying NOT NULL DEFAULT 'draft' CHECK (status IN ('draft', 'published', 'archived')), position integer, rating double precision, embedding real[], options jsonb NOT NULL DEFAULT '{}', lock_version integer NOT NULL DEFAULT 0,
  published_at timestamp(6), discarded_at timestamp(6), created_at timestamp(6) NOT NULL DEFAULT now(), updated_at timestamp(6) NOT NULL DEFAULT now(),
  CONSTRAINT products_position UNIQUE (shop_id, position) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE variants (id bigserial PRIMARY KEY, product_id bigint NOT NULL REFERENCES products ON DELETE CASCADE, sku citext NOT NULL, price_cents integer, stock integer NOT NULL DEFAULT 0 CHECK (stock >= 0), options hstore, UNIQUE (product_id, sku));
CREATE TABLE categories_products (category_id integer NOT NULL, product_id bigint NOT NULL);
CREATE TABLE addresses (id bigserial PRIMARY KEY, addressable_type character varying NOT NULL, addressable_id bigint NOT NULL, kind character varying DEFAULT 'shipping', line1 character varying, city character varying, zip character varying, country char(2), created_at timestamp(6) NOT NULL DEFAULT now());
CREATE SEQUENCE order_numbers START 100000;
CREATE TABLE orders (
  id bigserial PRIMARY KEY, number bigint NOT NULL DEFAULT nextval('order_numbers') UNIQUE, shop_id integer NOT NULL REFERENCES shops, user_id uuid REFERENCES users ON DELETE SET NULL, status character varying NOT NULL DEFAULT 'cart' CHECK (status IN ('cart', 'placed', 'paid', 'shipped', 'refunded')),
  total_cents bigint NOT NULL DEFAULT 0, discount numeric(5,4), note text, metadata hstore, payload jsonb, token character varying NOT NULL DEFAULT encode(gen_random_bytes(8), 'hex'), placed_at timestamptz, created_at timestamp(6) NOT NULL DEFAULT now(), updated_at timestamp(6) NOT NULL DEFAULT now()
);
CREATE TABLE order_items (id bigserial PRIMARY KEY, order_id bigint NOT NULL REFERENCES orders ON DELETE CASCADE, variant_id bigint REFERENCES variants ON DELETE SET NULL, quantity integer NOT NULL DEFAULT 1 CHECK (quantity > 0), unit_cents integer NOT NULL, total_cents integer GENERATED ALWAYS AS (quantity * unit_cents) STORED, snapshot json);
CREATE TABLE payments (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), order_id bigint NOT NULL REFERENCES orders, provider character varying NOT NULL, state character varying NOT NULL, amount_cents bigint NOT NULL, card_fingerprint bytea, response jsonb, created_at timestamp(6) NOT NULL DEFAULT now());
CREATE TABLE reviews (id bigserial PRIMARY KEY, product_id bigint NOT NULL REFERENCES products ON DELETE CASCADE, user_id uuid NOT NULL REFERENCES users, rating smallint NOT NULL CHECK (rating BETWEEN 1 AND 5), title character varying, body text, helpful_count integer NOT NULL DEFAULT 0, state character varying NOT NULL DEFAULT 'visible', created_at timestamp(6) NOT NULL DEFAULT now(), UNIQUE (product_id, user_id));
CREATE TABLE comments (id bigserial PRIMARY KEY, commentable_type character varying NOT NULL, commentable_id bigint NOT NULL, user_id uuid REFERENCES users ON DELETE SET NULL, parent_id bigint REFERENCES comments ON DELETE CASCADE, body text NOT NULL, internal boolean NOT NULL DEFAULT false, created_at timestamp(6) NOT NULL DEFAULT now());
CREATE INDEX index_comments_on_commentable ON comments (commentable_type, commentable_id);
CREATE TABLE tags (id serial PRIMARY KEY, name citext NOT NULL UNIQUE, taggings_count integer DEFAULT 0);
CREATE TABLE taggings (tag_id integer NOT NULL REFERENCES tags, taggable_type character varying NOT NULL, taggable_id bigint NOT NULL, created_at timestamp(6) NOT NULL DEFAULT now());
CREATE TABLE favorites (user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE, product_id bigint NOT NULL REFERENCES products ON DELETE CASCADE, created_at timestamp(6) NOT NULL DEFAULT now(), PRIMARY KEY (user_id, product_id));
CREATE TABLE conversations (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), shop_id integer NOT NULL REFERENCES shops, buyer_id uuid NOT NULL REFERENCES users, order_id bigint REFERENCES orders, subject character varying, state character varying DEFAULT 'open', unread_count integer NOT NULL DEFAULT 0, last_message_at timestamptz);
CREATE TABLE messages (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE, sender_id uuid REFERENCES users, body text, read_at timestamptz, attachments jsonb NOT NULL DEFAULT '[]', created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE coupons (code citext PRIMARY KEY, shop_id integer NOT NULL REFERENCES shops, percent_off smallint, valid tsrange, max_uses integer, used integer NOT NULL DEFAULT 0);
CREATE TABLE inventory_events (id bigserial, variant_id bigint NOT NULL, delta integer NOT NULL, reason character varying, occurred_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (id, occurred_at)) PARTITION BY RANGE (occurred_at);
CREATE TABLE inventory_events_2024_01 PARTITION OF inventory_events FOR VALUES FROM ('2024-01-01 00:00+00') TO ('2024-02-01 00:00+00');
CREATE TABLE inventory_events_2024_02 PARTITION OF inventory_events FOR VALUES FROM ('2024-02-01 00:00+00') TO ('2024-03-01 00:00+00');
CREATE TABLE inventory_events_default PARTITION OF inventory_events DEFAULT;
CREATE TABLE notifications (id bigserial PRIMARY KEY, user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE, notifiable_type character varying, notifiable_id text, params jsonb NOT NULL DEFAULT '{}', read_at timestamp(6), created_at timestamp(6) NOT NULL DEFAULT now());
CREATE TABLE active_storage_blobs (id bigserial PRIMARY KEY, key character varying NOT NULL UNIQUE, filename character varying NOT NULL, content_type character varying, metadata text, byte_size bigint NOT NULL, checksum character varying, created_at timestamp(6) NOT NULL);
CREATE TABLE active_storage_attachments (id bigserial PRIMARY KEY, name character varying NOT NULL, record_type character varying NOT NULL, record_id bigint NOT NULL, blob_id bigint NOT NULL REFERENCES active_storage_blobs, created_at timestamp(6) NOT NULL);
CREATE VIEW published_products AS SELECT p.*, s.slug AS shop_slug FROM products p JOIN shops s ON s.id = p.shop_id WHERE p.status = 'published' AND p.discarded_at IS NULL;
CREATE VIEW daily_sales AS SELECT o.shop_id, date_trunc('day', o.placed_at AT TIME ZONE 'UTC') AS day, count(*) AS orders, sum(o.total_cents) AS cents, count(DISTINCT o.user_id) AS buyers FROM orders o WHERE o.status <> 'cart' GROUP BY 1, 2;
CREATE VIEW best_sellers AS SELECT v.product_id, p.title, sum(i.quantity) AS sold, rank() OVER (PARTITION BY p.shop_id ORDER BY sum(i.quantity) DESC) AS place FROM order_items i JOIN variants v ON v.id = i.variant_id JOIN products p ON p.id = v.product_id GROUP BY v.product_id, p.title, p.shop_id;
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.updated_at := '2024-06-30 00:00'; RETURN NEW; END $$;
CREATE TRIGGER touch BEFORE UPDATE ON products FOR EACH ROW EXECUTE FUNCTION touch();
CREATE TRIGGER touch BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION touch();
CREATE FUNCTION count_products() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$ BEGIN
  UPDATE shops SET products_count = (SELECT count(*) FROM products p WHERE p.shop_id = shops.id) WHERE id = coalesce(NEW.shop_id, OLD.shop_id); RETURN NULL; END $$;
CREATE TRIGGER count_products AFTER INSERT OR DELETE ON products FOR EACH ROW EXECUTE FUNCTION count_products();
CREATE FUNCTION cents(n bigint, currency text DEFAULT 'EUR') RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT to_char(n / 100.0, 'FM999999990.00') || ' ' || currency $$;
CREATE FUNCTION search_products(q text) RETURNS TABLE (id bigint, title varchar, similarity real) LANGUAGE sql STABLE AS $$ SELECT p.id, p.title, similarity(p.title, q) FROM products p WHERE p.title % q ORDER BY 3 DESC, 1 $$;
CREATE INDEX index_products_on_shop_id ON products (shop_id);
CREATE INDEX index_products_on_title ON products USING gin (title gin_trgm_ops);
CREATE INDEX index_products_on_properties ON products USING gin (properties);
CREATE INDEX index_products_on_search ON products USING gin (to_tsvector('english'::regconfig, title || ' ' || coalesce(description, '')));
CREATE INDEX index_orders_on_shop_id ON orders (shop_id);
CREATE INDEX index_orders_on_user_id ON orders (user_id);
CREATE INDEX index_order_items_on_order_id ON order_items (order_id);
CREATE INDEX index_reviews_on_user_id ON reviews (user_id);
CREATE INDEX index_messages_on_conversation_id ON messages (conversation_id);
CREATE INDEX index_conversations_on_buyer_id ON conversations (buyer_id);
CREATE INDEX index_taggings ON taggings (taggable_type, taggable_id);
CREATE INDEX index_addresses ON addresses (addressable_type, addressable_id);
CREATE INDEX ON payments (order_id);
CREATE INDEX ON inventory_events (variant_id);

SET session_replication_role = replica;
INSERT INTO schema_migrations SELECT '2024010100' || lpad(i::text, 4, '0') FROM generate_series(1, 30) i;
INSERT INTO _prisma_migrations SELECT md5('m' || i), md5('c' || i), timestamptz '2024-01-01 00:00+00', i || '_init', NULL, 1 FROM generate_series(1, 5) i;
INSERT INTO django_session SELECT md5('s' || i), md5('d' || i), timestamptz '2024-09-01 00:00+00' FROM generate_series(1, 9) i;
INSERT INTO users (id, email, encrypted_password, name, username, role, settings, preferences, reset_token, sign_in_count, last_sign_in_ip, locale, ai_consent, created_at, updated_at, discarded_at)
SELECT md5('user ' || i)::uuid, 'User' || i || '@Example.org', crypt('pw' || i, '$1$abcdefgh'), (ARRAY['Ann','Ben','Cyd','Dov','Eve','Fio'])[1 + i % 6] || ' ' || (ARRAY['Ash','Bay','Cole'])[1 + i % 3], CASE WHEN i % 5 > 0 THEN 'nick' || i END, (ARRAY['buyer','buyer','seller'])[1 + i % 3],
  CASE i % 4 WHEN 0 THEN '{}' ELSE json_build_object('theme', (ARRAY['dark','light'])[1 + i % 2], 'pageSize', i % 50, 'secret', md5('x' || i)) END, CASE i % 3 WHEN 0 THEN '' ELSE hstore(ARRAY['news','size'], ARRAY[(i % 2)::text, (ARRAY['S','M','L'])[1 + i % 3]]) END,
  CASE WHEN i % 6 = 0 THEN md5('t' || i) END, i % 30, ('192.0.2.' || i % 250)::inet, (ARRAY['en','de','no'])[1 + i % 3], (ARRAY['granted','granted','denied','granted','unset'])[1 + i % 5], timestamp '2023-01-01 09:00' + i * interval '2 days 3 hours', timestamp '2024-01-01' + i * interval '1 hour', CASE WHEN i % 13 = 0 THEN timestamp '2024-03-03 03:03' END
FROM generate_series(1, 120) i;
INSERT INTO shops (id, slug, name, currency, time_zone, settings, products_count) SELECT i, 'Shop-' || i, 'Shop ' || i, (ARRAY['EUR','NOK','USD'])[1 + i % 3], (ARRAY['UTC','Europe/Berlin','Europe/Oslo'])[1 + i % 3], jsonb_build_object('open', i % 2 = 0, 'hours', jsonb_build_array(9, 17 + i)), 0 FROM generate_series(1, 6) i;
UPDATE shops SET created_at = '2023-01-01';
INSERT INTO memberships SELECT DISTINCT 1 + i % 6, md5('user ' || i * 3)::uuid, (ARRAY['staff','owner','viewer'])[1 + i % 3] FROM generate_series(1, 36) i;
INSERT INTO categories SELECT i, CASE WHEN i > 3 THEN i / 3 END, 'Category ' || chr(64 + i), i * 2, i * 2 + 1, CASE WHEN i > 9 THEN 2 WHEN i > 3 THEN 1 ELSE 0 END FROM generate_series(1, 18) i;
INSERT INTO products (id, shop_id, type, title, slug, description, price, currency, properties, tags, status, position, rating, embedding, options, published_at, discarded_at, created_at, updated_at)
SELECT i, 1 + i % 6, (ARRAY['Physical','Digital',NULL])[1 + i % 3], (ARRAY['Blue lamp','Oak table','Wool scarf','Tea pot','Ceramic mug'])[1 + i % 5] || ' ' || i, 'product-' || i, CASE WHEN i % 7 > 0 THEN 'A fine ' || (ARRAY['lamp','table','scarf','pot','mug'])[1 + i % 5] || ', hand-made in ' || (ARRAY['Oslo','Ghent','Porto'])[1 + i % 3] END,
  CASE WHEN i % 9 > 0 THEN i * 1.15 END, (ARRAY['EUR','NOK'])[1 + i % 2], CASE i % 4 WHEN 0 THEN NULL ELSE hstore(ARRAY['colour','weight'], ARRAY[(ARRAY['red','blue',NULL])[1 + i % 3], (i % 40)::text]) END, CASE i % 4 WHEN 0 THEN '{}' ELSE ARRAY['t' || i % 5, 't' || i % 7]::varchar[] END,
  (ARRAY['published','published','draft','archived'])[1 + i % 4], i / 6, CASE WHEN i % 5 > 0 THEN i % 50 / 10.0 END, ARRAY[i % 7, i % 5, 1]::real[], jsonb_build_object('sizes', jsonb_build_array('S', 'M'), 'dims', jsonb_build_object('w', i % 30, 'h', i % 20)), CASE WHEN i % 4 < 2 THEN timestamp '2024-01-01' + i * interval '9 hours' END, CASE WHEN i % 19 = 0 THEN timestamp '2024-05-05' END,
  timestamp '2023-06-01' + i * interval '1 day', timestamp '2024-02-01' FROM generate_series(1, 240) i;
INSERT INTO variants (id, product_id, sku, price_cents, stock, options) SELECT i, 1 + i % 240, 'SKU-' || i, i * 23, i % 40, CASE WHEN i % 3 > 0 THEN hstore('size', (ARRAY['S','M','L'])[1 + i % 3]) END FROM generate_series(1, 420) i;
INSERT INTO categories_products SELECT 1 + (i * 5) % 18, 1 + i % 245 FROM generate_series(1, 360) i;
INSERT INTO addresses SELECT i, (ARRAY['Order','Order','Shop'])[1 + i % 3], CASE i % 3 WHEN 2 THEN 1 + i % 6 ELSE 1 + i % 300 END, (ARRAY['shipping','billing'])[1 + i % 2], 'Street ' || i, (ARRAY['Oslo','Berlin','Graz',NULL])[1 + i % 4], lpad(i::text, 4, '0'), (ARRAY['NO','DE','AT'])[1 + i % 3], timestamp '2024-01-01' + i * interval '5 hours' FROM generate_series(1, 320) i;
INSERT INTO orders (id, number, shop_id, user_id, status, total_cents, discount, note, metadata, payload, token, placed_at, created_at, updated_at)
SELECT i, 100000 + i * 7, 1 + i % 6, CASE WHEN i % 14 > 0 THEN md5('user ' || 1 + (i * 7) % 120)::uuid END, (ARRAY['cart','placed','paid','shipped','shipped','refunded'])[1 + i / 6 % 6], i * 333, CASE WHEN i % 4 = 0 THEN i % 20 / 100.0 END, CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN '12' ELSE 'Please ring ' || i END,
  CASE WHEN i % 3 > 0 THEN hstore(ARRAY['source','ab'], ARRAY[(ARRAY['web','app'])[1 + i % 2], (i % 3)::text]) END, CASE WHEN i % 4 > 0 THEN jsonb_build_object('utm', jsonb_build_object('source', 's' || i % 4), 'items', jsonb_build_array(jsonb_build_object('q', i % 5, 'p', i % 70)), 'gift', i % 2 = 0) END, md5('token ' || i),
  CASE WHEN i / 6 % 6 > 0 THEN timestamptz '2024-01-01 10:00+00' + i * interval '7 hours' END, timestamp '2024-01-01' + i * interval '7 hours', timestamp '2024-03-01' FROM generate_series(1, 420) i;
INSERT INTO order_items (id, order_id, variant_id, quantity, unit_cents, snapshot) SELECT i, 1 + i % 420, CASE WHEN i % 17 > 0 THEN 1 + (i * 3) % 420 END, 1 + i % 4, i * 11, CASE WHEN i % 2 > 0 THEN json_build_object('title', 'T' || i, 'tax', i % 25) END FROM generate_series(1, 900) i;
INSERT INTO payments SELECT md5('payment ' || i)::uuid, i, (ARRAY['stripe','paypal'])[1 + i % 2], (ARRAY['succeeded','failed','pending'])[1 + i % 3], i * 333, decode(md5('card ' || i % 60), 'hex'), jsonb_build_object('risk', i % 100, 'ip', '198.51.100.' || i % 250), timestamp '2024-01-01 11:00' + i * interval '7 hours' FROM generate_series(1, 400) i WHERE i / 6 % 6 > 1;
INSERT INTO reviews SELECT i, 1 + (i * 7) % 240, md5('user ' || 1 + (i + i / 240 * 5) % 120)::uuid, 1 + i % 5, CASE WHEN i % 3 > 0 THEN 'Review ' || i END, CASE WHEN i % 8 > 0 THEN (ARRAY['Great','Fine','Broken on arrival','Would buy again'])[1 + i % 4] || ', says ' || i END, i % 13, (ARRAY['visible','visible','hidden'])[1 + i % 3], timestamp '2024-02-01' + i * interval '3 hours' FROM generate_series(1, 300) i;
INSERT INTO comments SELECT i, (ARRAY['Product','Order','Review','Blog'])[1 + i % 4], 1 + (i * 3) % 290, CASE WHEN i % 9 > 0 THEN md5('user ' || 1 + i % 120)::uuid END, CASE WHEN i > 200 AND i % 3 = 0 THEN i - 200 END, 'Comment ' || i || (ARRAY[' thanks',' when?',' 7'])[1 + i % 3], i % 6 = 0, timestamp '2024-03-01' + i * interval '1 hour' FROM generate_series(1, 480) i;
INSERT INTO tags SELECT i, 'Tag ' || chr(64 + i), i * 3 FROM generate_series(1, 15) i;
INSERT INTO taggings SELECT 1 + i % 15, (ARRAY['Product','Order'])[1 + i % 2], 1 + (i * 5) % 240, timestamp '2024-03-03' FROM generate_series(1, 300) i;
INSERT INTO favorites SELECT DISTINCT md5('user ' || 1 + (1 + i * 7) % 120)::uuid, 1 + (i * 11) % 240, timestamp '2024-04-01' FROM generate_series(1, 330) i;
INSERT INTO conversations SELECT md5('conv ' || i)::uuid, 1 + i % 6, md5('user ' || 1 + (i * 5) % 120)::uuid, CASE WHEN i % 3 > 0 THEN 1 + (i * 6) % 420 END, CASE WHEN i % 7 > 0 THEN 'About ' || i END, (ARRAY['open','closed','spam'])[1 + i % 3], i % 4, timestamptz '2024-02-01 00:00+00' + i * interval '5 hours' FROM generate_series(1, 180) i;
INSERT INTO messages (conversation_id, sender_id, body, read_at, attachments, created_at) SELECT md5('conv ' || i)::uuid, CASE WHEN s % 2 = 0 THEN md5('user ' || 1 + (i * 5) % 120)::uuid END, CASE (i + s) % 8 WHEN 0 THEN NULL WHEN 1 THEN '5' ELSE 'Hello ' || i || ', where is parcel ' || s END, CASE WHEN (i + s) % 3 > 0 THEN timestamptz '2024-02-03 00:00+00' END,
  CASE WHEN (i + s) % 5 = 0 THEN jsonb_build_array(jsonb_build_object('name', 'f' || s || '.png', 'kb', i)) ELSE '[]' END, timestamptz '2024-02-01 06:30+00' + (i * 9 + s) * interval '61 minutes' FROM generate_series(1, 180) i, generate_series(1, 1 + i % 4) s;
INSERT INTO coupons SELECT 'Save' || i, 1 + i % 6, i % 60, CASE WHEN i % 3 > 0 THEN tsrange(timestamp '2024-01-01' + i * interval '1 day', timestamp '2024-02-01' + i * interval '2 days') END, CASE WHEN i % 4 > 0 THEN i * 10 END, i FROM generate_series(1, 48) i;
INSERT INTO inventory_events (id, variant_id, delta, reason, occurred_at) SELECT i, 1 + i % 420, i % 9 - 4, (ARRAY['sale','return','count',NULL])[1 + i % 4], timestamptz '2023-12-20 00:00+00' + i * interval '80 minutes' FROM generate_series(1, 1300) i;
INSERT INTO notifications SELECT i, md5('user ' || 1 + i % 20)::uuid, (ARRAY['Order','Conversation'])[1 + i % 2], (1 + i % 300)::text, jsonb_build_object('n', i), NULL, timestamp '2024-04-04' + i * interval '1 hour' FROM generate_series(1, 120) i;
INSERT INTO active_storage_blobs SELECT i, md5('blob ' || i), 'file' || i || '.png', 'image/png', '{"identified":true}', i * 1001, md5('b' || i), '2024-01-01' FROM generate_series(1, 90) i;
INSERT INTO active_storage_attachments SELECT i, 'image', (ARRAY['Product','User'])[1 + i % 2], 1 + i * 2, i, '2024-01-01' FROM generate_series(1, 90) i;
SET session_replication_role = origin;
SELECT setval('products_id_seq', 1000), setval('orders_id_seq', 1000), setval('comments_id_seq', 1000), setval('reviews_id_seq', 1000), setval('variants_id_seq', 1000), setval('order_items_id_seq', 1000), setval('categories_id_seq', 100);
