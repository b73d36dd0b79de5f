-- A chain of five links from a reader to an organisation, keys of every kind, self references, ranges, enums, intervals,
-- bit strings, bytea, a generated column, a partitioned table.
CREATE TYPE level AS ENUM ('low', 'mid', 'high', 'top');
CREATE TABLE org (code text PRIMARY KEY, title text NOT NULL, region text, opened date, quota numeric);
CREATE TABLE person (
  id bigint PRIMARY KEY, org text, name text, boss bigint REFERENCES person, status text, joined date, pay numeric(10,2), langs text[], boardmember boolean
);
CREATE TABLE project (
  id bigint PRIMARY KEY, org text REFERENCES org, title text, period daterange, budget numeric, rank level, parent bigint REFERENCES project, tags text[], meta json
);
CREATE TABLE task (
  id bigint PRIMARY KEY, project bigint REFERENCES project, owner bigint, title text, due timestamp, hours int4range, spent interval, done boolean,
  weight real, place smallint, labels jsonb, twice integer GENERATED ALWAYS AS (place * 2) STORED
);
CREATE TABLE note (
  id uuid PRIMARY KEY, task bigint, author bigint, body text, at timestamptz, bits bit varying(12), raw bytea, score integer, seen boolean, parts integer[]
);
CREATE TABLE note_reader (note uuid NOT NULL, reader bigint NOT NULL, agreed boolean, PRIMARY KEY (note, reader));
CREATE TABLE event (id integer NOT NULL, task bigint, at timestamptz NOT NULL, kind text, amount integer, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE event_old PARTITION OF event FOR VALUES FROM (MINVALUE) TO ('2024-01-01 00:00+00');
CREATE TABLE event_2024 PARTITION OF event FOR VALUES FROM ('2024-01-01 00:00+00') TO ('2025-01-01 00:00+00');
CREATE TABLE event_rest PARTITION OF event DEFAULT;
CREATE INDEX ON task (project, due);
CREATE INDEX ON note (task);
CREATE INDEX ON event (task);

INSERT INTO org VALUES ('acme', 'Acme "Ltd"', 'north', '1990-01-01', 10), ('beta', 'Beta', 'south', NULL, 20.5), ('acme2', 'Acme', NULL, '2000-02-29', NULL), ('', 'None', 'north', '2024-01-01', 0);
INSERT INTO person
SELECT i, CASE i % 5 WHEN 0 THEN 'beta' WHEN 4 THEN NULL ELSE 'acme' END, (ARRAY['Ada','Ben','Cy','Di','Ed','Flo','Gil'])[1 + i % 7] || ' ' || i,
  CASE WHEN i > 3 THEN i / 3 END, CASE i % 8 WHEN 0 THEN 'left' WHEN 5 THEN NULL WHEN 6 THEN 'Active' ELSE 'active' END,
  date '2010-01-01' + i * 97, CASE WHEN i % 6 > 0 THEN 1000 + i * 33.33 END, CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN ARRAY['en'] ELSE ARRAY['en', 'fr', chr(97 + i % 5)] END, i % 4 = 1
FROM generate_series(1, 40) i;
INSERT INTO project
SELECT i, (ARRAY['acme','beta','acme','acme2',NULL])[1 + i % 5], CASE WHEN i % 7 > 0 THEN 'Project ' || chr(64 + i) END,
  CASE i % 6 WHEN 0 THEN NULL WHEN 1 THEN 'empty' WHEN 2 THEN daterange(NULL, date '2024-06-01') ELSE daterange(date '2023-01-01' + i * 20, date '2023-03-01' + i * 31) END,
  CASE WHEN i % 5 <> 3 THEN i * 1000.5 END, (ARRAY['low','mid','high','top']::level[])[1 + i % 4], CASE WHEN i > 2 THEN i / 2 END,
  CASE WHEN i % 3 > 0 THEN ARRAY[chr(97 + i % 3), chr(98 + i % 5)] END, CASE WHEN i % 2 > 0 THEN json_build_object('p', i, 'q', chr(97 + i % 3)) END
FROM generate_series(1, 26) i;
INSERT INTO task
SELECT i, CASE WHEN i % 17 > 0 THEN 1 + i % 26 END, CASE WHEN i % 9 > 0 THEN 1 + (i * 5) % 44 END, 'Task ' || i || CASE WHEN i % 5 = 0 THEN ' é日' ELSE '' END,
  CASE WHEN i % 4 > 0 THEN timestamp '2024-01-01 10:00' + i * interval '9 hours' END, CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN 'empty' ELSE int4range(i % 20, i % 20 + i % 7) END,
  CASE WHEN i % 3 > 0 THEN i * interval '37 minutes' END, CASE i % 3 WHEN 0 THEN true WHEN 1 THEN false END, i / 8.0, i % 25,
  CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN '{}' ELSE jsonb_build_object('p', i % 5, 'who', jsonb_build_array('x', i % 2), 's', chr(97 + i % 6)) END
FROM generate_series(1, 260) i;
INSERT INTO note
SELECT md5('note ' || i)::uuid, CASE WHEN i % 13 > 0 THEN 1 + (i * 7) % 270 END, 1 + i % 44,
  CASE i % 6 WHEN 0 THEN NULL WHEN 1 THEN '42' WHEN 2 THEN 'It''s ' || i ELSE 'The quick note ' || i || ' about walking the dogs' END,
  timestamptz '2024-02-01 12:00+00' + i * interval '7 hours', CASE WHEN i % 3 > 0 THEN (i % 16)::bit(4)::varbit END, decode(md5('n' || i), 'hex'), CASE WHEN i % 4 > 0 THEN i % 50 END,
  CASE i % 3 WHEN 0 THEN true WHEN 1 THEN false END, CASE i % 4 WHEN 0 THEN NULL ELSE ARRAY[i % 3, i % 5] END
FROM generate_series(1, 320) i;
INSERT INTO note_reader
SELECT DISTINCT md5('note ' || i)::uuid, 1 + (i * j * 3) % 44, CASE (i + j) % 3 WHEN 0 THEN true WHEN 1 THEN false END FROM generate_series(1, 320) i, generate_series(1, i % 4) j ON CONFLICT DO NOTHING;
INSERT INTO event
SELECT i, CASE WHEN i % 10 > 0 THEN 1 + (i * 3) % 265 END, timestamptz '2023-09-01 00:00+00' + i * interval '30 hours', (ARRAY['open','move','close',NULL])[1 + i % 4], CASE WHEN i % 7 > 0 THEN (i * 13) % 101 - 20 END
FROM generate_series(1, 420) i;
