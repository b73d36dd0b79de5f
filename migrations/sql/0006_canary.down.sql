DROP TABLE pgconsent_gate.canary;
