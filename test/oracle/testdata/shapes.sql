-- Shapes of statements, after those of PostgreSQL's regression suite. bindings.txt says what the placeholders stand for;
-- {k} is the key of x, {k.z} that of z, {k.} without a name in front. Where SQL leaves an order open, none is asked for.

-- must be answered

-- select, limit
SELECT * FROM {T};
SELECT x.* FROM {T} x ORDER BY {k};
TABLE {T};
SELECT count(*) FROM {T};
SELECT {k.}, {s.} FROM {T} ORDER BY {k.} LIMIT 7;
SELECT {k.} FROM {T} ORDER BY {k.} OFFSET 5 ROWS FETCH NEXT 6 ROWS ONLY;
SELECT {k} FROM {T} AS x ORDER BY {s} NULLS FIRST, {k} DESC LIMIT 9 OFFSET 2;
SELECT {k} FROM {T} AS x ORDER BY {k} LIMIT (SELECT count(*) / 3 FROM {T});
SELECT {k} FROM {T} AS x ORDER BY {k} LIMIT ALL OFFSET (SELECT greatest(count(*) - 4, 0) FROM {T});
SELECT x.{s.} FROM {T} x WHERE x.{s.} IS NOT NULL ORDER BY 1;
SELECT {s} AS a, length({s}) AS b FROM {T} x ORDER BY b DESC NULLS LAST, a;
SELECT ({s} || '.') AS "Ünïcode ""name""" FROM {T} x;
SELECT ALL {s} FROM {T} x WHERE true;
SELECT 1 FROM {T} x WHERE false;
SELECT FROM {T} x;
SELECT 'constant', 1, NULL::text, x.{s.} FROM {T} x;
SELECT {s} FROM {T} x FETCH FIRST 0 ROWS ONLY;

-- where
SELECT {k} FROM {T} x WHERE {s} > 'M' AND {s} < 'Z' OR {s} IS NULL;
SELECT {k} FROM {T} x WHERE NOT ({s} LIKE '%a%' OR {s} ILIKE '%e%');
SELECT {k} FROM {T} x WHERE ({s} ~ '[0-3]' OR true)::bool;
SELECT {k} FROM {T} x WHERE ({s} IS NULL) IS NOT TRUE AND ({s} = {s}) IS NOT UNKNOWN;
SELECT {k} FROM {T} x WHERE {s} SIMILAR TO '%(a|e)%' ESCAPE '!';
SELECT {k} FROM {T} x WHERE {s} BETWEEN SYMMETRIC 'Z' AND 'A';
SELECT {k} FROM {T} x WHERE {s} IN ('x', 'yes', 'hb') OR {s} NOT IN ('k', 'open');
SELECT {k} FROM {T} x WHERE {s} = ANY (ARRAY['hb', 'move', NULL]) IS NOT TRUE;
SELECT {k} FROM {T} x WHERE {s} < ALL (ARRAY['zz', 'zy']);
SELECT {k} FROM {T} x WHERE coalesce(nullif({s}, ''), '-') <> '-';
SELECT {k} FROM {T} x WHERE x IS NOT NULL;
SELECT {k} FROM {T} x WHERE NOT x IS NULL;
SELECT {k} FROM {T} x WHERE ROW({k}) >= (SELECT {k.z} FROM {T} z ORDER BY {k.z} OFFSET 3 LIMIT 1);
SELECT {k} FROM {T} x WHERE ROW({k}, 1) IS DISTINCT FROM ROW({k}, 2);
SELECT {k} FROM {T} x WHERE {d} IS NULL OR extract(year FROM {d}) % 2 = 0;
SELECT {k} FROM {T} x WHERE {d} > '2023-06-01' AND {d} <= '2024-09-30';
SELECT {k} FROM {T} x WHERE {n} > 10 AND {n}::int % 2 = 0 OR {n} IS NULL;
SELECT {k} FROM {T} x WHERE {n} NOT BETWEEN 5 AND 50;
SELECT {k} FROM {T} x WHERE CASE WHEN {n} = 0 THEN NULL ELSE 100 / {n} END > 2;
SELECT {k} FROM {T} x WHERE {b};
SELECT {k} FROM {T} x WHERE {b} IS NOT TRUE;
SELECT {k} FROM {T} x WHERE {b} IS UNKNOWN OR NOT {b};

