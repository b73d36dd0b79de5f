CREATE SCHEMA clinic;
CREATE TABLE clinic.patients (id uuid PRIMARY KEY, name text NOT NULL, born date NOT NULL, insurance_no text);
CREATE TABLE clinic.practitioners (id uuid PRIMARY KEY, name text NOT NULL);
CREATE TABLE clinic.care_team (patient_id uuid REFERENCES clinic.patients, practitioner_id uuid REFERENCES clinic.practitioners, since date NOT NULL, until date, PRIMARY KEY (patient_id, practitioner_id));
-- What a patient has agreed to, a row for each kind of processing.
CREATE TABLE clinic.consents (patient_id uuid REFERENCES clinic.patients, processing text, decision text NOT NULL, PRIMARY KEY (patient_id, processing));
CREATE TABLE clinic.notes (
  id uuid PRIMARY KEY,
  patient_id uuid NOT NULL REFERENCES clinic.patients,
  author_id uuid NOT NULL REFERENCES clinic.practitioners,
  sensitivity text NOT NULL,
  processing text NOT NULL DEFAULT 'assistant',
  body text NOT NULL,
  written_at timestamptz NOT NULL,
  expires_at timestamptz
);
CREATE INDEX ON clinic.notes (patient_id, written_at);
