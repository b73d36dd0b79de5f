package rls_test

import (
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Policies and grants that exist in the customer's database change nothing for agents, and the agents' policies change
// nothing for other roles.
func TestNeighboursChangeNothing(t *testing.T) {
	w := newWorld(t,
		"CREATE POLICY everybody ON memories USING (true)",
		"CREATE POLICY everybody ON people USING (true)",
		"ALTER TABLE people ENABLE ROW LEVEL SECURITY",
		"CREATE POLICY mine ON people AS RESTRICTIVE FOR SELECT TO app_other USING (name <> 'Eve')",
		"GRANT SELECT ON memories TO PUBLIC",
	).migrate()
	agent, other := w.agent(user1), w.db.Connect(t, "app_other")
	w.want(agent, titlesQuery, visibleTitles)
	w.want(agent, namesQuery, "Ada")
	w.want(other, "SELECT count(*) FROM memories", "8")
	w.want(other, "SELECT count(*) FROM people", "4")
	w.want(other, "INSERT INTO memories (id, user_id, title) VALUES (gen_random_uuid(), '"+user2+"', 'x') RETURNING title", "x")
	w.want(other, "CREATE TEMP TABLE t AS SELECT 1 AS a; SELECT a FROM t", "1")
	w.want(w.owner, "SELECT count(*) FROM memories", "9")
	w.want(w.owner, "SELECT count(*) FROM public.match_memories('', 100)", "9")
}

func TestOwnerCanDump(t *testing.T) {
	tier.All(t)
	w := migrated(t)
	path, isSameVersion := pgtest.ClientProgram(t, "pg_dump")
	if !isSameVersion {
		t.Skip("pg_dump does not dump a server of another version")
	}
	dump := exec.Command(path, "-h", w.db.SocketDir, "-p", strconv.Itoa(w.db.Port), "-U", "app_owner", w.db.Name)
	var stderr bytes.Buffer
	dump.Stderr = &stderr
	out, err := dump.Output()
	if err != nil {
		t.Fatalf("pg_dump: %v\n%s", err, stderr.String())
	}
	if n := strings.Count(string(out), "SECRET"); n != 6 {
		t.Errorf("the dump has %d of 6 hidden rows", n)
	}
}

// The reader role sees every row even if row security is FORCEd on a table. Otherwise a policy that reads through the
// reader's views would find no refusals, and show every memory.
func TestForceOnLookupTablesHidesNothingFromPredicates(t *testing.T) {
	w := newWorld(t, // so that pgconsent_open does not help the owner
		"ALTER TABLE people ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON people TO app_other USING (true)",
		"ALTER TABLE memory_participants ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON memory_participants TO app_other USING (true)",
	).migrate()
	w.want(w.agent(user1), titlesQuery, visibleTitles)
	w.exec(w.owner, "ALTER TABLE people FORCE ROW LEVEL SECURITY; ALTER TABLE memory_participants FORCE ROW LEVEL SECURITY")
	w.want(w.agent(user1), titlesQuery, visibleTitles)
}

// If a lookup table appears empty by mistake, every rule shows fewer rows and never more, in plans from before, too.
func TestEmptiedLookupTablesHide(t *testing.T) {
	tier.All(t)
	mistakes := map[string]string{
		"the reader's policies are gone": "DROP POLICY pgconsent_open ON %[1]s; DROP POLICY pgconsent_reader ON %[1]s",
		"a policy hides all":             "CREATE POLICY oops ON %[1]s AS RESTRICTIVE USING (false)",
		"the view has another owner": "DROP POLICY pgconsent_open ON %[1]s; GRANT SELECT ON %[1]s TO " +
			"app_other; GRANT CREATE ON SCHEMA pgconsent TO app_other; ALTER VIEW pgconsent.h_public_%[1]s OWNER TO app_other",
		"forced, and owned by the owner": "DROP POLICY pgconsent_open ON %[1]s; ALTER TABLE %[1]s FORCE ROW LEVEL " +
			"SECURITY; GRANT CREATE ON SCHEMA pgconsent TO app_owner; ALTER VIEW pgconsent.h_public_%[1]s OWNER TO app_owner",
	}
	const titles = "SELECT title FROM public.memories ORDER BY id"
	for name, sql := range mistakes {
		for _, table := range []string{"people", "memory_participants"} {
			t.Run(name+" of "+table, func(t *testing.T) {
				w := migrated(t)
				agent := w.agent(user1)
				w.want(agent, titlesQuery, visibleTitles)
				w.exec(agent, "PREPARE kept AS "+titles+"; EXECUTE kept")
				w.exec(w.super, strings.ReplaceAll(sql, "%[1]s", table))
				for _, text := range []string{titles, "EXECUTE kept"} {
					got, err := query(agent, text)
					if err != nil {
						t.Fatal(err)
					}
					for _, title := range strings.FieldsFunc(got, func(r rune) bool { return r == ',' }) {
						if title != "alone" && title != "with Ada" {
							t.Errorf("%s: %q shows", text, title)
						}
					}
				}
			})
		}
	}
	t.Run("a link table that is empty", func(t *testing.T) {
		w := migrated(t)
		w.exec(w.owner, "DELETE FROM memory_participants")
		w.want(w.agent(user1), "SELECT count(*) FROM public.memories", "7")
	})
	t.Run("links that come back", func(t *testing.T) {
		w := migrated(t)
		w.exec(w.super, "DROP POLICY pgconsent_open ON memory_participants; ALTER TABLE memory_participants FORCE ROW LEVEL SECURITY;"+
			"CREATE TABLE links AS TABLE memory_participants; DELETE FROM memory_participants")
		agent := w.agent(user1)
		w.exec(agent, "PREPARE kept AS "+titles)
		w.want(agent, "EXECUTE kept", "")
		w.exec(w.super, "INSERT INTO memory_participants TABLE links")
		w.want(agent, "EXECUTE kept", visibleTitles)
	})
}

func TestPrivilegesAreKeptByName(t *testing.T) {
	w := newWorld(t, "GRANT CREATE ON SCHEMA public TO PUBLIC").migrate()
	for role, want := range map[string]string{"app_owner": "t", "app_other": "t", migrations.DefaultAgentRole: "f", migrations.DefaultReaderRole: "f"} {
		w.want(w.super, "SELECT has_database_privilege('"+role+"', current_database(), 'TEMP')", want)
		w.want(w.super, "SELECT has_schema_privilege('"+role+"', 'public', 'CREATE')", want)
	}
	w.want(w.super, "SELECT count(*) FROM pg_auth_members AS m WHERE m.roleid = 'pgconsent_reader'::regrole AND "+
		"COALESCE((to_jsonb(m) ->> 'set_option')::bool, true)", "0")
}
