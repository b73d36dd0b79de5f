package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	harness "github.com/pgconsent/pgconsent/test/instance"
)

// Line 65 of the seed 003_df80f3f2bdd774d4.txt: what another SI has told inherits the most restrictive grant of its
// chain. The chain is the column told_from; the seed's own columns do not say from which memory something was told.

// kernleList returns an SQL literal of a list, in the form that a table of memories uses.
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
		// writeMemory inserts a memory as the owner of the database: one of rex, who tells, or of somebody who told rex.
		writeMemory := func(id, stack, source, text string, grants ...string) {
			t.Helper()
			k.mustExec(super, fmt.Sprintf(
				"INSERT INTO %s (id, stack_id, content, source_entity, told_from, access_grants) VALUES ('%s', "+
					"'%s', 'x', nullif('%s', ''), nullif('%s', ''), %s)", table, id, stack, source, text, list(grants...)))
		}
		writeMemory("rex:1", "rex", "", "", "si:ash", "si:bella_agent", "human:sean")
		writeMemory("mal:1", "mallory", "", "", "si:rex", "si:ash", "human:sean", "si:rex_2")
		writeMemory("rex:2", "rex", "si:mallory", "mal:1", "si:ash", "si:bella_agent", "human:sean")
		writeMemory("rex:all", "rex", "", "", "*")
		writeMemory("rex:mine", "rex", "", "", "si:bella_agent")                // a memory that ash does not see
		writeMemory("rex:none", "rex", "si:mallory", "mal:none", "si:ash", "*") // derived from a missing memory
		writeMemory("rex:round", "rex", "", "rex:round", "si:ash", "*")
		writeMemory("rex:broken", "rex", "", "", "si:ash", "si:bella_agent")
		ashConn, bellaConn, seanConn := k.connectAs("ash", ""), k.connectAs("bella", ""), k.connectAs("sean", "")

		n := 0
		insertTold := func(c *pgconn.PgConn, code, toldFrom string, grants ...string) []string {
			t.Helper()
			n++
			content := fmt.Sprintf("told %s %d", table, n)
			columns, values := "stack_id, content, source_entity, told_from", fmt.Sprintf("'ash', '%s', 'si:rex', '%s'", content, toldFrom)
			if grants != nil {
				columns, values = columns+", access_grants", values+", "+list(grants...)
			}
			sql := "INSERT INTO " + table + " (" + columns + ") VALUES (" + values + ")"
			if a := harness.Ask(c, sql); a.Code != code {
				t.Errorf("%s: SQLSTATE %q, want %q\n%s", sql, a.Code, code, a)
			}
			id := harness.Ask(super, "SELECT id FROM "+table+" WHERE content = '"+content+"'").Results[0].Rows
			if len(id) == 0 {
				return nil
			}
			allMemories := k.memories(table)
			return allMemories[slices.IndexFunc(allMemories, func(m memory) bool { return m.id == id[0] })].grants
		}
		wantSame := func(got []string, want ...string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("%s: granted to %v, want %v", table, got, want)
			}
		}
		noIDs := []string{}
		wantSame(insertTold(ashConn, "", "rex:1"), "si:ash", "si:bella_agent", "human:sean") // the grants of the one memory that it was told from
		wantSame(insertTold(ashConn, "", "rex:2"), "si:ash", "human:sean")                   // the intersection of the grants of two memories
		wantSame(insertTold(ashConn, "", "rex:all"), "*")
		wantSame(insertTold(ashConn, "", "rex:all", "human:guest"), "human:guest") // narrower than everybody
		wantSame(insertTold(ashConn, "", "rex:1", "human:sean"), "human:sean")
		wantSame(insertTold(ashConn, "", "rex:1", noIDs...))
		insertTold(ashConn, "42501", "rex:1", "human:sean", "si:rex")
		insertTold(ashConn, "42501", "rex:1", "*")
		insertTold(ashConn, "42501", "rex:2", "si:bella_agent")
		// A source that is hidden, missing or in a broken chain is granted to nobody, and all these cases look the same.
		for _, toldFrom := range []string{"rex:mine", "rex:nowhere", "rex:none", "rex:round", ""} {
			wantSame(insertTold(ashConn, "", toldFrom))
			insertTold(ashConn, "42501", toldFrom, "si:bella_agent")
		}
		// In a context, the context's list applies as far as the chain allows.
		wantSame(insertTold(k.connectAs("ash", "ctx:bella_health"), "", "rex:1"), "human:sean", "si:bella_agent")
		wantSame(insertTold(k.connectAs("ash", "ctx:bella_health"), "", "rex:2"), "human:sean")
		insertTold(k.connectAs("ash", "ctx:bella_health"), "42501", "rex:2", "ctx:bella_health")
		// An agent cannot write, in another stack, a memory told from one that it does not see; the error reveals nothing.
		insertTold(k.connectAs("bella", "ctx:bella_health"), "42501", "rex:nowhere")
		insertTold(k.connectAs("bella", "ctx:bella_health"), "42501", "mal:1")

		// When a memory's grants are narrowed, all memories told from it are narrowed at once, whatever their own lists say.
		writeMemory("ash:1", "ash", "si:rex", "rex:2", "si:bella_agent", "human:sean")
		hasMemory := func(c *pgconn.PgConn, id string) bool {
			t.Helper()
			return len(k.queryList(c, "SELECT id FROM "+table+" WHERE id = '"+id+"'")) == 1
		}
		if hasMemory(bellaConn, "ash:1") || !hasMemory(seanConn, "ash:1") || !hasMemory(ashConn, "ash:1") || hasMemory(bellaConn, "rex:2") {
			t.Errorf("%s: shows to bella, whom mallory did not grant it, or not to sean or its owner", table)
		}
		k.mustExec(super, "UPDATE "+table+" SET access_grants = "+list("si:rex", "si:ash")+" WHERE id = 'mal:1'")
		if hasMemory(seanConn, "ash:1") || hasMemory(seanConn, "rex:2") || !hasMemory(ashConn, "ash:1") {
			t.Errorf("%s: shows to sean, whom mallory grants it no more, or not to its owner", table)
		}
		k.mustExec(super, "UPDATE "+table+" SET access_grants = "+list("si:rex", "human:sean")+" WHERE id = 'mal:1'")
		if !hasMemory(seanConn, "ash:1") {
			t.Errorf("%s: does not come back", table)
		}
		// A told memory cannot get another source or wider grants.
		k.checkRefused(ashConn, "UPDATE "+table+" SET told_from = NULL WHERE id = 'ash:1'", "42501")
		k.checkRefused(ashConn, "UPDATE "+table+" SET access_grants = "+list("si:bella_agent", "human:sean", "*")+" WHERE id = 'ash:1'", "42501")
		k.mustExec(ashConn, "UPDATE "+table+" SET access_grants = "+list("human:sean")+" WHERE id = 'ash:1'")
		k.checkVisible(bellaConn, table, entity{user: "si:bella_agent"})
		k.checkVisible(seanConn, table, entity{user: "human:sean"})
		k.checkVisible(k.connectAs("rex", ""), table, entity{user: "si:rex"})
	}
	k.proxy.Tap().RequireNoMarker(t)
}