-- expressions
SELECT {k}, upper({s}), substr({s}, 2, 3), position('a' IN {s}), overlay({s} PLACING 'XX' FROM 1 FOR 2) FROM {T} x;
SELECT {k}, trim(BOTH 'a' FROM {s}), lpad({s}, 12, '*'), replace({s}, 'a', 'b'), md5({s}), reverse({s}) FROM {T} x;
SELECT {k}, regexp_replace({s}, '([0-9]+)', '<\1>', 'g'), split_part({s}, ' ', 1), {s} COLLATE "C" < 'b' FROM {T} x;
SELECT {k}, format('%s-%L-%I', {s}, {s}, 'q'), concat_ws('/', {s}, NULL, 'x'), left({s}, -1) FROM {T} x;
SELECT {k}, CASE {s} WHEN 'hb' THEN 1 WHEN 'open' THEN 2 ELSE length({s}) END, CASE WHEN {s} IS NULL THEN 'none' END FROM {T} x;
SELECT {k}, greatest({s}, 'm'), least({s}, 'm'), coalesce({s}, 'null'), nullif({s}, 'hb') FROM {T} x;
SELECT {k}, date_trunc('month', {d}), extract(dow FROM {d}), to_char({d}, 'YYYY-MM-DD'), {d}::date - date '2020-01-01' FROM {T} x;
SELECT {k}, {d}::timestamp AT TIME ZONE 'UTC', age(timestamp '2026-01-01', {d}::timestamp), {d} + interval '1 day' FROM {T} x;
SELECT {k}, ({d}, interval '30 days') OVERLAPS (timestamp '2024-01-01', timestamp '2024-06-01'), date_part('year', {d}) FROM {T} x;
SELECT {k}, {n} + 1, -{n}, {n} * 2.5, round({n}::numeric / 3, 2), abs({n} - 20), sign({n}), {n}::text || '%' FROM {T} x;
SELECT {k}, width_bucket({n}::numeric, 0, 100, 5), power({n}::numeric, 2), mod({n}::integer, 7), ceil({n}), to_char({n}, '999D9') FROM {T} x;
SELECT {k}, ({n} > 3) = ({n} > 5), {n} IS DISTINCT FROM 3, {n} BETWEEN 1 AND 9, ({n} IS NULL)::int FROM {T} x;
SELECT {k}, {b} AND {n} > 3, {b} OR {n} IS NULL, NOT {b}, {b}::text, {b}::int FROM {T} x;
SELECT ROW({s}, {k}), ROW(x.*) = ROW(x.*), (x).{s.} FROM {T} x;
SELECT x, x::text FROM {T} x;
SELECT {k}, to_json(x) ->> '{s.raw}', row_to_json(x)::text, to_jsonb(x) - '{s.raw}' FROM {T} x;
SELECT {k}, ARRAY[{s}, 'b'] || ARRAY['c'], (ARRAY[{s}, 'z'])[2], ARRAY[[{s}], ['y']] FROM {T} x;
SELECT {k}, pg_typeof({s}), {s}::varchar(3), CAST({s} AS char(4)), text 'lit' FROM {T} x;

-- arrays
SELECT {k}, {a}, {a}[1], {a}[1:2], array_length({a}, 1), cardinality({a}), {a} IS NULL FROM {T} x;
SELECT {k} FROM {T} x WHERE cardinality({a}) > 1 AND {a}[1] = ANY ({a}[1:1]);
SELECT {k}, e FROM {T} x, unnest({a}) AS e;
SELECT {k}, e, o FROM {T} x CROSS JOIN LATERAL unnest({a}) WITH ORDINALITY AS u (e, o);
SELECT {k}, e FROM {T} x LEFT JOIN unnest({a}) AS e ON true;
SELECT e, count(*) FROM {T} x, unnest({a}) e GROUP BY e;
SELECT {k} FROM {T} x WHERE EXISTS (SELECT FROM unnest({a}) e WHERE e IS NULL);
SELECT {k}, array_to_string({a}, ',', 'null'), array_position({a}, {a}[1]), array_remove({a}, NULL), array_append({a}, NULL), array_ndims({a}) FROM {T} x;
SELECT {k}, (SELECT array_agg(e ORDER BY e DESC) FROM unnest({a}) e) FROM {T} x;
SELECT {k.z} FROM {T} z WHERE {a.z} && (SELECT x.{a.} FROM {T} x WHERE cardinality({a}) > 1 ORDER BY {k} LIMIT 1);
SELECT {k}, generate_subscripts({a}, 1) FROM {T} x;

