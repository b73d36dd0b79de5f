package oracle

import (
	"context"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/instance"
)

// What is read from a materialised view, by itself, through a view or by a function that might, is shown by the snapshot of its own
// statement; all else of the same database may be seen for longer.
func TestMaterialisedViewsAndOlderSnapshots(t *testing.T) {
	s := find(t, "crm")
	behind := s.Behind(t)
	instance.Exec(t, behind.DB, "CREATE VIEW busy AS SELECT account, sum(tickets) AS n FROM account_month GROUP BY account")
	behind.Policy = strings.Replace(behind.Policy, "views:\n", "views:\n  busy: {}\n", 1)
	proxy := instance.Start(t, instance.Doors, behind, s.Attributes)
	ctx := context.Background()
	const repeatable = "BEGIN ISOLATION LEVEL REPEATABLE READ"
	for _, c := range []struct {
		messages []string
		refused  bool
	}{
		{[]string{"SELECT count(*) FROM account_month"}, false},
		{[]string{"SELECT count(*) FROM busy"}, false},
		{[]string{"BEGIN", "DECLARE c CURSOR FOR SELECT id FROM account", "FETCH 2 FROM c", "FETCH 2 FROM c", "COMMIT"}, false},
		{[]string{"BEGIN", "DECLARE c CURSOR FOR SELECT * FROM account_month", "FETCH 2 FROM c"}, true},
		{[]string{"BEGIN", "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM busy", "COMMIT", "FETCH 2 FROM c"}, true},
		{[]string{"BEGIN; DECLARE c CURSOR FOR SELECT * FROM search_kb('printer'); FETCH 1 FROM c; COMMIT"}, true},
		{[]string{repeatable, "SELECT count(*) FROM account", "SELECT count(*) FROM contact", "COMMIT"}, false},
		{[]string{repeatable, "SELECT count(*) FROM account", "SELECT count(*) FROM account_month", "COMMIT"}, true},
		{[]string{repeatable, "SELECT count(*) FROM busy", "COMMIT"}, true},
		{[]string{"PREPARE p AS SELECT count(*) FROM account_month", "EXECUTE p", "EXECUTE p"}, false},
		{[]string{"PREPARE p AS SELECT count(*) FROM account_month", repeatable, "SELECT count(*) FROM account", "EXECUTE p", "COMMIT"}, true},
		{[]string{repeatable, "SAVEPOINT s", "SELECT count(*) FROM busy", "ROLLBACK TO s", "SELECT count(*) FROM account", "COMMIT"}, true},
	} {
		conn := proxy.Agent(t, "agent", s.Name)
		refused := false
		for i, m := range c.messages {
			a := instance.Ask(conn, m)
			switch {
			case a.Err == "":
			case a.Code == "0A000" && a.Refused():
				refused = true
			case !refused:
				t.Errorf("%q: %s", c.messages[:i+1], a.Err)
			}
			if a.Err != "" && strings.HasPrefix(c.messages[max(i-1, 0)], "ROLLBACK TO") {
				t.Errorf("%q: after the savepoint: %s", c.messages, a.Err)
			}
		}
		if refused != c.refused {
			t.Errorf("%q: refused is %v, want %v", c.messages, refused, c.refused)
		}
		_ = conn.Close(ctx)
	}
}
