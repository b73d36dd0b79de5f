-- Consent records prove consent, and records of the audit say who has read which rows: both are dropped only on request.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pgconsent.consent_record)
     AND pg_catalog.current_setting('pgconsent.discard_consent', true) IS DISTINCT FROM 'yes' THEN
    RAISE EXCEPTION 'the database holds consent records' USING ERRCODE = '55000',
      HINT = 'They prove who has consented to what. Keep a dump of schema pgconsent, and run: pgconsent migrate --down --discard-consent';
  END IF;
  IF EXISTS (SELECT FROM pgconsent.audit_record)
     AND pg_catalog.current_setting('pgconsent.discard_audit', true) IS DISTINCT FROM 'yes' THEN
    RAISE EXCEPTION 'the database holds records of the audit' USING ERRCODE = '55000',
      HINT = 'They say who has read what. Keep them with pgconsent audit export, and run: pgconsent migrate --down --discard-audit';
  END IF;
END $$;

-- CASCADE: the event triggers, which may be a superuser's. All else without CASCADE: objects that others have built on
-- ours are theirs to drop first.
DROP FUNCTION pgconsent.catalog_changed() CASCADE;
DROP FUNCTION pgconsent.withhold() CASCADE;

DROP TABLE pgconsent.audit_record, pgconsent.audit_retired, pgconsent.audit_subject, pgconsent.privacy_event,
  pgconsent.outbox, pgconsent.sweep_note, pgconsent.sweep_erased, pgconsent.sweep_state,
  pgconsent.materialized_due, pgconsent.materialized_change, pgconsent.withheld;
DROP FUNCTION pgconsent.audit_append(pg_catalog.text, pg_catalog.int8, pg_catalog.text[]),
  pgconsent.audit_retire(pg_catalog.text, pg_catalog.int8, pg_catalog.int4), pgconsent.audit_refuse(),
  pgconsent.audit_ref(pg_catalog.text), pgconsent.audit_forget(pg_catalog.text), pgconsent.audit_subject_refuse(),
  pgconsent.privacy_note(pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.text, pg_catalog.text[], pg_catalog.text),
  pgconsent.privacy_event_refuse(), pgconsent.outbox_refuse(),
  pgconsent.materialized_ready(pg_catalog.text), pgconsent.materialized_settle(),
  pgconsent.materialized_invalidate(pg_catalog.text),
  pgconsent.materialized_note(pg_catalog.text, pg_catalog.int4, pg_catalog.text), pgconsent.rights_of_bound(pg_catalog.oid);
DROP TABLE pgconsent.materialized;

DROP FUNCTION pgconsent.consent_append(pgconsent.consent_record, pg_catalog.text);
DROP TABLE pgconsent.consent_code, pgconsent.consent_guardian, pgconsent.consent_current, pgconsent.consent_record,
  pgconsent.subject, pgconsent.consent_registry;
DROP FUNCTION pgconsent.consent_name(pg_catalog.uuid, pg_catalog.text, pg_catalog.bytea), pgconsent.consent_open(),
  pgconsent.consent_epoch(), pgconsent.consent_now(), pgconsent.consent_decay_categories(),
  pgconsent.consent_forget_only(),
  pgconsent.consent_refuse(), pgconsent.consent_rewrap(pg_catalog.uuid[], pg_catalog.bytea[], pg_catalog.bytea[]),
  pgconsent.consent_recode(pg_catalog.int4, pg_catalog.int8[], pg_catalog.bytea[]),
  pgconsent.pseudonym(pg_catalog.text, pg_catalog.text), pgconsent.outbox_fill(), pgconsent.sweep_erase(),
  pgconsent.audit_forgets(), pgconsent.audit_epoch();

DROP FUNCTION pgconsent_signed.current_catalog(), pgconsent.within_reach(pg_catalog.oid),
  pgconsent.concerns(pg_catalog.oid), pgconsent.concerned(), pgconsent.add_catalog_changes(), pgconsent.catalog_version();
DROP VIEW pgconsent.concerned_beside, pgconsent.concerned_by_itself;
DROP FUNCTION pgconsent_signed.row_is_current(pg_catalog.xid, pg_catalog.bool), pgconsent.prune_changes(),
  pgconsent.changed_since(pg_catalog.pg_snapshot), pgconsent.changed();
DROP TABLE pgconsent.catalog_change, pgconsent.change, pgconsent_signed.canary;

DROP FUNCTION pgconsent_signed.json_ids(pg_catalog.text);
DROP FUNCTION pgconsent_signed.jsonb_ids(pg_catalog.jsonb), pgconsent_signed.json_grants(pg_catalog.text, pg_catalog.text[]),
  pgconsent.mask(pg_catalog.text), pgconsent.distinct_values(pg_catalog.oid[]), pgconsent_signed.harden_plan(),
  pgconsent_signed.set_config(pg_catalog.text, pg_catalog.text, pg_catalog.bool),
  pgconsent_signed.lock_key(pg_catalog.text, pg_catalog.bool), pgconsent_signed.last_number(), pgconsent_signed.sequence_named(pg_catalog.text),
  pgconsent_signed.number_or_error(pg_catalog.int8), pgconsent_signed.drawn_number(pg_catalog.oid),
  pgconsent_signed.estimate_rows(pg_catalog.text), pgconsent_signed.use_index(), pgconsent_signed.use_hash(),
  pgconsent_signed.text_is_signed(), pgconsent_signed.sealed(), pgconsent_signed.attr(pg_catalog.text),
  pgconsent_signed.plan_time(), pgconsent_signed.plan_attr(pg_catalog.text), pgconsent_signed.plan_seal(),
  pgconsent.seal_time(), pgconsent.plan_attributes(), pgconsent.verified_attr(pg_catalog.text), pgconsent.is_sealed(),
  pgconsent.live(pg_catalog.text, pg_catalog.text[], pg_catalog.text[]),
  pgconsent.acting(pg_catalog.text), pgconsent.claim(pg_catalog.text, pg_catalog.text[]), pgconsent.prune_keys(), pgconsent.seal_key(), pgconsent.make_key();
DROP FUNCTION pgconsent.remember_catalog(pg_catalog.text, pg_catalog.text, pg_catalog.bytea);
DROP TABLE pgconsent.mask_key, pgconsent.keys, pgconsent.installed_catalog, pgconsent.installed_role,
  pgconsent.installed_object, pgconsent.installed_privilege, pgconsent.installed_undo, pgconsent.installed_plan,
  pgconsent.installed, pgconsent.migration;
DROP FUNCTION pgconsent.drop_plans();
DROP SCHEMA pgconsent, pgconsent_signed, pgconsent_catalog, pgconsent_rows;
