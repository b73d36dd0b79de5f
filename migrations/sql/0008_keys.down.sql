DROP FUNCTION pgconsent.prune_keys();
