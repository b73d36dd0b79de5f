package noninterference

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/test/instance"
)

// script is a database by its texts, so that a difference can be saved and run again.
type script struct {
	ddl, policy string
	narrow      string // takes hidden columns away
	callers     []map[string]string
}

// stage is a pair of databases behind a proxy, and a third with the visible rows only, past it.
type stage struct {
	t       testing.TB
	mode    instance.Mode
	proxy   *instance.Proxy
	dbs     [2]*pgtest.DB
	alone   *pgtest.DB
	agents  [2]*pgconn.PgConn
	super   *pgconn.PgConn
	writers [3]*pgconn.PgConn // load the databases
	fills   [2][]migrations.Fill
	visible string // what the visible rows were loaded from
	caller  int
	grouped bool // what agents get of aggregates is not what the visible rows answer
}

// names of the pair: as long as each other, and put away before transcripts are compared.
var names = [2]string{"one", "two"}

func newStage(t testing.TB, mode instance.Mode, s script) *stage {
	t.Helper()
	st := &stage{t: t, mode: mode}
	var behind []instance.Database
	var agents []instance.Agent
	// Copies of one database, so that objects have the same numbers.
	database := func() *pgtest.DB {
		return pgtest.Temporary(t, "pair "+s.ddl, func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.PgConn().Exec(ctx, s.ddl).ReadAll()
			return err
		})
	}
	for i := range st.dbs {
		st.dbs[i] = database()
		behind = append(behind, instance.Database{Name: names[i], DB: st.dbs[i], Policy: s.policy, SearchPath: []string{"public"}})
		st.fills[i] = instance.Migrate(t, behind[i], mode).Plan.Fills()
		instance.Exec(t, st.dbs[i], sameHashes())
		for n, attributes := range s.callers {
			agents = append(agents, instance.Agent{Name: fmt.Sprintf("%s%d", names[i], n), Database: names[i], Attributes: attributes})
		}
	}
	st.alone = database()
	instance.Exec(t, st.alone, s.narrow)
	st.proxy = instance.Serve(t, mode, behind, agents)
	st.super = instance.Super(t, st.alone)
	for i, db := range []*pgtest.DB{st.dbs[0], st.dbs[1], st.alone} {
		st.writers[i] = instance.Super(t, db)
	}
	return st
}

// load fills the three databases.
func (st *stage) load(one, two, alone string) {
	st.t.Helper()
	st.visible = alone
	for i, sql := range []string{one, two, alone} {
		for n, part := range strings.SplitN(sql, filled, 2) {
			if n > 0 {
				st.fill(i)
			}
			if a := instance.Ask(st.writers[i], "SET session_replication_role = replica; "+part); a.Err != "" {
				st.t.Fatalf("%s\n%s", a.Err, sql)
			}
		}
	}
}

// ask sends a case to both databases at once.
func (st *stage) ask(c testCase) [2]transcript {
	var out [2]transcript
	var wait sync.WaitGroup
	for i := range st.dbs {
		wait.Add(1)
		go func() {
			defer wait.Done()
			out[i] = st.askOne(i, c)
		}()
	}
	wait.Wait()
	return out
}

func (st *stage) askOne(i int, c testCase) transcript {
	conn := st.agents[i]
	if conn == nil || conn.IsClosed() {
		var err error
		if conn, err = instance.Dial(st.proxy.DSN(fmt.Sprintf("%s%d", names[i], st.caller), names[i])); err != nil {
			return transcript{{Code: "client", Err: err.Error(), Message: err.Error()}}
		}
		st.agents[i] = conn
	}
	out := send(conn, c)
	for m := range out {
		if a := &out[m]; a.Code == tooMuch { // which rows come first is open by SQL
			a.Results = nil
		}
		out[m] = rename(out[m], st.dbs[i].Name)
	}
	return out
}

// fresh gives the agents new connections at their next statement.
func (st *stage) fresh() {
	for i, c := range st.agents {
		if c != nil {
			instance.Close(c)
		}
		st.agents[i] = nil
	}
}

// rename puts the name of the database away.
func rename(a instance.Answer, name string) instance.Answer {
	a.Err = strings.ReplaceAll(a.Err, name, "DATABASE")
	a.Message = strings.ReplaceAll(a.Message, name, "DATABASE")
	for i := range a.Results {
		for j, row := range a.Results[i].Rows {
			a.Results[i].Rows[j] = strings.ReplaceAll(row, name, "DATABASE")
		}
	}
	return a
}

// transcript are the answers to the messages of a case.
type transcript []instance.Answer

func (t transcript) String() string {
	var b strings.Builder
	for i, a := range t {
		fmt.Fprintf(&b, "message %d\n%s", i+1, a.Multiset())
	}
	return b.String()
}

// outcome is what the visible rows alone must explain: rows, or a code and a message.
func outcome(a instance.Answer) string {
	if a.Err != "" {
		return a.Code + " " + a.Message
	}
	return a.WithoutNotices().Multiset()
}

func send(c *pgconn.PgConn, tc testCase) transcript {
	var out transcript
	for _, m := range tc.messages {
		if c.IsClosed() {
			break
		}
		if tc.extended && !strings.HasPrefix(m, "COPY") {
			out = append(out, instance.AskExtended(c, m))
		} else {
			out = append(out, instance.AskCopy(c, m))
		}
	}
	if !c.IsClosed() && c.TxStatus() != 'I' {
		instance.Ask(c, "ROLLBACK")
	}
	return out
}

