package policytest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.MainAlone(m) }

func dsn(user string) string {
	return fmt.Sprintf("host=%s port=%d user=%s dbname=postgres", pgtest.SocketDir(), pgtest.Port(), user)
}

func superuser(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// The policy tests of the worlds and of the cookbook pass, and cover every block of their policies.
func TestWorlds(t *testing.T) {
	tier.All(t)
	files, err := FindFiles([]string{"../../../examples/worlds", "../../../examples/cookbook", "../../../examples/worlds/ciris/policy_registry_test.yaml"})
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	s, err := NewPrivateServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := s.dir
	for i, file := range files {
		if !tier.IsPicked(i, 1) {
			continue
		}
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			r, err := Run(t.Context(), s, file, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			p := Printer{Out: &b}
			for _, result := range r.Results {
				p.PrintTest(result)
			}
			p.PrintFile(r)
			if !r.HasPassed() || strings.Contains(b.String(), "not covered") {
				t.Errorf("%s", b.String())
			}
		})
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the server's folder is still there: %v", err)
	}
}

// A failed test is reported with its position and the rows. The databases and roles are dropped afterwards. The role
// that runs this is no superuser.
func TestReport(t *testing.T) {
	tier.All(t)
	admin := superuser(t)
	for _, sql := range []string{"CREATE ROLE ci LOGIN CREATEDB CREATEROLE"} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = admin.Exec(context.Background(), "DROP ROLE ci") })
	s, err := NewServerOn(t.Context(), dsn("ci"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), s, filepath.Join("testdata", "small", FileName), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
	var leftCount int
	if err := admin.QueryRow(t.Context(),
		"SELECT (SELECT count(*) FROM pg_database WHERE datname LIKE 'pgconsent_test%') + (SELECT count(*) FROM "+
			"pg_roles WHERE rolname LIKE 'pgconsent_test%')").Scan(&leftCount); err != nil || leftCount != 0 {
		t.Errorf("%d databases and roles are left: %v", leftCount, err)
	}
	var b bytes.Buffer
	p := Printer{Out: &b}
	for i := range r.Results {
		r.Results[i].Duration = 0
		p.PrintTest(r.Results[i])
	}
	r.Duration = 0
	p.PrintFile(r)
	want := `  ok    keys of several columns (0s)
  ok    the other tenant (0s)
  FAIL  an answer (0s)
        testdata/small/policy_test.yaml:30:11: as seven, SELECT line FROM "Order Lines": the number of rows is another
          expected  3
          got       2
                    1
                    3
  FAIL  a change in between (0s)
        testdata/small/policy_test.yaml:34:26: as seven, hides people: 1 row is visible and should be hidden
          expected  nothing
          got       1
  FAIL  a row that is not there (0s)
        testdata/small/policy_test.yaml:40:31: public.people has no such row (what a caller does not see must be there for the owner, else nothing is tested)
  2 of 5 tests passed, 4 of 5 blocks of 3 tables covered (0s)
  not covered public.log: open  testdata/small/policy.yaml:12:16: no test has a row that shows because of it
`
	if got := b.String(); got != want {
		t.Errorf("the report is\n%s\nwant\n%s", got, want)
	}
	var x bytes.Buffer
	if err := WriteJUnit(&x, []Report{r}); err != nil {
		t.Fatal(err)
	}
	for _, wantedText := range []string{`tests="5" failures="2" errors="1"`, `<failure message="the number of rows is another">`,
		`line="31"`} {
		if !strings.Contains(x.String(), wantedText) {
			t.Errorf("the JUnit report has no %s:\n%s", wantedText, x.String())
		}
	}
}

