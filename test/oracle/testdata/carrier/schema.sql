-- A telephone company of several brands on one network: subscribers, SIMs, call records in partitions of partitions, pings, voicemail, contacts, chats whose messages answer one another, orders, tickets, a tree of
-- employees, outages of cells. Names as people have them: quoted, reserved, of functions, of types, of a system view, beyond ASCII; domains over domains, enums that were added to, composite types with arrays of composites,
-- hstore and citext, searches and numbers that are generated, deferred exclusions, keys that are deferrable, cascades that set null and default, updatable views with checks, recursive views, a materialised view, history by triggers.
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS tablefunc;
CREATE EXTENSION IF NOT EXISTS unaccent;
CREATE SCHEMA tel;
CREATE SCHEMA msg;
CREATE SCHEMA ops;
CREATE SCHEMA "Care Desk";

CREATE DOMAIN tel.e164 AS text COLLATE "C" CHECK (VALUE ~ '^\+[1-9][0-9]{4,14}$');
CREATE DOMAIN tel.mobile AS tel.e164 CHECK (left(VALUE, 4) <> '+000');
CREATE DOMAIN tel.cents AS bigint CHECK (VALUE >= -1000000);
CREATE TYPE tel.status AS ENUM ('trial', 'active', 'barred', 'closed');
ALTER TYPE tel.status ADD VALUE 'dormant' BEFORE 'barred';
CREATE TYPE tel.kind AS ENUM ('voice', 'sms', 'data', 'roaming');
CREATE TYPE tel.address AS (street text, "No." integer, zip varchar(8), spot point);
CREATE TYPE msg.attachment AS (name text, mime text, bytes bigint, place tel.address);
CREATE TYPE tel.band AS RANGE (subtype = numeric);

CREATE TABLE public.tariff (
    code varchar(12) PRIMARY KEY, family text NOT NULL, name citext NOT NULL, monthly numeric(8,2) NOT NULL CHECK (monthly >= 0), valid daterange NOT NULL,
    included jsonb NOT NULL DEFAULT '{}', perks text[] NOT NULL DEFAULT '{}', spec hstore, yearly numeric GENERATED ALWAYS AS (monthly * 12) STORED,
    EXCLUDE USING gist (family WITH =, valid WITH &&)
);
CREATE TABLE public.zone (prefix text PRIMARY KEY, country char(2) NOT NULL, "Name" text NOT NULL, rate tel.band, "€/min" numeric(6,4) NOT NULL);
CREATE TABLE public.calendar (day date PRIMARY KEY, holiday boolean NOT NULL, label text);

CREATE TABLE tel.brand (id text PRIMARY KEY, title text NOT NULL, colours hstore NOT NULL, founded date);
CREATE TABLE ops.unit (id integer PRIMARY KEY, parent integer REFERENCES ops.unit, brand text NOT NULL REFERENCES tel.brand, name text NOT NULL);
CREATE TABLE ops.employee (
    id integer PRIMARY KEY, unit integer REFERENCES ops.unit, boss integer REFERENCES ops.employee, brand text NOT NULL REFERENCES tel.brand, name text NOT NULL, mail citext UNIQUE,
    salary numeric, since date, skills text[] NOT NULL DEFAULT '{}', CHECK (boss <> id)
);
CREATE TABLE ops.cell (id integer PRIMARY KEY, name text NOT NULL, area circle NOT NULL, bands tel.band[] NOT NULL DEFAULT '{}', up boolean NOT NULL DEFAULT true);
CREATE TABLE ops.outage (cell integer REFERENCES ops.cell, during tstzrange NOT NULL, cause text, EXCLUDE USING gist (cell WITH =, during WITH &&));

