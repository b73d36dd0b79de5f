package attacks

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A sub-select with FOR UPDATE locks a row, or fails with NOWAIT if another session has locked it. A sub-select that
// does not depend on the hidden row beside it must not run for that row. The agent's second session checks whether the
// lock was taken.
func TestLocksOfSubSelectsTellNothing(t *testing.T) {
	tier.All(t)
	s := schemaNamed(t, "grid")
	visible, changes := "test/oracle/testdata/grid/visible.sql", "test/attacks/testdata/grid.sql"
	one, two := s.BehindProxy(t), s.TwinBehindProxy(t, instance.ReadRepoFile(t, visible)+instance.ReadRepoFile(t, changes))
	statements := []string{
		`SELECT count(*) FROM ticket WHERE opened_at = 'infinity' AND household_id = (SELECT weight FROM annotation WHERE weight = 6 LIMIT 1 FOR UPDATE%)`,
		`SELECT count(*) FROM ticket WHERE opened_at = 'infinity' AND confidential = EXISTS (SELECT FROM annotation WHERE weight = 6 FOR UPDATE%)`,
		`SELECT count(*) FROM device WHERE last_seen = 'infinity' AND household_id = ANY (ARRAY(SELECT weight FROM annotation WHERE weight = 6 FOR SHARE%))`,
		`SELECT count(*) FROM ticket WHERE subject = 'HIDDENMARK meter 3' ` +
			`AND household_id = (SELECT weight FROM annotation WHERE weight = 6 LIMIT 1 FOR NO KEY UPDATE%)`,
	}
	const freeRowQuery = `SELECT count(*) FROM (SELECT FROM annotation WHERE weight = 6 FOR UPDATE SKIP LOCKED) x`
	for _, mode := range modesOf(instance.Both, instance.Auto) {
		var got [2][]string
		for i, proxy := range []*instance.Proxy{instance.Start(t, mode, one, s.Attributes), instance.Start(t, mode, two, s.Attributes)} {
			lockingSession, otherSession := proxy.Agent(t, "agent", s.Name), proxy.Agent(t, "agent", s.Name)
			for _, statement := range statements {
				instance.Ask(lockingSession, "BEGIN")
				instance.Ask(lockingSession, strings.Replace(statement, "%", "", 1))
				got[i] = append(got[i], instance.Ask(otherSession, freeRowQuery).SortedString())
				instance.Ask(lockingSession, "ROLLBACK")
				instance.Ask(otherSession, "BEGIN")
				instance.Ask(otherSession, freeRowQuery)
				got[i] = append(got[i], instance.Ask(lockingSession, strings.Replace(statement, "%", " NOWAIT", 1)).SortedString())
				instance.Ask(otherSession, "ROLLBACK")
			}
		}
		for n := range got[0] {
			if got[0][n] != got[1][n] {
				t.Errorf("%s, %s: %s\none:\n%s\ntwin:\n%s", mode.Name, []string{"is the row free", "NOWAIT"}[n%2], statements[n/2], got[0][n], got[1][n])
			}
		}
	}
}
