-- Without CASCADE: what others have built on these objects is theirs to take away first.
DROP FUNCTION pgconsent_gate.attr(pg_catalog.text), pgconsent_gate.sealed(), pgconsent_gate.vetted();
DROP FUNCTION pgconsent.seal_key(), pgconsent.make_key();
DROP TABLE pgconsent.keys, pgconsent.installed_role, pgconsent.installed_object, pgconsent.installed_undo, pgconsent.installed, pgconsent.migration;
DROP SCHEMA pgconsent, pgconsent_gate, pgconsent_catalog;
