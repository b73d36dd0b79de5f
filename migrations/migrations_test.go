package migrations

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The three verifiers are flat for speed and must not drift apart.
func TestVerifiersAreAlike(t *testing.T) {
	var declared, verified []string
	for _, function := range strings.Split(baseMigrations[0].upSQL, "CREATE FUNCTION pgconsent")[1:] {
		if body, _, _ := strings.Cut(function, "END $$;"); !strings.Contains(body, "-- verify") {
			continue
		}
		function, _, _ = strings.Cut(function, "END $$;")
		for _, part := range []struct {
			into *[]string
			end  string
		}{{&declared, "-- declared"}, {&verified, "-- verified"}} {
			text, rest, ok := strings.Cut(function, part.end)
			if !ok {
				t.Fatalf("no %q in %.40s", part.end, function)
			}
			_, text, _ = strings.Cut(text, "-- verify")
			*part.into = append(*part.into, text)
			function = rest
		}
	}
	if len(verified) != 3 {
		t.Fatalf("%d verifiers", len(verified))
	}
	for i := range verified {
		if diff := cmp.Diff(declared[0], declared[i]) + cmp.Diff(verified[0], verified[i]); diff != "" {
			t.Errorf("verifier %d:\n%s", i, diff)
		}
	}
}

// assignment is what has = and is no operator.
var assignment = regexp.MustCompile(
	`SET search_path = |SET seen_at = |(ERRCODE|HINT) = |DO UPDATE SET n = |\w+ = excluded\.\w+|SET \([a-z, _]+\) = \(`)

// F1 of the findings: inside a definer function every name and every type is qualified, and the path is set.
func TestDefinerFunctionsAreClosed(t *testing.T) {
	var all strings.Builder
	for _, b := range baseMigrations {
		all.WriteString(b.upSQL)
	}
	for _, function := range strings.Split(strings.ReplaceAll(all.String(), "CREATE OR REPLACE FUNCTION ", "CREATE FUNCTION "), "CREATE FUNCTION ")[1:] {
		head, _, _ := strings.Cut(function, "$$")
		if strings.Contains(head, "SECURITY DEFINER") && !strings.Contains(head, "SET search_path = pg_catalog, pg_temp") {
			t.Errorf("no search_path: %.60s", function)
		}
		function, _, _ = strings.Cut(function, "REVOKE ALL")
		function, _, _ = strings.Cut(function, "END $$;")
		for _, cast := range strings.Split(function, "::")[1:] {
			if !strings.HasPrefix(cast, "pg_catalog.") {
				t.Errorf("an unqualified type: ::%.20s", cast)
			}
		}
		for _, operator := range []string{" = ", " || ", " + ", " > ", " < "} {
			for _, line := range strings.Split(function, "\n") {
				code, _, _ := strings.Cut(line, "--")
				if strings.Contains(assignment.ReplaceAllString(code, ""), operator) {
					t.Errorf("an unqualified operator: %s", line)
				}
			}
		}
	}
}

func TestRestore(t *testing.T) {
	p := func(object, grantee, right string, grantable bool) privilege {
		return privilege{object, grantee, right, grantable}
	}
	before := privileges{
		p("TABLE a", "PUBLIC", "SELECT", false): true, p("DATABASE", "PUBLIC", "TEMPORARY", false): true, p("DATABASE", "boss", "CREATE", true): true,
	}
	after := privileges{
		p("TABLE a", "PUBLIC", "SELECT", false): true, p("TABLE a", "agent", "SELECT", false): true, p("DATABASE", "app", "TEMPORARY", false): true,
		p("TABLE ours", "agent", "SELECT", false): true,
	}
	var got []string
	for _, s := range newPrivilegeChanges(before, after).undoStatements("d") {
		got = append(got, s.SQL)
	}
	want := []string{
		"REVOKE TEMPORARY ON DATABASE d FROM app", "REVOKE SELECT ON TABLE a FROM agent",
		"GRANT TEMPORARY ON DATABASE d TO PUBLIC", "GRANT CREATE ON DATABASE d TO boss WITH GRANT OPTION",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestScriptHidesVerifiers(t *testing.T) {
	r := &migrationRun{statements: []Statement{{"ALTER ROLE a PASSWORD 'SCRAM-SHA-256$4096:salt$stored:server'", "why"}}}
	if s := r.script(); strings.Contains(s, "salt") || !strings.Contains(s, "-- why\nALTER ROLE a PASSWORD '…';") {
		t.Error(s)
	}
}
