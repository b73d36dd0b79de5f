package messages

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

// setting is a mode, and what the policy adds to testdata/policy.yaml.
type setting struct {
	name  string
	mode  instance.Mode
	adds  string
	apart bool // agents get less than PostgreSQL would answer: only the twins are compared
}

var every = []setting{
	{name: "auto", mode: instance.Auto},
	{name: "both", mode: instance.Both},
	{name: "signed", mode: instance.SignedViews},
	{name: "rls", mode: instance.RLS},
	{name: "steps", mode: instance.Auto, adds: "limits: { per: agent, result_rows: 100000 }\n"},
	{name: "limits", mode: instance.Both, adds: "limits: { per: agent, result_rows: 3 }\n", apart: true},
}

// places are where a sequence is played: the twins behind a proxy, and PostgreSQL itself.
const (
	one = iota
	two
	alone
	places
)

var names = [places]string{"one", "two", "alone"}

// stage is the twins behind a proxy, and the database with the visible rows only.
type stage struct {
	t       testing.TB
	setting setting
	proxy   *instance.Proxy
	dbs     [places]*pgtest.DB
	owners  [places]*pgconn.PgConn
	rows    [places]string // what the databases are filled with
	hidden  [places]string // their hidden rows, as text
	visible string         // and the visible ones
}

func newStage(t testing.TB, s setting) *stage {
	t.Helper()
	st := &stage{t: t, setting: s}
	schema, visible := instance.Read(t, "test/messages/testdata/schema.sql"), instance.Read(t, "test/messages/testdata/visible.sql")
	policy := instance.Read(t, "test/messages/testdata/policy.yaml") + s.adds
	hidden := [places]string{instance.Read(t, "test/messages/testdata/hidden_one.sql"), instance.Read(t, "test/messages/testdata/hidden_two.sql")}
	var behind []instance.Database
	var agents []instance.Agent
	for i := range st.dbs {
		st.dbs[i] = pgtest.Template(t, "messages", func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.PgConn().Exec(ctx, schema).ReadAll()
			return err
		})
		if i != alone {
			d := instance.Database{Name: names[i], DB: st.dbs[i], Policy: policy, SearchPath: []string{"public"}}
			instance.Install(t, d, s.mode)
			behind = append(behind, d)
			agents = append(agents, instance.Agent{Name: names[i], Database: names[i], Attributes: map[string]string{"me": "me"}})
		}
		st.owners[i] = instance.Super(t, st.dbs[i])
		// Hidden rows stand among the visible ones, as two halves of a script do.
		st.rows[i] = "SET session_replication_role = replica; SET lock_timeout = '180s'; " + hidden[i] + visible
		// No plan depends on how many rows there are.
		role := "pgconsent_agent"
		if i == alone {
			role = "postgres"
		}
		for _, scan := range []string{"indexscan", "indexonlyscan", "bitmapscan"} {
			st.ask(i, fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET enable_%s = off", role, st.dbs[i].Name, scan))
		}
	}
	st.proxy = instance.Serve(t, s.mode, behind, agents)
	for i := range st.dbs {
		st.fill(i)
		st.hidden[i] = st.ask(i, hiddenRows)
	}
	st.visible = st.ask(alone, visibleRows)
	return st
}

const (
	visibleRows = "SELECT * FROM item WHERE owner = 'me' ORDER BY id; SELECT * FROM person WHERE owner = 'me' AND " +
		"status = 'granted' ORDER BY id; SELECT * FROM deed WHERE note !~ 'HIDDENMARK' ORDER BY id"
	hiddenRows = "SELECT * FROM item WHERE owner <> 'me' ORDER BY owner, id; SELECT * FROM person WHERE name ~ " +
		"'HIDDENMARK' ORDER BY id; SELECT * FROM deed WHERE note ~ 'HIDDENMARK' ORDER BY id; TABLE secret"
	withdrawal = "UPDATE person SET status = 'withdrawn' WHERE id = 3"

	// withdrawn is in each text that the withdrawal hides.
	withdrawn = "WITHDRAWN"
)

// fill gives a database its rows again. The files are as new, but the catalogs unchanged, as they are not by TRUNCATE.
func (st *stage) fill(i int) {
	st.t.Helper()
	st.ask(i, "DELETE FROM deed; DELETE FROM person; DELETE FROM item; DELETE FROM secret")
	st.ask(i, "VACUUM item, person, deed, secret")
	st.ask(i, st.rows[i])
}

// ask asks as the owner.
func (st *stage) ask(i int, sql string) string {
	st.t.Helper()
	a := instance.Ask(st.owners[i], sql)
	if a.Err != "" {
		st.t.Fatalf("%s: %s: %s", names[i], instance.OneLine(sql), a.Err)
	}
	return a.String()
}

// left waits until the sessions on a database are over, and tells whether they are.
func (st *stage) left(i int) bool {
	sessions := "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() " +
		"AND backend_type = 'client backend' AND usename = '%s'"
	user := "pgconsent_agent"
	switch {
	case i == alone:
		user = "postgres"
	case instance.IsPooled(st.t): // connections stay, and hold nothing
		sessions += " AND state <> 'idle'"
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if strings.HasSuffix(strings.TrimSpace(st.ask(i, fmt.Sprintf(sessions, user))), "SELECT 0") {
			return true
		}
	}
	return false
}

// dial opens the connection that a sequence is played on.
func (st *stage) dial(i int) (*pgconn.HijackedConn, error) {
	dsn := st.dbs[alone].DSN("postgres", "")
	if i != alone {
		dsn = st.proxy.DSN(names[i], names[i])
	}
	c, err := instance.Dial(dsn)
	if err != nil {
		return nil, err
	}
	return c.Hijack()
}