CREATE TABLE tel.subscriber (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, brand text NOT NULL REFERENCES tel.brand, handle citext NOT NULL UNIQUE, "Full Name" text NOT NULL, number tel.mobile UNIQUE, email text,
    born date, status tel.status NOT NULL DEFAULT 'trial', address tel.address, household integer, visible_to text[] NOT NULL DEFAULT '{}', prefs jsonb NOT NULL DEFAULT '{}', "count" integer,
    tariff varchar(12) DEFAULT 'none' REFERENCES public.tariff ON DELETE SET DEFAULT, referrer bigint REFERENCES tel.subscriber, risk real, joined timestamptz NOT NULL, gone timestamptz,
    search tsvector GENERATED ALWAYS AS (to_tsvector('simple', "Full Name" || ' ' || coalesce(email, ''))) STORED
);
CREATE INDEX ON tel.subscriber USING gin ("Full Name" gin_trgm_ops);
CREATE INDEX ON tel.subscriber (lower("Full Name"));
CREATE TABLE tel.sim (
    iccid text PRIMARY KEY, subscriber bigint NOT NULL REFERENCES tel.subscriber ON DELETE CASCADE, "IMSI" text UNIQUE DEFERRABLE INITIALLY DEFERRED, puk text, active tstzrange NOT NULL,
    esim boolean NOT NULL DEFAULT false, apn inet, profile jsonb, EXCLUDE USING gist (subscriber WITH =, active WITH &&) DEFERRABLE INITIALLY DEFERRED
);
CREATE TABLE tel.call (
    id bigint NOT NULL, at timestamptz NOT NULL, caller bigint NOT NULL REFERENCES tel.subscriber, callee tel.e164, kind tel.kind NOT NULL, seconds integer, bytes bigint, cost numeric(10,4), cell integer REFERENCES ops.cell,
    route integer[] NOT NULL DEFAULT '{}', note text, minutes numeric GENERATED ALWAYS AS (round(seconds / 60.0, 2)) STORED, PRIMARY KEY (id, at, kind)
) PARTITION BY RANGE (at);
CREATE TABLE tel.call_jan PARTITION OF tel.call FOR VALUES FROM ('2026-01-01 00:00+00') TO ('2026-02-01 00:00+00');
CREATE TABLE tel.call_feb PARTITION OF tel.call FOR VALUES FROM ('2026-02-01 00:00+00') TO ('2026-03-01 00:00+00') PARTITION BY LIST (kind);
CREATE TABLE tel.call_feb_voice PARTITION OF tel.call_feb FOR VALUES IN ('voice', 'sms');
CREATE TABLE tel.call_feb_rest PARTITION OF tel.call_feb DEFAULT;
CREATE TABLE tel.call_later PARTITION OF tel.call DEFAULT;
CREATE INDEX ON tel.call (caller, at DESC);
CREATE TABLE tel.ping (
    subscriber bigint REFERENCES tel.subscriber, at timestamptz, spot point NOT NULL, accuracy numrange, near integer[], battery numeric(3,2) CHECK (battery <= 1), meta jsonb, PRIMARY KEY (subscriber, at)
);
CREATE TABLE tel.agreement (id integer PRIMARY KEY, subscriber bigint NOT NULL REFERENCES tel.subscriber, grantee text NOT NULL, topic text NOT NULL, withdrawn timestamptz, until timestamptz);
CREATE TABLE tel.voicemail (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(), box bigint NOT NULL REFERENCES tel.subscriber ON DELETE CASCADE, caller text, transcript text, words tsvector GENERATED ALWAYS AS (to_tsvector('english', coalesce(transcript, ''))) STORED,
    length interval NOT NULL, heard boolean NOT NULL DEFAULT false, at timestamptz NOT NULL, labels citext[] NOT NULL DEFAULT '{}', shared_with jsonb NOT NULL DEFAULT '[]', mood real[]
);
CREATE INDEX ON tel.voicemail USING gin (words);
CREATE INDEX ON tel.voicemail USING gin (transcript gin_trgm_ops);
CREATE TABLE tel.contact (
    owner bigint NOT NULL REFERENCES tel.subscriber ON DELETE CASCADE, number tel.e164 NOT NULL, name citext NOT NULL, person bigint REFERENCES tel.subscriber ON DELETE SET NULL, card jsonb NOT NULL DEFAULT '{}', fav boolean NOT NULL DEFAULT false,
    "Birthday" date, extra hstore, made timestamptz NOT NULL DEFAULT '2026-03-01 00:00+00', PRIMARY KEY (owner, number), UNIQUE (owner, name) DEFERRABLE
);
CREATE TABLE tel."group" (owner bigint NOT NULL REFERENCES tel.subscriber, "name" text NOT NULL, "order" smallint, colour text DEFAULT 'grey', PRIMARY KEY (owner, "name"));
CREATE TABLE tel.contact_group (
    owner bigint, number tel.e164, "group" text, PRIMARY KEY (owner, number, "group"), FOREIGN KEY (owner, number) REFERENCES tel.contact ON DELETE CASCADE ON UPDATE CASCADE,
    FOREIGN KEY (owner, "group") REFERENCES tel."group" ON DELETE CASCADE
);
CREATE TABLE tel.pg_stat_activity (pid bigint PRIMARY KEY, owner bigint NOT NULL REFERENCES tel.subscriber, query text, state text, backend_start timestamptz);
CREATE TABLE tel.port (id uuid PRIMARY KEY, number tel.e164 NOT NULL, "from" text REFERENCES tel.brand, "to" text REFERENCES tel.brand, state text NOT NULL, asked date, EXCLUDE USING btree (number WITH =) WHERE (state = 'open'));

