INSERT INTO people VALUES ('ada', 'TEMPORARY'), ('bob', 'PARTNERED'), ('eve', 'ANONYMOUS'), ('new', 'none'),
  ('<script>alert("x")</script>', 'TEMPORARY'), ('"><img src=x onerror=alert(1)>', 'TEMPORARY'), ('{{.CSRF}} javascript:alert(1)//''"', 'TEMPORARY');
INSERT INTO people SELECT 'user-' || lpad(n::text, 2, '0'), 'TEMPORARY' FROM generate_series(1, 24) AS n;
INSERT INTO "<i>notes</i>" SELECT row_number() OVER (ORDER BY who, n), who, 'ROWMARK <b>' || who, 'ROWMARK style' FROM people, generate_series(1, 3) AS n;
