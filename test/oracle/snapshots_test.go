package oracle

import (
	"context"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A materialized view may be older than a consent. So an agent may read one, directly, through a view or by a function,
// only in a statement whose snapshot is new. Transactions and cursors with older snapshots must be refused; other
// tables may be read in them.
func TestMaterialisedViewsAndOlderSnapshots(t *testing.T) {
	tier.All(t)
	s := schemaNamed(t, "crm")
	served := s.BehindProxy(t)
	instance.Exec(t, served.DB, "CREATE VIEW busy AS SELECT account, sum(tickets) AS n FROM account_month GROUP BY account")
	served.Policy = strings.Replace(served.Policy, "views:\n", "views:\n  busy: {}\n", 1)
	proxy := instance.Start(t, instance.Auto, served, s.Attributes)
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

// A write to an inheritance child is not noticed. So an agent may read its parent, and tables whose rules read the
// parent, only in a statement whose snapshot is new. Cursors and transactions with older snapshots must be refused;
// other tables may be read in them.
func TestChildrenAndOlderSnapshots(t *testing.T) {
	tier.All(t)
	s := schemaNamed(t, "surety")
	proxy := instance.Start(t, instance.Auto, s.BehindProxy(t), s.Attributes)
	cursor := func(sql string) []string {
		return []string{"BEGIN", "DECLARE c CURSOR FOR " + sql, "FETCH 1 FROM c", "FETCH 1 FROM c", "COMMIT"}
	}
	const repeatable = "BEGIN ISOLATION LEVEL REPEATABLE READ"
	for _, c := range []struct {
		messages []string
		refused  bool
	}{
		{cursor(`SELECT ref FROM "Claim"`), false},
		{cursor("SELECT * FROM payment"), false}, // a row is visible if its claim is
		{cursor("SELECT * FROM timeline"), false},
		{cursor("SELECT name FROM person"), false}, // a child with another rule than its parent
		{cursor("SELECT name FROM party"), true},
		{cursor(`SELECT role FROM "ClaimParty"`), true}, // a row is visible if its party is
		{cursor("SELECT plate FROM vehicle"), true},     // a row is visible if the policy of a party is
		{cursor(`SELECT ref FROM "Claim" WHERE "policyNo" IN (SELECT number FROM policy)`), true},
		{cursor("SELECT * FROM find_documents('damage')"), true}, // a function whose reads are not known
		{[]string{repeatable, "SELECT count(*) FROM task", `UPDATE "Claim" SET "desc" = "desc" WHERE "claimId" = 16`, "COMMIT"}, false},
		{[]string{repeatable, "SELECT count(*) FROM task", "SELECT count(*) FROM vehicle", "COMMIT"}, true},
		{[]string{repeatable, "SELECT count(*) FROM task",
			`INSERT INTO "ClaimParty" ("claimId", "partyId", role) VALUES (16, md5('p1')::uuid, 'expert')`, "ROLLBACK"}, true},
		{[]string{repeatable, "SELECT count(*) FROM task", `DELETE FROM "ClaimParty" WHERE false`, "ROLLBACK"}, true},
		{[]string{"PREPARE p AS SELECT count(*) FROM vehicle", "EXECUTE p", repeatable, "SELECT 1", "EXECUTE p", "COMMIT"}, true},
		{[]string{"BEGIN", "SELECT count(*) FROM vehicle", "SELECT count(*) FROM party", "COMMIT"}, false},
	} {
		conn := proxy.Agent(t, "agent", s.Name)
		refused := false
		for i, m := range c.messages {
			switch a := instance.Ask(conn, m); {
			case a.Err == "":
			case a.Code == "0A000" && a.Refused():
				refused = true
			case !refused:
				t.Errorf("%q: %s", c.messages[:i+1], a.Err)
			}
		}
		if refused != c.refused {
			t.Errorf("%q: refused is %v, want %v", c.messages, refused, c.refused)
		}
		_ = conn.Close(context.Background())
	}
}
