package registry

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/pgconsent/pgconsent/consent"
)

var update = flag.Bool("update", false, "write structure.json again")

func TestStructureIsThatOfMigrate(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	if _, err := conn.Exec(t.Context(), "SET search_path = pg_catalog"); err != nil {
		t.Fatal(err)
	}
	now, err := readStructure(t.Context(), conn, "pgconsent_control")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		text, err := json.MarshalIndent(now, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("structure.json", append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, f := range compareStructure(now) {
		t.Errorf("%s (go test ./consent/registry -run StructureIsThat -update)", f)
	}
	if len(now) < 40 {
		t.Errorf("only %d things are described", len(now))
	}
}

// How definitions are printed is a setting, and no tampering.
func TestPrintedOtherwiseIsTheSame(t *testing.T) {
	db := database(t)
	first := open(t, db, defaults)
	must(t, first, grant("ada", consent.Temporary))
	if _, err := db.Connect(t, "postgres").Exec(t.Context(), "ALTER DATABASE "+db.Name+" SET quote_all_identifiers = on"); err != nil {
		t.Fatal(err)
	}
	sound(t, openWithKeys(t, db, defaults, first.Keys, first.Anchor))
}

// What an owner or a superuser does to the schema is found, each by itself.
// seeds/001:188-190.
func TestAlteredStructureIsFound(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	must(t, r, grant("ada", "TEMPORARY"))
	sound(t, r)
	conn := db.Connect(t, "postgres")
	for _, alter := range []string{
		"ALTER TABLE pgconsent.consent_record DISABLE TRIGGER pgconsent_refuse",
		"ALTER TABLE pgconsent.consent_record DISABLE TRIGGER ALL",
		"ALTER TABLE pgconsent.consent_record ENABLE TRIGGER pgconsent_refuse",
		"DROP TRIGGER pgconsent_refuse_truncate ON pgconsent.consent_record",
		"ALTER TABLE pgconsent.consent_current DISABLE TRIGGER zz_pgconsent_current_update",
		"ALTER TABLE pgconsent.subject DISABLE TRIGGER pgconsent_forget",
		"CREATE TRIGGER mine BEFORE INSERT ON pgconsent.consent_record FOR EACH ROW EXECUTE FUNCTION pgconsent.consent_refuse()",
		"ALTER TABLE pgconsent.consent_guardian ALTER guardian TYPE text COLLATE \"C\"",
		"ALTER FUNCTION pgconsent.consent_append(pgconsent.consent_record, text) STRICT",
		"ALTER FUNCTION pgconsent.consent_epoch() LEAKPROOF",
		"ALTER FUNCTION pgconsent.consent_open() PARALLEL SAFE",
		"CREATE FUNCTION public.mine() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER zz_pgconsent_mine AFTER UPDATE ON pgconsent.consent_current FOR EACH ROW EXECUTE FUNCTION public.mine(); ALTER TABLE pgconsent.consent_current ENABLE ALWAYS TRIGGER zz_pgconsent_mine",
		"CREATE RULE mine AS ON INSERT TO pgconsent.consent_current DO INSTEAD NOTHING",
		"ALTER TABLE pgconsent.consent_record ENABLE ROW LEVEL SECURITY",
		"CREATE POLICY mine ON pgconsent.consent_record USING (true)",
		"GRANT UPDATE ON pgconsent.consent_record TO pgconsent_control",
		"GRANT DELETE ON pgconsent.consent_current TO PUBLIC",
		"GRANT UPDATE (state) ON pgconsent.consent_current TO PUBLIC",
		"GRANT EXECUTE ON FUNCTION pgconsent.consent_open() TO PUBLIC",
		"REVOKE EXECUTE ON FUNCTION pgconsent.consent_epoch() FROM pgconsent_control",
		"CREATE OR REPLACE FUNCTION pgconsent.consent_refuse() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN OLD; END'",
		"CREATE OR REPLACE FUNCTION pgconsent.changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN NULL; END'",
		"CREATE OR REPLACE FUNCTION pgconsent.consent_now() RETURNS timestamptz LANGUAGE sql RETURN clock_timestamp() - interval '1 day'",
		"ALTER FUNCTION pgconsent.consent_append(pgconsent.consent_record, text) SECURITY INVOKER",
		"ALTER FUNCTION pgconsent.consent_append(pgconsent.consent_record, text) RESET ALL",
		"ALTER FUNCTION pgconsent.consent_append(pgconsent.consent_record, text) OWNER TO pgconsent_reader",
		"CREATE FUNCTION pgconsent.consent_more() RETURNS int LANGUAGE sql RETURN 1",
		"ALTER TABLE pgconsent.consent_record OWNER TO pgconsent_reader",
		"ALTER TABLE pgconsent.consent_record ADD COLUMN more int",
		"ALTER TABLE pgconsent.consent_record ALTER COLUMN mac DROP NOT NULL",
		"ALTER TABLE pgconsent.consent_record DROP CONSTRAINT consent_record_hash_check",
		"ALTER TABLE pgconsent.consent_record DROP CONSTRAINT consent_record_pkey",
		"ALTER TABLE pgconsent.consent_record DROP CONSTRAINT consent_record_subject_fkey",
		"DROP INDEX pgconsent.consent_record_request",
		"ALTER TABLE pgconsent.consent_record SET UNLOGGED",
		"CREATE TABLE child () INHERITS (pgconsent.consent_current)",
		"CREATE DOMAIN mine AS text; ALTER TABLE pgconsent.outbox ALTER subject TYPE mine",
		"CREATE RULE mine AS ON INSERT TO pgconsent.outbox DO INSTEAD NOTHING",
		"CREATE RULE mine AS ON INSERT TO pgconsent.change DO INSTEAD NOTHING",
		"CREATE TRIGGER mine BEFORE INSERT ON pgconsent.sweep_erased FOR EACH ROW EXECUTE FUNCTION pgconsent.consent_refuse()",
		"CREATE TRIGGER mine BEFORE INSERT ON pgconsent.change FOR EACH ROW EXECUTE FUNCTION pgconsent.consent_refuse()",
		"ALTER TABLE pgconsent.outbox DISABLE TRIGGER pgconsent_refuse",
		"ALTER TABLE pgconsent.outbox DROP CONSTRAINT outbox_number_key",
		"ALTER TABLE pgconsent.privacy_event DISABLE TRIGGER pgconsent_refuse",
		"ALTER TABLE pgconsent.privacy_event ALTER at SET DEFAULT '2000-01-01'",
		"ALTER TABLE pgconsent.sweep_note ENABLE ROW LEVEL SECURITY",
		"ALTER TABLE pgconsent.sweep_state SET UNLOGGED",
		"ALTER TABLE pgconsent.audit_subject DROP CONSTRAINT audit_subject_subject_key",
		"GRANT INSERT ON pgconsent.audit_subject TO pgconsent_control",
		"CREATE OR REPLACE FUNCTION pgconsent.changed_since(taken pg_snapshot) RETURNS bool LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN false; END'",
		"CREATE OR REPLACE FUNCTION pgconsent.audit_forgets() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN NULL; END'",
		"SET LOCAL allow_system_table_mods = on; UPDATE pg_catalog.pg_class SET relhastriggers = false WHERE oid = 'pgconsent.consent_record'::regclass",
		"SET LOCAL allow_system_table_mods = on; UPDATE pg_catalog.pg_class SET relchecks = 0 WHERE oid = 'pgconsent.consent_record'::regclass",
		"SET LOCAL allow_system_table_mods = on; UPDATE pg_catalog.pg_class SET relhasindex = false WHERE oid = 'pgconsent.consent_guardian'::regclass",
		"ALTER TABLE pgconsent.consent_current REPLICA IDENTITY NOTHING; CREATE PUBLICATION mine FOR TABLE pgconsent.consent_current",
		"ALTER TABLE pgconsent.consent_record RENAME TO hidden; CREATE VIEW pgconsent.consent_record AS SELECT * FROM pgconsent.hidden; GRANT SELECT ON pgconsent.consent_record TO pgconsent_control",
	} {
		if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), alter); err != nil {
			t.Errorf("%s: %v", alter, err)
		} else {
			if _, err := conn.Exec(t.Context(), "SET LOCAL search_path = pg_catalog"); err != nil {
				t.Fatal(err)
			}
			now, err := readStructure(t.Context(), conn, "pgconsent_control")
			if err != nil {
				t.Fatal(err)
			}
			if len(compareStructure(now)) == 0 {
				t.Errorf("not found: %s", alter)
			}
		}
		if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
	}
	sound(t, r)
}
