-- must be answered
SELECT any_value(origin ORDER BY day, flno, suffix, carrier) FROM flight;
SELECT JSON_OBJECT('id': id, 'title': title) FROM task ORDER BY id LIMIT 3;
SELECT JSON_ARRAYAGG(id ORDER BY id) FROM task;
SELECT JSON_OBJECTAGG(code: name) FROM (SELECT code, name FROM ops.carrier ORDER BY code) c;
SELECT meta IS JSON OBJECT, count(*) FROM flight GROUP BY 1 ORDER BY 1;
SELECT id FROM task WHERE id = 0x3 OR id = 1_2 ORDER BY id;
SELECT pg_input_is_valid(title, 'integer'), count(*) FROM task GROUP BY 1;
SELECT date_add(max(due), '1 day', 'Europe/Oslo') FROM task;
