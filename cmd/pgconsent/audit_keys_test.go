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

// The outcome of a statement says which rows of a table were returned, by commitments to their keys. If it cannot tell,
// it says so.
func TestRecordedKeys(t *testing.T) {
	tier.All(t)
	i := installWithAudit(t)
	file := filepath.Join(i.dir(), "policy.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	auditedPolicy := strings.Replace(string(text), "  memories:\n", "  memories:\n    audit: { keys: true }\n", 1)
	if auditedPolicy == string(text) {
		t.Fatalf("the policy has no table memories:\n%s", text)
	}
	if err := os.WriteFile(file, []byte(auditedPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	p, address := i.startServe(t)
	agent := connect(t, i.dsn("chat", address))
	type keysCase struct {
		sql     string
		isExact bool
		rows    bool
		mode    pgx.QueryExecMode
	}
	var keysCases []keysCase
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeDescribeExec} {
		keysCases = append(keysCases,
			keysCase{"SELECT id, title FROM memories", true, true, mode},
			keysCase{"SELECT id, title FROM memories", true, true, mode}, // the statement was prepared and described by the one before
			keysCase{"SELECT title, m.id AS other FROM memories m ORDER BY title", true, true, mode},
			keysCase{"SELECT * FROM memories", true, true, mode},
			keysCase{"SELECT id FROM memories WHERE id = -1", true, false, mode},
			keysCase{"SELECT title FROM memories", false, false, mode},
			keysCase{"SELECT title AS id FROM memories", false, false, mode},
			keysCase{"SELECT id + 0 AS id, title FROM memories", false, false, mode},
			keysCase{"SELECT count(*) FROM memories", false, false, mode},
			keysCase{"SELECT a.id, b.title FROM memories a, memories b", false, true, mode},
			keysCase{"SELECT a.id, b.id FROM memories a, memories b", false, false, mode},
			keysCase{"SELECT id, (SELECT max(title) FROM memories) FROM memories", false, true, mode},
		)
	}
	keysCases = append(keysCases, keysCase{"PREPARE s AS SELECT id FROM memories", true, false, pgx.QueryExecModeSimpleProtocol},
		keysCase{"EXECUTE s", false, true, pgx.QueryExecModeSimpleProtocol})
	var id string
	for _, w := range keysCases {
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
		if n >= len(keysCases) {
			return nil
		}
		w := keysCases[n]
		n++
		var list []string
		if w.rows {
			list = []string{key.Commit(o.Session, "public.memories", id)}
		}
		if strings.HasPrefix(w.sql, "PREPARE") {
			return nil
		}
		if len(o.Keys) != 1 || o.Keys[0].Table != "public.memories" || o.Keys[0].AreComplete != w.isExact || !slices.Equal(o.Keys[0].Commitments, list) {
			t.Errorf("%s (%v): %+v, want exact %v, rows %v", w.sql, w.mode, o.Keys, w.isExact, list)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n != len(keysCases) {
		t.Errorf("%d outcomes of %d", n, len(keysCases))
	}
}
