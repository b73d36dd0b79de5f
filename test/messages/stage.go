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

// policySetting is a mode of enforcement, and YAML that is added to testdata/policy.yaml.
type policySetting struct {
	name       string
	mode       instance.Mode
	policyYAML string
	onlyTwins  bool // agents get fewer rows than PostgreSQL would return, so that only the twins are compared
}

var allSettings = []policySetting{
	{name: "auto", mode: instance.Auto},
	{name: "both", mode: instance.Both},
	{name: "signed", mode: instance.SignedViews},
	{name: "rls", mode: instance.RLS},
	{name: "steps", mode: instance.Auto, policyYAML: "limits: { per: agent, result_rows: 100000 }\n"},
	{name: "limits", mode: instance.Both, policyYAML: "limits: { per: agent, result_rows: 3 }\n", onlyTwins: true},
}

// Indexes of the databases on which a sequence is played: the twins are behind a proxy; the third has only the visible
// rows and no proxy.
const (
	firstTwin = iota
	secondTwin
	visibleOnly
	databaseCount
)

var databaseNames = [databaseCount]string{"one", "two", "alone"}

// databaseTrio has the twins behind a proxy, and the database that has only the visible rows.
type databaseTrio struct {
	t           testing.TB
	setting     policySetting
	proxy       *instance.Proxy
	dbs         [databaseCount]*pgtest.DB
	owners      [databaseCount]*pgconn.PgConn
	fillSQL     [databaseCount]string // SQL that inserts the original rows
	hiddenText  [databaseCount]string // hidden rows at the beginning, as text
	visibleText string                // visible rows at the beginning, as text
}

func newDatabaseTrio(t testing.TB, s policySetting) *databaseTrio {
	t.Helper()
	st := &databaseTrio{t: t, setting: s}
	schema, visible := instance.ReadRepoFile(t, "test/messages/testdata/schema.sql"), instance.ReadRepoFile(t, "test/messages/testdata/visible.sql")
	policy := instance.ReadRepoFile(t, "test/messages/testdata/policy.yaml") + s.policyYAML
	hidden := [databaseCount]string{instance.ReadRepoFile(t, "test/messages/testdata/hidden_one.sql"),
		instance.ReadRepoFile(t, "test/messages/testdata/hidden_two.sql")}
	var databases []instance.Database
	var agents []instance.Agent
	for i := range st.dbs {
		st.dbs[i] = pgtest.Template(t, "messages", func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.PgConn().Exec(ctx, schema).ReadAll()
			return err
		})
		if i != visibleOnly {
			d := instance.Database{Name: databaseNames[i], DB: st.dbs[i], Policy: policy, SearchPath: []string{"public"}}
			instance.Install(t, d, s.mode)
			databases = append(databases, d)
			agents = append(agents, instance.Agent{Name: databaseNames[i], Database: databaseNames[i], Attributes: map[string]string{"me": "me"}})
		}
		st.owners[i] = instance.ConnectSuperuser(t, st.dbs[i])
		// Hidden rows are inserted first, then visible rows.
		st.fillSQL[i] = "SET session_replication_role = replica; SET lock_timeout = '180s'; " + hidden[i] + visible
		// With these settings, the planner chooses the same plans for any number of rows.
		role := "pgconsent_agent"
		if i == visibleOnly {
			role = "postgres"
		}
		for _, scan := range []string{"indexscan", "indexonlyscan", "bitmapscan"} {
			st.queryAsOwner(i, fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET enable_%s = off", role, st.dbs[i].Name, scan))
		}
	}
	st.proxy = instance.Serve(t, s.mode, databases, agents)
	for i := range st.dbs {
		st.fill(i)
		st.hiddenText[i] = st.queryAsOwner(i, hiddenRowsQuery)
	}
	st.visibleText = st.queryAsOwner(visibleOnly, visibleRowsQuery)
	return st
}

const (
	visibleRowsQuery = "SELECT * FROM item WHERE owner = 'me' ORDER BY id; SELECT * FROM person WHERE owner = 'me' AND " +
		"status = 'granted' ORDER BY id; SELECT * FROM deed WHERE note !~ 'HIDDENMARK' ORDER BY id"
	hiddenRowsQuery = "SELECT * FROM item WHERE owner <> 'me' ORDER BY owner, id; SELECT * FROM person WHERE name ~ " +
		"'HIDDENMARK' ORDER BY id; SELECT * FROM deed WHERE note ~ 'HIDDENMARK' ORDER BY id; TABLE secret"
	withdrawalSQL = "UPDATE person SET status = 'withdrawn' WHERE id = 3"

	// withdrawnMarker is in each text that is hidden once the consent is withdrawn.
	withdrawnMarker = "WITHDRAWN"
)

// fill restores the original rows of a database. It uses DELETE and VACUUM, after which the files are as in the
// beginning. TRUNCATE would also change the catalogs.
func (st *databaseTrio) fill(i int) {
	st.t.Helper()
	st.queryAsOwner(i, "DELETE FROM deed; DELETE FROM person; DELETE FROM item; DELETE FROM secret")
	st.queryAsOwner(i, "VACUUM item, person, deed, secret")
	st.queryAsOwner(i, st.fillSQL[i])
}

// queryAsOwner runs SQL on the i-th database as the owner.
func (st *databaseTrio) queryAsOwner(i int, sql string) string {
	st.t.Helper()
	a := instance.Ask(st.owners[i], sql)
	if a.Err != "" {
		st.t.Fatalf("%s: %s: %s", databaseNames[i], instance.OneLine(sql), a.Err)
	}
	return a.String()
}

// waitForSessionsEnd waits until the sessions on a database have ended. It returns false if they do not end in time.
func (st *databaseTrio) waitForSessionsEnd(i int) bool {
	sessions := "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() " +
		"AND backend_type = 'client backend' AND usename = '%s'"
	user := "pgconsent_agent"
	switch {
	case i == visibleOnly:
		user = "postgres"
	case instance.IsPooled(st.t): // connections of a pool stay open, but hold no locks
		sessions += " AND state <> 'idle'"
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if strings.HasSuffix(strings.TrimSpace(st.queryAsOwner(i, fmt.Sprintf(sessions, user))), "SELECT 0") {
			return true
		}
	}
	return false
}

// dial opens the connection on which a sequence is played on the i-th database.
func (st *databaseTrio) dial(i int) (*pgconn.HijackedConn, error) {
	dsn := st.dbs[visibleOnly].DSN("postgres", "")
	if i != visibleOnly {
		dsn = st.proxy.DSN(databaseNames[i], databaseNames[i])
	}
	c, err := instance.Dial(dsn)
	if err != nil {
		return nil, err
	}
	return c.Hijack()
}
