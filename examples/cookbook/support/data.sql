INSERT INTO organizations VALUES (1, 'Northwind', 'pro'), (2, 'Fabrikam', 'free');
INSERT INTO customers (org_id, name, email, phone, ai)
SELECT 1 + n % 2, 'customer ' || n, 'c' || n || '@example.org', '+49 30 ' || 1000 + n, (ARRAY['granted', 'granted', 'granted', 'refused', 'unasked', 'withdrawn']::ai_consent[])[1 + n / 2 % 6]
FROM generate_series(1, 60) AS n;
INSERT INTO tickets (org_id, requester_id, subject, status, created_at)
SELECT c.org_id, c.id, 'ticket ' || n || ' of customer ' || c.id, (ARRAY['open', 'pending', 'solved', 'closed'])[1 + n % 4], timestamptz '2026-01-01 00:00+00' + n * interval '3 hours'
FROM generate_series(1, 240) AS n JOIN customers AS c ON c.id = 1 + n * 7 % 60;
INSERT INTO ticket_people
SELECT t.id, c.id FROM tickets AS t JOIN customers AS c ON c.org_id = t.org_id AND c.id = 1 + (t.id * 11 + 3) % 60 WHERE t.id % 3 = 0;
INSERT INTO comments (id, ticket_id, author, internal, body, created_at)
SELECT md5('comment ' || n)::uuid, 1 + n % 240, CASE WHEN n % 4 = 0 THEN 'staff' ELSE 'customer' END, n % 8 = 0, 'comment ' || n, timestamptz '2026-01-01 00:00+00' + n * interval '1 hour'
FROM generate_series(1, 720) AS n;
INSERT INTO articles VALUES (1, NULL, 'How to reset a password', 'Press the button.', true), (2, 1, 'Our opening hours', 'Nine to five.', true),
  (3, 1, 'A draft', 'Not yet.', false), (4, 2, 'Of Fabrikam', 'Theirs alone.', true);
