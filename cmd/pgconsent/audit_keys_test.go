package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Outcomes say which rows of a table were returned, by commitments to their keys, and say so where they cannot tell.
func TestRecordedKeys(t *testing.T) {
	tier.All(t)
	i := installWithAudit(t)
	file := filepath.Join(i.dir(), "policy.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	with := strings.Replace(string(text), "  memories:\n", "  memories:\n    audit: { keys: true }\n", 1)
	if with == string(text) {
		t.Fatalf("the policy has no table memories:\n%s", text)
	}
	if err := os.WriteFile(file, []byte(with), 0o600); err != nil {
		t.Fatal(err)
	}
	p, address := i.serving(t)
	agent := connect(t, i.dsn("chat", address))
	type want struct {
		sql   string
		exact bool
		rows  bool
		mode  pgx.QueryExecMode
	}
	var wants []want
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeDescribeExec} {
		wants = append(wants,
			want{"SELECT id, title FROM memories", true, true, mode},
			want{"SELECT id, title FROM memories", true, true, mode}, // prepared and described once
			want{"SELECT title, m.id AS other FROM memories m ORDER BY title", true, true, mode},
			want{"SELECT * FROM memories", true, true, mode},
			want{"SELECT id FROM memories WHERE id = -1", true, false, mode},
			want{"SELECT title FROM memories", false, false, mode},
			want{"SELECT title AS id FROM memories", false, false, mode},
			want{"SELECT id + 0 AS id, title FROM memories", false, false, mode},
			want{"SELECT count(*) FROM memories", false, false, mode},
			want{"SELECT a.id, b.title FROM memories a, memories b", false, true, mode},
			want{"SELECT a.id, b.id FROM memories a, memories b", false, false, mode},
			want{"SELECT id, (SELECT max(title) FROM memories) FROM memories", false, true, mode},
		)
	}
	wants = append(wants, want{"PREPARE s AS SELECT id FROM memories", true, false, pgx.QueryExecModeSimpleProtocol},
		want{"EXECUTE s", false, true, pgx.QueryExecModeSimpleProtocol})
	var id string
	for _, w := range wants {
		rows, err := agent.Query(t.Context(), w.sql, w.mode)
		if err != nil {
			t.Fatalf("%s: %v", w.sql, err)
		}
		for rows.Next() {
			if w.sql == "SELECT id FROM memories WHERE id = -1" {
				t.Error("there is a row -1")
			}
		}
		if rows.Err() != nil {
			t.Fatalf("%s: %v", w.sql, rows.Err())
		}
	}
	if err := agent.QueryRow(t.Context(), "SELECT id::text FROM memories").Scan(&id); err != nil {
		t.Fatal(err)
	}
	agent.Close(t.Context())
	p.signal(t, os.Interrupt)
	p.awaitEnd(t)

	key, err := audit.LoadKey(filepath.Join(i.dir(), "audit.key"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if _, err := (audit.VerifyOptions{Key: key}).Walk(filepath.Join(i.dir(), "audit"), func(r audit.Record) error {
		if r.Kind != audit.KindOutcome {
			return nil
		}
		var o audit.Outcome
		if err := json.Unmarshal(r.Line, &o); err != nil {
			return err
		}
		if n >= len(wants) {
			return nil
		}
		w := wants[n]
		n++
		var list []string
		if w.rows {
			list = []string{key.Commit(o.Session, "public.memories", id)}
		}
		if strings.HasPrefix(w.sql, "PREPARE") {
			return nil
		}
		if len(o.Keys) != 1 || o.Keys[0].Table != "public.memories" || o.Keys[0].AreComplete != w.exact || !slices.Equal(o.Keys[0].Commitments, list) {
			t.Errorf("%s (%v): %+v, want exact %v, rows %v", w.sql, w.mode, o.Keys, w.exact, list)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n != len(wants) {
		t.Errorf("%d outcomes of %d", n, len(wants))
	}
}