-- jsonb
SELECT {k}, {j}, {j} -> 'kind', {j} ->> 'n', {j} #> '{deep,city}', {j} #>> '{list,0}' FROM {T} x;
SELECT {k} FROM {T} x WHERE {j} @> '{"n": 3}' OR {j} ? 'mood' OR {j} ?| ARRAY['p', 'c'] OR {j} ?& ARRAY['kind', 'n'];
SELECT {k}, jsonb_typeof({j}), {j} = 'null'::jsonb, {j} || '{"added": 1}' FROM {T} x;
SELECT {k}, {j} - 'n', {j} - ARRAY['p', 'kind'] FROM {T} x WHERE jsonb_typeof({j}) = 'object';
SELECT {k}, jsonb_path_query_array({j}, '$.list[*]'), jsonb_path_exists({j}, '$.n ? (@ > 2)'), {j} @? '$.tags', {j} @@ '$.p == 3' FROM {T} x;
SELECT {k}, e.key, e.value FROM {T} x, jsonb_each(CASE WHEN jsonb_typeof({j}) = 'object' THEN {j} END) e;
SELECT key, count(*) FROM {T} x, jsonb_object_keys(CASE WHEN jsonb_typeof({j}) = 'object' THEN {j} END) key GROUP BY key;
SELECT {k}, jsonb_set({j}, '{deep}', '0', false), jsonb_strip_nulls({j}), jsonb_pretty({j}) FROM {T} x WHERE jsonb_typeof({j}) = 'object';
SELECT {k}, r.n, r.kind FROM {T} x, jsonb_to_record(CASE WHEN jsonb_typeof({j}) = 'object' THEN {j} END) AS r (n text, kind text);
SELECT jsonb_agg({s} ORDER BY {k}), jsonb_object_agg({k1}::text || coalesce({s}, ''), {s} ORDER BY {k}) FROM {T} x;
SELECT jsonb_build_object('n', count(*), 'first', min({s}), 'all', jsonb_agg(DISTINCT {s})) FROM {T} x;
SELECT {j}['kind'], {j}['list'][0], ({j} -> 'n')::text::numeric FROM {T} x WHERE {j} ? 'n' AND jsonb_typeof({j} -> 'n') = 'number';
SELECT {k} FROM {T} x WHERE {j} IS NOT NULL AND NOT {j} <@ '{"a": 1}' ORDER BY {j} ->> 'n', {k};

-- ranges
SELECT {k}, {r}, lower({r}), upper({r}), isempty({r}), {r} @> 5, lower_inc({r}), upper_inf({r}) FROM {T} x;
SELECT {k} FROM {T} x WHERE {r} && int4range(3, 8) OR {r} << int4range(2, 4) OR {r} -|- int4range(9, 12);
SELECT {k}, {r} * int4range(1, 10), {r} + {r}, range_merge({r}, int4range(1, 2)) FROM {T} x WHERE NOT isempty({r});
SELECT range_agg({r}), range_intersect_agg({r}) FROM {T} x;
SELECT count(*) FROM {T} x JOIN {T} z ON {r} && {r.z} AND {k1} < {k1.z};

-- text search
SELECT {k} FROM {T} x WHERE to_tsvector('english', {s}) @@ to_tsquery('english', 'walk | task | note');
SELECT {k}, ts_rank(to_tsvector('simple', coalesce({s}, '')), plainto_tsquery('simple', 'the')), ts_headline('simple', {s}, to_tsquery('simple', 'a | task')) FROM {T} x;
SELECT {k}, strip(to_tsvector('english', {s})), numnode(phraseto_tsquery('english', {s})), length(to_tsvector('simple', {s})) FROM {T} x;

