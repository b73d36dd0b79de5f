-- People and pay of several companies on one platform: employees in nested sets and lines of report, shifts, clocks, absences, reviews, payslips in partitions by key, candidates and interviews,
-- channels, tickets, expenses, benefits. Columns of the rarer types (polygon, line, lseg, macaddr8, timetz, bit varying, jsonpath, aclitem, tid, refcursor, pg_snapshot, int2vector, ranges of money and
-- timetz), arrays of composites, domains and enums, SP-GiST, BRIN, GIN and partial indexes, includes, exclusions with a condition, keys with NULLS NOT DISTINCT, MATCH FULL, a foreign table, XML, CUBE,
-- windows in groups, searches in breadth, functions that return rows, tables and composites, casts of its own.
CREATE EXTENSION IF NOT EXISTS cube;
CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE EXTENSION IF NOT EXISTS btree_gin;
CREATE EXTENSION IF NOT EXISTS dict_int;
CREATE EXTENSION IF NOT EXISTS intagg;
CREATE EXTENSION IF NOT EXISTS refint;
CREATE EXTENSION IF NOT EXISTS xml2;
CREATE EXTENSION IF NOT EXISTS pgrowlocks;
CREATE EXTENSION IF NOT EXISTS file_fdw;
CREATE SCHEMA hr;
CREATE SCHEMA pay;
CREATE SCHEMA vault;
CREATE TYPE hr.lang AS ENUM ('de', 'en', 'fr', 'uk');
CREATE TYPE hr.off AS ENUM ('holiday', 'sick', 'parental', 'unpaid');
CREATE TYPE hr.stage AS ENUM ('applied', 'screen', 'onsite', 'offer', 'rejected');
CREATE TYPE hr.skill AS (name text, level smallint, since date);
CREATE TYPE hr.attachment AS (name text, mime text, size integer, sha bytea);
CREATE TYPE pay.line AS (code text, amount numeric(12,2), note text);
CREATE TYPE pay.span AS RANGE (SUBTYPE = money);
CREATE TYPE hr.hours AS RANGE (SUBTYPE = timetz);
CREATE DOMAIN hr.skills AS hr.skill[] CHECK (cardinality(VALUE) <= 6);
CREATE DOMAIN hr.mail AS citext CHECK (VALUE ~ '@');
CREATE DOMAIN hr.pct AS numeric(5,2) CHECK (VALUE BETWEEN 0 AND 100);
CREATE DOMAIN hr.vec AS cube CHECK (cube_dim(VALUE) = 3);
CREATE DOMAIN pay.iban AS text CHECK (VALUE ~ '^[A-Z]{2}[0-9]{2}');
CREATE TEXT SEARCH DICTIONARY hr.numbers (TEMPLATE = intdict_template, MAXLEN = 4, REJECTLONG = false);
CREATE TEXT SEARCH CONFIGURATION hr.plain (COPY = pg_catalog.simple);
ALTER TEXT SEARCH CONFIGURATION hr.plain ALTER MAPPING FOR int, uint WITH hr.numbers;
CREATE FUNCTION hr.initials(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT string_agg(left(w, 1), '' ORDER BY n) FROM regexp_split_to_table($1, ' ') WITH ORDINALITY AS x (w, n) $$;
CREATE FUNCTION pay.total(pay.line[]) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT sum((l).amount) FROM unnest($1) l $$;
CREATE FUNCTION hr.level(hr.skill) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT ($1).level::integer $$;
CREATE CAST (hr.skill AS integer) WITH FUNCTION hr.level(hr.skill);
CREATE TABLE hr.company (id char(3) PRIMARY KEY, name text NOT NULL, settings jsonb NOT NULL DEFAULT '{}', flags bit(8) NOT NULL DEFAULT B'0', holidays datemultirange, payday interval DAY TO HOUR, seats integer, axis line, walk lseg, country "char", budget money, contact hr.mail DEFAULT 'hr@example.com');
CREATE TABLE hr.unit (
  id integer PRIMARY KEY, company char(3) NOT NULL REFERENCES hr.company, parent integer REFERENCES hr.unit DEFERRABLE INITIALLY DEFERRED, name text NOT NULL, code varchar(12), lft integer NOT NULL, rgt integer NOT NULL, span int4range GENERATED ALWAYS AS (int4range(lft, rgt)) STORED,
  area polygon, secret boolean NOT NULL DEFAULT false, head bigint, UNIQUE NULLS NOT DISTINCT (company, parent, name), UNIQUE (company, id)
);
CREATE INDEX ON hr.unit USING spgist (area);
CREATE INDEX ON hr.unit USING gist (span);
CREATE TABLE hr.employee (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, company char(3) NOT NULL REFERENCES hr.company, unit integer, manager bigint REFERENCES hr.employee ON DELETE SET NULL, badge uuid NOT NULL DEFAULT gen_random_uuid() UNIQUE, name text NOT NULL, initials text GENERATED ALWAYS AS (hr.initials(name)) STORED,
  email citext, phone varchar(20), hired date NOT NULL, left_on date, born date, salary money, iban pay.iban, grade smallint NOT NULL DEFAULT 1, flags bit varying(16), skills hr.skills, langs hr.lang[], prefs jsonb NOT NULL DEFAULT '{}', cv xml, desk point, search tsvector, shares text[], note text,
  FOREIGN KEY (company, unit) REFERENCES hr.unit (company, id) MATCH SIMPLE ON DELETE SET NULL (unit)
);
CREATE UNIQUE INDEX ON hr.employee (company, lower(email::text)) INCLUDE (name) WHERE left_on IS NULL;
CREATE INDEX ON hr.employee USING spgist (desk);
CREATE INDEX ON hr.employee USING gin (company, shares);
CREATE INDEX ON hr.employee USING gin (search);
CREATE INDEX ON hr.employee USING gist (name gist_trgm_ops);
CREATE INDEX ON hr.employee (manager);
CREATE TABLE hr.report_line (boss bigint NOT NULL REFERENCES hr.employee ON DELETE CASCADE, worker bigint NOT NULL REFERENCES hr.employee ON DELETE CASCADE, depth integer NOT NULL, PRIMARY KEY (boss, worker)) WITH (fillfactor = 80);
CREATE INDEX ON hr.report_line USING hash (worker);
CREATE TABLE hr.terms (employee bigint NOT NULL REFERENCES hr.employee, valid daterange NOT NULL, kind text NOT NULL DEFAULT 'full', hours interval HOUR TO MINUTE, rate pay.span, share hr.pct NOT NULL DEFAULT 100, body json, PRIMARY KEY (employee, valid), EXCLUDE USING gist (employee WITH =, valid WITH &&) WHERE (kind <> 'side'));
CREATE TABLE pay.slip (
  company text NOT NULL, employee bigint NOT NULL, month date NOT NULL, no integer NOT NULL, gross money, net money, lines pay.line[] NOT NULL DEFAULT '{}', total numeric GENERATED ALWAYS AS (pay.total(lines)) STORED, paid_from pay.iban, pdf bytea, digest bytea GENERATED ALWAYS AS (sha256(pdf)) STORED, PRIMARY KEY (company, month, no)
) PARTITION BY RANGE (month);
CREATE TABLE pay.slip_2023 PARTITION OF pay.slip FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
CREATE TABLE pay.slip_2024 PARTITION OF pay.slip FOR VALUES FROM ('2024-01-01') TO ('2025-01-01') PARTITION BY LIST (company);
CREATE TABLE pay.slip_2024_c PARTITION OF pay.slip_2024 FOR VALUES IN ('CYN', 'DRO');
CREATE TABLE pay.slip_2024_rest PARTITION OF pay.slip_2024 DEFAULT;
CREATE TABLE pay.slip_rest PARTITION OF pay.slip DEFAULT;
CREATE INDEX ON pay.slip USING brin (month, no int4_minmax_multi_ops);
CREATE TABLE pay.correction (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), company text, month date, no integer, why text, amount money NOT NULL, made timestamp NOT NULL DEFAULT '2025-01-01 00:00', FOREIGN KEY (company, month, no) REFERENCES pay.slip MATCH FULL ON DELETE CASCADE);
CREATE TABLE hr.absence (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), employee bigint NOT NULL REFERENCES hr.employee ON DELETE CASCADE, during daterange NOT NULL, kind hr.off NOT NULL DEFAULT 'holiday', days integer GENERATED ALWAYS AS (upper(during) - lower(during)) STORED, state text NOT NULL DEFAULT 'asked', note text, approver bigint REFERENCES hr.employee ON DELETE SET NULL, CHECK (NOT isempty(during)),
  EXCLUDE USING gist (employee WITH =, during WITH &&) WHERE (state <> 'refused')
);
CREATE TABLE hr.shift (id integer GENERATED BY DEFAULT AS IDENTITY (START 1000 INCREMENT 5) PRIMARY KEY, company char(3) NOT NULL, site text NOT NULL, starts timestamp NOT NULL, ends timestamp NOT NULL, tz text NOT NULL DEFAULT 'Europe/Berlin', during tsrange GENERATED ALWAYS AS (tsrange(starts, ends)) STORED, employee bigint REFERENCES hr.employee ON DELETE SET NULL, swap integer REFERENCES hr.shift ON DELETE SET NULL, need hr.skills, daily hr.hours, CHECK (starts < ends));
CREATE INDEX ON hr.shift USING brin (starts);
CREATE INDEX ON hr.shift (company, starts) WHERE employee IS NULL;
CREATE TABLE hr.punch (employee bigint NOT NULL, at timestamptz NOT NULL, clock timetz NOT NULL, kind "char" NOT NULL, device macaddr8, ip inet, place point, fence circle, day date GENERATED ALWAYS AS ((at AT TIME ZONE 'UTC')::date) STORED, PRIMARY KEY (employee, at)) PARTITION BY HASH (employee);
CREATE TABLE hr.punch_0 PARTITION OF hr.punch FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE hr.punch_1 PARTITION OF hr.punch FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE hr.punch_2 PARTITION OF hr.punch FOR VALUES WITH (MODULUS 3, REMAINDER 2);
CREATE INDEX ON hr.punch USING spgist (ip);
CREATE INDEX ON hr.punch USING gist (fence);
CREATE TABLE hr.review (id bigserial PRIMARY KEY, about bigint NOT NULL REFERENCES hr.employee, author bigint REFERENCES hr.employee ON DELETE SET NULL, round text NOT NULL, kind text NOT NULL DEFAULT 'peer', score numeric(3,1), body text, private boolean NOT NULL DEFAULT false, answers jsonb, marks hr.skill[], UNIQUE (about, author, round));
CREATE TABLE hr.goal (id integer PRIMARY KEY, owner bigint NOT NULL, parent integer REFERENCES hr.goal, title text NOT NULL, weight real, done double precision NOT NULL DEFAULT 0, due date, path integer[] NOT NULL DEFAULT '{}', shared boolean);
CREATE TABLE hr.answer (id integer PRIMARY KEY, employee bigint NOT NULL, unit integer, question text, on_day date, score integer, agree text, body text);
CREATE TABLE hr.candidate (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), company char(3) NOT NULL, name text NOT NULL, email citext, stage hr.stage NOT NULL DEFAULT 'applied', keep_until timestamptz, resume text, wish pay.span, tags text[] NOT NULL DEFAULT '{}', embedding hr.vec, facts jsonb NOT NULL DEFAULT '{}', seen timestamp, search tsvector GENERATED ALWAYS AS (to_tsvector('english'::regconfig, coalesce(resume, ''))) STORED);
CREATE INDEX ON hr.candidate USING gist (embedding);
CREATE INDEX ON hr.candidate USING gin (search, company);
CREATE INDEX ON hr.candidate USING gin (facts jsonb_path_ops);
CREATE UNIQUE INDEX ON hr.candidate (company, email) WHERE stage <> 'rejected';
CREATE TABLE hr.permission (candidate uuid NOT NULL, purpose text NOT NULL, grantee text NOT NULL, given timestamptz NOT NULL, revoked timestamptz, until timestamptz, id serial PRIMARY KEY);
CREATE INDEX ON hr.permission (candidate);
CREATE TABLE hr.interview (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), candidate uuid NOT NULL REFERENCES hr.candidate ON DELETE CASCADE, interviewer bigint NOT NULL REFERENCES hr.employee, slot tstzrange NOT NULL, room text, scores smallint[], card jsonb, notes text, EXCLUDE USING gist (interviewer WITH =, slot WITH &&) DEFERRABLE INITIALLY DEFERRED, EXCLUDE USING gist (room WITH =, slot WITH &&) WHERE (room IS NOT NULL));
CREATE TABLE hr.channel (id text PRIMARY KEY, company char(3) NOT NULL, kind char(1) NOT NULL DEFAULT 'o', topic text, members bigint[] NOT NULL DEFAULT '{}', posts integer NOT NULL DEFAULT 0, pinned bigint[]);
CREATE INDEX ON hr.channel USING gin (members);
CREATE TABLE hr.post (id bigint GENERATED BY DEFAULT AS IDENTITY (START 1000) PRIMARY KEY, channel text NOT NULL REFERENCES hr.channel ON UPDATE CASCADE ON DELETE CASCADE, thread bigint REFERENCES hr.post ON DELETE CASCADE, author bigint, body text, at timestamptz NOT NULL, gone timestamptz, reactions jsonb NOT NULL DEFAULT '{}', files hr.attachment[], mentions bigint[] NOT NULL DEFAULT '{}');
CREATE INDEX ON hr.post (channel, at DESC NULLS LAST);
CREATE INDEX ON hr.post USING gin (to_tsvector('english'::regconfig, body));
CREATE TABLE hr.digest (id integer PRIMARY KEY, owner bigint NOT NULL, body text, posts bigint[], made date NOT NULL DEFAULT '2025-03-01', score double precision);
CREATE TABLE hr.ticket (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), company char(3) NOT NULL, opener bigint NOT NULL, assignee bigint, watchers jsonb, subject text NOT NULL, body text, state text NOT NULL DEFAULT 'open', confidential boolean DEFAULT false, tags text[], log jsonb[], sla interval, opened timestamp NOT NULL DEFAULT '2025-02-01 08:00', due timestamp GENERATED ALWAYS AS (opened + sla) STORED, priority "char" NOT NULL DEFAULT 'm');
CREATE TABLE pay.benefit (code text PRIMARY KEY, name text NOT NULL, cost money, eligible jsonpath, grades int4range, docs xml);
CREATE TABLE pay.enrolment (employee bigint NOT NULL, benefit text NOT NULL REFERENCES pay.benefit ON UPDATE CASCADE, since date NOT NULL DEFAULT '2025-01-01', dependants text[] NOT NULL DEFAULT '{}', share hr.pct, PRIMARY KEY (employee, benefit));
CREATE TABLE pay.expense (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, employee bigint NOT NULL, ref text, amount numeric(10,2) NOT NULL, currency char(3) NOT NULL DEFAULT 'EUR', on_day date NOT NULL, receipt xml, place box, approved boolean, parts numeric[], UNIQUE NULLS NOT DISTINCT (employee, ref));
CREATE TABLE pay.rate (currency char(3), on_day date, rate numeric NOT NULL, PRIMARY KEY (currency, on_day));
CREATE TABLE hr.device (mac macaddr PRIMARY KEY, owner bigint, kind text NOT NULL, last_ip inet, net cidr, perms bit(12) NOT NULL DEFAULT B'0', token bytea, seen tstzmultirange, tries smallint NOT NULL DEFAULT 0);
CREATE INDEX ON hr.device USING gist (net inet_ops);
CREATE TABLE hr.saved (id integer PRIMARY KEY, owner bigint NOT NULL, name text, q tsquery, jp jsonpath, cfg regconfig, rel regclass, acl aclitem[], place tid, cur refcursor, snap pg_snapshot, vec int2vector, mr nummultirange, often interval[], kinds "char"[], names name[], lsn pg_lsn, re text);
CREATE TABLE hr.todo (owner bigint NOT NULL, list text NOT NULL DEFAULT 'inbox', pos integer NOT NULL, title text NOT NULL, due timestamp, done boolean NOT NULL DEFAULT false, tags text[], repeat interval, PRIMARY KEY (owner, list, pos) DEFERRABLE, UNIQUE (owner, title));
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE hr.feed (company text, item integer, headline text, price numeric) SERVER files OPTIONS (program $$printf 'CYN,1,Lunch,9.50\nCYN,2,Gym,20\nDRO,3,HIDDENMARK,0\nACM,4,HIDDENMARK,-1\nCYN,5,Bikes,35.25\n'$$, format 'csv');
CREATE TABLE vault.audit (at timestamptz DEFAULT now(), what text, old jsonb);
CREATE TABLE vault.tips (id serial PRIMARY KEY, company char(3), body text);
CREATE FUNCTION hr.keep_line() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = hr, pg_temp AS $$ BEGIN INSERT INTO report_line SELECT boss, NEW.id, depth + 1 FROM report_line WHERE worker = NEW.manager UNION ALL SELECT NEW.id, NEW.id, 0; RETURN NULL; END $$;
CREATE FUNCTION hr.count_posts() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = hr, pg_temp AS $$ BEGIN UPDATE channel SET posts = (SELECT count(*) FROM post WHERE channel = channel.id) WHERE id = coalesce(NEW.channel, OLD.channel); RAISE NOTICE '% posts', (SELECT count(*) FROM post); RETURN NULL; END $$;
CREATE FUNCTION hr.audited() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = vault, pg_temp AS $$ BEGIN INSERT INTO audit (what, old) VALUES (TG_TABLE_NAME, to_jsonb(OLD)); RETURN NULL; END $$;
CREATE FUNCTION hr.tidy_ticket() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.subject := btrim(NEW.subject); IF NEW.state = 'closed' AND OLD.state = 'closed' THEN RAISE EXCEPTION 'ticket % is closed: %', NEW.id, NEW.body USING ERRCODE = 'check_violation', DETAIL = OLD.body; END IF; RETURN NEW; END $$;
CREATE TRIGGER lines AFTER INSERT ON hr.employee FOR EACH ROW EXECUTE FUNCTION hr.keep_line();
CREATE TRIGGER search BEFORE INSERT OR UPDATE ON hr.employee FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger(search, 'pg_catalog.simple', name, note);
CREATE TRIGGER counted AFTER INSERT OR DELETE ON hr.post FOR EACH ROW EXECUTE FUNCTION hr.count_posts();
CREATE CONSTRAINT TRIGGER audited AFTER UPDATE OR DELETE ON hr.ticket DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hr.audited();
CREATE TRIGGER tidy BEFORE UPDATE ON hr.ticket FOR EACH ROW EXECUTE FUNCTION hr.tidy_ticket();
CREATE VIEW hr.directory WITH (security_barrier) AS SELECT e.id, e.name, e.email, e.grade, u.name AS unit, m.name AS boss FROM hr.employee e LEFT JOIN hr.unit u ON u.id = e.unit LEFT JOIN hr.employee m ON m.id = e.manager;
CREATE VIEW hr.tree AS WITH RECURSIVE t (id, manager, name, level) AS (SELECT id, manager, name, 0 FROM hr.employee WHERE manager IS NULL UNION ALL SELECT e.id, e.manager, e.name, t.level + 1 FROM hr.employee e JOIN t ON e.manager = t.id) SEARCH BREADTH FIRST BY id SET ord CYCLE id SET loop USING path SELECT id, manager, name, level, loop FROM t;
CREATE VIEW hr.headcount AS SELECT company, unit, grade, count(*) AS people, avg(extract(year FROM age(timestamp '2025-01-01', hired)))::numeric(6,2) AS years, grouping(unit, grade) AS level FROM hr.employee GROUP BY company, CUBE (unit, grade);
CREATE VIEW hr.calendar AS SELECT 'absence' AS what, a.employee, lower(a.during)::timestamp AS starts, upper(a.during)::timestamp AS ends, a.kind::text AS title FROM hr.absence a UNION ALL SELECT 'shift', s.employee, s.starts, s.ends, s.site FROM hr.shift s WHERE s.employee IS NOT NULL UNION ALL SELECT 'interview', i.interviewer, lower(i.slot) AT TIME ZONE 'UTC', upper(i.slot) AT TIME ZONE 'UTC', c.name FROM hr.interview i JOIN hr.candidate c ON c.id = i.candidate;
CREATE VIEW pay.running AS SELECT employee, month, no, net, sum(total) OVER w AS so_far, sum(total) OVER (w RANGE BETWEEN interval '2 months' PRECEDING AND CURRENT ROW) AS three, count(*) OVER (PARTITION BY employee ORDER BY date_trunc('quarter', month) GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) AS near FROM pay.slip WINDOW w AS (PARTITION BY employee ORDER BY month);
CREATE VIEW hr.skill_map AS SELECT e.id AS employee, s.name AS skill, s.level, s.n FROM hr.employee e CROSS JOIN LATERAL unnest(e.skills) WITH ORDINALITY AS s (name, level, since, n);
CREATE VIEW hr.jobs AS SELECT e.id, x.place, x.years FROM hr.employee e, XMLTABLE('/cv/job' PASSING e.cv COLUMNS place text PATH '@at', years integer PATH 'years' DEFAULT 0) x;
CREATE VIEW hr.inbox AS SELECT c.id, c.topic, l.author, l.body, l.at, (SELECT count(*) FROM hr.post p WHERE p.channel = c.id AND p.gone IS NULL) AS n FROM hr.channel c LEFT JOIN LATERAL (SELECT * FROM hr.post p WHERE p.channel = c.id AND p.gone IS NULL ORDER BY p.at DESC, p.id DESC LIMIT 1) l ON true;
CREATE VIEW hr.open_todo AS SELECT owner, list, pos, title, due, done FROM hr.todo WHERE NOT done WITH CASCADED CHECK OPTION;
CREATE VIEW hr.late_todo AS SELECT owner, list, pos, title, due, done FROM hr.open_todo WHERE due < timestamp '2025-06-01 00:00' WITH LOCAL CHECK OPTION;
CREATE MATERIALIZED VIEW pay.month AS SELECT company, employee, date_trunc('quarter', month)::date AS quarter, sum(net) AS net, count(*) AS slips FROM pay.slip GROUP BY 1, 2, 3;
CREATE UNIQUE INDEX ON pay.month (company, employee, quarter);
CREATE MATERIALIZED VIEW vault.all_pay AS SELECT * FROM pay.slip;
CREATE FUNCTION hr.age_on(e hr.goal, day date) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT (e).due - day $$;
CREATE FUNCTION hr.busy(who bigint, span daterange DEFAULT NULL) RETURNS SETOF hr.absence LANGUAGE sql STABLE AS $$ SELECT * FROM hr.absence WHERE employee = who AND (span IS NULL OR during && span) $$;
CREATE FUNCTION hr.next_free(room text, OUT slot timestamptz, OUT taken bigint) LANGUAGE sql STABLE AS $$ SELECT max(upper(i.slot)), count(*) FROM hr.interview i WHERE i.room = next_free.room $$;
CREATE FUNCTION pay.split(amount numeric, VARIADIC parts numeric[]) RETURNS TABLE (n integer, part numeric) LANGUAGE sql IMMUTABLE AS $$ SELECT i::integer, round(amount * p / (SELECT sum(x) FROM unnest(parts) x), 2) FROM unnest(parts) WITH ORDINALITY AS u (p, i) $$;
CREATE FUNCTION hr.candidates(term text, include_all boolean DEFAULT true) RETURNS TABLE (id uuid, name text, rank real) LANGUAGE sql STABLE AS $$ SELECT c.id, c.name, ts_rank(c.search, websearch_to_tsquery('english', term)) FROM hr.candidate c WHERE c.search @@ websearch_to_tsquery('english', term) AND (include_all OR c.stage <> 'rejected') $$;
CREATE FUNCTION hr.top_skill(hr.skills) RETURNS hr.skill LANGUAGE sql IMMUTABLE AS $$ SELECT s FROM unnest($1::hr.skill[]) s ORDER BY (s).level DESC NULLS LAST, (s).name LIMIT 1 $$;
CREATE FUNCTION hr.workdays(daterange) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$ DECLARE n integer := 0; d date; BEGIN FOR d IN SELECT generate_series(lower($1), upper($1) - 1, '1 day')::date LOOP IF extract(isodow FROM d) < 6 THEN n := n + 1; END IF; END LOOP; RETURN n; END $$;
CREATE FUNCTION pay.net_of(anyelement, anyarray) RETURNS anyelement LANGUAGE sql IMMUTABLE AS $$ SELECT coalesce($2[1], $1) $$;
CREATE FUNCTION pay.everything() RETURNS SETOF pay.slip LANGUAGE sql STABLE SECURITY DEFINER AS $$ SELECT * FROM pay.slip $$;
CREATE PROCEDURE pay.close_month(m date) LANGUAGE sql AS $$ DELETE FROM pay.slip WHERE month = m $$;
CREATE AGGREGATE pay.span_of(money) (SFUNC = pg_catalog.cashlarger, STYPE = money);
COMMENT ON TABLE vault.tips IS 'HIDDENMARK';
COMMENT ON COLUMN hr.employee.iban IS 'HIDDENMARK';
CREATE STATISTICS hr.co (ndistinct, dependencies, mcv) ON company, unit, grade FROM hr.employee;
CREATE STATISTICS hr.ex ON (lower(name)), (grade * 2) FROM hr.employee;
SET session_replication_role = replica;
INSERT INTO hr.company SELECT (ARRAY['ACM','BOL','CYN','DRO'])[i], (ARRAY['Acme','Bolt','Cyan','Drone'])[i], jsonb_build_object('theme', (ARRAY['dark','light'])[1 + i % 2], 'seats', i * 10, 'sso', i > 2, 'secret', 's' || i), (i * 37)::bit(8), datemultirange(daterange('2025-01-01', '2025-01-02'), daterange('2025-12-24', '2025-12-27')), make_interval(days => i, hours => 6), i * 25, line(point(0, i), point(1, i + 1)), lseg(point(i, 0), point(i, 5)), (ARRAY['d','e','f','g'])[i]::"char", (i * 10000)::money, 'c' || i || '@example.com' FROM generate_series(1, 4) i;
INSERT INTO hr.unit (id, company, parent, name, code, lft, rgt, area, secret, head) SELECT i, (ARRAY['ACM','BOL','CYN','DRO'])[1 + i % 4], CASE WHEN i > 4 THEN i / 2 - (i / 2 - i) % 4 - CASE WHEN (i / 2 - (i / 2 - i) % 4) >= i THEN 4 ELSE 0 END END, 'Unit ' || i, CASE WHEN i % 3 > 0 THEN 'U-' || i END, i * 2, i * 2 + 1 + (24 - i) % 5, CASE WHEN i % 5 > 0 THEN polygon(box(point(i, i), point(i + 3, i + 2))) END, i % 7 = 0, 1 + (i * 5) % 90 FROM generate_series(1, 24) i;
UPDATE hr.unit SET parent = NULL WHERE parent NOT IN (SELECT id FROM hr.unit) OR parent >= id;
INSERT INTO hr.employee (id, company, unit, manager, badge, name, email, phone, hired, left_on, born, salary, iban, grade, flags, skills, langs, prefs, cv, desk, search, shares, note) OVERRIDING SYSTEM VALUE
SELECT i, (ARRAY['ACM','BOL','CYN','DRO'])[1 + i % 4], CASE WHEN i % 11 > 0 THEN 1 + (i - 1) % 24 END, CASE WHEN i > 4 THEN CASE WHEN i < 30 THEN (i - 1) % 4 + 1 ELSE i - 24 END END, md5('employee ' || i)::uuid, (ARRAY['Ana','Bo','Célia','Dov','Eren'])[1 + i % 5] || ' ' || (ARRAY['Kim','Ortiz','Ngo','Žák'])[1 + i / 5 % 4] || ' ' || i, 'Person' || i || '@example.com', CASE WHEN i % 3 > 0 THEN '+49 30 ' || 1000 + i END, date '2015-01-01' + i * 37, CASE WHEN i % 17 = 0 THEN date '2024-06-01' END, CASE WHEN i % 6 > 0 THEN date '1965-03-01' + i * 211 END,
  (30000 + i * 411)::money, 'DE' || 10 + i % 80 || lpad(i::text, 8, '4'), 1 + i % 6, (i % 200)::bit(8)::bit varying, CASE WHEN i % 4 <> 1 THEN ARRAY[ROW('sql', 1 + i % 5, date '2019-01-01' + i), ROW((ARRAY['go','rust','excel'])[1 + i % 3], i % 4, NULL)]::hr.skill[] END::hr.skills, CASE WHEN i % 3 = 0 THEN '{de,en}' WHEN i % 3 = 1 THEN '{en}' END::hr.lang[], jsonb_build_object('theme', (ARRAY['dark','light'])[1 + i % 2], 'n', i, 'days', jsonb_build_array(i % 5, i % 3), 'home', i % 2 = 0),
  CASE WHEN i % 4 > 0 THEN xmlelement(name cv, xmlelement(name job, xmlattributes('Firm ' || i % 9 AS at), xmlelement(name years, i % 12))) END, point(i % 10, i % 7), to_tsvector('simple', 'Person ' || i), CASE i % 5 WHEN 0 THEN '{calendar}' WHEN 1 THEN '{directory,calendar}' WHEN 2 THEN '{directory}' WHEN 3 THEN '{directory,health}' WHEN 4 THEN CASE WHEN i % 3 = 0 THEN NULL ELSE '{directory,calendar}'::text[] END END::text[], CASE WHEN i % 2 = 0 THEN 'likes tea ' || i END FROM generate_series(1, 90) i;
