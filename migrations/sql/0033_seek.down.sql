DROP FUNCTION pgconsent_gate.seek();
