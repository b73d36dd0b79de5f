CREATE TABLE customers (id int PRIMARY KEY, consent text NOT NULL, city text NOT NULL);
CREATE TABLE stores (id int PRIMARY KEY, tenant int NOT NULL, name text NOT NULL);
CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL, brand text NOT NULL, category text NOT NULL);
CREATE TABLE dates (id int PRIMARY KEY, day date NOT NULL, year int NOT NULL);
CREATE TABLE sales (id int PRIMARY KEY, customer int REFERENCES customers, store int REFERENCES stores, item int REFERENCES items, day int REFERENCES dates, qty int, price numeric, made timestamp);
CREATE TABLE returns (id int PRIMARY KEY, sale int REFERENCES sales, customer int REFERENCES customers, store int REFERENCES stores);
INSERT INTO customers SELECT n, CASE WHEN n % 10 = 0 THEN 'no' ELSE 'yes' END, 'city ' || n % 50 FROM generate_series(1, :sales / 10) n;
INSERT INTO stores SELECT n, n % 3, 'store ' || n FROM generate_series(1, 60) n;
INSERT INTO items SELECT n, 'item ' || n, 'brand ' || n % 20, 'category ' || n % 7 FROM generate_series(1, 300) n;
INSERT INTO dates SELECT n, date '2023-01-01' + n, 2023 + n / 365 FROM generate_series(1, 1000) n;
INSERT INTO sales SELECT n, 1 + (hashint4(n) & 2147483647) % (:sales / 10), 1 + (hashint4(n * 3) & 2147483647) % 60, 1 + (hashint4(n * 5) & 2147483647) % 300,
  1 + (hashint4(n * 7) & 2147483647) % 1000, n % 10, n % 1000 / 10.0, now() - n * interval '1 hour' FROM generate_series(1, :sales) n;
INSERT INTO returns SELECT n, 1 + (hashint4(n * 11) & 2147483647) % :sales, 1 + (hashint4(n) & 2147483647) % (:sales / 10), 1 + (hashint4(n * 3) & 2147483647) % 60
  FROM generate_series(1, :sales / 10) n;
CREATE INDEX ON sales (customer);
CREATE INDEX ON sales (store);
CREATE INDEX ON sales (item);
CREATE INDEX ON sales (day);
CREATE INDEX ON sales (made);
CREATE INDEX ON returns (sale);
CREATE INDEX ON returns (customer);
VACUUM ANALYZE;
