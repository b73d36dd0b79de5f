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

// databaseScript has the texts from which a database is made. They are saved with a difference, so that it can be run
// again.
type databaseScript struct {
	ddl, policy string
	dropColumns string // SQL that drops the columns that the policy hides
	callers     []map[string]string
}

// databaseTrio has two databases behind a proxy (the twins), which differ in hidden rows only, and a third that has
// only the visible rows and no proxy.
type databaseTrio struct {
	t                 testing.TB
	mode              instance.Mode
	proxy             *instance.Proxy
	dbs               [2]*pgtest.DB
	visibleOnlyDB     *pgtest.DB
	agents            [2]*pgconn.PgConn
	visibleOnlyConn   *pgconn.PgConn
	writers           [3]*pgconn.PgConn // superuser's connections, which load the databases
	materializedFills [2][]migrations.Fill
	visibleLoad       string // SQL that inserts the visible rows
	caller            int
	countsHiddenRows  bool // aggregates of agents also count hidden rows, so that the third database answers differently
}

// databaseNames are the names of the twins, which have the same length. They are removed from answers before a
// comparison.
var databaseNames = [2]string{"one", "two"}

func newDatabaseTrio(t testing.TB, mode instance.Mode, s databaseScript) *databaseTrio {
	t.Helper()
	st := &databaseTrio{t: t, mode: mode}
	var databases []instance.Database
	var agents []instance.Agent
	// The databases are copies of one template, so that their objects have the same OIDs.
	database := func() *pgtest.DB {
		return pgtest.Temporary(t, "pair "+s.ddl, func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.PgConn().Exec(ctx, s.ddl).ReadAll()
			return err
		})
	}
	for i := range st.dbs {
		st.dbs[i] = database()
		databases = append(databases, instance.Database{Name: databaseNames[i], DB: st.dbs[i], Policy: s.policy, SearchPath: []string{"public"}})
		st.materializedFills[i] = instance.Migrate(t, databases[i], mode).Plan.Fills()
		instance.Exec(t, st.dbs[i], setHashKeySQL())
		for n, attributes := range s.callers {
			agents = append(agents, instance.Agent{Name: fmt.Sprintf("%s%d", databaseNames[i], n), Database: databaseNames[i], Attributes: attributes})
		}
	}
	st.visibleOnlyDB = database()
	instance.Exec(t, st.visibleOnlyDB, s.dropColumns)
	st.proxy = instance.Serve(t, mode, databases, agents)
	st.visibleOnlyConn = instance.ConnectSuperuser(t, st.visibleOnlyDB)
	for i, db := range []*pgtest.DB{st.dbs[0], st.dbs[1], st.visibleOnlyDB} {
		st.writers[i] = instance.ConnectSuperuser(t, db)
	}
	return st
}

// load replaces the rows of the three databases.
func (st *databaseTrio) load(one, two, visibleSQL string) {
	st.t.Helper()
	st.visibleLoad = visibleSQL
	for i, sql := range []string{one, two, visibleSQL} {
		for n, part := range strings.SplitN(sql, materializePoint, 2) {
			if n > 0 {
				st.fillMaterialized(i)
			}
			if a := instance.Ask(st.writers[i], "SET session_replication_role = replica; "+part); a.Err != "" {
				st.t.Fatalf("%s\n%s", a.Err, sql)
			}
		}
	}
}

// sendToBoth sends a case to both twins at the same time.
func (st *databaseTrio) sendToBoth(c testCase) [2]answerList {
	var out [2]answerList
	var wait sync.WaitGroup
	for i := range st.dbs {
		wait.Add(1)
		go func() {
			defer wait.Done()
			out[i] = st.sendToOne(i, c)
		}()
	}
	wait.Wait()
	return out
}

func (st *databaseTrio) sendToOne(i int, c testCase) answerList {
	conn := st.agents[i]
	if conn == nil || conn.IsClosed() {
		var err error
		if conn, err = instance.Dial(st.proxy.DSN(fmt.Sprintf("%s%d", databaseNames[i], st.caller), databaseNames[i])); err != nil {
			return answerList{{Code: "client", Err: err.Error(), Message: err.Error()}}
		}
		st.agents[i] = conn
	}
	out := send(conn, c)
	for m := range out {
		if a := &out[m]; a.Code == limitExceededCode { // SQL does not define which rows come before a limit
			a.Results = nil
		}
		out[m] = hideDatabaseName(out[m], st.dbs[i].Name)
	}
	return out
}

// reconnectAgents closes the agents' connections. The next case opens new ones.
func (st *databaseTrio) reconnectAgents() {
	for i, c := range st.agents {
		if c != nil {
			instance.Close(c)
		}
		st.agents[i] = nil
	}
}

// hideDatabaseName replaces the name of a database in an answer.
func hideDatabaseName(a instance.Answer, name string) instance.Answer {
	a.Err = strings.ReplaceAll(a.Err, name, "DATABASE")
	a.Message = strings.ReplaceAll(a.Message, name, "DATABASE")
	for i := range a.Results {
		for j, row := range a.Results[i].Rows {
			a.Results[i].Rows[j] = strings.ReplaceAll(row, name, "DATABASE")
		}
	}
	return a
}

// answerList has the answers to the messages of a case, in their order.
type answerList []instance.Answer

func (t answerList) String() string {
	var b strings.Builder
	for i, a := range t {
		fmt.Fprintf(&b, "message %d\n%s", i+1, a.SortedString())
	}
	return b.String()
}

