-- The same for what PostgreSQL 16 added.
-- must be answered
SELECT JSON_OBJECT('title' : title, 'mood' : metadata->>'mood' ABSENT ON NULL), JSON_ARRAY(title, length(body)) FROM memories ORDER BY id LIMIT 10;
SELECT JSON_OBJECTAGG(id : title ABSENT ON NULL WITH UNIQUE KEYS) IS JSON OBJECT, JSON_ARRAYAGG(title ORDER BY id) FROM memories;
SELECT JSON_ARRAY(SELECT name FROM people ORDER BY name, id), count(*) FILTER (WHERE body IS NOT JSON) FROM memories;
SELECT any_value(metadata->>'mood') FILTER (WHERE metadata->>'mood' = 'calm'), count(*) FROM memories;
SELECT count(*) FROM memories WHERE pg_input_is_valid(metadata->>'stars', 'integer');
SELECT array_length(array_shuffle(array_agg(id)), 1), array_length(array_sample(array_agg(id), 2), 1) FROM memories;
SELECT 0x1F + count(*), 1_000 * count(*), 0b101, 0o17 FROM memories;
SELECT x.title FROM (SELECT title FROM memories WHERE length(title) > 10) AS x ORDER BY 1;
SELECT count(*) FROM (SELECT title FROM memories WHERE length(title) > 10);
SELECT date_add(max(occurred_at), '1 month', 'Europe/Zurich'), date_subtract(min(occurred_at), '1 day', 'UTC') FROM memories;
