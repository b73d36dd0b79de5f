package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	harness "github.com/pgconsent/pgconsent/test/instance"
)

// Line 65 of the seed 003_df80f3f2bdd774d4.txt: what another SI has told inherits its chain's most restrictive grant. The
// chain is told_from; the seed's own columns do not say from which memory something was told.

// kernleList writes a list in the words of a table of memories.
func kernleList(table string, ids ...string) string {
	if table == "episodes_array" {
		return "'{" + strings.Join(ids, ",") + "}'"
	}
	quoted := make([]string, len(ids))
	for i, id := range ids {
		quoted[i] = `"` + id + `"`
	}
	return "'[" + strings.Join(quoted, ",") + "]'"
}

// seeds/003:63-65.
func TestKernleD_ToldMemoriesAreNoWiderThanTheirChain(t *testing.T) {
	k := startKernle(t)
	super := harness.ConnectSuperuser(t, k.db)
	for _, table := range kernleTables() {
		list := func(ids ...string) string { return kernleList(table, ids...) }
		// write makes a memory that the owner of the database writes: of rex, who tells, or of somebody who told rex.
		write := func(id, stack, source, text string, grants ...string) {
			t.Helper()
			k.do(super, fmt.Sprintf(
				"INSERT INTO %s (id, stack_id, content, source_entity, told_from, access_grants) VALUES ('%s', "+
					"'%s', 'x', nullif('%s', ''), nullif('%s', ''), %s)", table, id, stack, source, text, list(grants...)))
		}
		write("rex:1", "rex", "", "", "si:ash", "si:bella_agent", "human:sean")
		write("mal:1", "mallory", "", "", "si:rex", "si:ash", "human:sean", "si:rex_2")
		write("rex:2", "rex", "si:mallory", "mal:1", "si:ash", "si:bella_agent", "human:sean")
		write("rex:all", "rex", "", "", "*")
		write("rex:mine", "rex", "", "", "si:bella_agent")                // a memory that ash does not see
		write("rex:none", "rex", "si:mallory", "mal:none", "si:ash", "*") // derived from a missing memory
		write("rex:round", "rex", "", "rex:round", "si:ash", "*")
		write("rex:broken", "rex", "", "", "si:ash", "si:bella_agent")
		ash, bella, sean := k.as("ash", ""), k.as("bella", ""), k.as("sean", "")

		n := 0
		insertTold := func(c *pgconn.PgConn, code, from string, more ...string) []string {
			t.Helper()
			n++
			content := fmt.Sprintf("told %s %d", table, n)
			columns, values := "stack_id, content, source_entity, told_from", fmt.Sprintf("'ash', '%s', 'si:rex', '%s'", content, from)
			if more != nil {
				columns, values = columns+", access_grants", values+", "+list(more...)
			}
			sql := "INSERT INTO " + table + " (" + columns + ") VALUES (" + values + ")"
			if a := harness.Ask(c, sql); a.Code != code {
				t.Errorf("%s: SQLSTATE %q, want %q\n%s", sql, a.Code, code, a)
			}
			id := harness.Ask(super, "SELECT id FROM "+table+" WHERE content = '"+content+"'").Results[0].Rows
			if len(id) == 0 {
				return nil
			}
			all := k.memories(table)
			return all[slices.IndexFunc(all, func(m memory) bool { return m.id == id[0] })].grants
		}
		wantSame := func(got []string, want ...string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("%s: granted to %v, want %v", table, got, want)
			}
		}
		noIDs := []string{}
		wantSame(insertTold(ash, "", "rex:1"), "si:ash", "si:bella_agent", "human:sean") // the list of the one memory that it was told from
		wantSame(insertTold(ash, "", "rex:2"), "si:ash", "human:sean")                   // the intersection of two
		wantSame(insertTold(ash, "", "rex:all"), "*")
		wantSame(insertTold(ash, "", "rex:all", "human:guest"), "human:guest") // narrower than everybody
		wantSame(insertTold(ash, "", "rex:1", "human:sean"), "human:sean")
		wantSame(insertTold(ash, "", "rex:1", noIDs...))
		insertTold(ash, "42501", "rex:1", "human:sean", "si:rex")
		insertTold(ash, "42501", "rex:1", "*")
		insertTold(ash, "42501", "rex:2", "si:bella_agent")
		// Hidden, not there, of a chain that is broken: nobody, and all alike.
		for _, from := range []string{"rex:mine", "rex:nowhere", "rex:none", "rex:round", ""} {
			wantSame(insertTold(ash, "", from))
			insertTold(ash, "42501", from, "si:bella_agent")
		}
		// In a context: its list, as far as the chain goes.
		wantSame(insertTold(k.as("ash", "ctx:bella_health"), "", "rex:1"), "human:sean", "si:bella_agent")
		wantSame(insertTold(k.as("ash", "ctx:bella_health"), "", "rex:2"), "human:sean")
		insertTold(k.as("ash", "ctx:bella_health"), "42501", "rex:2", "ctx:bella_health")
		// An agent that tells another stack about a memory it does not see tells nothing.
		insertTold(k.as("bella", "ctx:bella_health"), "42501", "rex:nowhere")
		insertTold(k.as("bella", "ctx:bella_health"), "42501", "mal:1")

		// A memory that is shown to fewer is shown to fewer all along the chain at once, whatever lists say.
		write("ash:1", "ash", "si:rex", "rex:2", "si:bella_agent", "human:sean")
		hasMemory := func(c *pgconn.PgConn, id string) bool {
			t.Helper()
			return len(k.list(c, "SELECT id FROM "+table+" WHERE id = '"+id+"'")) == 1
		}
		if hasMemory(bella, "ash:1") || !hasMemory(sean, "ash:1") || !hasMemory(ash, "ash:1") || hasMemory(bella, "rex:2") {
			t.Errorf("%s: shows to bella, whom mallory did not grant it, or not to sean or its owner", table)
		}
		k.do(super, "UPDATE "+table+" SET access_grants = "+list("si:rex", "si:ash")+" WHERE id = 'mal:1'")
		if hasMemory(sean, "ash:1") || hasMemory(sean, "rex:2") || !hasMemory(ash, "ash:1") {
			t.Errorf("%s: shows to sean, whom mallory grants it no more, or not to its owner", table)
		}
		k.do(super, "UPDATE "+table+" SET access_grants = "+list("si:rex", "human:sean")+" WHERE id = 'mal:1'")
		if !hasMemory(sean, "ash:1") {
			t.Errorf("%s: does not come back", table)
		}
		// And told memories cannot be led elsewhere, nor given more.
		k.refused(ash, "UPDATE "+table+" SET told_from = NULL WHERE id = 'ash:1'", "42501")
		k.refused(ash, "UPDATE "+table+" SET access_grants = "+list("si:bella_agent", "human:sean", "*")+" WHERE id = 'ash:1'", "42501")
		k.do(ash, "UPDATE "+table+" SET access_grants = "+list("human:sean")+" WHERE id = 'ash:1'")
		k.sees(bella, table, entity{user: "si:bella_agent"})
		k.sees(sean, table, entity{user: "human:sean"})
		k.sees(k.as("rex", ""), table, entity{user: "si:rex"})
	}
	k.proxy.Tap().RequireNoMarker(t)
}
