SELECT 'Organization', count(*), sum(hashtextextended(x::text, 0)) FROM "Organization" x
UNION ALL SELECT 'User', count(*), sum(hashtextextended(x::text, 0)) FROM "User" x
UNION ALL SELECT 'consent', count(*), sum(hashtextextended(x::text, 0)) FROM user_purpose_consent x
UNION ALL SELECT 'member', count(*), sum(hashtextextended(x::text, 0)) FROM "WorkspaceMember" x
UNION ALL SELECT 'Workspace', count(*), sum(hashtextextended(x::text, 0)) FROM "Workspace" x WHERE id NOT IN (SELECT id FROM kept_space)
UNION ALL SELECT 'Project', count(*), sum(hashtextextended(x::text, 0)) FROM "Project" x WHERE id NOT IN (SELECT id FROM kept_project)
UNION ALL SELECT 'Task', count(*), sum(hashtextextended(x::text, 0)) FROM "Task" x WHERE id NOT IN (SELECT id FROM kept_task) AND number < 700
UNION ALL SELECT 'Label', count(*), sum(hashtextextended(x::text, 0)) FROM "Label" x
UNION ALL SELECT 'LabelToTask', count(*), sum(hashtextextended(x::text, 0)) FROM "_LabelToTask" x WHERE "A" NOT IN (SELECT id FROM kept_label) OR "B" NOT IN (SELECT id FROM kept_task) AND "B" IN (SELECT id FROM "Task" WHERE "deletedAt" IS NOT NULL)
UNION ALL SELECT 'Comment', count(*), sum(hashtextextended(x::text, 0)) FROM "Comment" x WHERE id NOT IN (SELECT id FROM kept_comment) AND "createdAt" < '2024-12-01'
UNION ALL SELECT 'time_entry', count(*), sum(hashtextextended(concat(x.id, x.task_id, x.user_id, x.during, x.rate, x.minutes, CASE WHEN id NOT IN (SELECT id FROM kept_entry) THEN x.note END), 0)) FROM time_entry x WHERE id NOT IN (SELECT id FROM kept_entry)
UNION ALL SELECT 'event', count(*), sum(hashtextextended(x::text, 0)) FROM analytics.event x
UNION ALL SELECT 'fact', count(*), sum(hashtextextended(x::text, 0)) FROM analytics.fact_usage x
UNION ALL SELECT 'dim', count(*), sum(hashtextextended(x::text, 0)) FROM analytics.dim_workspace x
UNION ALL SELECT 'assignment', count(*), sum(hashtextextended(x::text, 0)) FROM analytics.experiment_assignment x
UNION ALL SELECT 'ApiKey', count(*), sum(hashtextextended(x::text, 0)) FROM "ApiKey" x
