-- Health notes: patients who consent, notes about them, a register of consents, vectors and expiry.
CREATE TABLE practitioners (id bigint PRIMARY KEY, name text);
CREATE TABLE patients (id bigint PRIMARY KEY, clinic_id bigint NOT NULL, name text, consent_given boolean NOT NULL DEFAULT false, research_consent boolean, consent_text text,
    consent_until timestamptz, research_consent_expires timestamptz, consent_withdrawn_at timestamptz);
CREATE TABLE encounters (id bigint PRIMARY KEY, patient_id bigint NOT NULL REFERENCES patients, practitioner_id bigint REFERENCES practitioners, started_at timestamptz);
CREATE TABLE health_notes (id bigint PRIMARY KEY, encounter_id bigint NOT NULL REFERENCES encounters, clinic_id bigint NOT NULL, body text, expires_at timestamptz, sensitivity text CHECK (sensitivity IN ('normal', 'high')));
CREATE TABLE letters (id bigint PRIMARY KEY, clinic_id bigint NOT NULL, body text);
CREATE TABLE letter_patients (letter_id bigint NOT NULL REFERENCES letters, patient_id bigint NOT NULL, PRIMARY KEY (letter_id, patient_id));
CREATE TABLE patient_consents (id bigint PRIMARY KEY, patient_id bigint NOT NULL REFERENCES patients, purpose text, granted_at timestamptz, revoked_at timestamptz);
CREATE TABLE surveys (id bigint PRIMARY KEY, clinic_id bigint, consent_status text CHECK (consent_status IN ('a', 'b')));
CREATE TABLE devices (id bigint PRIMARY KEY, label text);
CREATE MATERIALIZED VIEW patient_counts AS SELECT clinic_id, count(*) FROM patients GROUP BY 1;
CREATE TABLE appointments (id bigint PRIMARY KEY, clinic_id bigint NOT NULL, patient_id bigint REFERENCES patients, at timestamptz);