CREATE TABLE msg.thread (
    id uuid PRIMARY KEY, parent uuid REFERENCES msg.thread, brand text NOT NULL REFERENCES tel.brand, title text, members bigint[] NOT NULL, settings jsonb NOT NULL DEFAULT '{}', opened timestamptz NOT NULL, closed timestamptz, "user" text
);
CREATE TABLE msg.message (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, thread uuid NOT NULL REFERENCES msg.thread ON DELETE CASCADE, author bigint NOT NULL REFERENCES tel.subscriber, reply_to bigint REFERENCES msg.message ON DELETE SET NULL, body text, parts jsonb NOT NULL DEFAULT '[]',
    files msg.attachment[] NOT NULL DEFAULT '{}', reactions hstore NOT NULL DEFAULT '', at timestamptz NOT NULL DEFAULT '2026-04-01 00:00+00', edited boolean NOT NULL DEFAULT false, deleted timestamptz, "timestamp" bigint GENERATED ALWAYS AS (length(body)) STORED
);
CREATE INDEX ON msg.message (thread, at DESC);
CREATE INDEX ON msg.message USING gin (parts jsonb_path_ops);
CREATE TABLE msg.receipt (message bigint REFERENCES msg.message ON DELETE CASCADE, reader bigint REFERENCES tel.subscriber, at timestamptz NOT NULL DEFAULT '2026-04-02 00:00+00', PRIMARY KEY (message, reader));
CREATE TABLE msg.draft (owner bigint NOT NULL REFERENCES tel.subscriber, thread uuid REFERENCES msg.thread, body text NOT NULL, version integer NOT NULL DEFAULT 1, tags text[] NOT NULL DEFAULT '{}', changed timestamptz NOT NULL DEFAULT '2026-04-01 00:00+00', PRIMARY KEY (owner, thread));
CREATE TABLE msg.trail (id bigserial PRIMARY KEY, who text, what text, was jsonb, became jsonb);

CREATE TABLE "Care Desk"."Ticket" (
    "Id" integer GENERATED BY DEFAULT AS IDENTITY (START WITH 1000) PRIMARY KEY, "Subscriber" bigint NOT NULL REFERENCES tel.subscriber, "Opened At" timestamp NOT NULL, "Subject" text NOT NULL, "Body" text, "Priority" smallint NOT NULL CHECK ("Priority" BETWEEN 1 AND 5),
    "State" text NOT NULL DEFAULT 'new', "Assigned To" integer REFERENCES ops.employee, "SLA" interval, "Meta" json, "Straße" text, "select" money, "Closed At" timestamp, CHECK ("Closed At" > "Opened At")
);
CREATE TABLE "Care Desk"."Note" ("Ticket" integer REFERENCES "Care Desk"."Ticket" ON DELETE CASCADE, "No" integer, "By" integer REFERENCES ops.employee, "Text" text NOT NULL, "Internal" boolean NOT NULL DEFAULT false, PRIMARY KEY ("Ticket", "No"));
CREATE TABLE public."Order" (
    id serial PRIMARY KEY, subscriber bigint NOT NULL REFERENCES tel.subscriber, tariff varchar(12) REFERENCES public.tariff, placed date NOT NULL, lines jsonb NOT NULL, total tel.cents, state text NOT NULL DEFAULT 'open', ship tel.address, previous integer UNIQUE REFERENCES public."Order"
);
CREATE TABLE public.bill (
    subscriber bigint REFERENCES tel.subscriber, month date, amount numeric(10,2) NOT NULL, vat numeric GENERATED ALWAYS AS (round(amount * 0.19, 2)) STORED, paid date, lines tel.cents[] NOT NULL, PRIMARY KEY (subscriber, month)
);
CREATE TABLE public.reminder (id integer PRIMARY KEY, subscriber bigint, month date, level integer NOT NULL, sent timestamptz, FOREIGN KEY (subscriber, month) REFERENCES public.bill);

