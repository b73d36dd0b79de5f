-- What the agent of person 7 of acme may see.
CREATE TEMP TABLE kept_org AS SELECT code FROM org WHERE code = 'acme';
CREATE TEMP TABLE kept_person AS SELECT p.id FROM person p WHERE p.id = 7 OR p.status = 'active' AND p.org IN (SELECT code FROM kept_org);
CREATE TEMP TABLE kept_project AS SELECT p.id FROM project p JOIN kept_org o ON o.code = p.org;
CREATE TEMP TABLE kept_task AS SELECT t.id FROM task t JOIN kept_project p ON p.id = t.project JOIN person o ON o.id = t.owner AND o.status = 'active';
CREATE TEMP TABLE kept_note AS SELECT n.id FROM note n JOIN kept_task t ON t.id = n.task
WHERE n.id NOT IN (SELECT r.note FROM note_reader r LEFT JOIN person p ON p.id = r.reader WHERE p.id IS NULL OR coalesce(p.status, '') <> 'active');
