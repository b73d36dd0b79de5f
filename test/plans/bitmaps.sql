CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE TABLE members (id bigint PRIMARY KEY, consent text NOT NULL);
CREATE TABLE readings (id bigint PRIMARY KEY, member bigint NOT NULL REFERENCES members, device int NOT NULL, sensor int NOT NULL, shuffled int NOT NULL, at timestamptz NOT NULL, value double precision NOT NULL, amount int NOT NULL, title text NOT NULL, meta jsonb NOT NULL, tsv tsvector NOT NULL);
INSERT INTO members SELECT i, CASE WHEN i % 10 = 0 THEN 'no' ELSE 'granted' END FROM generate_series(1, :readings / 20) i;
INSERT INTO readings SELECT i, 1 + (hashint8(i) & 2147483647) % (:readings / 20), a % 1000, b % 700, (hashint8(i * 17) & 2147483647) % :readings, timestamptz '2024-01-01' + i * interval '30 seconds', (a % 10000) / 7.0, b % 10, 'w' || a % 200 || ' w' || b % 200, jsonb_build_object('k', a % 5000), to_tsvector('simple', 'w' || a % 211 || ' w' || b % 199 || ' w' || (a / 211) % 197)
  FROM generate_series(1, :readings) i, LATERAL (SELECT hashint8(i * 3) & 2147483647, hashint8(i * 7 + 1) & 2147483647) x(a, b);
CREATE INDEX ON readings (member);
CREATE INDEX ON readings (device);
CREATE INDEX ON readings (sensor);
CREATE INDEX ON readings (shuffled);
CREATE INDEX ON readings USING brin (at);
CREATE INDEX ON readings USING gin (tsv);
CREATE INDEX ON readings USING gin (title gin_trgm_ops);
CREATE INDEX ON readings USING gin (meta);
VACUUM ANALYZE;
