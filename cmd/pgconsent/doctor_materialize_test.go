package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/tier"
)

// The doctor advises to materialize the answers of a large table, and no more where they are.
func TestDoctorAdvisesToMaterialize(t *testing.T) {
	tier.All(t)
	i := install(t)
	advice := func(situation string, wanted bool) {
		t.Helper()
		out, stderr, _ := call(t, "", "doctor", "-c", i.config)
		if strings.Contains(out, "advice   could_materialize: ") != wanted {
			t.Errorf("%s: there is advice: %t\n%s%s", situation, !wanted, out, stderr)
		}
	}
	i.exec(t, "ALTER TABLE memories ALTER user_id SET (n_distinct = 1); ANALYZE people, memories, memory_participants")
	advice("a small table", false)
	i.exec(t, "SET allow_system_table_mods = on; "+ // the table is made to look large
		"UPDATE pg_class SET relpages = 1, reltuples = CASE relname WHEN 'people' THEN 50000 ELSE 2000000 END "+
		"WHERE oid IN ('people'::regclass, 'memories'::regclass, 'memory_participants'::regclass)")
	advice("a large one", true)
	kept := strings.Replace(guardedPolicy, "status: consent_status, is: granted }\n", "status: consent_status, is: granted, materialize: true }\n", 1)
	if kept == guardedPolicy {
		t.Fatal("the policy has another rule")
	}
	if err := os.WriteFile(filepath.Join(i.dir(), "policy.yaml"), []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := call(t, "", "migrate", "-c", i.config); code != exitOK {
		t.Fatal(stderr)
	}
	advice("kept", false)
}
