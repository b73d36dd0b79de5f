INSERT INTO users SELECT n, 'user' || n, CASE WHEN n <= 12 THEN 'allow' WHEN n % 2 = 0 THEN 'deny' ELSE 'undecided' END FROM generate_series(1, 16) AS n;
INSERT INTO threads SELECT n, 'thread ' || n, 'members' FROM generate_series(1, 40) AS n;
INSERT INTO thread_members SELECT DISTINCT t, 1 + (t * k * 5 + k) % 16 FROM generate_series(1, 40) AS t, generate_series(0, 3) AS k;
INSERT INTO messages (thread_id, seq, sender_id, reply_to, body, sent_at, deleted)
SELECT m.thread_id, s, m.user_id, CASE WHEN s > 5 THEN s - 5 END, 'message ' || s || ' in ' || m.thread_id, timestamptz '2026-04-01 00:00+00' + m.thread_id * interval '1 day' + s * interval '1 minute', s % 10 = 0
FROM generate_series(1, 20) AS s JOIN LATERAL (SELECT thread_id, user_id, row_number() OVER (PARTITION BY thread_id ORDER BY user_id) AS r, count(*) OVER (PARTITION BY thread_id) AS n FROM thread_members) AS m ON m.r = 1 + s % m.n;
INSERT INTO reactions SELECT thread_id, seq, sender_id, '+1' FROM messages WHERE seq % 4 = 0;
