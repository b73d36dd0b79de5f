CREATE TABLE customers (id bigint PRIMARY KEY, tenant_id bigint NOT NULL, name text NOT NULL, consent text NOT NULL);
CREATE TABLE products (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE orders (id bigint PRIMARY KEY, tenant_id bigint NOT NULL, customer_id bigint NOT NULL REFERENCES customers, status text NOT NULL, total numeric(10,2) NOT NULL, placed_at timestamptz NOT NULL);
CREATE TABLE items (id bigint PRIMARY KEY, order_id bigint NOT NULL REFERENCES orders, product_id int NOT NULL REFERENCES products, qty int NOT NULL);
CREATE TABLE tickets (id bigint PRIMARY KEY, tenant_id bigint NOT NULL, assignee_id bigint, acl text[] NOT NULL, state text NOT NULL, title text NOT NULL, created_at timestamptz NOT NULL);
INSERT INTO customers SELECT i, i % 5, 'customer ' || i, CASE WHEN (hashint8(i) & 1023) < 920 THEN 'granted' ELSE 'no' END FROM generate_series(1, :orders / 10) i;
INSERT INTO products SELECT i, 'product ' || i FROM generate_series(1, 500) i;
INSERT INTO orders SELECT i, c % 5, c, (ARRAY['new', 'paid', 'sent', 'back'])[1 + a % 4], (a % 100000) / 100.0, timestamptz '2024-01-01' + (b % 31536000) * interval '1 second'
  FROM generate_series(1, :orders) i, LATERAL (SELECT 1 + (hashint8(i) & 2147483647) % (:orders / 10), hashint8(i * 3) & 2147483647, hashint8(i * 7) & 2147483647) x(c, a, b);
INSERT INTO items SELECT i, 1 + i % :orders, 1 + (hashint8(i) & 2147483647) % 500, 1 + i % 5 FROM generate_series(1, :orders * 2) i;
INSERT INTO tickets SELECT i, i % 5, CASE WHEN i % 3 = 0 THEN i % 200 END, ARRAY['g' || i % 50, 'g' || i % 37], (ARRAY['open', 'closed'])[1 + i % 2], 'w' || a % 200 || ' w' || b % 200, timestamptz '2024-01-01' + i * interval '1 minute'
  FROM generate_series(1, :orders / 2) i, LATERAL (SELECT hashint8(i) & 2147483647, hashint8(i * 3) & 2147483647) x(a, b);
CREATE INDEX ON orders (customer_id, placed_at DESC);
CREATE INDEX ON orders (tenant_id, placed_at DESC, id DESC);
CREATE INDEX ON orders (placed_at);
CREATE INDEX ON items (order_id);
CREATE INDEX ON customers (tenant_id);
CREATE INDEX ON tickets USING gin (acl);
CREATE INDEX ON tickets (tenant_id, created_at DESC);
CREATE INDEX ON tickets (assignee_id);
CREATE INDEX ON tickets USING gin (to_tsvector('simple', title));
VACUUM ANALYZE;