-- aggregates
SELECT count(*), count({s}), count(DISTINCT {s}), min({s}), max({s}) FROM {T} x;
SELECT sum({n}), avg({n})::numeric(20,4), min({n}), max({n}), count({n}), count(DISTINCT {n}) FROM {T} x;
SELECT round(stddev({n}::numeric), 6), round(variance({n}::numeric), 6), round(var_pop({n}::numeric), 6) FROM {T} x;
SELECT bool_and({b}), bool_or({b}), every({b}), count(*) FILTER (WHERE {b}), count(*) FILTER (WHERE {b} IS NULL) FROM {T} x;
SELECT string_agg({s}, ',' ORDER BY {k}), array_agg({s} ORDER BY {k} DESC), md5(string_agg({k1}::text, '' ORDER BY {k})) FROM {T} x;
SELECT array_agg(DISTINCT {s} ORDER BY {s}), string_agg(DISTINCT {s}, ';') FROM {T} x;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY {n}), percentile_cont(0.25) WITHIN GROUP (ORDER BY {n}::float8), mode() WITHIN GROUP (ORDER BY {n}::int % 3) IS NULL FROM {T} x;
SELECT rank(5) WITHIN GROUP (ORDER BY {n}), dense_rank(5) WITHIN GROUP (ORDER BY {n}), percent_rank(5) WITHIN GROUP (ORDER BY {n}) FROM {T} x;
SELECT {s}, count(*) FROM {T} x GROUP BY {s} HAVING count(*) >= 1 AND min({s}) IS NOT NULL;
SELECT length({s}) AS l, count(*), min({s}), max({s}) FROM {T} x GROUP BY l ORDER BY l;
SELECT substr({s}, 1, 1), count(*) FROM {T} x GROUP BY 1 HAVING count(*) > 1 ORDER BY 2 DESC, 1;
SELECT {b}, sum({n}), count(*) FROM {T} x GROUP BY {b};
SELECT {k}, {s}, count(*) OVER () FROM {T} x GROUP BY {k}, {s};
SELECT x.*, count(*) FROM {T} x GROUP BY {k};
SELECT {k}, {s}, count({yk1}) FROM {T} x LEFT JOIN {U} y ON {on} GROUP BY {k};
SELECT date_trunc('year', {d}), count(*), max({d}), min({d}) FROM {T} x GROUP BY 1;
SELECT corr({n}, {n}) > 0.99, regr_count({n}, {n}), bit_and({n}::int), bit_or({n}::int) FROM {T} x;
SELECT any_value FROM (SELECT min({s}) AS any_value FROM {T} x HAVING count(*) > 2) v;
SELECT max(c), min(c), sum(c) FROM (SELECT count(*) AS c FROM {T} x GROUP BY substr({s}, 1, 2)) g;
SELECT count(*) FROM {T} x HAVING count(*) > 0;
SELECT sum(count(*)) OVER (ORDER BY length({s})), length({s}) FROM {T} x GROUP BY length({s});

-- grouping sets
SELECT substr({s}, 1, 1), length({s}), count(*), grouping(substr({s}, 1, 1), length({s})) FROM {T} x GROUP BY ROLLUP (substr({s}, 1, 1), length({s}));
SELECT {b}, length({s}) % 3, count(*) FROM {T} x GROUP BY CUBE ({b}, length({s}) % 3);
SELECT {b}, substr({s}, 1, 1), sum({n}) FROM {T} x GROUP BY GROUPING SETS (({b}), (substr({s}, 1, 1)), ()) HAVING count(*) > 1;
SELECT length({s}) % 2, count(*) FROM {T} x GROUP BY GROUPING SETS ((1), ROLLUP (1), ());
SELECT count(*) FROM {T} x GROUP BY ();

