-- What is installed of a plan, object by object: pgconsent migrate compares it with the next plan, and changes only what
-- differs.

-- The state that the plan fits in, as JSON. NULL: a version has installed it that did not store it.
ALTER TABLE pgconsent.installed ADD COLUMN found pg_catalog.text;

-- The objects of the plan.
CREATE TABLE pgconsent.installed_plan (
  identity pg_catalog.text PRIMARY KEY,
  made     pg_catalog.text NOT NULL,   -- a hash of the statements that made it
  tables   pg_catalog.text[] NOT NULL, -- to which it belongs
  revokes  pg_catalog.text[] NOT NULL  -- statements that take back the rights that it gave on other objects
);

-- Which of them a statement drops.
ALTER TABLE pgconsent.installed_undo ADD COLUMN object pg_catalog.text;

-- How privileges on what was there before differ from those that were found.
CREATE TABLE pgconsent.installed_privilege (
  object    pg_catalog.text NOT NULL, -- as GRANT names it; DATABASE is this one
  grantee   pg_catalog.text NOT NULL,
  privilege pg_catalog.text NOT NULL,
  grantable pg_catalog.bool NOT NULL,
  given     pg_catalog.bool NOT NULL, -- false: it was found, and is taken away
  PRIMARY KEY (object, grantee, privilege, grantable, given)
);
