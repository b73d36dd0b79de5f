-- Consent records prove consent: they are not dropped by the way.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pgconsent.consent_record) AND pg_catalog.current_setting('pgconsent.discard_consent', true) IS DISTINCT FROM 'yes' THEN
    RAISE EXCEPTION 'the database holds consent records' USING ERRCODE = '55000',
      HINT = 'They prove who has consented to what. Keep a dump of schema pgconsent, and run: pgconsent migrate --down --discard-consent';
  END IF;
END $$;
DROP FUNCTION pgconsent.consent_append(pgconsent.consent_record, pg_catalog.text);
DROP FUNCTION pgconsent.consent_name(pg_catalog.uuid, pg_catalog.text, pg_catalog.bytea);
DROP FUNCTION pgconsent.consent_open();
DROP FUNCTION pgconsent.consent_epoch();
DROP FUNCTION pgconsent.consent_now();
DROP TABLE pgconsent.consent_guardian, pgconsent.consent_current, pgconsent.consent_record, pgconsent.subject, pgconsent.consent_registry;
DROP FUNCTION pgconsent.consent_forget_only();
DROP FUNCTION pgconsent.consent_refuse();