-- window
SELECT {k}, row_number() OVER (ORDER BY {k}), rank() OVER (ORDER BY {s}), dense_rank() OVER (ORDER BY {s}) FROM {T} x;
SELECT {k}, count(*) OVER (PARTITION BY substr({s}, 1, 1)), first_value({s}) OVER (PARTITION BY length({s}) ORDER BY {k}) FROM {T} x;
SELECT {k}, lag({s}) OVER w, lead({s}, 2, 'end') OVER w, ntile(4) OVER w, cume_dist() OVER w FROM {T} x WINDOW w AS (ORDER BY {k});
SELECT {k}, sum({n}) OVER (ORDER BY {k} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW), avg({n}) OVER (ORDER BY {k} ROWS UNBOUNDED PRECEDING)::numeric(20,4) FROM {T} x;
SELECT {k}, sum(1) OVER (ORDER BY length({s}) GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES), last_value({s}) OVER (ORDER BY {k} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM {T} x;
SELECT {k}, count(*) FILTER (WHERE {s} > 'M') OVER (ORDER BY {k}), nth_value({s}, 2) OVER (ORDER BY {k}) FROM {T} x;
SELECT * FROM (SELECT {k}, row_number() OVER (PARTITION BY substr({s}, 1, 1) ORDER BY {k}) AS rn FROM {T} x) v WHERE rn = 1;
SELECT {k}, sum({n}) OVER (ORDER BY {n} RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING) FROM {T} x;

-- distinct
SELECT DISTINCT substr({s}, 1, 2) FROM {T} x;
SELECT DISTINCT length({s}), {s} IS NULL FROM {T} x ORDER BY 1, 2;
SELECT DISTINCT ON (substr({s}, 1, 1)) substr({s}, 1, 1), {k} FROM {T} x ORDER BY substr({s}, 1, 1), {k};
SELECT count(*) FROM (SELECT DISTINCT * FROM (SELECT {s}, {d} FROM {T} x) v) w;

-- joins
SELECT {k}, {yk} FROM {T} x JOIN {U} y ON {on};
SELECT {k}, {yk} FROM {T} x LEFT JOIN {U} y ON {on};
SELECT {k}, {yk} FROM {T} x RIGHT JOIN {U} y ON {on};
SELECT {k}, {yk} FROM {T} x FULL JOIN {U} y ON {on};
SELECT {k}, {yk} FROM {T} x, {U} y WHERE {on} AND {s} > 'B';
SELECT count(*) FROM {T} x LEFT JOIN {U} y ON {on} AND {ys}::text > 'm' WHERE {yk1} IS NULL;
SELECT count(*), count({yk1}) FROM {T} x LEFT OUTER JOIN ({U} y CROSS JOIN (SELECT 1 AS one) o) ON {on};
SELECT {k}, {k.z} FROM {T} x JOIN {T} z ON {s} = {s.z} AND {k1} < {k1.z};
SELECT count(*) FROM {T} x JOIN {T} z USING ({k.});
SELECT count(*) FROM {T} x NATURAL JOIN {T} z;
SELECT {k}, (SELECT count(*) FROM {U} y WHERE {on}) FROM {T} x;
SELECT {k}, v.c FROM {T} x LEFT JOIN LATERAL (SELECT count(*) AS c FROM {U} y WHERE {on}) v ON true;
SELECT {k}, v.* FROM {T} x, LATERAL (SELECT {yk} FROM {U} y WHERE {on} ORDER BY {yk} LIMIT 2) v;
SELECT {k}, v.* FROM {T} x CROSS JOIN LATERAL (VALUES (1, {s}), (2, 'two')) AS v (n, t);
SELECT count(*) FROM {T} x CROSS JOIN (SELECT {yk} FROM {U} y ORDER BY {yk} LIMIT 3) v;
SELECT count(*) FROM ({T} x JOIN {U} y ON {on}) LEFT JOIN {T} z ON {k1.z} = {k1};
SELECT (j).{s.} FROM (SELECT x AS j FROM {T} x) v;
SELECT v.a, count(*) FROM (SELECT {k1}, substr({s}, 1, 1) FROM {T} x) AS v (k, a) GROUP BY v.a;

-- sub-selects
SELECT {k} FROM {T} x WHERE EXISTS (SELECT 1 FROM {U} y WHERE {on});
SELECT {k} FROM {T} x WHERE NOT EXISTS (SELECT 1 FROM {U} y WHERE {on});
SELECT {k} FROM {T} x WHERE (SELECT count(*) FROM {U} y WHERE {on}) > 1;
SELECT {k} FROM {T} x WHERE {k1} IN (SELECT {k1.z} FROM {T} z WHERE {s.z} < 'N');
SELECT {k} FROM {T} x WHERE {k1} NOT IN (SELECT {k1.z} FROM {T} z WHERE {s.z} < 'N');
SELECT {k} FROM {T} x WHERE ({k}) IN (SELECT {k.z} FROM {T} z WHERE {s.z} IS NOT NULL);
SELECT {k} FROM {T} x WHERE {s} = (SELECT max({s.z}) FROM {T} z);
SELECT {k} FROM {T} x WHERE {s} >= ALL (SELECT {s.z} FROM {T} z WHERE {s.z} IS NOT NULL);
SELECT {k} FROM {T} x WHERE {n} > (SELECT avg({n.z}) FROM {T} z);
SELECT (SELECT count(*) FROM {T}), (SELECT count(*) FROM {U}), EXISTS (SELECT FROM {T});
SELECT ARRAY(SELECT {k1} FROM {T} x ORDER BY {k});
SELECT (SELECT ({s}, count(*) OVER ())::text FROM {T} x ORDER BY {k} LIMIT 1);
SELECT * FROM (SELECT * FROM (SELECT * FROM {T}) a) b;
SELECT * FROM (SELECT {k}, {s} AS s FROM {T} x WHERE {s} IS NOT NULL OFFSET 0) v WHERE v.s > 'C';
SELECT {k} FROM {T} x WHERE EXISTS (SELECT FROM {T} z WHERE {k1.z} = {k1} AND EXISTS (SELECT FROM {U} y WHERE {on}));
SELECT count(*) FROM {T} x WHERE {k1} = ANY (SELECT {k1.z} FROM {T} z ORDER BY {k.z} LIMIT 5);
SELECT {k}, CASE WHEN EXISTS (SELECT FROM {U} y WHERE {on}) THEN 'linked' ELSE 'alone' END FROM {T} x;

-- with
WITH q AS (SELECT * FROM {T}) SELECT count(*) FROM q;
WITH q AS MATERIALIZED (SELECT {k1} AS k, {s} AS s FROM {T} x), p AS (SELECT * FROM q WHERE s > 'D') SELECT count(*) FROM p, q WHERE p.k = q.k;
WITH q (a) AS NOT MATERIALIZED (SELECT {s} FROM {T} x) SELECT a, count(*) FROM q GROUP BY a;
WITH x AS (SELECT * FROM {T} WHERE false), y AS (TABLE {T}) SELECT (SELECT count(*) FROM x), (SELECT count(*) FROM y);
WITH RECURSIVE q (n) AS (SELECT count(*) FROM {T} UNION ALL SELECT n - 1 FROM q WHERE n > 0) SELECT count(*), max(n) FROM q;
SELECT * FROM (WITH q AS (SELECT {k} FROM {T} x) TABLE q) v;
WITH a AS (SELECT {k1} AS k FROM {T} x), b AS (SELECT k FROM a EXCEPT SELECT {k1} FROM {T} x WHERE {s} < 'H') SELECT count(*) FROM b;

-- with, under the table's own name
WITH {N} AS (SELECT 1 AS one) SELECT (SELECT count(*) FROM {N}), (SELECT count(*) FROM {Q});
WITH {N} AS (SELECT * FROM {N}) SELECT count(*) FROM {N};
WITH {N} AS (SELECT {k} FROM {N} x WHERE {s} IS NOT NULL) SELECT * FROM {N};
WITH {N} AS (SELECT {s} FROM {N} x) SELECT count(*), (SELECT max({k1}::text) FROM {Q} x) FROM {N};
WITH q AS (SELECT count(*) AS n FROM {N}), {N} AS (SELECT 2 AS n) SELECT (SELECT n FROM q), (SELECT n FROM {N}), (SELECT count(*) FROM {Q} AS r);
WITH {N} AS (SELECT 1 AS one) SELECT {k} FROM {Q} x;

-- union
SELECT {k1}::text FROM {T} x UNION SELECT {yk1}::text FROM {U} y;
SELECT {k1}::text FROM {T} x UNION ALL SELECT {s} FROM {T} x;
SELECT {k1} FROM {T} x EXCEPT SELECT {k1} FROM {T} x JOIN {U} y ON {on};
SELECT {k1} FROM {T} x INTERSECT SELECT {k1} FROM {T} x JOIN {U} y ON {on};
(SELECT {k1} FROM {T} x ORDER BY {k} LIMIT 3) UNION ALL (SELECT {k1} FROM {T} x ORDER BY {k} DESC LIMIT 3);
SELECT {s} FROM {T} x EXCEPT ALL SELECT {s} FROM {T} x WHERE {s} > 'K' ORDER BY 1 NULLS LAST;
SELECT count(*) FROM (SELECT {s} FROM {T} x UNION VALUES ('a'), ('b'), (NULL)) v;
VALUES ((SELECT count(*) FROM {T})), ((SELECT count(*) FROM {U}));

-- functions in FROM
SELECT {k}, g FROM {T} x, generate_series(1, length({s}) % 4) g;
SELECT {k}, t.* FROM {T} x, ROWS FROM (generate_series(1, 2), regexp_split_to_table({s}, ' ')) AS t (a, b);
SELECT {k}, m[1] FROM {T} x, regexp_matches({s}, '([a-z]+)', 'g') AS m;
SELECT w, count(*) FROM {T} x, string_to_table({s}, ' ') w GROUP BY w;

-- copy
COPY (SELECT {k}, {s} FROM {T} x ORDER BY {k}) TO STDOUT;
COPY (SELECT count(*) FROM {T} x JOIN {U} y ON {on}) TO STDOUT WITH (FORMAT csv, HEADER);

-- several statements in one message
SELECT count(*) FROM {T}; SELECT max({k1}::text) FROM {T} x;
BEGIN; SELECT count(*) FROM {T}; SELECT count(*) FROM {U}; COMMIT;

-- may be refused
SELECT * FROM {T} x FOR UPDATE;
SELECT * FROM {T} TABLESAMPLE SYSTEM (100);
SELECT * FROM {T} TABLESAMPLE BERNOULLI (100) REPEATABLE (1);
SELECT tableoid::regclass, count(*) FROM {T} x GROUP BY 1;
SELECT count(ctid) FROM {T} x;
SELECT {k} FROM ONLY {T} x;
SELECT {k} FROM {T} AS x;
SELECT count(*) FROM {T} * ;
SELECT j.* FROM ({T} x JOIN {U} y ON {on}) AS j;
SELECT {k} FROM {T} x GROUP BY {k} HAVING count(*) > (SELECT count(*) FROM {U} y WHERE {on} AND {yk1} IS NULL);
SELECT {T}.{s.} FROM {T};
SELECT x FROM {T} x GROUP BY x;
SELECT DISTINCT x FROM {T} x;
SELECT x = z FROM {T} x, {T} z WHERE {k1} = {k1.z};
SELECT ({s}, {k1})::text, (x.*)::text FROM {T} x;
SELECT json_agg(x ORDER BY {k}) FROM {T} x;
SELECT array_agg(x ORDER BY {k}) FROM {T} x;
SELECT {k}, random() < 2, now() IS NOT NULL, clock_timestamp() > '2020-01-01' FROM {T} x;
PREPARE held AS SELECT count(*) FROM {T} x; EXECUTE held; DEALLOCATE held;
BEGIN; DECLARE c SCROLL CURSOR FOR SELECT {k} FROM {T} x ORDER BY {k}; FETCH 3 FROM c; FETCH LAST FROM c; CLOSE c; COMMIT;
SELECT {k}, xmlforest({s} AS a), xmlelement(name b, {s}) FROM {T} x;
SELECT query_to_xml('SELECT count(*) FROM {T}', true, false, '');
EXPLAIN (COSTS OFF) SELECT * FROM {T};
COPY {T} TO STDOUT;
SELECT {k} FROM {T} x ORDER BY {s} USING <, {k};
SELECT {k1}, pg_column_size({s}) FROM {T} x;
SELECT count(*) FROM {T} x WHERE {s}::int > 0;
SELECT sum(1 / ({n} - 3)) FROM {T} x;
