-- Names that need quotes, keys of two and three columns of three types, NULLs wherever they may be, arrays and JSON.
CREATE SCHEMA "Clinic";
CREATE TABLE "Clinic"."Patient" (
  "Id"        uuid PRIMARY KEY,
  "Full Name" text NOT NULL,
  carer       uuid, -- NULL: nobody's
  born        date,
  "Tags"      text[],
  facts       jsonb,
  weight      numeric(6,2),
  active      boolean
);
CREATE TABLE "Clinic"."Share" (
  "Patient" uuid NOT NULL, -- no foreign key: some dangle
  relative  text NOT NULL,
  "Agreed"  text,
  since     date,
  PRIMARY KEY ("Patient", relative)
);
CREATE TABLE "Clinic"."Visit" (
  "Patient" uuid NOT NULL REFERENCES "Clinic"."Patient",
  "No"      bigint NOT NULL,
  "from"    timestamptz NOT NULL,
  "to"      timestamptz,
  "select"  text,
  fee       numeric(8,2),
  marks     integer[],
  paid      boolean,
  "Doctor"  text,
  PRIMARY KEY ("Patient", "No")
);
CREATE TABLE "Clinic"."Result" (
  "Patient" uuid NOT NULL,
  visit     bigint NOT NULL,
  code      text NOT NULL,
  value     double precision,
  unit      varchar(12),
  raw       jsonb,
  at        timestamptz,
  ok        boolean,
  PRIMARY KEY ("Patient", visit, code),
  FOREIGN KEY ("Patient", visit) REFERENCES "Clinic"."Visit"
);
CREATE TABLE "Clinic"."Doctor" (name text PRIMARY KEY, "Ward" text, hired date, salary integer);
CREATE INDEX ON "Clinic"."Visit" ("from");
CREATE INDEX ON "Clinic"."Patient" USING gin (facts);

INSERT INTO "Clinic"."Doctor" VALUES
  ('Abel', 'north', '2001-02-03', 5200), ('Bai', 'north', '2010-01-01', 4100), ('Curie', 'south', '1999-12-31', 6100),
  ('Dahl', 'south', NULL, 3900), ('Elif', NULL, '2020-05-05', NULL), ('O''Hara', 'east', '2015-06-07', 4700);

INSERT INTO "Clinic"."Patient"
SELECT md5('patient ' || i)::uuid, (ARRAY['Ana','Bo','Cem','Dea','Eli','Fay','Gus','Han'])[1 + i % 8] || ' ' || (ARRAY['Lund','Mora','Nash','Ode','Pell'])[1 + i % 5] || ' ' || i,
  CASE WHEN i % 11 = 0 THEN NULL WHEN i % 3 = 0 THEN 'bbbbbbbb-0000-4000-8000-000000000002'::uuid ELSE 'aaaaaaaa-0000-4000-8000-000000000001'::uuid END,
  CASE WHEN i % 6 > 0 THEN date '1950-01-01' + i * 137 END,
  CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN '{}' WHEN 2 THEN ARRAY['a', NULL, 'c'] ELSE ARRAY[chr(97 + i % 7), chr(97 + i % 4)] END,
  CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN 'null' WHEN 2 THEN '[1, 2, {"a": "b"}]' ELSE jsonb_build_object('kind', chr(107 + i % 4), 'n', i % 10, 'list', jsonb_build_array(i, i % 3, 'x'), 'deep', jsonb_build_object('city', chr(112 + i % 3))) END,
  CASE WHEN i % 4 > 0 THEN 40 + i * 1.25 END,
  CASE i % 3 WHEN 0 THEN true WHEN 1 THEN false END
FROM generate_series(1, 90) i;

INSERT INTO "Clinic"."Share"
SELECT md5('patient ' || i)::uuid, r, CASE (i * 7 + length(r)) % 13 WHEN 0 THEN 'no' WHEN 5 THEN NULL WHEN 9 THEN 'Yes' ELSE 'yes' END,
  CASE WHEN i % 5 > 0 THEN date '2020-01-01' + i * 3 END
FROM generate_series(1, 96) i, unnest((ARRAY['mother', 'son', 'aunt'])[1 : i % 4]) r;

INSERT INTO "Clinic"."Visit"
SELECT md5('patient ' || i)::uuid, n * 10000000000, timestamptz '2023-01-01 08:00+00' + i * interval '3 days' + n * interval '31 days',
  CASE WHEN (i + n) % 3 > 0 THEN timestamptz '2023-01-01 09:00+00' + i * interval '3 days' + n * interval '31 days' + i * interval '1 minute' END,
  CASE (i + n) % 6 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN 'where' WHEN 3 THEN 'a''b "c"' ELSE 'note ' || i || '\' || n END,
  CASE WHEN (i * n) % 5 > 0 THEN (i * n % 97) * 1.5 END,
  CASE (i + n) % 4 WHEN 0 THEN NULL WHEN 1 THEN '{}' ELSE ARRAY[i, n, NULL, i % n + 1] END,
  CASE (i + n) % 4 WHEN 0 THEN true WHEN 1 THEN false WHEN 2 THEN true END,
  CASE (i + n) % 7 WHEN 0 THEN NULL WHEN 6 THEN 'Nobody' ELSE (ARRAY['Abel','Bai','Curie','Dahl','O''Hara'])[1 + (i + n) % 5] END
FROM generate_series(1, 90) i, generate_series(1, 1 + i % 4) n WHERE i % 9 > 0;

INSERT INTO "Clinic"."Result"
SELECT v."Patient", v."No", c, CASE WHEN length(c) + v."No" % 3 > 2 THEN extract(day FROM v."from") * length(c) / 4.0 END,
  CASE c WHEN 'hb' THEN 'g/l' WHEN 'k' THEN 'mmol/l' END, CASE WHEN c <> 'na' THEN jsonb_build_object('c', c, 'v', extract(day FROM v."from")::int, 'flags', to_jsonb(v.marks)) END,
  v."from" + length(c) * interval '1 hour', extract(day FROM v."from")::int % 2 = 0
FROM "Clinic"."Visit" v, unnest(ARRAY['hb', 'k', 'na', 'crp']) c WHERE extract(day FROM v."from")::int % 4 <> length(c) - 1;
