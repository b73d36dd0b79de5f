package rewrite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// The server decides which transactions keep one snapshot, however the isolation level is requested. A text says
// whether it sets such a level, for its own transaction or for all later ones.
func TestTransactionsThatKeepASnapshot(t *testing.T) {
	r := rewriter(t, InjectedMode)
	conn := database(t).Connect(t, "postgres")
	level := func(requested string) string {
		t.Helper()
		var activeLevel string
		if err := conn.QueryRow(context.Background(), "SELECT current_setting('"+requested+"')").Scan(&activeLevel); err != nil {
			t.Fatal(err)
		}
		return activeLevel
	}
	keepsSnapshot := func(activeLevel string) bool {
		return activeLevel == "repeatable read" || activeLevel == "serializable"
	}
	notInjected, sessions := 0, 0
	for _, requested := range []string{"read committed", "READ UNCOMMITTED", "repeatable read", "REPEATABLE READ", "serializable",
		"Serializable"} {
		for _, form := range []string{
			"BEGIN ISOLATION LEVEL %s", "START TRANSACTION ISOLATION LEVEL %s, READ ONLY",
			"BEGIN TRANSACTION READ ONLY, ISOLATION LEVEL %s, DEFERRABLE", "BEGIN WORK ISOLATION LEVEL %s READ WRITE",
			"BEGIN; SET TRANSACTION ISOLATION LEVEL %s", "BEGIN; SET LOCAL TRANSACTION ISOLATION LEVEL %s",
			"BEGIN; SET transaction_isolation = '%s'", "BEGIN; SET LOCAL transaction_isolation TO '%s'",
			`BEGIN; SET SESSION "transaction_isolation" TO '%s'`, "BEGIN; SET TRANSACTION_ISOLATION = '%s'",
			"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL %s",
			"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY, ISOLATION LEVEL %s",
			"SET default_transaction_isolation = '%s'", "SET SESSION default_transaction_isolation TO '%s'",
			"SET Default_Transaction_Isolation = '%s'",
			"BEGIN; SET LOCAL default_transaction_isolation = '%s'; SELECT 1",
			"SELECT set_config('transaction_isolation', '%s', true)", "SELECT set_config('default_transaction_isolation', '%s', false)",
			"BEGIN; SELECT set_config('Transaction_Isolation', '%s', false)",
			"BEGIN ISOLATION LEVEL %s; COMMIT; BEGIN", "BEGIN ISOLATION LEVEL %s; COMMIT AND CHAIN", "BEGIN ISOLATION LEVEL %s; ROLLBACK AND CHAIN",
		} {
			sql := fmt.Sprintf(form, requested)
			result, refusal := r.Rewrite(sql, false)
			if refusal != nil {
				continue
			}
			if _, err := conn.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			isolation := level("transaction_isolation")
			if _, err := conn.PgConn().Exec(context.Background(), "ROLLBACK").ReadAll(); err != nil {
				t.Fatal(err)
			}
			defaultLevel := level("default_transaction_isolation")
			if _, err := conn.PgConn().Exec(context.Background(), "RESET ALL").ReadAll(); err != nil {
				t.Fatal(err)
			}
			hasSnapshotHold := func(k verdict.SnapshotHold) bool {
				return slices.ContainsFunc(result.Effects, func(e verdict.Effect) bool { return e.SnapshotHold == k })
			}
			switch {
			case keepsSnapshot(defaultLevel):
				sessions++
				if !hasSnapshotHold(verdict.HoldForSession) {
					t.Errorf("%s: every transaction keeps its snapshot, and nothing says so", sql)
				}
			case keepsSnapshot(isolation):
				notInjected++
				if !hasSnapshotHold(verdict.HoldForTransaction) && !hasSnapshotHold(verdict.HoldForSession) {
					t.Errorf("%s: it keeps its snapshot, and nothing says so", sql)
				}
			case strings.HasPrefix(strings.ToLower(requested), "read") &&
				(hasSnapshotHold(verdict.HoldForTransaction) || hasSnapshotHold(verdict.HoldForSession)):
				t.Errorf("%s is said to keep a snapshot", sql)
			}
		}
	}
	if notInjected < 30 || sessions < 15 {
		t.Errorf("%d transactions and %d sessions were tried", notInjected, sessions)
	}
}

// The result of a statement that sets a claim of the policy says so, with the value as the server will have it, because
// the proxy tracks claims.
func TestStatementsThatSetAClaim(t *testing.T) {
	claiming := *rewriter(t, InjectedMode)
	claiming.claims = map[string]string{"app.mode": "mode"}
	conn := database(t).Connect(t, "postgres")
	setCount := 0
	for _, sql := range []string{
		"SET app.mode = 'x'", "SET SESSION app.mode TO 'x'", "BEGIN; SET LOCAL app.mode = 'x'", "SET App.Mode = 'x'",
		`SET "app"."mode" = 'x'`, "SET app.mode = x", "SET app.mode = 7", "SET app.mode = ''",
		"SELECT set_config('app.mode', 'x', false)", "SELECT pg_catalog.set_config('app.mode', 'x', false)",
		"SELECT set_config('App.Mode', 'x', false)", "BEGIN; SELECT set_config('app.mode'::text, 'x', true)",
		"SELECT set_config('application_name', 'y', false), set_config('app.mode', 'x', false)",
		"PREPARE s AS SELECT set_config('app.mode', 'x', false); EXECUTE s", "SELECT 1; SELECT set_config('app.mode', 'x', false)",
		"UPDATE pg_settings SET setting = 'x' WHERE name = 'app.mode'", "RESET app.mode", "SET app.mode TO DEFAULT", "SET application_name = 'app.mode'",
	} {
		result, refusal := claiming.Rewrite(sql, false)
		if refusal != nil {
			continue
		}
		if _, err := conn.PgConn().Exec(context.Background(), "SET app.mode = 'before'").ReadAll(); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		results, err := conn.PgConn().Exec(context.Background(), "SELECT COALESCE(current_setting('app.mode', true), '')").ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		currentValue := string(results[0].Rows[0][0])
		for _, after := range []string{"ROLLBACK", "DISCARD ALL"} {
			if _, err := conn.PgConn().Exec(context.Background(), after).ReadAll(); err != nil {
				t.Fatal(err)
			}
		}
		claims := slices.ContainsFunc(result.Effects, func(e verdict.Effect) bool {
			return e.Claim != nil && e.Name == "app.mode" && (e.Claim.Value == currentValue || e.Claim.IsReset)
		})
		if currentValue != "before" {
			setCount++
		}
		if currentValue != "before" && !claims {
			t.Errorf("%s: what is claimed is %q, and nothing says so", sql, currentValue)
		}
	}
	if setCount < 6 {
		t.Errorf("%d claims were set", setCount)
	}
}
