package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// A superuser disables the triggers, tampers with a record, and enables the triggers again. The structure is right
// then, but Verify finds that the chain is not.
func TestTamperingBySuperuserIsFound(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	fillRegistry(t, r)
	_, anchoredHead := exportRegistry(t, r)
	conn := db.Connect(t, "postgres")
	ctx := context.Background()
	const disableTriggers, enableTriggers = "ALTER TABLE %s DISABLE TRIGGER USER", `DO $$ DECLARE t record; BEGIN
		FOR t IN SELECT tgname, tgrelid::regclass AS rel FROM pg_trigger WHERE NOT tgisinternal AND tgrelid::regclass::text LIKE 'pgconsent.%' LOOP
			EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', t.rel, t.tgname);
		END LOOP; END $$`
	tables := []string{"pgconsent.consent_record", "pgconsent.subject", "pgconsent.consent_registry",
		"pgconsent.consent_current", "pgconsent.consent_guardian"}
	for _, tamper := range []string{
		"UPDATE pgconsent.consent_record SET state = 'given' WHERE event = 'withdrawn'",
		"UPDATE pgconsent.consent_record SET categories = categories || '{IMPROVEMENT}' WHERE number = 3",
		"UPDATE pgconsent.consent_record SET expires_at = 'infinity' WHERE number = 1",
		"UPDATE pgconsent.consent_record SET recorded_at = recorded_at - interval '1 microsecond' WHERE number = 5",
		"UPDATE pgconsent.consent_record SET mac = hash WHERE number = 2",
		"DELETE FROM pgconsent.consent_record WHERE number = 4",
		"DELETE FROM pgconsent.consent_record WHERE number = (SELECT max(number) FROM pgconsent.consent_record)",
		"DELETE FROM pgconsent.consent_record WHERE number > 20",
		"TRUNCATE pgconsent.consent_record, pgconsent.consent_current, pgconsent.consent_guardian",
		"TRUNCATE pgconsent.consent_record, pgconsent.subject, pgconsent.consent_current, pgconsent.consent_guardian, pgconsent.consent_registry",
		"UPDATE pgconsent.consent_record SET number = number + 1000; UPDATE pgconsent.consent_record SET number = " +
			"CASE number WHEN 1002 THEN 3 WHEN 1003 THEN 2 ELSE number - 1000 END",
		"INSERT INTO pgconsent.consent_record SELECT (r).* FROM (SELECT r FROM pgconsent.consent_record AS r " +
			"ORDER BY number LIMIT 1) AS s (r) ON CONFLICT DO NOTHING; UPDATE pgconsent.consent_record SET kid = kid + 1 WHERE number = 1",
		"INSERT INTO pgconsent.consent_record (number, recorded_at, subject, event, state, categories, purposes, " +
			"sealed, prev, hash, mac, kid) SELECT number + 1, recorded_at, subject, 'given', 'given', " +
			"'{ESSENTIAL}', '{}', sealed, hash, sha256(hash), mac, kid FROM pgconsent.consent_record ORDER BY number DESC LIMIT 1",
		"UPDATE pgconsent.subject SET subject = 'eve' WHERE subject = 'person 1'",
		"UPDATE pgconsent.subject SET subject = 'si:eve' WHERE subject = 'si:vet'",
		"UPDATE pgconsent.subject SET subject = NULL, key = NULL, erased_at = now() WHERE subject = 'person 1'",
		"UPDATE pgconsent.subject SET key = (SELECT key FROM pgconsent.subject WHERE subject = 'person 2') WHERE subject = 'person 1'",
		"UPDATE pgconsent.subject SET subject = 'person 7', key = '\\x00', erased_at = NULL WHERE erased_at IS NOT NULL",
		"UPDATE pgconsent.consent_registry SET id = gen_random_uuid()",
		"INSERT INTO pgconsent.consent_registry SELECT", // the table has one row already
		"UPDATE pgconsent.consent_current SET state = 'given', categories = '{ESSENTIAL}' WHERE state = 'withdrawn'",
		"DELETE FROM pgconsent.consent_current WHERE subject = 'person 1'",
		"UPDATE pgconsent.consent_current SET decay_from = now() - interval '3 days'",
		"UPDATE pgconsent.consent_current SET decay_categories = '{BEHAVIORAL}' WHERE subject = 'person 1'",
		"UPDATE pgconsent.consent_current SET decay_categories = NULL WHERE decay_categories IS NOT NULL",
		"UPDATE pgconsent.consent_current SET void_before = NULL WHERE void_before IS NOT NULL",
		"UPDATE pgconsent.consent_current SET purposes = purposes || '{x}' WHERE subject = 'person 1'",
		"UPDATE pgconsent.subject SET erased_at = erased_at - interval '1 microsecond' WHERE erased_at IS NOT NULL",
		"INSERT INTO pgconsent.consent_current (subject, grantee, scope, number, state, categories, purposes) " +
			"VALUES ('person 7', '*', '*', 1, 'given', '{}', '{}')",
		"INSERT INTO pgconsent.consent_guardian VALUES ('person 1', 'human:eve', 1)",
		"DELETE FROM pgconsent.consent_guardian",
	} {
		tx, err := conn.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		// All statements run in the transaction in which the check reads.
		var statements []string
		for _, table := range tables {
			statements = append(statements, fmt.Sprintf(disableTriggers, table))
		}
		statements = append(statements, "SET LOCAL session_replication_role = replica",
			tamper, "SET LOCAL session_replication_role = origin", enableTriggers, "SET LOCAL search_path = pg_catalog")
		hasFailed := slices.ContainsFunc(statements, func(sql string) bool {
			_, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
			if err != nil && sql != "INSERT INTO pgconsent.consent_registry SELECT" {
				t.Errorf("%s: %v", sql, err)
			}
			return err != nil
		})
		if !hasFailed {
			x, err := readExport(ctx, tx)
			if errors.As(err, new(*unreadableError)) {
				x, err = &Export{}, nil
			}
			if err != nil {
				t.Fatal(err)
			}
			now, err := readStructure(ctx, tx, "pgconsent_control")
			if err != nil {
				t.Fatal(err)
			}
			if altered := compareStructure(now); len(altered) > 0 {
				t.Errorf("%s: the structure was not put back: %v", tamper, altered)
			}
			if len(Check(x, r.Keys, &anchoredHead)) == 0 {
				t.Errorf("not found: %s", tamper)
			}
		}
		if err := tx.Rollback(ctx); err != nil {
			t.Fatal(err)
		}
	}
	requireVerified(t, r)
}

