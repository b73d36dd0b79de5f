package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The longer how-tos are played: their commands run as they are written, like those of the tutorial.
func TestHowTosThatArePlayed(t *testing.T) {
	tier.All(t)
	for page, commands := range map[string]int{"many-users": 14, "existing-rls": 14} {
		t.Run(page, func(t *testing.T) { playPage(t, "../../docs/howto/"+page+".md", commands) })
	}
}

// The policies, configurations and JSON texts in how-tos are valid.
func TestBlocksOfHowTos(t *testing.T) {
	pages, err := filepath.Glob("../../docs/howto/*.md")
	if err != nil || len(pages) < 15 {
		t.Fatal(len(pages), err)
	}
	policies, configurations, jsonTexts := 0, 0, 0
	for _, page := range pages {
		for _, b := range codeBlocks(t, page) {
			var err error
			switch {
			case b.kind == "json":
				jsonTexts++
				if !json.Valid([]byte(b.text)) {
					err = fmt.Errorf("this is no JSON")
				}
			case b.kind != "yaml", strings.Contains("\n"+b.text, "\ntests:"):
				continue // package policytest tests these files
			case strings.Contains("\n"+b.text, "\ntables:"):
				policies++
				_, err = policy.Parse("policy.yaml", []byte(withVersion(b.text)))
			default:
				configurations++
				err = checkConfiguration(t, b.text)
			}
			if err != nil {
				t.Errorf("%s:%d: %v", page, b.line, err)
			}
		}
	}
	if policies < 5 || configurations < 8 || jsonTexts < 2 {
		t.Errorf("%d policies, %d configurations, %d texts of JSON: are the pages read?", policies, configurations, jsonTexts)
	}
}

// codeBlock is the text between two fences, without the indentation of a list item around it.
type codeBlock struct {
	kind, text string
	line       int
}

func codeBlocks(t *testing.T, page string) (out []codeBlock) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	isInBlock, indent := false, ""
	for i, line := range strings.Split(string(text), "\n") {
		trimmedLine := strings.TrimLeft(line, " ")
		switch kind, fence := strings.CutPrefix(trimmedLine, "```"); {
		case fence && isInBlock:
			isInBlock = false
		case fence:
			isInBlock, indent = true, line[:len(line)-len(trimmedLine)]
			out = append(out, codeBlock{kind: kind, line: i + 1})
		case isInBlock:
			out[len(out)-1].text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	return out
}

func withVersion(text string) string {
	if strings.HasPrefix(text, "version:") || strings.Contains(text, "\nversion:") {
		return text
	}
	return "version: 1\n" + text
}

// checkConfiguration loads some keys as a configuration, with default sections for required keys that are missing.
func checkConfiguration(t *testing.T, text string) error {
	t.Helper()
	for _, defaultSection := range []string{
		"databases: { app: { policy: policy.yaml, owners: [app_owner] }, " +
			"postgres: { policy: policy.yaml, owners: [postgres] } }\n",
		"tls: { cert: server.crt, key: server.key }\n",
	} {
		key, _, _ := strings.Cut(defaultSection, ":")
		if !strings.Contains("\n"+text, "\n"+key+":") {
			text += defaultSection
		}
	}
	path := filepath.Join(t.TempDir(), "pgconsent.yaml")
	if err := os.WriteFile(path, []byte(withVersion(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := config.Load(path)
	return err
}

// The policy on the page about Supabase fits the tables that the page shows. The function there makes the claims that the
// page's configuration expects.
func TestSupabasePage(t *testing.T) {
	var sql, policies []string
	for _, b := range codeBlocks(t, "../../docs/howto/supabase.md") {
		switch {
		case b.kind == "sql":
			sql = append(sql, b.text)
		case b.kind == "yaml" && strings.Contains(b.text, "\ntables:"):
			policies = append(policies, b.text)
		}
	}
	if len(sql) != 2 || len(policies) != 1 {
		t.Fatalf("%d blocks of SQL and %d policies", len(sql), len(policies))
	}
	conn := pgtest.Database(t).Connect(t, "postgres")
	function, _, _ := strings.Cut(sql[1], "\nGRANT")
	if _, err := conn.Exec(t.Context(), sql[0]+function); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(t.Context(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Parse("supabase.md", []byte(policies[0]))
	if err == nil {
		_, err = policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
	}
	if err != nil {
		t.Error(err)
	}
	var claims string
	const token = `SELECT token_for_agents('{"user_id": "1", "claims": {"sub": "1", "role": "authenticated"}}') ->> 'claims'`
	if err := conn.QueryRow(t.Context(), token).Scan(&claims); err != nil {
		t.Fatal(err)
	}
	for _, claim := range []string{`"sub": "1"`, `"role": "authenticated"`, `"pgconsent_role": "agent"`, `"pgconsent_agent": "assistant"`} {
		if !strings.Contains(claims, claim) {
			t.Errorf("no %s in %s", claim, claims)
		}
	}
}
