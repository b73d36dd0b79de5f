package rls_test

import (
	"strings"
	"testing"
)

// A query about one object uses the indexes of the catalogs. The shadows read no whole catalog to decide whether the
// object is visible.
func TestLookupsReadNoWholeCatalog(t *testing.T) {
	w := newWorld(t, `DO $$ BEGIN FOR i IN 1..300 LOOP
		EXECUTE format('CREATE TABLE hidden_%s (id serial PRIMARY KEY, parent int REFERENCES hidden_%s, name text DEFAULT ''x'')', i, greatest(i - 1, 1));
		END LOOP; END $$`).migrate()
	w.exec(w.super, "ANALYZE")
	agent := w.agent(user1)
	for _, lookup := range []string{
		"pg_class WHERE oid = %", "pg_attribute WHERE attrelid = %", "pg_attrdef WHERE adrelid = %", "pg_index WHERE indrelid = %",
		"pg_constraint WHERE conrelid = %", "pg_type WHERE oid = 25", "pg_proc WHERE oid = 1299", "pg_class WHERE relname = 'memories'",
	} {
		sql := "SELECT * FROM pgconsent_catalog." + strings.ReplaceAll(lookup, "%", "'memories'::regclass")
		rows, err := agent.Query(t.Context(), "EXPLAIN "+sql)
		if err != nil {
			t.Fatal(err)
		}
		var plan []string
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, line)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		for _, line := range plan {
			if strings.Contains(line, "Seq Scan") && !strings.Contains(line, "Seq Scan on pg_namespace") {
				t.Errorf("%s:\n%s", sql, strings.Join(plan, "\n"))
				break
			}
		}
	}
}
