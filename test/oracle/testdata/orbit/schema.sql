-- Planning software as Prisma and a data team make it: quoted names with case, uuids of version 7, enums, domains with checks, documents with GIN indexes, generated
-- tsvectors, implicit join tables "A" and "B", soft deletion, owners by a type and an id, trees, an exclusion constraint over ranges, events in partitions with a default,
-- a star schema with slowly changing dimensions, views over views, a materialised view, SQL-standard function bodies, an aggregate and an operator of its own, comments.
CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE SCHEMA analytics;
CREATE SCHEMA reporting;
CREATE TYPE "MemberRole" AS ENUM ('OWNER', 'ADMIN', 'MEMBER', 'GUEST');
CREATE TYPE "TaskStatus" AS ENUM ('BACKLOG', 'TODO', 'IN_PROGRESS', 'DONE', 'CANCELED');
CREATE TYPE analytics.money_range AS RANGE (subtype = numeric);
CREATE TYPE analytics.utm AS (source text, medium text, campaign text);
CREATE DOMAIN slug AS text CHECK (VALUE ~ '^[a-z0-9]+(-[a-z0-9]+)*$');
CREATE DOMAIN amount AS numeric(14,2) CHECK (VALUE >= 0);
CREATE DOMAIN hex_color AS varchar(7) CHECK (VALUE ~ '^#[0-9a-f]{6}$') DEFAULT '#999999';
CREATE TABLE _prisma_migrations (id varchar(36) PRIMARY KEY, checksum varchar(64) NOT NULL, finished_at timestamptz, migration_name varchar(255) NOT NULL, logs text, rolled_back_at timestamptz, started_at timestamptz NOT NULL DEFAULT now(), applied_steps_count integer NOT NULL DEFAULT 0);
CREATE TABLE "SequelizeMeta" (name varchar(255) PRIMARY KEY);
CREATE TABLE "Organization" (id uuid PRIMARY KEY, name text NOT NULL, plan text NOT NULL DEFAULT 'free' CHECK (plan IN ('free', 'team', 'business')), settings jsonb NOT NULL DEFAULT '{}', "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "deletedAt" timestamp(3));
CREATE TABLE "User" (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), email citext NOT NULL, "displayName" text, "passwordHash" text NOT NULL DEFAULT '', "managerId" uuid REFERENCES "User" ON DELETE SET NULL, "timeZone" text NOT NULL DEFAULT 'UTC',
  settings jsonb NOT NULL DEFAULT '{}', skills text[] NOT NULL DEFAULT ARRAY[]::text[], "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "updatedAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "deletedAt" timestamp(3)
);
CREATE UNIQUE INDEX "User_email_key" ON "User" (email);
CREATE TABLE user_purpose_consent (user_id uuid NOT NULL REFERENCES "User" ON DELETE CASCADE, purpose text NOT NULL, decision text NOT NULL CHECK (decision IN ('granted', 'refused', 'withdrawn')), decided_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (user_id, purpose));
CREATE TABLE "Workspace" (id uuid PRIMARY KEY, "organizationId" uuid NOT NULL REFERENCES "Organization", slug slug NOT NULL UNIQUE, name text NOT NULL, settings jsonb NOT NULL DEFAULT '{}', "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "deletedAt" timestamp(3));
CREATE TABLE "WorkspaceMember" ("workspaceId" uuid NOT NULL REFERENCES "Workspace" ON DELETE CASCADE, "userId" uuid NOT NULL REFERENCES "User" ON DELETE CASCADE, role "MemberRole" NOT NULL DEFAULT 'MEMBER', "joinedAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY ("workspaceId", "userId"));
CREATE TABLE "Project" (
  id uuid PRIMARY KEY, "workspaceId" uuid NOT NULL REFERENCES "Workspace" ON DELETE CASCADE, key varchar(8) NOT NULL, name text NOT NULL, budget amount, "leadId" uuid REFERENCES "User", active daterange NOT NULL DEFAULT 'empty', tags text[] NOT NULL DEFAULT '{}',
  "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "deletedAt" timestamp(3), UNIQUE ("workspaceId", key), CONSTRAINT one_lead_at_a_time EXCLUDE USING gist ("workspaceId" WITH =, "leadId" WITH =, active WITH &&)
);
CREATE TABLE "Task" (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), "projectId" uuid NOT NULL REFERENCES "Project" ON DELETE CASCADE, number integer NOT NULL, title text NOT NULL, body text NOT NULL DEFAULT '', status "TaskStatus" NOT NULL DEFAULT 'TODO', priority smallint NOT NULL DEFAULT 0 CHECK (priority BETWEEN 0 AND 4),
  "assigneeId" uuid REFERENCES "User" ON DELETE SET NULL, "parentId" uuid REFERENCES "Task" ON DELETE CASCADE, labels text[] NOT NULL DEFAULT '{}', "customFields" jsonb NOT NULL DEFAULT '{}', estimate interval, "dueOn" date,
  search tsvector GENERATED ALWAYS AS (setweight(to_tsvector('english', title), 'A') || setweight(to_tsvector('english', body), 'B')) STORED,
  "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "updatedAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "completedAt" timestamp(3), "deletedAt" timestamp(3), UNIQUE ("projectId", number)
);
CREATE INDEX "Task_customFields_idx" ON "Task" USING gin ("customFields" jsonb_path_ops);
CREATE INDEX "Task_search_idx" ON "Task" USING gin (search);
CREATE INDEX "Task_title_trgm" ON "Task" USING gin (title gin_trgm_ops);
CREATE INDEX "Task_assigneeId_idx" ON "Task" ("assigneeId") WHERE "deletedAt" IS NULL;
CREATE TABLE "Label" (id serial PRIMARY KEY, "workspaceId" uuid NOT NULL REFERENCES "Workspace" ON DELETE CASCADE, name citext NOT NULL, color hex_color NOT NULL, UNIQUE ("workspaceId", name));
CREATE TABLE "_LabelToTask" ("A" integer NOT NULL REFERENCES "Label" ON DELETE CASCADE ON UPDATE CASCADE, "B" uuid NOT NULL REFERENCES "Task" ON DELETE CASCADE ON UPDATE CASCADE);
CREATE UNIQUE INDEX "_LabelToTask_AB_unique" ON "_LabelToTask" ("A", "B");
CREATE INDEX "_LabelToTask_B_index" ON "_LabelToTask" ("B");
CREATE TABLE "Comment" (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), "subjectType" text NOT NULL, "subjectId" uuid NOT NULL, "authorId" uuid REFERENCES "User" ON DELETE SET NULL, body text NOT NULL, mentions uuid[] NOT NULL DEFAULT '{}', reactions hstore NOT NULL DEFAULT '', "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "deletedAt" timestamp(3));
CREATE INDEX "Comment_subject" ON "Comment" ("subjectId", "subjectType");
CREATE TABLE time_entry (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, task_id uuid NOT NULL REFERENCES "Task" ON DELETE CASCADE, user_id uuid NOT NULL REFERENCES "User", during tstzrange NOT NULL CHECK (NOT isempty(during)), billable boolean NOT NULL DEFAULT true, rate amount, note text,
  minutes integer GENERATED ALWAYS AS ((EXTRACT(epoch FROM upper(during) - lower(during)) / 60)::integer) STORED, CONSTRAINT time_entry_no_overlap EXCLUDE USING gist (user_id WITH =, during WITH &&)
);
CREATE TABLE "ApiKey" (id uuid PRIMARY KEY, "workspaceId" uuid NOT NULL REFERENCES "Workspace", "hashedKey" text NOT NULL UNIQUE, scopes text[] NOT NULL, "lastUsedAt" timestamp(3));
CREATE TABLE activity_log (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, "taskId" uuid NOT NULL, "actorId" uuid, action text NOT NULL, diff jsonb, at timestamptz NOT NULL DEFAULT now());
CREATE TABLE analytics.event (
  id uuid NOT NULL DEFAULT gen_random_uuid(), occurred_at timestamptz NOT NULL, workspace_id uuid NOT NULL, user_id uuid, session_id text, name text NOT NULL, properties jsonb NOT NULL DEFAULT '{}', utm analytics.utm, revenue numeric(12,4), PRIMARY KEY (id, occurred_at)
) PARTITION BY RANGE (occurred_at);
CREATE TABLE analytics.event_2024q1 PARTITION OF analytics.event FOR VALUES FROM ('2024-01-01 00:00+00') TO ('2024-04-01 00:00+00');
CREATE TABLE analytics.event_2024q2 PARTITION OF analytics.event FOR VALUES FROM ('2024-04-01 00:00+00') TO ('2024-07-01 00:00+00');
CREATE TABLE analytics.event_default PARTITION OF analytics.event DEFAULT;
CREATE INDEX ON analytics.event (workspace_id, occurred_at);
CREATE INDEX ON analytics.event USING gin (properties);
CREATE TABLE analytics.dim_date (date_key integer PRIMARY KEY, day date NOT NULL UNIQUE, iso_week smallint NOT NULL, month_name text NOT NULL, quarter smallint NOT NULL, is_weekend boolean NOT NULL);
CREATE TABLE analytics.dim_plan (plan_key smallint PRIMARY KEY, plan text NOT NULL, price_band analytics.money_range);
CREATE TABLE analytics.dim_workspace (workspace_key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, workspace_id uuid NOT NULL, name text NOT NULL, valid daterange NOT NULL, is_current boolean NOT NULL);
CREATE TABLE analytics.fact_usage (date_key integer NOT NULL REFERENCES analytics.dim_date, workspace_key bigint NOT NULL REFERENCES analytics.dim_workspace, plan_key smallint NOT NULL REFERENCES analytics.dim_plan, seats integer NOT NULL, events bigint NOT NULL, mrr numeric(12,2), PRIMARY KEY (workspace_key, date_key));
CREATE TABLE analytics.experiment_assignment (experiment text NOT NULL, user_id uuid NOT NULL, variant text NOT NULL, assigned_at timestamptz NOT NULL, converted boolean, PRIMARY KEY (experiment, user_id));
CREATE VIEW reporting.usage AS SELECT d.day, d.month_name, d.quarter, w.workspace_id, w.name AS workspace, p.plan, f.seats, f.events, f.mrr FROM analytics.fact_usage f JOIN analytics.dim_date d USING (date_key) JOIN analytics.dim_workspace w USING (workspace_key) JOIN analytics.dim_plan p USING (plan_key);
CREATE VIEW reporting.usage_monthly AS SELECT date_trunc('month', day)::date AS month, workspace_id, max(seats) AS seats, sum(events) AS events, max(mrr) AS mrr, max(mrr) - lag(max(mrr)) OVER (PARTITION BY workspace_id ORDER BY date_trunc('month', day)::date) AS mrr_change FROM reporting.usage GROUP BY 1, 2;
CREATE VIEW reporting."TaskFlow" AS SELECT t."projectId", p.key || '-' || t.number AS ref, t.title, t.status, t."completedAt" - t."createdAt" AS "leadTime", row_number() OVER (PARTITION BY t."projectId" ORDER BY t."createdAt", t.id) AS "nth" FROM "Task" t JOIN "Project" p ON p.id = t."projectId" WHERE t."deletedAt" IS NULL;
CREATE VIEW reporting.open_tasks WITH (security_invoker = true) AS SELECT id, "projectId", number, title, status, priority, "dueOn" FROM "Task" WHERE status IN ('BACKLOG', 'TODO', 'IN_PROGRESS') AND "deletedAt" IS NULL WITH LOCAL CHECK OPTION;
CREATE MATERIALIZED VIEW analytics.workspace_daily AS SELECT workspace_id, (occurred_at AT TIME ZONE 'UTC')::date AS day, count(*) AS events, sum(revenue) AS revenue FROM analytics.event GROUP BY 1, 2 WITH NO DATA;
CREATE FUNCTION task_progress(project uuid) RETURNS numeric LANGUAGE sql STABLE BEGIN ATOMIC SELECT round(100.0 * count(*) FILTER (WHERE status = 'DONE') / nullif(count(*), 0), 1) FROM "Task" WHERE "projectId" = project AND "deletedAt" IS NULL; END;
CREATE FUNCTION short_id(id uuid) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN upper(right(id::text, 4));
CREATE FUNCTION search_tasks(q text, max_rows integer DEFAULT 10) RETURNS TABLE (id uuid, title text, rank real, snippet text) LANGUAGE sql STABLE AS $$ SELECT t.id, t.title, ts_rank(t.search, websearch_to_tsquery('english', q)), ts_headline('english', t.body, websearch_to_tsquery('english', q)) FROM "Task" t WHERE t.search @@ websearch_to_tsquery('english', q) ORDER BY 3 DESC, 1 LIMIT max_rows $$;
CREATE FUNCTION overdue(t "Task") RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT t."dueOn" < date '2024-06-01' AND t.status NOT IN ('DONE', 'CANCELED') $$;
CREATE FUNCTION analytics.final_median(numeric[]) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x)::numeric FROM unnest($1) x $$;
CREATE AGGREGATE analytics.median(numeric) (sfunc = array_append, stype = numeric[], initcond = '{}', finalfunc = analytics.final_median);
CREATE FUNCTION set_updated_at() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW."updatedAt" := timestamp '2024-06-30 12:00'; RETURN NEW; END $$;
CREATE TRIGGER set_updated_at BEFORE UPDATE ON "Task" FOR EACH ROW EXECUTE FUNCTION set_updated_at();
CREATE FUNCTION log_task() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$ BEGIN INSERT INTO activity_log ("taskId", action, diff) VALUES (NEW.id, TG_OP, jsonb_build_object('status', NEW.status)); RAISE NOTICE 'logged %', NEW.id; RETURN NULL; END $$;
CREATE TRIGGER log_task AFTER INSERT OR UPDATE ON "Task" FOR EACH ROW EXECUTE FUNCTION log_task();
COMMENT ON TABLE "Task" IS 'A unit of work. Numbers count per project.';
COMMENT ON COLUMN "Task"."customFields" IS 'Document by workspace: points, sprint, links[]';
COMMENT ON TABLE analytics.event IS 'Product events, one partition a quarter';
CREATE INDEX ON "WorkspaceMember" ("userId");
CREATE INDEX ON "Project" ("workspaceId");
CREATE INDEX ON time_entry (task_id);
CREATE INDEX ON activity_log ("taskId");

