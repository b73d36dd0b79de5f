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

// Records in the database: the commands are the same, and a database that does not take them stops agents and nobody
// else.
func TestAuditInDatabase(t *testing.T) {
	tier.All(t)
	i := installAudit(t)
	p, address := i.serving(t)
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
	follow := launch(t, nil, "audit", "tail", "-c", i.config, "--follow", "-n", "0", "--json")
	line := make(chan string, 1)
	go func() { text, _ := follow.out.ReadString('\n'); line <- text }()
	var text string
	looked := 0
	for deadline := time.Now().Add(tier.Patience); text == ""; { // audit tail prints records that come after its start
		if time.Now().After(deadline) {
			t.Fatal("follow prints nothing")
		}
		queryInt(t, agent, "SELECT count(*) FROM memories")
		looked++
		select {
		case text = <-line:
		case <-time.After(time.Second):
		}
	}
	if m := lines(t, text); m[0]["kind"] != "decision" || m[0]["verdict"] != "allow" {
		t.Errorf("follow: %s", text)
	}
	follow.signal(t, syscall.SIGTERM)
	go func() { _, _ = follow.out.WriteTo(&strings.Builder{}) }()
	follow.awaitEnd(t)

	if out, stderr, code := call(t, "", "audit", "verify", "-c", i.config); code != exitOK ||
		!strings.Contains(out, "audit chain here of database app: ") || !strings.Contains(out, "records hold") {
		t.Errorf("verify: %d %s%s", code, out, stderr)
	}
	if out, stderr, code := call(t, "", "audit", "export", "-c", i.config); code != exitOK || len(lines(t, out)) < 8 {
		t.Errorf("export: %d %s%s", code, out, stderr)
	}

	// The person's own rows, who had them, and that it was asked: all from the database.
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
	if report.Retrievals.Exact+report.Retrievals.Possible != 3+looked || len(report.Logs) != 1 ||
		!report.Logs[0].Intact || report.Record.Log != "chain here-reports of database app" {
		t.Errorf("dsar: %+v", report)
	}
	if out, stderr, code := call(t, "", "audit", "verify", "-c", i.config); code != exitOK ||
		!strings.Contains(out, "reports chain here-reports of database app: 1 records hold") {
		t.Errorf("verify with a report: %d %s%s", code, out, stderr)
	}

	// A database that takes no records stops agents, and owners not at all.
	owner := connect(t, i.dsn("app_owner", address))
	lock := i.db.Connect(t, "postgres")
	if _, err := lock.Exec(t.Context(), "BEGIN; LOCK TABLE pgconsent.audit_record IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		err := agent.QueryRow(t.Context(), "SELECT count(*) FROM memories").Scan(new(int))
		if sqlState(err) != "58030" {
			t.Errorf("locked: %v", err)
		}
		queryInt(t, owner, "SELECT count(*) FROM memories")
	}
	if _, err := lock.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "agents are answered again", func() bool { return agent.QueryRow(t.Context(), "SELECT count(*) FROM memories").Scan(new(int)) == nil })

	// A transaction goes on after the refusal as after any other error.
	if _, err := agent.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), "BEGIN; LOCK TABLE pgconsent.audit_record IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	if err := agent.QueryRow(t.Context(), "SELECT count(*) FROM memories").Scan(new(int)); sqlState(err) != "58030" || agent.PgConn().TxStatus() != 'E' {
		t.Errorf("in a transaction: %v, status %c", err, agent.PgConn().TxStatus())
	}
	if _, err := lock.Exec(t.Context(), "ROLLBACK"); err != nil {
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

	// Somebody with all rights changes a record.
	i.exec(t,
		`ALTER TABLE pgconsent.audit_record DISABLE TRIGGER ALL; UPDATE pgconsent.audit_record SET line = replace(line, '"tag":"SELECT"', '"tag":"DELETE"')
			WHERE line LIKE '%"kind":"decision"%'; ALTER TABLE pgconsent.audit_record ENABLE TRIGGER ALL`)
	out, _, code = call(t, "", "audit", "verify", "-c", i.config)
	if code != exitError || !strings.Contains(out, "BROKEN") || !strings.Contains(out, "NOT PROVED: audit_record: the trigger pgconsent_refuse ") {
		t.Errorf("verify of what was changed: %d %s", code, out)
	}
}