// The roles of pgconsent, and all others, can change the tables only by the functions.
// seeds/001:188-190.
func TestNobodyWritesRecords(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	mustExecute(t, r, grant("ada", consent.StreamTemporary))
	for _, role := range []string{"pgconsent_control", "pgconsent_agent", "postgres"} {
		conn := db.Connect(t, role)
		for _, sql := range []string{
			"UPDATE pgconsent.consent_record SET state = 'given'", "DELETE FROM pgconsent.consent_record", "TRUNCATE pgconsent.consent_record",
			"INSERT INTO pgconsent.consent_current SELECT * FROM pgconsent.consent_current", "UPDATE pgconsent.subject SET subject = 'x'",
			"SELECT pgconsent.consent_append(r, '*') FROM pgconsent.consent_record AS r",
			"SET session_replication_role = replica; DELETE FROM pgconsent.consent_record",
		} {
			if _, err := conn.Exec(t.Context(), sql); err == nil {
				t.Errorf("%s may: %s", role, sql)
			}
		}
	}
	requireVerified(t, r)
}

// A row that is missing from an index is invisible to a query that uses the index. Verify finds such an index, though
// the table is right.
func TestCorruptIndexesAreFound(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	fillRegistry(t, r)
	requireVerified(t, r)
	conn := db.Connect(t, "postgres")
	for name, change := range map[string]string{
		// Each change rewrites rows with the same values, while the index does not follow.
		"consent_current_pkey": "UPDATE pgconsent.consent_current SET expires_at = 'infinity' WHERE expires_at " +
			"IS NULL; UPDATE pgconsent.consent_current SET expires_at = NULL WHERE expires_at = 'infinity'",
		"consent_guardian_pkey": "UPDATE pgconsent.consent_guardian SET subject = subject || ' '; UPDATE " +
			"pgconsent.consent_guardian SET subject = rtrim(subject)",
		"consent_current_expires": "UPDATE pgconsent.consent_current SET expires_at = expires_at + interval '1 " +
			"day' WHERE state = 'given'; UPDATE pgconsent.consent_current SET expires_at = expires_at - interval '1 day' WHERE state = 'given'",
		"subject_subject_key": "ALTER TABLE pgconsent.subject DISABLE TRIGGER USER; UPDATE pgconsent.subject " +
			"SET ref = ref, subject = subject || ' ' WHERE subject IS NOT NULL; UPDATE pgconsent.subject SET " +
			"subject = rtrim(subject); ALTER TABLE pgconsent.subject ENABLE ALWAYS TRIGGER pgconsent_forget, " +
			"ENABLE ALWAYS TRIGGER pgconsent_refuse, ENABLE ALWAYS TRIGGER pgconsent_refuse_truncate, ENABLE " +
			"ALWAYS TRIGGER pgconsent_sweep, ENABLE ALWAYS TRIGGER zz_pgconsent_audit",
		"outbox_next": "UPDATE pgconsent.outbox SET next_at = next_at - interval '1 second'",
	} {
		setIndexReady := func(isReady bool) string {
			return fmt.Sprintf(
				"SET allow_system_table_mods = on; UPDATE pg_catalog.pg_index SET indisready = %v WHERE "+
					"indexrelid = 'pgconsent.%s'::regclass; RESET allow_system_table_mods", isReady, name)
		}
		for _, sql := range []string{setIndexReady(false), change, setIndexReady(true)} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		report, err := r.Verify(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(report.Findings, func(f Finding) bool {
			return strings.Contains(f.Problem,
				name+" does not lead")
		}) {
			t.Errorf("%s: %v", name, report.Findings)
		}
		if _, err := conn.Exec(t.Context(), "REINDEX INDEX pgconsent."+name); err != nil {
			t.Fatal(err)
		}
		requireVerified(t, r)
	}
}
