INSERT INTO tenants VALUES ('acme', 'Acme'), ('globex', 'Globex');
INSERT INTO projects SELECT t.id, n, 'project ' || n || ' of ' || t.id, n % 5 = 0 FROM tenants AS t, generate_series(1, 10) AS n;
INSERT INTO members SELECT t.id, n, 'm' || n || '@' || t.id || '.example' FROM (SELECT id FROM tenants) AS t, generate_series(1, 12) AS n;
INSERT INTO project_members SELECT p.tenant_id, p.id, m FROM projects AS p, generate_series(1, 12) AS m WHERE (p.id + m) % 3 = 0;
INSERT INTO tasks SELECT t.id, n, 1 + n % 10, 'task ' || n || ' of ' || t.id, (ARRAY['todo', 'doing', 'done'])[1 + n % 3], date '2026-06-01' + n FROM tenants AS t, generate_series(1, 150) AS n;
INSERT INTO templates VALUES (1, NULL, 'everybody''s'), (2, 'acme', 'Acme''s'), (3, 'globex', 'Globex''s');
INSERT INTO events SELECT (ARRAY['acme', 'globex'])[1 + n % 2], timestamptz '2026-01-01 00:00+00' + n * interval '3 hours', 'click', jsonb_build_object('page', '/p/' || n, 'ip', '192.0.2.' || n % 250)
FROM generate_series(1, 400) AS n;