// settings of the planner, under which PostgreSQL may evaluate in another order.
var settings = []string{
	"", "SET enable_hashjoin = off; SET enable_hashagg = off",
	"SET enable_mergejoin = off; SET enable_hashjoin = off", "SET enable_nestloop = off", "SET enable_seqscan = off",
	"SET enable_sort = off; SET enable_material = off", "SET join_collapse_limit = 1; SET from_collapse_limit = 1",
}

// possible are the outcomes that PostgreSQL gives for the i-th message on the visible rows alone, however it plans.
func (st *stage) possible(c testCase, i int) map[string]bool {
	out := map[string]bool{}
	c.extended = false
	ask := func() {
		if got := send(st.super, c); i < len(got) {
			out[outcome(rename(got[i], st.alone.Name))] = true
		}
	}
	for _, set := range settings {
		if set != "" {
			instance.Ask(st.super, set)
		}
		ask()
	}
	instance.Ask(st.super, "RESET ALL")
	st.sized(ask)
	// What ANALYZE has found of hidden values says how many rows the planner expects.
	for _, known := range []string{"ANALYZE", "DELETE FROM pg_statistic WHERE starelid >= 16384"} {
		if a := instance.Ask(st.super, known); a.Err != "" {
			st.t.Fatal(a.Err)
		}
		ask()
		st.sized(ask)
	}
	for _, shuffled := range shuffles(c) {
		if got := send(st.super, shuffled); i < len(got) && got[i].Err == "" {
			out[outcome(rename(got[i], st.alone.Name))] = true
		}
	}
	return out
}

// shuffles are a case with the rows of its cursor in several orders, where its statement gives none.
func shuffles(c testCase) (out []testCase) {
	at := slices.IndexFunc(c.messages, func(m string) bool { return strings.HasPrefix(m, "DECLARE ") })
	if at < 0 {
		return nil
	}
	head, query, ok := strings.Cut(c.messages[at], " FOR ")
	if !ok || strings.Contains(query, "ORDER BY") {
		return nil
	}
	for seed := range 16 {
		shuffled := c
		shuffled.messages = slices.Clone(c.messages)
		shuffled.messages[at] = fmt.Sprintf("%s FOR SELECT * FROM (%s) AS q ORDER BY md5(q::text || '%d')", head, query, seed)
		out = append(out, shuffled)
	}
	return out
}

// sized calls a function while the planner takes the tables with the visible rows for other sizes than they have: which
// side of a join it reads first, and whether it gets to the other, depends on how large it takes them for, and that
// depends on hidden rows.
func (st *stage) sized(ask func()) {
	const tables = "oid >= 16384 AND relkind = 'r' AND relnamespace = 'public'::regnamespace"
	run := func(sql string) instance.Answer {
		a := instance.Ask(st.super, sql)
		if a.Err != "" {
			st.t.Fatal(a.Err)
		}
		return a
	}
	var list, sizes []string
	for _, result := range run("SELECT format('(%s, %s, %s::real)', oid, relpages, reltuples) FROM pg_class WHERE " + tables + " ORDER BY oid").Results {
		for _, row := range result.Rows {
			size := strings.Trim(row, `[]"`)
			oid, _, _ := strings.Cut(strings.TrimPrefix(size, "("), ",")
			list, sizes = append(list, oid), append(sizes, size)
		}
	}
	if len(list) == 0 {
		return
	}
	defer run("UPDATE pg_class AS c SET relpages = s.pages, reltuples = s.tuples FROM (VALUES " +
		strings.Join(sizes, ", ") + ") AS s (oid, pages, tuples) WHERE s.oid = c.oid")
	for _, oid := range list {
		for _, larger := range []string{"=", "<>"} {
			// An empty file counts as ten pages until somebody looks at it, and as none then.
			run("UPDATE pg_class SET relpages = sign(pg_relation_size(oid)), reltuples = CASE WHEN NOT oid " + larger + oid +
				" THEN 0 WHEN pg_relation_size(oid) = 0 THEN -1 ELSE 1e6 END WHERE " + tables)
			ask()
		}
	}
	for _, tuples := range []string{"-1", "1", "4", "15", "60", "250", "1000"} { // a table that is joined with itself has one size
		run("UPDATE pg_class SET relpages = sign(pg_relation_size(oid)), reltuples = " + tuples + " WHERE " + tables)
		ask()
	}
}

// open tells whether SQL leaves the choice between two answers open.
func (st *stage) open(c testCase, i int, a, b instance.Answer) bool {
	if a.Code == "client" || b.Code == "client" {
		return false
	}
	possible := st.possible(c, i)
	if possible[outcome(a)] && possible[outcome(b)] {
		return true
	}
	codes := map[string]bool{}
	for o := range possible {
		code, _, _ := strings.Cut(o, " ")
		codes[code] = true
	}
	// Which visible value fails first is open. What the proxy puts in the place of a message tells its code only.
	known := st.visible + strings.Join(c.messages, " ")
	explained := func(x instance.Answer) bool {
		if possible[outcome(x)] {
			return true
		}
		parts := strings.Split(x.Message, `"`)
		for i := 1; i < len(parts); i += 2 {
			if !strings.Contains(known, parts[i]) {
				return false
			}
		}
		return x.Err != "" && codes[x.Code]
	}
	// So is which comes first of a value that fails and the row that is one too many.
	if a.Err != "" && b.Err != "" && (a.Code == tooMuch || b.Code == tooMuch) {
		return (a.Code == tooMuch || explained(a)) && (b.Code == tooMuch || explained(b))
	}
	return explained(a) && explained(b)
}

// tooMuch is the code of what a limit ends.
const tooMuch = "53400"
