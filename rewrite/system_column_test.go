package rewrite

import (
	"strings"
	"testing"
)

// tableoid is replaced by a constant only where every FROM item of the name is the same catalog.
func TestTableOIDOfCatalogs(t *testing.T) {
	r := rewriter(t, RowSecurityMode)
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
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
		} else if !strings.Contains(result.Text, want) {
			t.Errorf("%s:\n got %s\nwant %s", sql, result.Text, want)
		}
	}
}

// xmin is replaced by FrozenTransactionId where it certainly belongs to a catalog.
func TestXminOfCatalogs(t *testing.T) {
	r := rewriter(t, RowSecurityMode)
	const frozenXID = "('2'::pg_catalog.xid)"
	for sql, want := range map[string]string{
		"SELECT c.xmin FROM pg_class c": "SELECT " + frozenXID + " AS xmin FROM",
		"SELECT xmin, xmin AS x FROM pg_catalog.pg_collation": "SELECT " + frozenXID + " AS xmin, " + frozenXID +
			" AS x FROM",
		"SELECT c.xmin::varchar::bigint FROM pg_constraint c":                        "SELECT " + frozenXID + "::varchar::bigint FROM",
		"SELECT 1 FROM pg_am WHERE age(xmin) <= 7":                                   "age(" + frozenXID + ") <= 7",
		"SELECT 1 FROM pg_am a, pg_class c WHERE age(c.xmin) <= 7":                   "age(" + frozenXID + ") <= 7",
		"SELECT oid AS xmin FROM pg_am ORDER BY xmin":                                "ORDER BY xmin",
		"SELECT age(xmin) FROM (SELECT '7'::xid AS xmin) AS x":                       "age(xmin) FROM",
		"SELECT xmin FROM pg_am, pg_class":                                           "SELECT xmin FROM",
		"SELECT (SELECT age(xmin) FROM (SELECT '7'::xid AS xmin) x) FROM pg_am":      "age(xmin) FROM",
		"WITH c AS (SELECT xmin AS n FROM pg_proc WHERE oid = 1) SELECT c.n FROM c":  "SELECT " + frozenXID + " AS n FROM",
		"SELECT a.xmin FROM pg_am a JOIN (SELECT 1 AS xmin) b ON true ORDER BY xmin": "SELECT " + frozenXID + " AS xmin FROM",
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
		} else if !strings.Contains(result.Text, want) {
			t.Errorf("%s:\n got %s\nwant %s", sql, result.Text, want)
		}
	}
	for _, sql := range []string{"SELECT xmin FROM people", "SELECT p.xmin FROM people p, pg_am c", "SELECT age(xmin) FROM memories",
		"SELECT (SELECT p.xmin FROM pg_am c) FROM people p", "SELECT xmax FROM memories"} {
		if _, refusal := r.Rewrite(sql, false); refusal == nil {
			t.Errorf("%s is allowed", sql)
		}
	}
}

// Clients ask for the transaction number so that a standby answers NULL. In statements of that form it becomes NULL;
// elsewhere it is refused.
func TestTransactionNumberOfAStandby(t *testing.T) {
	r := rewriter(t, RowSecurityMode)
	const replacement = "(NULL::pg_catalog.int8)"
	for _, sql := range []string{
		"SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE txid_current() END",
		"SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN NULL ELSE (pg_catalog.txid_current() % 4294967296)::varchar::bigint END AS n",
	} {
		if result, refusal := r.Rewrite(sql, false); refusal != nil || !strings.Contains(result.Text, replacement) {
			t.Errorf("%s: %v, %v", sql, result, refusal)
		}
	}
	for _, sql := range []string{
		"SELECT txid_current()", "SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE txid_current() END",
		"SELECT CASE WHEN pg_is_in_recovery() THEN txid_current() ELSE NULL END", "SELECT CASE WHEN true THEN NULL ELSE txid_current() END",
		"SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE 1 END, txid_current()",
		"SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_xact_id() END",
		"SELECT CASE pg_is_in_recovery() WHEN pg_is_in_recovery() THEN NULL ELSE txid_current() END",
	} {
		if _, refusal := r.Rewrite(sql, false); refusal == nil {
			t.Errorf("%s is allowed", sql)
		}
	}
}
