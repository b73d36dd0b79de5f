package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// bench measures a table over its three connections, prints what each reaches, and writes nothing to the database.
func TestBench(t *testing.T) {
	i := installDatabase(t)
	_, address := i.startServe(t)
	countersQuery := "SELECT string_agg(relname || n_tup_ins + n_tup_upd + n_tup_del, ' ' ORDER BY relname) FROM pg_stat_user_tables WHERE schemaname = 'public'"
	var before, after string
	admin := i.db.Connect(t, "postgres")
	if err := admin.QueryRow(t.Context(), countersQuery).Scan(&before); err != nil {
		t.Fatal(err)
	}
	benchArgs := func(args ...string) []string {
		return append([]string{"bench", "-c", i.config, "--address", address, "--password-file", filepath.Join(i.dir(), "pw"), "--clients", "2",
			"--time", "50ms", "--rounds", "2"}, args...)
	}
	out, stderr, code := call(t, "", benchArgs("--as", "chat", "--table", "memories", "--json")...)
	if code != exitOK {
		t.Fatal(stderr)
	}
	var got benchJSON
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range got.Results {
		lines = append(lines, r.Protocol+" "+r.Way)
		if r.TPS <= 0 || r.P50 <= 0 || r.P99 < r.P50 || r.Ratio <= 0 || r.Low > r.Ratio || r.High < r.Ratio || len(r.Rounds) != 2 ||
			r.Way == "direct" && r.Ratio != 1 {
			t.Errorf("%+v", r)
		}
	}
	want := "simple direct,simple owner,simple agent,extended direct,extended owner,extended agent,prepared direct,prepared owner,prepared agent"
	if strings.Join(lines, ",") != want || got.Agent != "chat" || got.Database != "app" || got.Clients != 2 || got.Rounds != 2 ||
		got.Text != `SELECT "id", "user_id", "title" FROM public.memories WHERE "id" = $1` {
		t.Errorf("%+v", got)
	}

	// Its output to a pipe is divided by tabs. A given query can be measured, and a table whose key has two columns.
	for args, want := range map[string]int{"--query|SELECT count(*) FROM memories|--protocol|prepared": 3,
		"--table|memory_participants|--protocol|simple|--protocol|extended": 6} {
		out, stderr, code = call(t, "", benchArgs(append(strings.Split(args, "|"), "--as", "chat")...)...)
		rows := strings.Split(strings.TrimSpace(out), "\n")
		if code != exitOK || len(rows) != want+1 || !strings.HasPrefix(rows[0], "protocol\tway\ttps\tp50 ms\tp99 ms\t/ direct") ||
			len(strings.Split(rows[1], "\t")) != 8 {
			t.Errorf("%s: %d %s%s", args, code, out, stderr)
		}
	}

	for _, c := range []struct {
		args  string
		code  int
		text  string
		hints string
	}{
		{"--as|chat|--query|INSERT INTO notes VALUES (9, '6f1e0000-0000-4000-8000-000000000001')", exitError, "read-only transaction", "only read"},
		{"--as|chat|--query|SELECT * FROM attic", exitError, "agent, simple: ", ""},
		{"--as|chat|--table|attic", exitError, "attic has no primary key", "--query"},
		{"--as|chat|--table|nowhere", exitError, "there is no table nowhere", ""},
		{"--as|other|--table|notes", exitError, "sees no row of notes", "--as"},
		{"--as|nobody|--table|notes", exitUsage, `there is no agent "nobody"`, ""},
		{"--as|chat|--table|notes|--clients|0", exitUsage, "at least 1", ""},
		{"--as|chat", exitUsage, "--table NAME or --query", ""},
		{"--as|chat|--table|notes|--query|SELECT 1", exitUsage, "--table and --query", ""},
		{"--as|chat|--table|notes|--address|127.0.0.1:1", exitError, "owner", "Is the server running"},
	} {
		_, stderr, code := call(t, "", benchArgs(strings.Split(c.args, "|")...)...)
		if code != c.code || !strings.Contains(stderr, c.text) || !strings.Contains(stderr, c.hints) {
			t.Errorf("%s: %d %s", c.args, code, stderr)
		}
	}
	if _, stderr, code := call(t, "", "bench", "-c", i.config, "--as", "chat", "--table", "notes", "--address", address); code != exitError ||
		!strings.Contains(stderr, "there is no password for agent chat") {
		t.Errorf("without a password: %d %s", code, stderr)
	}
	t.Setenv("PGPASSWORD", "wrong")
	if _, stderr, code := call(t, "", "bench", "-c", i.config, "--as", "chat", "--table", "notes", "--address", address); code != exitError ||
		!strings.Contains(stderr, "28P01") {
		t.Errorf("with a wrong password: %d %s", code, stderr)
	}
	// The server's counters come late: this query makes only its own session report its counts at once.
	waitFor(t, "the server counts", func() bool {
		var readCount int
		if err := admin.QueryRow(t.Context(),
			"SELECT idx_scan FROM pg_stat_user_tables WHERE relname = 'memories'").Scan(&readCount); err != nil {
			t.Fatal(err)
		}
		return readCount > 0
	})
	if err := admin.QueryRow(t.Context(), countersQuery).Scan(&after); err != nil || before != after {
		t.Errorf("rows were written: %s, before %s (%v)", after, before, err)
	}
}
