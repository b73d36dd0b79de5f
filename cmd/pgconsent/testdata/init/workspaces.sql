-- A workspace application: members, documents of a workspace and of a user, tokens of a tenant above, consent of users.
CREATE TABLE companies (id uuid PRIMARY KEY, name text);
CREATE TABLE users (id uuid PRIMARY KEY, company_id uuid NOT NULL REFERENCES companies, name text, allow_ai boolean NOT NULL DEFAULT false);
CREATE TABLE workspaces (id uuid PRIMARY KEY, company_id uuid NOT NULL REFERENCES companies, owner_id uuid NOT NULL REFERENCES users, name text);
CREATE TABLE memberships (workspace_id uuid NOT NULL REFERENCES workspaces, user_id uuid NOT NULL REFERENCES users, role text, PRIMARY KEY (workspace_id, user_id));
CREATE TABLE documents (id uuid PRIMARY KEY, workspace_id uuid NOT NULL REFERENCES workspaces, user_id uuid NOT NULL REFERENCES users, body text);
CREATE TABLE pages (id uuid PRIMARY KEY, workspace_id uuid REFERENCES workspaces, created_by uuid REFERENCES users, body text);
CREATE TABLE page_versions (id uuid PRIMARY KEY, page_id uuid NOT NULL REFERENCES pages, body text);
CREATE TABLE region_settings (user_id uuid NOT NULL REFERENCES users, agency_id integer NOT NULL, region text, PRIMARY KEY (user_id, agency_id));
