package rls_test

import (
	"strings"
	"testing"
)

// Roles that can connect to the database get by name the rights that PUBLIC loses. Roles that cannot connect get none.
func TestRolesThatCannotConnectGetNothing(t *testing.T) {
	const granteesQuery = `SELECT string_agg(DISTINCT x.grantee::regrole::text, ',' ORDER BY x.grantee::regrole::text) FROM pg_database AS d
		CROSS JOIN LATERAL aclexplode(d.datacl) AS x WHERE d.datname = current_database() AND x.privilege_type = 'TEMPORARY'`
	for canConnect, before := range map[bool]string{true: "SELECT 1", false: "DO $$ BEGIN EXECUTE format(" +
		"'REVOKE CONNECT ON DATABASE %1$I FROM PUBLIC; GRANT CONNECT ON DATABASE %1$I TO app_owner', current_database()); END $$"} {
		w := newWorld(t, before).migrate()
		got, err := query(w.super, granteesQuery)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(got, "app_other") != canConnect || !strings.Contains(got, "app_owner") || strings.Contains(got, "-") {
			t.Errorf("app_other can connect: %t; TEMPORARY have %s", canConnect, got)
		}
	}
}
