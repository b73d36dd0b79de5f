package rewrite

import (
	"strings"
	"testing"
)

// CREATE … IF NOT EXISTS succeeds without doing anything if the object exists and is visible. Otherwise it is refused,
// with the same error whether the object is hidden or missing.
func TestCreateIfNotExists(t *testing.T) {
	r := rewriter(t, InjectedMode)
	for sql, want := range map[string]string{
		"CREATE EXTENSION IF NOT EXISTS plpgsql":                           `42710 extension "plpgsql" already exists, skipping, CREATE EXTENSION`,
		"create extension if not exists plpgsql with schema x cascade;":    `42710 extension "plpgsql" already exists, skipping, CREATE EXTENSION`,
		"CREATE SCHEMA IF NOT EXISTS public":                               `42P06 schema "public" already exists, skipping, CREATE SCHEMA`,
		"CREATE TABLE IF NOT EXISTS people (id int, other public.nothing)": `42P07 relation "people" already exists, skipping, CREATE TABLE`,
		"CREATE TABLE IF NOT EXISTS public.people (LIKE secrets)":          `42P07 relation "people" already exists, skipping, CREATE TABLE`,

		"CREATE INDEX IF NOT EXISTS people_pkey ON people (name)": `42P07 relation "people_pkey" already exists, skipping, CREATE INDEX`,

		"CREATE EXTENSION plpgsql":                                 "",
		"CREATE EXTENSION IF NOT EXISTS nothing":                   "",
		"CREATE SCHEMA IF NOT EXISTS nothing":                      "",
		"CREATE SCHEMA IF NOT EXISTS pgconsent":                    "",
		"CREATE SCHEMA public":                                     "",
		"CREATE TABLE people (id int)":                             "",
		"CREATE TABLE IF NOT EXISTS secrets (id int)":              "",
		"CREATE TABLE IF NOT EXISTS nothing (id int)":              "",
		"CREATE TABLE IF NOT EXISTS pg_catalog.pg_class (a int)":   "",
		"CREATE TEMP TABLE IF NOT EXISTS people (id int)":          "",
		"CREATE INDEX IF NOT EXISTS nothing ON people (name)":      "",
		"CREATE INDEX IF NOT EXISTS secrets_pkey ON people (name)": "",
		"CREATE INDEX ON people (name)":                            "",
	} {
		res, refusal := r.Rewrite(sql, false)
		switch {
		case want == "" && (refusal == nil || refusal.Code != "42501"):
			t.Errorf("%s: %v", sql, refusal)
		case want != "" && refusal != nil:
			t.Errorf("%s: %v", sql, refusal)
		case want != "":
			e := res.Effects[0]
			if got := string(e.Notices[0].Code) + " " + e.Notices[0].Message + ", " + e.CommandTag; got != want ||
				!strings.HasPrefix(res.Text, "DO LANGUAGE plpgsql $pgconsent$BEGIN RAISE NOTICE") {
				t.Errorf("%s: %s, goes out as %s", sql, got, res.Text)
			}
		}
	}
	res, refusal := r.Rewrite("SELECT 1; CREATE SCHEMA IF NOT EXISTS public; SELECT name FROM people", false)
	if refusal != nil || !strings.HasPrefix(res.Text, "SELECT 1; DO LANGUAGE plpgsql $pgconsent$") {
		t.Errorf("among others: %v, %v", res, refusal)
	}
}
