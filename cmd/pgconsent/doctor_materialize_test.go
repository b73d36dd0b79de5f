package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/tier"
)

// The doctor advises to materialize the consents of a large table, and not if they are materialized already.
func TestDoctorAdvisesToMaterialize(t *testing.T) {
	tier.All(t)
	i := installDatabase(t)
	checkAdvice := func(situation string, isAdvised bool) {
		t.Helper()
		out, stderr, _ := call(t, "", "doctor", "-c", i.config)
		if strings.Contains(out, "advice   could_materialize: ") != isAdvised {
			t.Errorf("%s: there is advice: %t\n%s%s", situation, !isAdvised, out, stderr)
		}
	}
	i.exec(t, "ALTER TABLE memories ALTER user_id SET (n_distinct = 1); ANALYZE people, memories, memory_participants")
	checkAdvice("a small table", false)
	i.exec(t, "SET allow_system_table_mods = on; "+ // the table's statistics make it look large
		"UPDATE pg_class SET relpages = 1, reltuples = CASE relname WHEN 'people' THEN 50000 ELSE 2000000 END "+
		"WHERE oid IN ('people'::regclass, 'memories'::regclass, 'memory_participants'::regclass)")
	checkAdvice("a large one", true)
	materializedPolicy := strings.Replace(guardedPolicy, "status: consent_status, is: granted }\n",
		"status: consent_status, is: granted, materialize: true }\n", 1)
	if materializedPolicy == guardedPolicy {
		t.Fatal("the policy has another rule")
	}
	if err := os.WriteFile(filepath.Join(i.dir(), "policy.yaml"), []byte(materializedPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := call(t, "", "migrate", "-c", i.config); code != exitOK {
		t.Fatal(stderr)
	}
	checkAdvice("kept", false)
}