CREATE FUNCTION tel.country_of(number text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN number LIKE '+49%' THEN 'DE' WHEN number LIKE '+44%' THEN 'GB' ELSE '??' END $$;
CREATE FUNCTION tel.per_minute(c tel.call) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT round(c.cost / nullif(c.seconds, 0) * 60, 4) $$;
CREATE FUNCTION tel.initials(name text, dot boolean DEFAULT false) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN (SELECT string_agg(left(w, 1), CASE WHEN dot THEN '.' ELSE '' END ORDER BY n) FROM regexp_split_to_table(name, ' ') WITH ORDINALITY AS x (w, n)); END $$;
CREATE FUNCTION msg.search(q text, most integer DEFAULT 5) RETURNS TABLE (id bigint, snippet text, rank real) LANGUAGE sql STABLE AS $$
    SELECT m.id, left(m.body, 30), ts_rank(to_tsvector('english', m.body), websearch_to_tsquery('english', q)) FROM msg.message m WHERE to_tsvector('english', m.body) @@ websearch_to_tsquery('english', q) ORDER BY 3 DESC, 1 LIMIT most $$;
CREATE FUNCTION msg.unread(who bigint) RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT count(*) FROM msg.message m WHERE m.author <> who AND NOT EXISTS (SELECT FROM msg.receipt r WHERE r.message = m.id AND r.reader = who) $$;
CREATE FUNCTION tel.longer(state integer, next integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT greatest(state, next) $$;
CREATE AGGREGATE tel.longest(integer) (SFUNC = tel.longer, STYPE = integer);

CREATE FUNCTION msg.keep_trail() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$ BEGIN
    INSERT INTO msg.trail (who, what, was, became) VALUES (current_user, TG_OP || ' ' || TG_TABLE_NAME, CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END, CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END);
    RETURN NULL; END $$;
CREATE FUNCTION msg.bump() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.version := OLD.version + 1; NEW.body := btrim(NEW.body); RETURN NEW; END $$;
CREATE TRIGGER trail AFTER INSERT OR UPDATE OR DELETE ON msg.draft FOR EACH ROW EXECUTE FUNCTION msg.keep_trail();
CREATE TRIGGER trail AFTER INSERT OR UPDATE OR DELETE ON tel.contact FOR EACH ROW EXECUTE FUNCTION msg.keep_trail();
CREATE TRIGGER bump BEFORE UPDATE ON msg.draft FOR EACH ROW EXECUTE FUNCTION msg.bump();

CREATE VIEW tel.my_calls AS SELECT c.id, c.at, s.handle, s."Full Name" AS name, c.callee, c.kind, c.seconds, c.minutes, c.cost, tel.country_of(c.callee) AS country FROM tel.call c JOIN tel.subscriber s ON s.id = c.caller;
CREATE VIEW tel.call_day AS SELECT handle, date_trunc('day', at AT TIME ZONE 'UTC')::date AS day, kind, count(*) AS n, sum(seconds) AS seconds, sum(cost) AS cost, GROUPING(kind) AS g FROM tel.my_calls GROUP BY handle, 2, ROLLUP (kind);
CREATE VIEW tel.favourite AS SELECT owner, number, name AS "Display Name", card, fav FROM tel.contact WHERE fav WITH LOCAL CHECK OPTION;
CREATE VIEW tel.german_favourite AS SELECT owner, number, "Display Name", fav FROM tel.favourite WHERE number LIKE '+49%' WITH CASCADED CHECK OPTION;
CREATE VIEW msg.inbox AS SELECT t.id, t.title, l.body AS last, l.at, l.author, (SELECT count(*) FROM msg.message m WHERE m.thread = t.id) AS messages FROM msg.thread t LEFT JOIN LATERAL (SELECT * FROM msg.message m WHERE m.thread = t.id ORDER BY m.at DESC, m.id DESC LIMIT 1) l ON true;
CREATE RECURSIVE VIEW ops.chain (id, name, depth, path) AS SELECT id, name, 0, ARRAY[id] FROM ops.employee WHERE boss IS NULL UNION ALL SELECT e.id, e.name, c.depth + 1, c.path || e.id FROM ops.employee e JOIN chain c ON e.boss = c.id;
CREATE VIEW "Care Desk"."Open Tickets" AS SELECT t."Id", t."Subject", t."Priority", s.handle AS "Who", e.name AS "Agent", rank() OVER (PARTITION BY t."Assigned To" ORDER BY t."Priority", t."Id") AS "Place" FROM "Care Desk"."Ticket" t JOIN tel.subscriber s ON s.id = t."Subscriber" LEFT JOIN ops.employee e ON e.id = t."Assigned To" WHERE t."State" <> 'closed';
CREATE VIEW public.revenue AS WITH b AS (SELECT b.month, s.brand, b.amount FROM public.bill b JOIN tel.subscriber s ON s.id = b.subscriber) SELECT month, brand, sum(amount) AS amount, lag(sum(amount)) OVER (PARTITION BY brand ORDER BY month) AS before FROM b GROUP BY month, brand;
CREATE VIEW tel.reach AS SELECT id AS subscriber, 'number' AS kind, number::text AS value FROM tel.subscriber WHERE number IS NOT NULL UNION ALL SELECT owner, 'contact', number::text FROM tel.contact;

INSERT INTO public.tariff (code, family, name, monthly, valid, included, perks, spec) VALUES
    ('none', 'none', 'None', 0, '(,)', '{}', '{}', NULL),
    ('S25', 'small', 'Small 2025', 7.99, '[2025-01-01,2026-01-01)', '{"minutes": 100, "gb": 2}', '{}', 'net=>4g, hotspot=>no'),
    ('S26', 'small', 'Small 2026', 8.99, '[2026-01-01,)', '{"minutes": 200, "gb": 5, "zones": ["EU"]}', '{esim}', 'net=>5g, hotspot=>no'),
    ('M26', 'medium', 'Medium 2026', 14.99, '[2026-01-01,)', '{"minutes": null, "gb": 20, "zones": ["EU", "CH"]}', '{esim,music}', 'net=>5g, hotspot=>yes'),
    ('L26', 'large', 'LARGE 2026', 29.99, '[2026-01-01,2027-01-01)', '{"minutes": null, "gb": 100, "zones": ["EU", "CH", "US"]}', '{esim,music,tv}', 'net=>5g, hotspot=>yes, slice=>gold');
INSERT INTO public.zone VALUES ('+49', 'DE', 'Deutschland', '[0,0.1)', 0.09), ('+44', 'GB', 'United Kingdom', '[0.1,0.5)', 0.29), ('+1', 'US', 'United States', '[0.1,0.9)', 0.49), ('+41', 'CH', 'Schweiz', NULL, 0.35);
INSERT INTO public.calendar SELECT d::date, extract(isodow FROM d) > 5, CASE WHEN extract(day FROM d) = 1 THEN to_char(d, 'Mon') END FROM generate_series(date '2026-01-01', date '2026-03-31', interval '1 day') d;
INSERT INTO tel.brand VALUES ('blue', 'Blau Mobil', 'main=>#00f, dark=>#003', '1999-04-01'), ('red', 'Röd', 'main=>#f00', '2005-09-09'), ('grey', 'Grey Label', '', NULL);
INSERT INTO ops.unit VALUES (1, NULL, 'blue', 'Blau'), (2, 1, 'blue', 'Care'), (3, 1, 'blue', 'Network'), (4, 2, 'blue', 'Care Night'), (5, NULL, 'red', 'Röd'), (6, 5, 'red', 'Röd Care'), (7, NULL, 'grey', 'Grey');
INSERT INTO ops.employee SELECT i, (ARRAY[1,2,2,4,3,5,6,6,7,2,4,3])[i], (ARRAY[NULL,1,2,3,1,NULL,6,7,NULL,2,4,5])[i], (ARRAY['blue','blue','blue','blue','blue','red','red','red','grey','blue','blue','blue'])[i],
    (ARRAY['Ada','Bo','Cem','Dörte','Egon','Frida','Gus','Hal','Ivo','Jo','Kim','Lea'])[i] || ' ' || (ARRAY['Roth','Wu','Öz','Lang'])[1 + i % 4], 'e' || i || '@care.example', 3000 + i * 171, date '2015-01-01' + i * 200, (ARRAY['{billing,german}','{tech}','{}','{german,turkish,tech}'])[1 + i % 4]::text[] FROM generate_series(1, 12) i;
INSERT INTO ops.cell SELECT i, 'Cell ' || chr(64 + i), circle(point(i % 4, i / 4), 0.7), ARRAY['[700,800)', '[1800,2100)']::tel.band[], i <> 5 FROM generate_series(1, 9) i;
INSERT INTO ops.outage VALUES (1, '[2026-01-03 02:00+00,2026-01-03 05:30+00)', 'fibre'), (1, '[2026-02-11 10:00+00,2026-02-11 10:20+00)', 'power'), (5, '[2026-01-20 00:00+00,)', NULL);
INSERT INTO tel.subscriber (brand, handle, "Full Name", number, email, born, status, address, household, visible_to, prefs, "count", tariff, referrer, risk, joined, gone)
    SELECT CASE WHEN i % 5 < 3 THEN 'blue' WHEN i % 5 = 3 THEN 'red' ELSE 'grey' END, 'User' || i, (ARRAY['Mia','Noah','Émile','Zoë','Łukasz','Ines','Bob'])[1 + i % 7] || ' ' || (ARRAY['Berg','Sørensen','Stone','Ng','O''Hara'])[1 + i % 5], '+49170' || (100000 + i * 37),
        CASE WHEN i % 6 > 0 THEN 'user' || i || '@mail.example' END, date '1960-02-01' + i * 311, (ARRAY['trial','active','active','barred','closed','active'])[1 + i % 6]::tel.status,
        CASE WHEN i % 4 > 0 THEN ROW('Street ' || i % 9, i, lpad(i::text, 5, '1'), point(i, i * 0.5))::tel.address END, i / 4, CASE i % 3 WHEN 0 THEN '{care}' WHEN 1 THEN '{research,ads}' ELSE '{}' END::text[],
        jsonb_build_object('lang', (ARRAY['de','en','fr'])[1 + i % 3], 'push', i % 2 = 0, 'limit', i * 10, 'nested', jsonb_build_object('a', jsonb_build_array(i, i + 1))), i % 11, (ARRAY['S25','S26','M26','L26'])[1 + i % 4], CASE WHEN i > 3 THEN i / 3 END, i / 60.0,
        timestamptz '2024-01-01 12:00+00' + i * interval '9 days', CASE WHEN i % 13 = 0 THEN timestamptz '2026-01-15 00:00+00' END FROM generate_series(1, 60) i;
INSERT INTO tel.sim SELECT '8949' || lpad((i * 7 + k)::text, 8, '0'), i, '26201' || lpad((i * 2 + k)::text, 6, '0'), lpad((i * 991)::text, 8, '3'), CASE k WHEN 0 THEN tstzrange('2024-01-01 00:00+00', '2025-06-01 00:00+00') ELSE tstzrange('2025-06-01 00:00+00', NULL) END, (i + k) % 3 = 0, ('10.' || i || '.' || k || '.1/24')::inet,
    jsonb_build_object('slot', k, 'caps', jsonb_build_array('volte', CASE WHEN i % 2 = 0 THEN '5g' END)) FROM generate_series(1, 60) i, generate_series(0, 1) k WHERE k = 1 OR i % 2 = 0;
INSERT INTO tel.call (id, at, caller, callee, kind, seconds, bytes, cost, cell, route, note)
    SELECT i, timestamptz '2026-01-01 06:00+00' + i * interval '4 hours 13 minutes', 1 + i * 7 % 60, (ARRAY['+49170100259','+441234567','+12125550','+49301234'])[1 + i % 4], (ARRAY['voice','sms','data','voice','roaming'])[1 + i % 5]::tel.kind, CASE WHEN i % 5 IN (0, 3) THEN i * 17 % 900 WHEN i % 5 = 1 THEN 0 END, CASE WHEN i % 5 IN (2, 4) THEN i * 104729 END,
        round((i % 37) * 0.0731, 4), 1 + i % 9, ARRAY[i % 5, i % 7, 9], CASE i % 9 WHEN 0 THEN 'dropped' WHEN 4 THEN 'hd voice' END FROM generate_series(1, 480) i;
INSERT INTO tel.ping SELECT s, timestamptz '2026-02-01 00:00+00' + k * interval '6 hours', point(s % 4 + k * 0.1, s / 20.0), numrange(k, k + 5), ARRAY[1 + s % 9, 1 + (s + k) % 9], round((100 - k * 3) / 100.0, 2), jsonb_build_object('src', (ARRAY['gps','wifi','cell'])[1 + k % 3], 'speed', k * s % 50) FROM generate_series(1, 60) s, generate_series(1, 6) k;
INSERT INTO tel.agreement SELECT i, i, (ARRAY['care','*','ads'])[1 + i % 3], (ARRAY['location','location','*','chat'])[1 + i % 4], CASE WHEN i % 7 = 0 THEN timestamptz '2026-01-01 00:00+00' END, CASE WHEN i % 5 = 0 THEN timestamptz '2199-01-01 00:00+00' WHEN i % 11 = 1 THEN timestamptz '2025-01-01 00:00+00' END FROM generate_series(1, 60) i;
INSERT INTO tel.voicemail (id, box, caller, transcript, length, heard, at, labels, shared_with, mood)
    SELECT md5('vm' || i)::uuid, CASE WHEN i % 3 = 0 THEN 7 ELSE 1 + i % 60 END, CASE WHEN i % 4 > 0 THEN '+49170' || (100000 + i * 37) END,
        (ARRAY['Please call me back about the invoice','The engineer arrives on Monday morning','Happy birthday from all of us','Your package was not delivered','Call the hospital, it is urgent', NULL])[1 + i % 6] || ' no ' || i, i * interval '7 seconds', i % 2 = 0, timestamptz '2026-01-02 08:00+00' + i * interval '11 hours', (ARRAY['{Work}','{home,Urgent}','{}'])[1 + i % 3]::citext[],
        CASE WHEN i % 5 = 0 THEN '["7", "12"]' WHEN i % 5 = 1 THEN '["40"]' ELSE '[]' END::jsonb, ARRAY[i % 10 / 10.0, 0.5] FROM generate_series(1, 90) i;
INSERT INTO tel.contact (owner, number, name, person, card, fav, "Birthday", extra) SELECT o, '+49170' || (100000 + k * 37), 'Contact ' || k, CASE WHEN k % 3 > 0 THEN k END, jsonb_build_object('nick', 'n' || k, 'mails', jsonb_build_array('a' || k || '@x.example', 'b@x.example'), 'vip', k % 2 = 0), k % 4 = 0, date '1980-01-31' + k * 97, hstore('k', k::text) FROM (VALUES (7), (3), (20), (41)) o (o), generate_series(1, 40) k WHERE o = 7 OR k % 3 = 0;
INSERT INTO tel."group" SELECT o, g, n, NULL FROM (VALUES (7), (3), (20)) o (o), unnest(ARRAY['family','work','Sport & Spaß']) WITH ORDINALITY x (g, n);
INSERT INTO tel.contact_group SELECT c.owner, c.number, g."name" FROM tel.contact c JOIN tel."group" g ON g.owner = c.owner WHERE (hashtext(c.number || g."name") & 1) = 0;
INSERT INTO tel.pg_stat_activity SELECT i, 1 + i % 12, 'topup ' || i, CASE i % 3 WHEN 0 THEN 'idle' ELSE 'active' END, timestamptz '2026-01-01 00:00+00' + i * interval '1 hour' FROM generate_series(1, 48) i;
INSERT INTO tel.port SELECT md5('port' || i)::uuid, '+49170' || (100000 + i * 37), (ARRAY['blue','red','grey'])[1 + i % 3], (ARRAY['red','grey','blue','blue'])[1 + i % 4], (ARRAY['open','done','failed'])[1 + i % 3], date '2026-01-01' + i FROM generate_series(1, 30) i;
INSERT INTO msg.thread SELECT md5('t' || i)::uuid, CASE WHEN i > 10 THEN md5('t' || (i - 10))::uuid END, CASE WHEN i % 4 = 3 THEN 'red' ELSE 'blue' END, CASE WHEN i % 6 > 0 THEN 'Thread ' || i END, CASE WHEN i % 2 = 0 THEN ARRAY[7, 1 + i % 60, i] ELSE ARRAY[1 + i % 60, i] END, jsonb_build_object('mute', i % 3 = 0, 'theme', (ARRAY['dark','light'])[1 + i % 2]), timestamptz '2026-01-01 00:00+00' + i * interval '1 day', CASE WHEN i % 9 = 0 THEN timestamptz '2026-03-20 00:00+00' END, 'u' || i % 4 FROM generate_series(1, 40) i;
INSERT INTO msg.message (id, thread, author, reply_to, body, parts, files, reactions, at, edited, deleted)
    SELECT i, md5('t' || (1 + (i - 1) % 40))::uuid, CASE WHEN i % 5 = 0 THEN 7 ELSE 1 + i % 60 END, CASE WHEN i > 40 AND i % 3 > 0 THEN i - 40 END, (ARRAY['Did you see the match last night?','I will pay the rent tomorrow','meet at 8:30 near https://example.org/x?q=1','ok','The invoice 4711 is wrong, call 555-0199', 'Zürich ☕ später'])[1 + i % 6] || CASE WHEN i % 7 = 0 THEN ' #urgent @user7' ELSE '' END,
        CASE WHEN i % 4 = 0 THEN jsonb_build_array(jsonb_build_object('type', 'image', 'w', i * 3, 'tags', jsonb_build_array('cat', i % 3)), jsonb_build_object('type', 'text', 'text', 'part ' || i)) ELSE '[]' END, CASE WHEN i % 10 = 0 THEN ARRAY[ROW('file' || i || '.pdf', 'application/pdf', i * 1000, NULL)::msg.attachment, ROW('map.png', 'image/png', 77, ROW('Street', i, '10115', point(1, 2))::tel.address)::msg.attachment] ELSE '{}' END,
        CASE WHEN i % 6 = 0 THEN hstore(ARRAY['👍', 'heart'], ARRAY[(i % 4)::text, '1']) ELSE '' END, timestamptz '2026-02-01 00:00+00' + i * interval '97 minutes', i % 8 = 0, CASE WHEN i % 23 = 0 THEN timestamptz '2026-03-30 00:00+00' END FROM generate_series(1, 240) i;
SELECT setval(pg_get_serial_sequence('msg.message', 'id'), 1000);
INSERT INTO msg.receipt (message, reader) SELECT m.id, r FROM msg.message m, (VALUES (7), (12), (30)) r (r) WHERE m.id % 2 = 0 OR (m.id + r) % 5 = 0;
INSERT INTO msg.draft (owner, thread, body, tags) SELECT o, md5('t' || t)::uuid, 'draft ' || o || ' ' || t, ARRAY['x', 't' || t] FROM (VALUES (7), (8), (20)) o (o), generate_series(2, 12, 2) t;
INSERT INTO "Care Desk"."Ticket" SELECT i, 1 + i * 3 % 60, timestamp '2026-01-05 09:00' + i * interval '13 hours', (ARRAY['No signal','Wrong bill','Lost SIM','Slow data'])[1 + i % 4] || ' ' || i, 'Body of ' || i || E'\nsecond line', 1 + i % 5, (ARRAY['new','waiting','closed'])[1 + i % 3], CASE WHEN i % 7 > 0 THEN 1 + i % 12 END, make_interval(hours => 4 * (1 + i % 6)), json_build_object('channel', (ARRAY['web','phone','chat'])[1 + i % 3], 'score', i % 11), 'Straße ' || i % 5, (i * 1.5)::numeric::money, CASE WHEN i % 3 = 2 THEN timestamp '2026-03-15 09:00' + i * interval '1 hour' END FROM generate_series(1, 80) i;
INSERT INTO "Care Desk"."Note" SELECT t, n, 1 + (t + n) % 12, 'note ' || n || ' on ' || t, n = 2 FROM generate_series(1, 80) t, generate_series(1, 3) n WHERE (t + n) % 3 > 0;
INSERT INTO public."Order" (subscriber, tariff, placed, lines, total, state, ship) SELECT 1 + i * 11 % 60, (ARRAY['S26','M26','L26'])[1 + i % 3], date '2026-01-01' + i, jsonb_build_array(jsonb_build_object('sku', 'SIM', 'qty', 1 + i % 3, 'price', 9.99), jsonb_build_object('sku', 'PH' || i % 4, 'qty', 1, 'price', 100 + i)), i * 1250, (ARRAY['open','shipped','returned'])[1 + i % 3], ROW('Ship ' || i, i, '20' || i, NULL)::tel.address FROM generate_series(1, 80) i;
UPDATE public."Order" SET previous = id - 60 WHERE id > 60;
INSERT INTO public.bill (subscriber, month, amount, paid, lines) SELECT s, m::date, round((s * 13 % 47) + extract(month FROM m) * 1.11, 2), CASE WHEN (s + extract(month FROM m)::int) % 4 > 0 THEN m::date + 20 END, ARRAY[s * 100, 250] FROM generate_series(1, 60) s, generate_series(timestamp '2026-01-01', timestamp '2026-03-01', interval '1 month') m;
INSERT INTO public.reminder SELECT row_number() OVER (ORDER BY subscriber, month), subscriber, month, 1 + subscriber % 3, month + interval '40 days' FROM public.bill WHERE paid IS NULL;
CREATE MATERIALIZED VIEW ops.usage_month AS SELECT c.caller AS subscriber, date_trunc('month', c.at AT TIME ZONE 'UTC')::date AS month, c.kind, count(*) AS n, sum(c.seconds) AS seconds, sum(c.cost) AS cost FROM tel.call c GROUP BY 1, 2, 3;
CREATE UNIQUE INDEX ON ops.usage_month (subscriber, month, kind);
ANALYZE;
