-- What member 5 may see, written without a look at the policy's SQL.
CREATE TEMP TABLE kept_space AS SELECT w.id, w."organizationId" AS org FROM "Workspace" w JOIN "WorkspaceMember" m ON m."workspaceId" = w.id WHERE m."userId" = '018f0001-00b9-7000-8000-000000000005' AND m.role <> 'GUEST' AND w."deletedAt" IS NULL;
CREATE TEMP TABLE kept_member AS SELECT "workspaceId" AS space, "userId" AS who FROM "WorkspaceMember" WHERE "workspaceId" IN (SELECT "workspaceId" FROM "WorkspaceMember" WHERE "userId" = '018f0001-00b9-7000-8000-000000000005');
CREATE TEMP TABLE kept_project AS SELECT id FROM "Project" WHERE "deletedAt" IS NULL AND "workspaceId" IN (SELECT id FROM kept_space);
CREATE TEMP TABLE kept_task AS SELECT id, "assigneeId" AS who FROM "Task" WHERE "deletedAt" IS NULL AND "projectId" IN (SELECT id FROM kept_project);
CREATE TEMP TABLE kept_user AS SELECT id FROM "User" WHERE "deletedAt" IS NULL AND settings #>> '{privacy,assistant}' = 'granted' AND (id = '018f0001-00b9-7000-8000-000000000005' OR id IN (SELECT who FROM kept_member) OR id IN (SELECT who FROM kept_task));
CREATE TEMP TABLE kept_comment AS SELECT id FROM "Comment" WHERE "deletedAt" IS NULL AND ("subjectType" = 'Task' AND "subjectId" IN (SELECT id FROM kept_task) OR "subjectType" = 'Project' AND "subjectId" IN (SELECT id FROM kept_project));
CREATE TEMP TABLE kept_label AS SELECT id FROM "Label" WHERE "workspaceId" IN (SELECT id FROM kept_space);
CREATE TEMP TABLE kept_entry AS SELECT id FROM time_entry WHERE task_id IN (SELECT id FROM kept_task) AND user_id IN (SELECT id FROM kept_user);
CREATE TEMP TABLE kept_event AS SELECT id FROM analytics.event e WHERE workspace_id IN (SELECT id FROM kept_space) AND (user_id IS NULL OR EXISTS (SELECT FROM user_purpose_consent c WHERE c.user_id = e.user_id AND c.purpose = 'product_analytics' AND c.decision = 'granted'));
CREATE TEMP TABLE kept_dim AS SELECT workspace_key AS id FROM analytics.dim_workspace WHERE workspace_id IN (SELECT id FROM kept_space);
CREATE TEMP TABLE kept_assignment AS SELECT experiment, user_id FROM analytics.experiment_assignment a WHERE user_id IN (SELECT id FROM kept_user) AND EXISTS (SELECT FROM user_purpose_consent c WHERE c.user_id = a.user_id AND c.purpose = 'experiments' AND c.decision = 'granted');