SET session_replication_role = replica;
CREATE FUNCTION pg_temp.u(kind integer, i bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$ SELECT ('018f' || lpad(to_hex(kind), 4, '0') || '-' || lpad(to_hex(i * 37 % 65536), 4, '0') || '-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid $$;
INSERT INTO _prisma_migrations (id, checksum, migration_name, started_at) SELECT md5('m' || i), md5('c' || i), '2024010' || i || '_init', '2024-01-01' FROM generate_series(1, 5) i;
INSERT INTO "SequelizeMeta" SELECT i || '-init.js' FROM generate_series(1, 4) i;
INSERT INTO "Organization" SELECT pg_temp.u(9, i), 'Org ' || i, (ARRAY['free','team','business'])[1 + i % 3], jsonb_build_object('region', (ARRAY['eu','us'])[1 + i % 2], 'sso', i % 2 = 0), timestamp '2023-01-01' + i * interval '3 days', CASE i WHEN 4 THEN timestamp '2024-02-02' END FROM generate_series(1, 5) i;
INSERT INTO "User" SELECT pg_temp.u(1, i), 'Person' || i || '@Example.com', CASE WHEN i % 9 > 0 THEN (ARRAY['Ada','Bo','Cam','Dee','Eli'])[1 + i % 5] || ' ' || (ARRAY['North','South','West'])[1 + i % 3] END, md5('p' || i), CASE WHEN i > 4 THEN pg_temp.u(1, i / 4) END, (ARRAY['UTC','Europe/Berlin','America/New_York'])[1 + i % 3],
  CASE i % 7 WHEN 0 THEN '{}'::jsonb WHEN 1 THEN '{"privacy": null}' WHEN 6 THEN '{"privacy": {"assistant": "refused"}, "theme": "dark"}' ELSE jsonb_build_object('privacy', jsonb_build_object('assistant', 'granted', 'since', '2024-01-0' || i % 9), 'theme', (ARRAY['dark','light'])[1 + i % 2], 'digest', i % 3) END,
  CASE i % 4 WHEN 0 THEN '{}' ELSE ARRAY['skill' || i % 3, 'skill' || i % 5] END, timestamp '2023-02-01 08:00' + i * interval '2 days 5 hours', timestamp '2024-01-01' + i * interval '1 hour', CASE WHEN i % 17 = 0 THEN timestamp '2024-03-01' END FROM generate_series(1, 70) i;
INSERT INTO user_purpose_consent SELECT pg_temp.u(1, i), p, (ARRAY['granted','granted','refused','granted','withdrawn'])[1 + (i + length(p)) % 5], timestamptz '2024-01-01 00:00+00' + i * interval '1 hour' FROM generate_series(1, 70) i, unnest(ARRAY['product_analytics','experiments','marketing']) p WHERE (i + length(p)) % 11 > 0;
INSERT INTO "Workspace" SELECT pg_temp.u(2, i), pg_temp.u(9, 1 + i % 5), 'space-' || i, 'Space ' || i, jsonb_build_object('sprints', i % 2 = 0, 'week', jsonb_build_array(1, i)), timestamp '2023-03-01' + i * interval '9 days', CASE i WHEN 7 THEN timestamp '2024-04-04' END FROM generate_series(1, 9) i;
INSERT INTO "WorkspaceMember" SELECT pg_temp.u(2, 1 + i % 9), pg_temp.u(1, 1 + i * 5 % 70), ('{OWNER,ADMIN,MEMBER,GUEST}'::"MemberRole"[])[1 + i % 4], timestamp '2023-04-01' + i * interval '1 day' FROM generate_series(1, 110) i ON CONFLICT DO NOTHING;
INSERT INTO "WorkspaceMember" SELECT pg_temp.u(2, i), pg_temp.u(1, 5), 'MEMBER', '2023-04-01' FROM unnest(ARRAY[2, 4, 7]) i ON CONFLICT DO NOTHING;
DELETE FROM "WorkspaceMember" WHERE "userId" = pg_temp.u(1, 5) AND "workspaceId" NOT IN (pg_temp.u(2, 2), pg_temp.u(2, 4), pg_temp.u(2, 7));
INSERT INTO "Project" SELECT pg_temp.u(3, i), pg_temp.u(2, 1 + i % 9), 'P' || i, (ARRAY['Launch','Mobile','Billing','Search'])[1 + i % 4] || ' ' || i, CASE WHEN i % 5 > 0 THEN i * 1234.5 END, CASE WHEN i % 6 > 0 THEN pg_temp.u(1, 1 + i % 70) END, CASE i % 4 WHEN 0 THEN 'empty'::daterange ELSE daterange(date '2024-01-01' + i * 3, CASE WHEN i % 3 > 0 THEN date '2024-02-01' + i * 4 END) END,
  CASE i % 3 WHEN 0 THEN '{}' ELSE ARRAY['q' || i % 4, 'infra'] END, timestamp '2023-11-01' + i * interval '1 day', CASE WHEN i % 13 = 0 THEN timestamp '2024-05-05' END FROM generate_series(1, 45) i;
INSERT INTO "Task" (id, "projectId", number, title, body, status, priority, "assigneeId", "parentId", labels, "customFields", estimate, "dueOn", "createdAt", "updatedAt", "completedAt", "deletedAt")
SELECT pg_temp.u(4, i), pg_temp.u(3, 1 + i % 45), 1 + i / 45, (ARRAY['Fix login timeout','Write onboarding email','Design billing page','Upgrade search index','Investigate slow query','Plan quarterly roadmap'])[1 + i % 6] || CASE WHEN i % 5 = 0 THEN ' again' ELSE '' END,
  CASE WHEN i % 8 > 0 THEN 'Customers report that the ' || (ARRAY['login','email','billing','search','database','roadmap'])[1 + i % 6] || ' is ' || (ARRAY['slow','broken','confusing'])[1 + i % 3] || ' since week ' || i % 52 || '.' ELSE '' END,
  ('{BACKLOG,TODO,IN_PROGRESS,DONE,CANCELED,DONE}'::"TaskStatus"[])[1 + i % 6], i % 5, CASE WHEN i % 7 > 0 THEN pg_temp.u(1, 1 + i * 3 % 70) END, CASE WHEN i > 90 AND i % 3 = 0 THEN pg_temp.u(4, i - 45) END, CASE i % 4 WHEN 0 THEN '{}' ELSE ARRAY['bug', 'team:' || i % 5] END,
  CASE i % 5 WHEN 0 THEN '{}'::jsonb ELSE jsonb_build_object('points', i % 13, 'sprint', 'S' || i % 8, 'links', jsonb_build_array(jsonb_build_object('url', 'https://example.com/' || i, 'kind', (ARRAY['doc','pr'])[1 + i % 2])), 'flags', jsonb_build_object('blocked', i % 6 = 0)) END,
  CASE WHEN i % 3 > 0 THEN (i % 40) * interval '30 minutes' END, CASE WHEN i % 4 > 0 THEN date '2024-04-15' + i % 90 END, timestamp '2024-01-02 09:00' + i * interval '5 hours', timestamp '2024-02-01' + i * interval '3 hours', CASE WHEN i % 6 IN (3, 5) THEN timestamp '2024-01-02 09:00' + i * interval '9 hours' END, CASE WHEN i % 19 = 0 THEN timestamp '2024-05-01' END FROM generate_series(1, 540) i;
INSERT INTO "Label" SELECT i, pg_temp.u(2, 1 + i % 9), (ARRAY['Bug','Feature','Chore','UX'])[1 + i / 9], ('#' || lpad(to_hex(i * 4000), 6, '0')) FROM generate_series(1, 34) i;
INSERT INTO "_LabelToTask" SELECT DISTINCT 1 + i * 7 % 34, pg_temp.u(4, 1 + i * 11 % 540) FROM generate_series(1, 500) i;
INSERT INTO "Comment" SELECT pg_temp.u(5, i), (ARRAY['Task','Task','Project','Page'])[1 + i % 4], CASE i % 4 WHEN 2 THEN pg_temp.u(3, 1 + i % 45) WHEN 3 THEN pg_temp.u(12, i) ELSE pg_temp.u(4, 1 + i % 540) END, CASE WHEN i % 10 > 0 THEN pg_temp.u(1, 1 + i * 7 % 70) END, 'Comment ' || i || (ARRAY[' looks good',' needs work: see page ' || i % 30,' shipped!'])[1 + i % 3],
  CASE i % 5 WHEN 0 THEN ARRAY[pg_temp.u(1, 1 + i % 70), pg_temp.u(1, 5)] ELSE '{}' END, CASE i % 3 WHEN 0 THEN '' ELSE hstore('thumbs', (i % 6)::text) || hstore('eyes', NULL) END, timestamp '2024-03-01' + i * interval '2 hours', CASE WHEN i % 15 = 0 THEN timestamp '2024-06-01' END FROM generate_series(1, 420) i;
INSERT INTO time_entry (task_id, user_id, during, billable, rate, note) SELECT pg_temp.u(4, 1 + i * 5 % 540), pg_temp.u(1, 1 + i % 70), tstzrange(timestamptz '2024-02-01 08:00+00' + i * interval '2 hours', timestamptz '2024-02-01 08:00+00' + i * interval '2 hours' + (10 + i % 100) * interval '1 minute'), i % 3 > 0, CASE WHEN i % 4 > 0 THEN 40 + i % 60 END, CASE WHEN i % 2 = 0 THEN 'worked on ' || i END FROM generate_series(1, 480) i;
INSERT INTO "ApiKey" SELECT pg_temp.u(6, i), pg_temp.u(2, 1 + i % 9), md5('k' || i), ARRAY['read'], NULL FROM generate_series(1, 12) i;
INSERT INTO activity_log ("taskId", "actorId", action, diff, at) SELECT pg_temp.u(4, 1 + i * 13 % 540), pg_temp.u(1, 1 + i % 70), (ARRAY['created','moved','closed'])[1 + i % 3], CASE i % 4 WHEN 0 THEN NULL ELSE jsonb_build_object('from', i % 5, 'to', i % 3) END, timestamptz '2024-03-01 00:00+00' + i * interval '1 hour' FROM generate_series(1, 300) i;
INSERT INTO analytics.event SELECT pg_temp.u(7, i), timestamptz '2023-12-20 00:00+00' + i * interval '3 hours 7 minutes', pg_temp.u(2, 1 + i % 9), CASE WHEN i % 8 > 0 THEN pg_temp.u(1, 1 + i * 3 % 70) END, 's' || i / 6, (ARRAY['page_view','task_created','invite_sent','upgrade','page_view'])[1 + i % 5],
  CASE i % 6 WHEN 0 THEN '{}'::jsonb ELSE jsonb_build_object('path', '/p/' || i % 20, 'ms', i % 900, 'ab', jsonb_build_array('x', i % 2), 'plan', (ARRAY['free','team'])[1 + i % 2]) END, CASE i % 5 WHEN 0 THEN NULL ELSE ROW((ARRAY['google','mail'])[1 + i % 2], 'cpc', 'c' || i % 4)::analytics.utm END, CASE i % 5 WHEN 3 THEN (i % 90) * 1.25 END FROM generate_series(1, 1600) i;
INSERT INTO analytics.dim_date SELECT to_char(d, 'YYYYMMDD')::integer, d, EXTRACT(week FROM d), to_char(d, 'FMMonth'), EXTRACT(quarter FROM d), EXTRACT(isodow FROM d) > 5 FROM generate_series(date '2024-01-01', date '2024-06-30', '1 day') d;
INSERT INTO analytics.dim_plan VALUES (1, 'free', '[0,0]'), (2, 'team', '[1,500)'), (3, 'business', '[500,)');
INSERT INTO analytics.dim_workspace (workspace_id, name, valid, is_current) SELECT pg_temp.u(2, i), 'Old space ' || i, daterange('2023-01-01', '2024-03-01'), false FROM generate_series(1, 9) i UNION ALL SELECT pg_temp.u(2, i), 'Space ' || i, daterange('2024-03-01', NULL), true FROM generate_series(1, 9) i;
INSERT INTO analytics.fact_usage SELECT d.date_key, w.workspace_key, 1 + w.workspace_key % 3, (w.workspace_key + d.iso_week) % 20, d.date_key % 97 * w.workspace_key, CASE WHEN w.workspace_key % 4 > 0 THEN (w.workspace_key * 10 + d.iso_week) * 1.5 END FROM analytics.dim_date d JOIN analytics.dim_workspace w ON d.day <@ w.valid WHERE d.date_key % 5 < 2;
INSERT INTO analytics.experiment_assignment SELECT (ARRAY['onboarding','pricing'])[e], pg_temp.u(1, i), (ARRAY['control','treatment'])[1 + (i + e) % 2], timestamptz '2024-02-01 00:00+00' + i * interval '1 hour', CASE WHEN i % 5 > 0 THEN i % 3 = 0 END FROM generate_series(1, 70) i, generate_series(1, 2) e;
SELECT setval('"Label_id_seq"', 40);
SET session_replication_role = origin;
REFRESH MATERIALIZED VIEW analytics.workspace_daily;