UPDATE hr.employee SET manager = CASE WHEN id > 12 THEN id / 3 - (id / 3 - id) % 4 WHEN id > 4 THEN (id - 1) % 4 + 1 END;
UPDATE hr.employee SET manager = manager - 4 WHERE manager >= id AND manager > 4;
INSERT INTO hr.report_line WITH RECURSIVE l AS (SELECT id AS boss, id AS worker, 0 AS depth FROM hr.employee UNION ALL SELECT e.manager, l.worker, l.depth + 1 FROM l JOIN hr.employee e ON e.id = l.boss WHERE e.manager IS NOT NULL AND l.depth < 6) SELECT boss, worker, min(depth) FROM l GROUP BY 1, 2;
INSERT INTO hr.terms SELECT e, daterange((date '2020-01-01' + n * interval '2 years')::date, CASE WHEN n < 2 THEN (date '2022-01-01' + n * interval '2 years')::date END), (ARRAY['full','part','side'])[1 + (e + n) % 3], make_interval(hours => 20 + (e + n)::int % 21), pay.span((e * 10)::int::money, CASE WHEN e % 5 > 0 THEN (e * 10 + 500)::int::money END), 50 + (e + n) % 50, CASE WHEN e % 2 = 0 THEN json_build_object('clause', e, 'tags', json_build_array('a', n)) END FROM generate_series(1::bigint, 90) e, generate_series(0, 2) n;
INSERT INTO pay.slip (company, employee, month, no, gross, net, lines, paid_from, pdf) SELECT (ARRAY['ACM','BOL','CYN','DRO'])[1 + e % 4], e, (date '2023-10-01' + n * interval '1 month')::date, e, (2500 + e * 34)::money, (1600 + e * 20 + n)::money, ARRAY[ROW('base', 1600 + e * 20, NULL)::pay.line, ROW('bonus', n * 1.5, 'b' || n)::pay.line], 'DE' || 10 + e % 80 || '99', convert_to('slip ' || e || ' ' || n, 'UTF8') FROM generate_series(1, 90) e, generate_series(0, 9) n;
INSERT INTO pay.correction SELECT md5('correction ' || i)::uuid, CASE WHEN i % 5 > 0 THEN s.company END, CASE WHEN i % 5 > 0 THEN s.month END, CASE WHEN i % 5 > 0 THEN s.no END, 'Correction ' || i, (i * 3)::money, timestamp '2025-01-01 00:00' + i * interval '3 hours' FROM (SELECT row_number() OVER (ORDER BY company, month, no) AS i, * FROM pay.slip) s WHERE i % 7 = 0;
INSERT INTO hr.absence (id, employee, during, kind, state, note, approver) SELECT md5('absence ' || e || ' ' || n)::uuid, e, daterange(date '2025-01-06' + n * 60 + e % 20, date '2025-01-06' + n * 60 + e % 20 + 1 + (e + n) % 9), (enum_range(NULL::hr.off))[1 + (e + n) % 4], (ARRAY['asked','approved','refused'])[1 + (e / 4 + n) % 3], CASE WHEN (e + n) % 3 = 0 THEN 'flu ' || e END, CASE WHEN e > 4 THEN (e - 1) % 4 + 1 END FROM generate_series(1, 90) e, generate_series(0, 3) n;
INSERT INTO hr.shift (id, company, site, starts, ends, tz, employee, swap, need, daily) SELECT i, (ARRAY['ACM','BOL','CYN','DRO'])[1 + i % 4], (ARRAY['north','south','pier'])[1 + i % 3], timestamp '2025-03-01 06:00' + i * interval '5 hours', timestamp '2025-03-01 06:00' + i * interval '5 hours' + (4 + i % 6) * interval '1 hour', (ARRAY['Europe/Berlin','UTC','America/New_York'])[1 + i % 3], CASE WHEN i % 6 > 0 THEN 1 + (i * 4 + i % 4 - 1) % 90 END, CASE WHEN i % 9 = 0 THEN i - 4 END, CASE WHEN i % 4 = 2 THEN ARRAY[ROW('sql', i % 5, NULL)]::hr.skill[] END::hr.skills, hr.hours(timetz '06:00+00' + (i % 8) * interval '1 hour', timetz '20:00+00') FROM generate_series(5, 200) i;
UPDATE hr.shift SET employee = id % 88 + 2 - (id % 88 + 2 - id) % 4 WHERE employee IS NOT NULL AND id % 5 > 0;
INSERT INTO hr.punch (employee, at, clock, kind, device, ip, place, fence) SELECT CASE WHEN i % 3 = 0 THEN 6 ELSE 1 + i % 90 END, timestamptz '2025-04-01 06:00+00' + i * interval '67 minutes', timetz '06:00+00' + (i % 600) * interval '1 minute', (ARRAY['i','o','b'])[1 + i % 3]::"char", macaddr8 '08:00:2b:01:02:03:04:00' , ('10.1.' || i % 4 || '.' || i % 250)::inet, point(i % 9, i % 11), circle(point(i % 5, 3), 1 + i % 4) FROM generate_series(1, 420) i;
INSERT INTO hr.review (id, about, author, round, kind, score, body, private, answers, marks) SELECT i, 1 + (i * 2) % 90, CASE WHEN i % 10 > 0 THEN CASE WHEN i % 4 = 0 THEN 6 ELSE 1 + (i * 2 + 4 * (i % 5)) % 90 END END, 'r' || i / 45, (ARRAY['peer','boss','self'])[1 + i % 3], CASE WHEN i % 8 > 0 THEN i % 50 / 10.0 END, 'Review ' || i || ' is kind', i % 3 = 0, CASE WHEN i % 2 = 0 THEN jsonb_build_object('q1', i % 5, 'q2', 'text ' || i, 'tags', jsonb_build_array('t' || i % 3)) END, CASE WHEN i % 3 = 0 THEN ARRAY[ROW('team', i % 6, NULL)]::hr.skill[] END FROM generate_series(1, 180) i;
INSERT INTO hr.goal SELECT i, CASE WHEN i % 3 = 0 THEN 6 ELSE 1 + i % 90 END, CASE WHEN i > 12 THEN i - 12 END, 'Goal ' || i, (i % 5) / 2.0, (i * 7 % 101) / 100.0, CASE WHEN i % 4 > 0 THEN date '2025-02-01' + i END, CASE WHEN i > 12 THEN ARRAY[i - 12, i] ELSE ARRAY[i] END, (ARRAY[true, false, NULL])[1 + i % 3] FROM generate_series(1, 96) i;
INSERT INTO hr.answer SELECT i, 1 + i % 90, 1 + i % 8, (ARRAY['pay','mood','boss'])[1 + i % 3], date '2025-01-01' + i % 60, i % 11, (ARRAY['public','counted','counted','no'])[1 + i % 4], 'Answer ' || i FROM generate_series(1, 400) i;
INSERT INTO hr.candidate (id, company, name, email, stage, keep_until, resume, wish, tags, embedding, facts, seen) SELECT md5('candidate ' || i)::uuid, (ARRAY['ACM','BOL','CYN','DRO'])[1 + (i + i / 3) % 4], 'Cand ' || i, CASE WHEN i % 7 > 0 THEN 'Cand' || i || '@mail.test' END, (enum_range(NULL::hr.stage))[1 + i % 5], CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN timestamptz '2099-01-01 00:00+00' WHEN 2 THEN timestamptz '2098-01-01 00:00+00' ELSE timestamptz '2020-01-01 00:00+00' END, 'Writes ' || (ARRAY['sql and go','python services','payroll reports'])[1 + i % 3] || ' since ' || 2000 + i % 20, pay.span((i * 500)::money, (i * 500 + 9000)::money), ARRAY['t' || i % 4, 'all'], cube(ARRAY[i % 5 / 5.0, i % 7 / 7.0, i % 3 / 3.0]::float8[])::hr.vec, jsonb_build_object('years', i % 15, 'remote', i % 2 = 0, 'refs', jsonb_build_array(jsonb_build_object('who', 'r' || i, 'ok', i % 3 > 0))), CASE WHEN i % 6 > 0 THEN timestamp '2025-02-02 10:00' + i * interval '1 day' END FROM generate_series(1, 120) i;
INSERT INTO hr.permission (candidate, purpose, grantee, given, revoked, until, id) SELECT md5('candidate ' || i)::uuid, (ARRAY['assistant','assistant','mail'])[1 + i % 3], (ARRAY['CYN','*','ACM'])[1 + i / 3 % 3], timestamptz '2024-01-01 00:00+00' + i * interval '1 day', CASE WHEN i % 8 = 0 THEN timestamptz '2024-12-01 00:00+00' END, CASE i % 5 WHEN 0 THEN timestamptz '2021-01-01 00:00+00' WHEN 1 THEN timestamptz '2097-01-01 00:00+00' END, i FROM generate_series(1, 120) i;
INSERT INTO hr.permission (candidate, purpose, grantee, given, id) SELECT md5('candidate ' || i)::uuid, 'assistant', 'CYN', timestamptz '2024-02-01 00:00+00', 200 + i FROM generate_series(1, 120, 2) i;
INSERT INTO hr.interview (id, candidate, interviewer, slot, room, scores, card, notes) SELECT md5('interview ' || i)::uuid, md5('candidate ' || 1 + i % 120)::uuid, CASE WHEN i % 3 = 0 THEN 6 ELSE 1 + i % 90 END, tstzrange(timestamptz '2025-05-01 08:00+00' + i * interval '7 hours', timestamptz '2025-05-01 09:00+00' + i * interval '7 hours'), CASE WHEN i % 4 > 0 THEN 'Room ' || i % 5 END, ARRAY[i % 5, i % 4, i % 3], jsonb_build_object('go', i % 2 = 0, 'n', i), 'Notes ' || i FROM generate_series(1, 150) i;
INSERT INTO hr.channel SELECT 'c' || i, (ARRAY['ACM','BOL','CYN','DRO'])[1 + i % 4], (ARRAY['o','p','d'])[1 + i % 3], 'Topic ' || i, CASE WHEN i % 2 = 0 THEN ARRAY[6, 1 + i, 10 + i] ELSE ARRAY[1 + i, 2 + i] END, 99, ARRAY[i * 10] FROM generate_series(1, 40) i;
INSERT INTO hr.post SELECT i, 'c' || 1 + i % 40, CASE WHEN i > 120 AND i % 3 = 0 THEN i - 120 END, CASE WHEN i % 12 > 0 THEN CASE WHEN i % 5 = 0 THEN 6 ELSE 1 + i % 90 END END, 'Post ' || i || ' about ' || (ARRAY['shifts','lunch','the payroll run'])[1 + i % 3], timestamptz '2025-01-10 08:00+00' + i * interval '37 minutes', CASE WHEN i % 11 = 0 THEN timestamptz '2025-02-01 00:00+00' END, CASE WHEN i % 4 = 0 THEN jsonb_build_object('👍', i % 5, 'heart', i % 2) ELSE '{}' END, CASE WHEN i % 6 = 0 THEN ARRAY[ROW('f' || i || '.pdf', 'application/pdf', i * 100, '\x00ff')]::hr.attachment[] END, CASE WHEN i % 7 = 0 THEN ARRAY[6, 2]::bigint[] ELSE '{}' END FROM generate_series(1, 480) i;
INSERT INTO hr.digest SELECT i, CASE WHEN i % 4 > 0 THEN 6 ELSE 7 END, 'Digest ' || i, CASE i % 6 WHEN 0 THEN '{}' WHEN 1 THEN NULL WHEN 2 THEN ARRAY[i * 40 + 2, i * 40 - 39 + 2 * (i % 2)] WHEN 3 THEN ARRAY[(i % 11) * 40 + 1, (i % 11) * 40 + 3] ELSE ARRAY[(i % 11) * 40 + 5, (i % 11) * 40 + 6] END, date '2025-03-01' + i, i / 7.0 FROM generate_series(1, 40) i;
INSERT INTO hr.ticket (id, company, opener, assignee, watchers, subject, body, state, confidential, tags, log, sla, opened, priority) SELECT md5('ticket ' || i)::uuid, (ARRAY['ACM','BOL','CYN','DRO'])[1 + i % 4], CASE WHEN i % 5 = 0 THEN 6 ELSE 1 + i % 90 END, CASE WHEN i % 3 = 0 THEN 6 WHEN i % 3 = 1 THEN 1 + i % 90 END, CASE i % 4 WHEN 0 THEN '["6","7"]' WHEN 1 THEN '[]' WHEN 2 THEN '["8", 6, "6"]' ELSE '{"6": true}' END::jsonb, 'Ticket ' || i, CASE WHEN i % 6 > 0 THEN 'body of ' || i END, (ARRAY['open','waiting','closed'])[1 + i % 3], (ARRAY[true, false, NULL, false])[1 + i % 4 - i % 2 * (i % 4 - i % 4 / 3)], ARRAY['hr', 'k' || i % 4], ARRAY[jsonb_build_object('by', i, 'at', 'x')], CASE WHEN i % 4 > 0 THEN make_interval(hours => i % 72) END, timestamp '2025-02-01 08:00' + i * interval '5 hours', (ARRAY['l','m','h'])[1 + i % 3]::"char" FROM generate_series(1, 160) i;
INSERT INTO pay.benefit VALUES ('gym', 'Gym', 20::money, '$.home == true', '[1,7)', '<doc><p>Gym pays</p></doc>'), ('car', 'Car', 400::money, '$.n > 40', '[4,7)', '<doc><p>Car</p><p>Lease</p></doc>'), ('meal', 'Meals', 90::money, '$.days[*] > 2', NULL, NULL), ('bike', 'Bike', NULL, NULL, '[1,4)', '<doc/>');
INSERT INTO pay.enrolment SELECT e, b, date '2024-01-01' + e, CASE WHEN e % 3 = 0 THEN ARRAY['kid ' || e] ELSE '{}' END, (e * 3) % 100 FROM generate_series(1, 90) e, unnest(ARRAY['gym','car','meal']) b WHERE (e + length(b)) % 2 = 0;
INSERT INTO pay.expense SELECT i, CASE WHEN i % 3 = 0 THEN 6 ELSE 1 + i % 90 END, CASE WHEN i > 4 THEN 'R' || i END, i * 3.75, (ARRAY['EUR','USD','CHF'])[1 + i % 3], date '2025-01-01' + i % 90, xmlelement(name receipt, xmlattributes(i AS no), xmlelement(name total, i * 3.75)), box(point(i % 5, 0), point(i % 5 + 2, 2)), (ARRAY[true, false, NULL])[1 + i % 3], ARRAY[i, i * 2.5, NULL] FROM generate_series(1, 180) i;
INSERT INTO pay.rate SELECT c, date '2025-01-01' + d, 1 + (d % 10) / 100.0 + length(c) / 10.0 + ascii(c) / 1000.0 FROM unnest(ARRAY['EUR','USD','CHF']) c, generate_series(0, 60) d;
INSERT INTO hr.device SELECT ('02:00:00:00:00:' || lpad(to_hex(i), 2, '0'))::macaddr, CASE WHEN i % 3 = 0 THEN 6 WHEN i % 3 = 1 THEN 1 + i % 90 END, (ARRAY['laptop','phone','door'])[1 + i % 3], ('192.168.' || i % 4 || '.' || i)::inet, ('192.168.' || i % 4 || '.0/24')::cidr, (i * 29 % 4096)::bit(12), convert_to('token ' || i, 'UTF8'), tstzmultirange(tstzrange('2025-01-01 00:00+00', timestamptz '2025-01-01 00:00+00' + i * interval '1 hour')), i % 4 FROM generate_series(1, 60) i;
INSERT INTO hr.saved SELECT i, CASE WHEN i % 2 = 0 THEN 6 ELSE 1 + i END, 'Saved ' || i, ('post & ' || (ARRAY['lunch','shift','pay:*'])[1 + i % 3])::tsquery, ('$.n ? (@ > ' || i || ')')::jsonpath, (ARRAY['english','simple','hr.plain'])[1 + i % 3]::regconfig, (ARRAY['hr.post','hr.goal'])[1 + i % 2]::regclass, ARRAY['=r/postgres'::aclitem], ('(' || i || ',1)')::tid, ('cursor' || i)::refcursor, '10:20:10,14'::pg_snapshot, ('1 ' || i % 9)::int2vector, nummultirange(numrange(i, i + 2), numrange(i + 5, i + 6)), ARRAY[make_interval(days => i)], ARRAY['a','b']::"char"[], ARRAY['n' || i]::name[], ('0/' || to_hex(i * 16))::pg_lsn, CASE WHEN i % 4 > 0 THEN 'P.*' || i ELSE 'Post' END FROM generate_series(1, 30) i;
INSERT INTO hr.todo SELECT o, (ARRAY['inbox','later'])[1 + i % 2], i, 'Todo ' || i, timestamp '2025-05-20 09:00' + i * interval '1 day', i % 4 = 0, CASE WHEN i % 3 = 0 THEN ARRAY['home'] END, CASE WHEN i % 5 = 0 THEN interval '1 week' END FROM generate_series(1, 24) i, unnest(ARRAY[6, 7, 8]) o;
INSERT INTO vault.audit (what, old) SELECT 'HIDDENMARK', '{}' FROM generate_series(1, 4);
INSERT INTO vault.tips (company, body) SELECT 'CYN', 'HIDDENMARK' FROM generate_series(1, 5);
SELECT setval('hr.review_id_seq', 200), setval(pg_get_serial_sequence('hr.employee', 'id'), 100), setval(pg_get_serial_sequence('pay.expense', 'id'), 300);
SET session_replication_role = origin;
REFRESH MATERIALIZED VIEW pay.month;
REFRESH MATERIALIZED VIEW vault.all_pay;
ANALYZE;
