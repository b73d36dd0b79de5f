package rewrite

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
)

// The examples of docs/reference/policy-contracts.md are right: the policy compiles, and each statement is allowed or
// refused as the page says.
func TestContractsDocument(t *testing.T) {
	ctx := context.Background()
	text, err := os.ReadFile("../docs/reference/policy-contracts.md")
	if err != nil {
		t.Fatal(err)
	}
	codeBlocks := regexp.MustCompile("(?s)```(yaml|sql|text)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(codeBlocks) != 3 {
		t.Fatalf("%d blocks", len(codeBlocks))
	}
	conn := pgtest.Database(t).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(ctx, codeBlocks[0][2]).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(ctx, conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Parse("policy-contracts.md", []byte(codeBlocks[1][2]))
	if err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Compile(doc, snap, policy.WithViews(RewriteViewQuery))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range pol.Warnings() {
		t.Log(w)
	}
	r := New(snap, pol, InjectedMode)
	lines := strings.Split(strings.TrimSpace(codeBlocks[2][2]), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		head, sql, _ := strings.Cut(lines[i], ": ")
		values := map[string]string{"user": "1", "members": "2", "intent": "stay"}
		for _, query := range strings.Split(head, ", ") {
			name, value, _ := strings.Cut(query, " ")
			values[name] = value
		}
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
			continue
		}
		got := "allowed"
		if err := pol.Judge(result.Statements[0], values); err != nil {
			got = err.Message
		}
		if want := strings.TrimSpace(lines[i+1]); got != want {
			t.Errorf("%s\n got %s\nwant %s", lines[i], got, want)
		}
	}
	if len(lines) < 30 {
		t.Errorf("only %d lines", len(lines))
	}
}
