package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/verdict"
)

// What takes the gate door, and the first thing that keeps others from it.
func TestDoorReasons(t *testing.T) {
	r := rewriter(t, Gate)
	for sql, reason := range map[string]string{
		"SELECT title FROM memories WHERE title LIKE '%lake%'":                   "",
		"SELECT m.title, n.body FROM memories m, notes n WHERE m.title = n.body": "",
		"SELECT body FROM notes":                                                             "no table that rows are hidden in",
		"SELECT 1":                                                                           "no table that rows are hidden in",
		"SELECT title FROM memories; SELECT 1":                                               "exactly one statement",
		"COPY (SELECT title FROM memories) TO STDOUT":                                        "only SELECT",
		"SELECT relname FROM pg_class, memories":                                             "it reads pg_class",
		`SELECT title FROM memories WHERE title = 'a\b'`:                                     "backslash",
		`SELECT title FROM memories WHERE title = E'a\\b'`:                                   "",
		"SELECT title FROM ONLY memories":                                                    "ONLY",
		"SELECT m FROM memories m":                                                           "whole-row",
		"SELECT title FROM memories WHERE length(title) + 1 > 3":                             "operator +",
		"SELECT title FROM memories WHERE title ~ 'a'":                                       "operator ~",
		"SELECT title FROM memories WHERE title OPERATOR(public.###) 'a'":                    "",
		"SELECT date_trunc('day', occurred_at) FROM memories":                                "function date_trunc",
		"SELECT title::varchar(3) FROM memories":                                             "a type",
		"SELECT (SELECT sum(length(title)) FROM memories) FROM people":                       "aggregate sum inside",
		"SELECT (SELECT title FROM memories LIMIT 1)":                                        "several rows",
		"SELECT (SELECT max(p.name) FROM memories) FROM people p":                            "plainly a column",
		"SELECT title FROM memories WHERE title = current_user":                              "CURRENT_USER",
		"SELECT title FROM memories ORDER BY embedding":                                      "type that is not vetted",
		"SELECT count(*) OVER () FROM memories":                                              "OVER",
		"WITH RECURSIVE x AS (SELECT 1) SELECT title FROM memories":                          "RECURSIVE",
		"SELECT title FROM memories WHERE title IN (VALUES ('a'))":                           "VALUES",
		"SELECT title FROM memories ORDER BY title FETCH FIRST 1 ROW WITH TIES":              "WITH TIES",
		"SELECT title FROM memories WHERE title LIKE (CASE WHEN true THEN 'a' ELSE 'b' END)": "operator ~~",
	} {
		result, refused := r.Rewrite(sql, false)
		if refused != nil {
			if reason != "" || !strings.Contains(sql, "###") {
				t.Errorf("%s: %v", sql, refused)
			}
			continue
		}
		gate := result.Door == verdict.DoorGate
		if gate != (reason == "") || !strings.Contains(result.DoorReason, reason) || gate != result.NeedsSignature || gate != strings.Contains(result.Text, "pgconsent_gate.door_") {
			t.Errorf("%s: door %s, %q\n%s", sql, result.Door, result.DoorReason, result.Text)
		}
	}
	result, _ := r.Rewrite("SELECT title FROM memories AS m WHERE m.id = 'd0000000-0000-4000-8000-000000000001'::uuid AND lower(title) = 'x'", false)
	const want = "SELECT title FROM pgconsent_gate.door_public_memories AS m WHERE m.id = 'd0000000-0000-4000-8000-000000000001'::pg_catalog.uuid AND pg_catalog.lower(title) = 'x'"
	if result.Text != want {
		t.Errorf("got  %s\nwant %s", result.Text, want)
	}
}

// Every entry of the list says why it is on it, and speaks of kinds that there are.
func TestVettedListIsWellFormed(t *testing.T) {
	kinds := map[kind]bool{"any": true, "pattern": true, "string": true, "short": true, "field": true, "integer": true, "natural": true, "same": true,
		kindEnum: true, kindNow: true, kindSpan: true}
	for _, k := range typeKinds {
		kinds[k] = true
	}
	for name, entries := range vettedList {
		what, called, _ := strings.Cut(name, " ")
		for _, e := range entries {
			if e.reason == "" || !kinds[e.result] {
				t.Errorf("%s: result %q, reason %q", name, e.result, e.reason)
			}
			for _, operands := range e.operands {
				for _, k := range operands {
					if !kinds[k] {
						t.Errorf("%s: operand %q", name, k)
					}
				}
			}
		}
		if (what == "function" || what == "aggregate") && catalogFunctions[called].class != classAllow {
			t.Errorf("%s is not a function that agents may call", called)
		}
		if what == "operator" && !operatorList.allows(ofCatalog, called) {
			t.Errorf("%s is not an operator that agents may use", called)
		}
	}
}
