package rls_test

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The shadows answer psql's catalog queries, except \dL and \dd, which want tableoid of them. The names are put in here
// as the rewriter would.
func TestShadowsAnswerPsql(t *testing.T) {
	tier.All(t)
	w := newWorld(t, "CREATE TABLE part (id int, at date) PARTITION BY RANGE (at)").migrate()
	path, isSameVersion := pgtest.ClientProgram(t, "psql")
	if !isSameVersion {
		t.Skip("this psql is of another version than the server, whose catalogs it may not know")
	}
	psql := exec.Command(path, "-X", "-E", "-h", w.db.SocketDir, "-p", strconv.Itoa(w.db.Port), "-U", "postgres", w.db.Name)
	psql.Stdin = strings.NewReader(
		"\\d\n\\d memories\n\\d+ memories\n\\d memories_pkey\n\\dt\n\\dt+\n\\di\n\\df\n\\df+ " +
			"match_memories\n\\l\n\\dn\n\\dn+\n\\dT\n\\dT+\n\\du\n\\dx\n\\dp\n\\do =\n\\dC " +
			"int4\n\\db\n\\dv\n\\ds\n\\dm\n\\dE\n\\dD\n\\dA\n\\dF\n\\drds\n\\dRp\n\\dy\n\\dO\n\\dc\n\\da count\n\\dP\n")
	out, err := psql.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	queries := regexp.MustCompile(`(?s)\*{9} QUERY \*{10}\n(.*?)\n\*{26}`).FindAllStringSubmatch(string(out), -1)
	if len(queries) < 30 {
		t.Fatalf("psql sent %d queries\n%s", len(queries), out)
	}
	agent := w.agent(user1)
	name := regexp.MustCompile(`pg_catalog\.(\w+)`)
	for _, q := range queries {
		sql := name.ReplaceAllStringFunc(q[1], func(s string) string {
			n := catalog.Name{Schema: "pg_catalog", Name: strings.TrimPrefix(s, "pg_catalog.")}
			if shadow, ok := catalog.ShadowRelation(n); ok {
				return shadow.SQL()
			}
			if shadow, ok := catalog.ShadowFunction(n.Name); ok {
				return shadow.SQL()
			}
			return s
		})
		// regclass, regtype … are types of pg_catalog and stay.
		if got, err := query(agent, sql); err != nil {
			t.Errorf("%v\n%s", err, sql)
		} else if strings.Contains(got, "sekret") || strings.Contains(got, "memory_edges") {
			t.Errorf("tells too much: %s\n%s", got, sql)
		}
	}
}
