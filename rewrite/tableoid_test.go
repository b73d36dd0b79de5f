package rewrite

import (
	"strings"
	"testing"
)

// Only where all items of the name are one catalog is its tableoid written as a constant.
func TestTableOIDOfCatalogs(t *testing.T) {
	r := rewriter(t, RLS)
	const constant = "::pg_catalog.regclass::pg_catalog.oid"
	for sql, want := range map[string]string{
		"SELECT c.tableoid FROM pg_class c": "SELECT ('pg_catalog.pg_class'" + constant + ") AS tableoid FROM",
		"SELECT c.tableoid AS x, -c.tableoid::int FROM pg_class c": "SELECT ('pg_catalog.pg_class'" + constant +
			") AS x, -('pg_catalog.pg_class'" + constant + ")::int FROM",
		"SELECT pg_am.tableoid FROM pg_catalog.pg_am ORDER BY pg_am.tableoid":                "ORDER BY ('pg_catalog.pg_am'" + constant + ")",
		"SELECT (SELECT c.tableoid) FROM pg_class c":                                         "(SELECT ('pg_catalog.pg_class'" + constant + ") AS tableoid)",
		"SELECT p.tableoid FROM people p, pg_class c":                                        "SELECT p.tableoid FROM",
		"SELECT (SELECT c.tableoid FROM pg_class c) FROM people c":                           "(SELECT c.tableoid FROM",
		"SELECT (SELECT c.tableoid FROM pg_am c) FROM pg_class c":                            "(SELECT c.tableoid FROM",
		"WITH c AS (SELECT 1 AS tableoid) SELECT c.tableoid FROM c":                          "SELECT c.tableoid FROM c",
		"SELECT c.tableoid FROM (pg_class c CROSS JOIN pg_am a) AS c":                        "SELECT c.tableoid FROM",
		"SELECT t.tableoid FROM information_schema.tables t":                                 "SELECT t.tableoid FROM",
		"SELECT d.description FROM pg_description d JOIN pg_am a ON d.classoid = a.tableoid": "ON d.classoid = ('pg_catalog.pg_am'" + constant + ")",
	} {
		result, refused := r.Rewrite(sql, false)
		if refused != nil {
			t.Errorf("%s: %v", sql, refused)
		} else if !strings.Contains(result.Text, want) {
			t.Errorf("%s:\n got %s\nwant %s", sql, result.Text, want)
		}
	}
}
