package enforce

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Settings that can change the meaning of texts, names or rules have fixed values, whatever is stored for the agents'
// role or requested by the client.
func TestPinnedSettings(t *testing.T) {
	w := start(t, nil)
	other := map[string]string{
		"search_path": "pg_temp", "client_encoding": "LATIN1", "standard_conforming_strings": "off", "backslash_quote": "on", "transform_null_equals": "on",
		"row_security": "off", "default_transaction_isolation": "serializable", "jit": "on", "work_mem": "64kB",
		"hash_mem_multiplier": "9", "from_collapse_limit": "2", "join_collapse_limit": "3",
		"hnsw.iterative_scan": "off", "hnsw.ef_search": "1", "ivfflat.iterative_scan": "off", "ivfflat.probes": "1",
	}
	access, _ := w.Agent("caregiver", "memories")
	for name := range access.Params {
		if other[name] == "" {
			t.Errorf("%s is pinned: say another value that it could have", name)
		}
	}
	for name := range other {
		if _, pinned := access.Params[name]; !pinned {
			t.Errorf("%s is not pinned", name)
		}
	}
	for name, value := range map[string]string{ // settings on which enforcement depends
		"search_path": "public", "client_encoding": "UTF8", "standard_conforming_strings": "on",
		"backslash_quote": "safe_encoding", "transform_null_equals": "off",
		"row_security": "on", "default_transaction_isolation": "read committed",
		"from_collapse_limit": "11", "join_collapse_limit": "11", // four tables with rules are nine relations or more
	} {
		if access.Params[name] != value {
			t.Errorf("%s is pinned to %q, want %q", name, access.Params[name], value)
		}
	}
	show := func() map[string]string {
		c, err := w.open("caregiver")
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for name := range other {
			r := c.server.ExecParams(t.Context(), "SELECT pg_catalog.current_setting($1, true)", [][]byte{[]byte(name)}, nil, nil, nil).Read()
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			out[name] = string(r.Rows[0][0])
		}
		return out
	}
	before := show()
	for name, value := range other {
		w.exec(fmt.Sprintf("ALTER ROLE pgconsent_agent IN DATABASE %s SET %s = '%s'", pgx.Identifier{w.db.Name}.Sanitize(), name, value))
	}
	for name, is := range show() {
		if is != before[name] {
			t.Errorf("%s is %q where the role has another, and %q else", name, is, before[name])
		}
	}

	// A client that requests another value is refused, or its request has no effect. The proxy itself sets the latter two.
	byWire := []string{"default_transaction_isolation", "jit"}
	rows, err := w.dba.Query(t.Context(), "SELECT name, setting FROM pg_settings")
	if err != nil {
		t.Fatal(err)
	}
	var name, value string
	notReloaded := 0
	if _, err := pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		for _, asked := range []string{name, strings.ToUpper(name)} {
			for _, where := range []string{"startup", "options"} {
				_, keep, refused := access.CheckSetting(asked, value, where)
				if keep && refused == nil {
					notReloaded++
				}
				if _, pinned := access.Params[name]; pinned && keep && refused == nil && !slices.Contains(byWire, name) {
					t.Errorf("%s of a client (%s) goes to the server", asked, where)
				}
			}
		}
		return nil
	}); err != nil || notReloaded == 0 {
		t.Errorf("%d settings are kept, %v", notReloaded, err)
	}
}

// The control connection has its own settings, whatever the database and the role have.
func TestControlSettings(t *testing.T) {
	w := start(t, nil)
	for name, value := range map[string]string{
		"search_path": "public", "statement_timeout": "1", "idle_session_timeout": "1h", "jit": "on",
		"max_parallel_workers_per_gather": "9", "client_encoding": "LATIN1",
		"standard_conforming_strings": "off", "row_security": "off", "default_transaction_isolation": "serializable", "application_name": "x",
	} {
		if controlSettings[name] == "" {
			t.Errorf("%s is not pinned", name)
		}
		w.exec(fmt.Sprintf("ALTER DATABASE %s SET %s = '%s'", pgx.Identifier{w.db.Name}.Sanitize(), name, value))
		w.exec(fmt.Sprintf("ALTER ROLE pgconsent_control IN DATABASE %s SET %s = '%s'", pgx.Identifier{w.db.Name}.Sanitize(), name, value))
	}
	d := w.databases["memories"]
	d.mu.Lock()
	_ = d.conn.Close(t.Context())
	d.mu.Unlock()
	if err := d.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	wants := func(who string, conn *pgx.Conn) error {
		for name, want := range controlSettings {
			var is string
			if err := conn.QueryRow(t.Context(), "SELECT pg_catalog.current_setting($1)", name).Scan(&is); err != nil {
				return err
			}
			if name == "application_name" && strings.HasPrefix(is, "pgconsent ") {
				continue // each connection has another name
			}
			if is != want {
				t.Errorf("%s: %s is %q, want %q", who, name, is, want)
			}
		}
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := wants("who looks", d.conn); err != nil {
		t.Fatal(err)
	}
	d.controlPool.close()
	if err := d.controlPool.run(t.Context(), d.control, func(_ context.Context, conn *pgx.Conn) error { return wants("who asks", conn) }); err != nil {
		t.Fatal(err)
	}
}
