-- A multi-tenant SaaS: organisations, users that belong to them, and no rule but the application's.
CREATE TYPE task_state AS ENUM ('todo', 'doing', 'done');
CREATE TABLE organizations (id uuid PRIMARY KEY, name text NOT NULL, parent uuid REFERENCES organizations, stripe_customer_token text);
CREATE TABLE users (id uuid PRIMARY KEY, organization_id uuid NOT NULL REFERENCES organizations, email text NOT NULL, password_hash text NOT NULL, api_token text);
CREATE TABLE projects (id uuid PRIMARY KEY, organization_id uuid NOT NULL REFERENCES organizations, created_by uuid REFERENCES users, name text, deleted_at timestamptz);
CREATE TABLE tasks (id uuid PRIMARY KEY, project_id uuid NOT NULL REFERENCES projects, assignee_id uuid REFERENCES users, state task_state NOT NULL, title text, visibility text CHECK (visibility IN ('team', 'private')));
CREATE TABLE comments (id bigserial PRIMARY KEY, task_id uuid NOT NULL REFERENCES tasks, author_id uuid REFERENCES users, parent_id bigint REFERENCES comments, body text);
CREATE TABLE notes (id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES users, body text, is_deleted boolean NOT NULL DEFAULT false, shared_with uuid[]);
CREATE TABLE countries (code text PRIMARY KEY, name text NOT NULL);
CREATE TABLE task_types (id int PRIMARY KEY, name text NOT NULL, sort_order int);
CREATE TABLE audit_log (id bigserial PRIMARY KEY, what text, at timestamptz DEFAULT now());
CREATE TABLE user_sessions (id uuid PRIMARY KEY, user_id uuid REFERENCES users, token text NOT NULL);
CREATE TABLE schema_migrations (version text PRIMARY KEY);
CREATE TABLE events (id bigint, organization_id uuid NOT NULL, at timestamptz NOT NULL, payload jsonb, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE events_2026 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE VIEW open_tasks AS SELECT t.id, t.title FROM tasks AS t WHERE t.state <> 'done';
CREATE FUNCTION organization_of(u uuid) RETURNS uuid LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT organization_id FROM users WHERE id = u';
