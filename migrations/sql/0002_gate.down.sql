DROP FUNCTION pgconsent_gate.scan();