// answerOutcome returns the part of an answer that must also be possible on the visible rows alone: the rows, or the
// error's code and message.
func answerOutcome(a instance.Answer) string {
	if a.Err != "" {
		return a.Code + " " + a.Message
	}
	return a.WithoutNotices().SortedString()
}

func send(c *pgconn.PgConn, tc testCase) answerList {
	var out answerList
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

// plannerSettings are settings with which PostgreSQL may evaluate expressions in another order.
var plannerSettings = []string{
	"", "SET enable_hashjoin = off; SET enable_hashagg = off",
	"SET enable_mergejoin = off; SET enable_hashjoin = off", "SET enable_nestloop = off", "SET enable_seqscan = off",
	"SET enable_sort = off; SET enable_material = off", "SET join_collapse_limit = 1; SET from_collapse_limit = 1",
}

// possibleOutcomes returns the outcomes of the i-th message that PostgreSQL yields on the visible rows alone, with
// various planner settings, table sizes and statistics.
func (st *databaseTrio) possibleOutcomes(c testCase, i int) map[string]bool {
	out := map[string]bool{}
	c.extended = false
	addOutcome := func() {
		if got := send(st.visibleOnlyConn, c); i < len(got) {
			out[answerOutcome(hideDatabaseName(got[i], st.visibleOnlyDB.Name))] = true
		}
	}
	for _, set := range plannerSettings {
		if set != "" {
			instance.Ask(st.visibleOnlyConn, set)
		}
		addOutcome()
	}
	instance.Ask(st.visibleOnlyConn, "RESET ALL")
	st.withTableSizes(addOutcome)
	// How many rows the planner expects depends on the statistics of ANALYZE, which also contain hidden values.
	for _, statistics := range []string{"ANALYZE", "DELETE FROM pg_statistic WHERE starelid >= 16384"} {
		if a := instance.Ask(st.visibleOnlyConn, statistics); a.Err != "" {
			st.t.Fatal(a.Err)
		}
		addOutcome()
		st.withTableSizes(addOutcome)
	}
	for _, shuffled := range cursorOrders(c) {
		if got := send(st.visibleOnlyConn, shuffled); i < len(got) && got[i].Err == "" {
			out[answerOutcome(hideDatabaseName(got[i], st.visibleOnlyDB.Name))] = true
		}
	}
	return out
}

// cursorOrders returns variants of the case in which the rows of its cursor are in different orders. It returns none if
// the statement has an ORDER BY.
func cursorOrders(c testCase) (out []testCase) {
	at := slices.IndexFunc(c.messages, func(message string) bool { return strings.HasPrefix(message, "DECLARE ") })
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

// withTableSizes calls a function repeatedly, while the planner assumes different sizes of the tables in the third
// database. The size decides which side of a join is read first, and whether the other side is read at all. In the
// twins, the size depends on hidden rows.
func (st *databaseTrio) withTableSizes(callback func()) {
	const tables = "oid >= 16384 AND relkind = 'r' AND relnamespace = 'public'::regnamespace"
	run := func(sql string) instance.Answer {
		a := instance.Ask(st.visibleOnlyConn, sql)
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
			// For an empty file, PostgreSQL assumes ten pages until VACUUM or ANALYZE has processed the table, and zero pages
			// after that.
			run("UPDATE pg_class SET relpages = sign(pg_relation_size(oid)), reltuples = CASE WHEN NOT oid " + larger + oid +
				" THEN 0 WHEN pg_relation_size(oid) = 0 THEN -1 ELSE 1e6 END WHERE " + tables)
			callback()
		}
	}
	for _, tuples := range []string{"-1", "1", "4", "15", "60", "250", "1000"} { // for joins of a table with itself
		run("UPDATE pg_class SET relpages = sign(pg_relation_size(oid)), reltuples = " + tuples + " WHERE " + tables)
		callback()
	}
}

// isOrderUndefined reports whether both answers are right, because SQL leaves open which of them comes.
func (st *databaseTrio) isOrderUndefined(c testCase, i int, a, b instance.Answer) bool {
	if a.Code == "client" || b.Code == "client" {
		return false
	}
	possible := st.possibleOutcomes(c, i)
	if possible[answerOutcome(a)] && possible[answerOutcome(b)] {
		return true
	}
	codes := map[string]bool{}
	for o := range possible {
		code, _, _ := strings.Cut(o, " ")
		codes[code] = true
	}
	// SQL does not define which visible value fails first. The proxy replaces some messages; then only the code is
	// compared.
	visibleTexts := st.visibleLoad + strings.Join(c.messages, " ")
	isExplained := func(x instance.Answer) bool {
		if possible[answerOutcome(x)] {
			return true
		}
		parts := strings.Split(x.Message, `"`)
		for i := 1; i < len(parts); i += 2 {
			if !strings.Contains(visibleTexts, parts[i]) {
				return false
			}
		}
		return x.Err != "" && codes[x.Code]
	}
	// SQL does not define either whether a failing value comes before the row that exceeds a limit.
	if a.Err != "" && b.Err != "" && (a.Code == limitExceededCode || b.Code == limitExceededCode) {
		return (a.Code == limitExceededCode || isExplained(a)) && (b.Code == limitExceededCode || isExplained(b))
	}
	return isExplained(a) && isExplained(b)
}

// limitExceededCode is the SQLSTATE of the error with which the proxy ends a result that exceeds a limit.
const limitExceededCode = "53400"
