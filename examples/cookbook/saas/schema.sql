CREATE TABLE tenants (id text PRIMARY KEY, name text NOT NULL);
CREATE TABLE projects (tenant_id text NOT NULL REFERENCES tenants, id bigint NOT NULL, name text NOT NULL, archived boolean NOT NULL DEFAULT false, PRIMARY KEY (tenant_id, id));
CREATE TABLE members (tenant_id text NOT NULL REFERENCES tenants, id bigint NOT NULL, email text NOT NULL, PRIMARY KEY (tenant_id, id));
CREATE TABLE project_members (tenant_id text, project_id bigint, member_id bigint, PRIMARY KEY (tenant_id, project_id, member_id),
  FOREIGN KEY (tenant_id, project_id) REFERENCES projects, FOREIGN KEY (tenant_id, member_id) REFERENCES members);
CREATE TABLE tasks (
  tenant_id text NOT NULL, id bigint NOT NULL, project_id bigint NOT NULL, title text NOT NULL, state text NOT NULL DEFAULT 'todo', due date,
  PRIMARY KEY (tenant_id, id), FOREIGN KEY (tenant_id, project_id) REFERENCES projects
);
CREATE INDEX ON tasks (tenant_id, project_id);
CREATE TABLE templates (id bigint PRIMARY KEY, tenant_id text, title text NOT NULL);
CREATE TABLE events (tenant_id text NOT NULL, at timestamptz NOT NULL, kind text NOT NULL, payload jsonb NOT NULL) PARTITION BY RANGE (at);
CREATE TABLE events_2026_01 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE events_2026_02 PARTITION OF events FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
CREATE INDEX ON events (tenant_id, at);
