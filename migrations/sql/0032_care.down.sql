DROP FUNCTION pgconsent_gate.care();