// A block is covered only by checked rows that are shown or hidden because of it. If a statement of a test's "when"
// fails, the error is reported at that statement, whatever the test expects.
func TestCoverageAndFailedChanges(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"schema.sql": "CREATE TABLE notes (id int PRIMARY KEY, tenant int, state text);",
		"policy.yaml": `version: 1
attributes: { tenant: { type: integer, source: credential } }
tables: { notes: { rows: [ own: { column: tenant, is: tenant }, status: { column: state, is: shared } ] } }
`, FileName: `version: 1
callers: { one: { attributes: { tenant: 1 } } }
given: { notes: [ { id: 1, tenant: 1, state: shared }, { id: 2, tenant: 2, state: shared }, { id: 3, tenant: 1 } ] }
tests:
  - { name: theirs, as: one, then: { shows: { notes: [1] }, hides: { notes: [2] } } }
  - { name: changed, as: one, when: [ SELECT 1, SELECT 1/0 ], then: { shows: { notes: [1] } } }
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := NewServerOn(t.Context(), dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	r, err := Run(t.Context(), s, filepath.Join(dir, FileName), Options{})
	if err != nil || len(r.Results) != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	if !r.Results[0].HasPassed {
		t.Errorf("%+v", r.Results[0])
	}
	if changeResult := r.Results[1]; changeResult.HasPassed ||
		!strings.Contains(changeResult.Problems.Error(), FileName+":6:49: division by zero") {
		t.Errorf("a change failed: %t, %v", changeResult.HasPassed, changeResult.Problems)
	}
	coveredRules := map[string][2]bool{}
	for _, c := range r.Coverage {
		coveredRules[c.Block] = [2]bool{c.HasShown, c.Hidden}
	}
	want := map[string][2]bool{"own": {true, true}, "status": {true, false}} // no test checks note 3
	if !maps.Equal(coveredRules, want) {
		t.Errorf("covered (a row that shows, one that is hidden): %v, want %v", coveredRules, want)
	}
}

// A role that may not create databases gets an error that says who could grant that.
func TestServerWithoutRights(t *testing.T) {
	admin := superuser(t)
	if _, err := admin.Exec(t.Context(), "CREATE ROLE poor LOGIN"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = admin.Exec(context.Background(), "DROP ROLE poor") })
	if _, err := NewServerOn(t.Context(), dsn("poor")); err == nil || !strings.Contains(err.Error(), "may not make databases and roles") {
		t.Errorf("%v", err)
	}
}

// The error for each mistake has a position and says what to write.
func TestInvalidFiles(t *testing.T) {
	const head = "version: 1\ncallers: { chat: { attributes: { user: 1 } } }\n"
	for _, c := range []struct{ text, want string }{
		{"", `:1:1: the file is empty (begin with "version: 1")`},
		{"version: 2\ntests: []", `:1:10: unknown version of the tests (this pgconsent reads version 1)`},
		{head, `:1:1: the file has no tests (tests: [ { name: …, as: …, then: [ { sees: … } ] } ])`},
		{head + "test: []", `:3:1: unknown key "test" in the file (did you mean "tests"?)`},
		{head + "tests:\n  - as: chat\n    then: { sees: { t: 1 } }", `:4:5: the test has no name (say in a sentence what must hold)`},
		{head + "tests:\n  - name: a\n    as: chta\n    then: { sees: { t: 1 } }", `:5:9: there is no caller "chta" (did you mean "chat"?)`},
		{head + "tests:\n  - name: a\n    then: { sees: { t: 1 } }", `:5:13: nobody is said to be the caller (as: chat)`},
		{head + "tests:\n  - name: a\n    as: chat\n    then: { see: { t: 1 } }", `:6:13: unknown key "see" in then (did you mean "sees"?)`},
		{head + "tests:\n  - name: a\n    as: chat\n    then: { sees: { t: one } }",
			`:6:24: rows are a list of keys, a number, all or none (write [ one ] for one row by its key)`},
		{head + "tests:\n  - name: a\n    as: chat\n    then: { query: SELECT 1 }",
			`:6:13: a query needs one answer that is expected (one of: value, rows, count, changes, error)`},
		{head + "tests:\n  - name: a\n    as: chat\n    then: { query: SELECT 1, error: denied }",
			`:6:37: "denied" is no SQLSTATE (error: 42501, or "any")`},
		{head + "tests:\n  - name: a\n    as: chat\n    then: { value: 1 }", `:6:20: "value" needs a query (query: SELECT …)`},
		{head + "tests:\n  - name: a\n    as: chat", `:4:5: the test "a" expects nothing (then: [ { sees: { table: [ keys ] } } ])`},
		{head + "schema: [ there.sql ]\ntests: []", `:3:9: schema: there is no file there.sql (paths are relative to this file)`},
		{head + "tests: [ { name: a", `:3:10: could not find`},
	} {
		file := filepath.Join(t.TempDir(), FileName)
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(file)
		if err == nil || !strings.HasPrefix(err.Error(), file+c.want) {
			t.Errorf("%s\ngives %v\nwant  %s", c.text, err, c.want)
		}
	}
}

// Mistakes that show only against the schema and the policy have positions as well.
func TestFilesThatDoNotFitTheSchema(t *testing.T) {
	tier.All(t)
	s, err := NewServerOn(t.Context(), dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	readFile := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join("testdata", "small", name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const test = "\ntests: [ { name: a, as: c, then: { sees: { people: 0 } } } ]\n"
	for _, c := range []struct{ text, schema, want string }{
		{"callers: { c: { attributes: { tenant: x } } }" + test, "", `policy_test.yaml:2:12: caller c: `},
		{"callers: { c: { attributes: { tenants: 1 } } }" + test,
			"", `policy_test.yaml:2:12: caller c: the policy declares no attribute "tenants" (did you mean "tenant"?)`},
		{"callers: { c: { attributes: { tenant: 1 } } }\ngiven: { poeple: { id: 1 } }" + test, "",
			`policy_test.yaml:3:10: the schema has no table "poeple" (did you mean "people"?)`},
		{"callers: { c: { attributes: { tenant: 1 } } }\ngiven: { people: { idd: 1 } }" + test, "",
			`policy_test.yaml:3:20: public.people has no column "idd" (did you mean "id"?)`},
		{"callers: { c: { attributes: { tenant: 1 } } }\ngiven: { people: { id: 1 } }" + test, "", `policy_test.yaml:3:20: null value in column "name"`},
		{"callers: { c: { attributes: { tenant: 1 } } }" + test, "CREATE TABLE t (id int);\nCREATE TABEL u ();",
			`schema.sql:2:8: syntax error at or near "TABEL"`},
		{"policy: none.yaml\ncallers: { c: { attributes: { tenant: 1 } } }" + test, "", `policy_test.yaml:2:9: there is no policy `},
	} {
		dir := t.TempDir()
		schema := readFile("schema.sql")
		if c.schema != "" {
			schema = []byte(c.schema)
		}
		for name, text := range map[string][]byte{"schema.sql": schema, "policy.yaml": readFile("policy.yaml"), FileName: []byte("version: 1\n" + c.text)} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Run(t.Context(), s, filepath.Join(dir, FileName), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Problems) == 0 || !strings.HasPrefix(r.Problems.Error(), filepath.Join(dir, c.want)) {
			t.Errorf("%s\ngives %v\nwant  %s", c.text, r.Problems, c.want)
		}
	}
}

// A change is noticed once, whether an editor replaces the file or writes it in several steps.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, FileName)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- WaitForChange(ctx, []string{file}) }()
	for {
		select {
		case err := <-done:
			if err != nil || ctx.Err() != nil {
				t.Errorf("%v %v", err, ctx.Err())
			}
			return
		case <-time.After(400 * time.Millisecond):
			if err := os.WriteFile(file+".new", []byte("version: 1"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
		}
	}
}
