DROP TABLE pgconsent.installed_privilege, pgconsent.installed_plan;
ALTER TABLE pgconsent.installed_undo DROP COLUMN object;
ALTER TABLE pgconsent.installed DROP COLUMN found;
