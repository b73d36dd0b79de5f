-- Records of the audit say who has read what: they are not dropped by the way.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pgconsent.audit_record) AND pg_catalog.current_setting('pgconsent.discard_audit', true) IS DISTINCT FROM 'yes' THEN
    RAISE EXCEPTION 'the database holds records of the audit' USING ERRCODE = '55000',
      HINT = 'They say who has read what. Keep them with pgconsent audit export, and run: pgconsent migrate --down --discard-audit';
  END IF;
END $$;
DROP FUNCTION pgconsent.audit_retire(pg_catalog.text, pg_catalog.int8, pg_catalog.int4);
DROP FUNCTION pgconsent.audit_append(pg_catalog.text, pg_catalog.int8, pg_catalog.text[]);
DROP TABLE pgconsent.audit_retired, pgconsent.audit_record;
DROP FUNCTION pgconsent.audit_refuse();
