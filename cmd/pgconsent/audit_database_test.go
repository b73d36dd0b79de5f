package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/test/tier"
)

// The audit commands work alike if the records are in the database. If the database accepts no record, agents are
// refused, and owners are not.
func TestAuditInDatabase(t *testing.T) {
	tier.All(t)
	i := installAudit(t)
	p, address := i.startServe(t)
	agent := connect(t, i.dsn("chat", address))
	for range 3 {
		queryInt(t, agent, "SELECT count(*) FROM memories")
	}
	if err := agent.QueryRow(t.Context(), "SELECT count(*) FROM attic").Scan(new(int)); sqlState(err) != "42501" {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(i.dir(), "audit")); err == nil {
		t.Error("there is a folder of records")
	}
	user := i.user(t)
	out, stderr, code := call(t, "", "audit", "tail", "-c", i.config, "--subject", user)
	if code != exitOK || strings.Count(out, "public.memories") != 3 || strings.Contains(out, user) {
		t.Errorf("tail: %d\n%s%s", code, out, stderr)
	}
	follower := launch(t, nil, "audit", "tail", "-c", i.config, "--follow", "-n", "0", "--json")
	line := make(chan string, 1)
	go func() { text, _ := follower.out.ReadString('\n'); line <- text }()
	var text string
	attempts := 0
	for deadline := time.Now().Add(tier.Patience); text == ""; { // audit tail prints records that come after its start
		if time.Now().After(deadline) {
			t.Fatal("follow prints nothing")
		}
		queryInt(t, agent, "SELECT count(*) FROM memories")
		attempts++
		select {
		case text = <-line:
		case <-time.After(time.Second):
		}
	}
	if m := jsonLines(t, text); m[0]["kind"] != "decision" || m[0]["verdict"] != "allow" {
		t.Errorf("follow: %s", text)
	}
	follower.signal(t, syscall.SIGTERM)
	go func() { _, _ = follower.out.WriteTo(&strings.Builder{}) }()
	follower.awaitEnd(t)

	if out, stderr, code := call(t, "", "audit", "verify", "-c", i.config); code != exitOK ||
		!strings.Contains(out, "audit chain here of database app: ") || !strings.Contains(out, "records hold") {
		t.Errorf("verify: %d %s%s", code, out, stderr)
	}
	if out, stderr, code := call(t, "", "audit", "export", "-c", i.config); code != exitOK || len(jsonLines(t, out)) < 8 {
		t.Errorf("export: %d %s%s", code, out, stderr)
	}

	// The report for a person comes from the database: the person's rows, who read them, and the record of the report
	// itself.
	out, stderr, code = call(t, "", "dsar", "-c", i.config, "--subject", user, "--json")
	var report struct {
		Record     struct{ Log string }
		Retrievals struct{ Exact, Possible int }
		Logs       []struct {
			Name    string
			Records int
			Intact  bool
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != exitOK {
		t.Fatalf("dsar: %d %s%s", code, out, stderr)
	}
	if report.Retrievals.Exact+report.Retrievals.Possible != 3+attempts || len(report.Logs) != 1 ||
		!report.Logs[0].Intact || report.Record.Log != "chain here-reports of database app" {
		t.Errorf("dsar: %+v", report)
	}
	if out, stderr, code := call(t, "", "audit", "verify", "-c", i.config); code != exitOK ||
		!strings.Contains(out, "reports chain here-reports of database app: 1 records hold") {
		t.Errorf("verify with a report: %d %s%s", code, out, stderr)
	}

	// A database that accepts no records stops agents only.
	owner := connect(t, i.dsn("app_owner", address))
	lockingConn := i.db.Connect(t, "postgres")
	if _, err := lockingConn.Exec(t.Context(), "BEGIN; LOCK TABLE pgconsent.audit_record IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		err := agent.QueryRow(t.Context(), "SELECT count(*) FROM memories").Scan(new(int))
		if sqlState(err) != "58030" {
			t.Errorf("locked: %v", err)
		}
		queryInt(t, owner, "SELECT count(*) FROM memories")
	}
	if _, err := lockingConn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "agents are answered again", func() bool { return agent.QueryRow(t.Context(), "SELECT count(*) FROM memories").Scan(new(int)) == nil })

	// After this refusal, a transaction has failed as after any other error, and can be rolled back.
	if _, err := agent.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if _, err := lockingConn.Exec(t.Context(), "BEGIN; LOCK TABLE pgconsent.audit_record IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	if err := agent.QueryRow(t.Context(), "SELECT count(*) FROM memories").Scan(new(int)); sqlState(err) != "58030" || agent.PgConn().TxStatus() != 'E' {
		t.Errorf("in a transaction: %v, status %c", err, agent.PgConn().TxStatus())
	}
	if _, err := lockingConn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the transaction can be ended", func() bool {
		_, err := agent.Exec(t.Context(), "ROLLBACK")
		return err == nil && agent.PgConn().TxStatus() == 'I'
	})

	agent.Close(t.Context())
	owner.Close(t.Context())
	p.signal(t, syscall.SIGTERM)
	p.awaitEnd(t)
	if out, stderr, code := call(t, "", "audit", "verify", "-c", i.config); code != exitOK {
		t.Errorf("verify afterwards: %d %s%s", code, out, stderr)
	}
	if _, stderr, code := call(t, "", "migrate", "--down", "-c", i.config); code != exitError || !strings.Contains(stderr, "--discard-audit") {
		t.Errorf("migrate --down: %d %s", code, stderr)
	}
	if out, stderr, code := call(t, "", "audit", "forget", "-c", i.config, "--subject", user); code != exitOK {
		t.Errorf("forget: %d %s%s", code, out, stderr)
	}
	if out, _, code := call(t, "", "audit", "verify", "-c", i.config); code != exitOK {
		t.Errorf("verify of what was forgotten: %d %s", code, out)
	}

	// A superuser changes a record, which verification must find.
	i.exec(t,
		`ALTER TABLE pgconsent.audit_record DISABLE TRIGGER ALL; UPDATE pgconsent.audit_record SET line = replace(line, '"tag":"SELECT"', '"tag":"DELETE"')
			WHERE line LIKE '%"kind":"decision"%'; ALTER TABLE pgconsent.audit_record ENABLE TRIGGER ALL`)
	out, _, code = call(t, "", "audit", "verify", "-c", i.config)
	if code != exitError || !strings.Contains(out, "BROKEN") || !strings.Contains(out, "NOT PROVED: audit_record: the trigger pgconsent_refuse ") {
		t.Errorf("verify of what was changed: %d %s", code, out)
	}
}
