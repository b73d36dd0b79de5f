package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce"
	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/proxy"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const manyUsers = 50

const manySetup = `CREATE TABLE notes (id serial PRIMARY KEY, user_id int NOT NULL, body text); CREATE INDEX ON notes (user_id);
INSERT INTO notes (id, user_id, body) SELECT 10 * u + n, u, 'note ' || n || ' of user ' || u FROM generate_series(1, 50) AS u, generate_series(1, 3) AS n;
SELECT setval('notes_id_seq', 1000);
CREATE TABLE places (id int PRIMARY KEY, name text); INSERT INTO places VALUES (1, 'here');
CREATE TABLE rooms (id int PRIMARY KEY, user_id int, open boolean); INSERT INTO rooms SELECT u, u, true FROM generate_series(1, 50) AS u;
CREATE TABLE chats (id int PRIMARY KEY, room int); INSERT INTO chats SELECT 100 + u, u FROM generate_series(1, 50) AS u;`

const manyPolicy = `version: 1
attributes:
  user: { type: integer, source: credential, audit: subject }
  team: { type: text, source: credential, optional: true }
  room: { type: integer, source: query, query: { table: rooms, column: id, match: { user_id: user } } }
tables:
  notes: { rows: [ own: { column: user_id, is: user } ], write: { commands: [insert, update, delete], accept: [sequences] } }
  places: { rows: [ open: true ] }
  chats: { rows: [ own: { column: room, is: room } ] }
`

// manyUserProxy is a database whose agents act for many users.
type manyUserProxy struct {
	db          *pgtest.DB
	proxy       *harness.Proxy
	auditFolder string
	tokenExpiry atomic.Int64 // when tokens expire, in seconds of the epoch
}

// userTokenOf returns the token of a user, which the test's verifier knows.
func userTokenOf(user int) string { return fmt.Sprintf("secret-token-of-%d", user) }

func startManyUsers(t *testing.T, mode harness.Mode, policyLines string, changeDatabase ...func(*harness.Database)) *manyUserProxy {
	t.Helper()
	m := &manyUserProxy{db: pgtest.Filled(t, manySetup), auditFolder: t.TempDir() + "/audit"}
	m.tokenExpiry.Store(time.Now().Add(time.Hour).Unix())
	d := harness.Database{Name: "many", DB: m.db, SearchPath: []string{"public"}, Policy: manyPolicy + policyLines, Audit: m.auditFolder,
		VerifyUser: func(_ context.Context, token, _, _ string) (map[string]string, time.Time, error) {
			user, ok := strings.CutPrefix(token, "secret-token-of-")
			if !ok {
				return nil, time.Time{}, errors.New("it is not right")
			}
			return map[string]string{"user": user}, time.Unix(m.tokenExpiry.Load(), 0), nil
		}}
	for _, f := range changeDatabase {
		f(&d)
	}
	harness.Install(t, d, mode)
	m.proxy = harness.Serve(t, mode, []harness.Database{d}, []harness.Agent{
		{Name: "backend", Database: "many", ActsFor: &enforce.ActsFor{Attributes: []string{"user"}, ByToken: true, Setting: enforce.TokenSetting}},
		{Name: "trusted", Database: "many", ActsFor: &enforce.ActsFor{Attributes: []string{"user"}, Setting: "pgconsent.user"}},
		{Name: "rest", Database: "many", ActsFor: &enforce.ActsFor{Attributes: []string{"user", "team"}, Setting: "request.jwt.claims",
			Claims: map[string]string{"user": "sub", "team": "team"}}},
		{Name: "one", Database: "many", Attributes: map[string]string{"user": "1"}},
	})
	return m
}

func (m *manyUserProxy) agent(t *testing.T, name string) *pgconn.PgConn {
	t.Helper()
	return m.proxy.Agent(t, name, "many")
}

// noteIDsOf returns the ids of a user's notes, as oneText prints them.
func noteIDsOf(user int) string { return fmt.Sprintf("%d\n%d\n%d", 10*user+1, 10*user+2, 10*user+3) }

const notesOfUser = "SELECT id FROM notes ORDER BY id"

// 50 users share one connection. Each way of naming a user shows exactly that user's rows, and no rows are visible
// between two users.
func TestManyRepresentedUsersOnOneConnection(t *testing.T) {
	t.Parallel()
	for _, mode := range harness.Modes(harness.Both, harness.Auto, harness.SignedViews, harness.RLS) {
		t.Run(mode.Name, func(t *testing.T) {
			m := startManyUsers(t, mode, "")
			c := m.agent(t, "backend")
			trustedAgent := m.agent(t, "trusted")
			restAgent := m.agent(t, "rest")
			if _, err := c.Prepare(t.Context(), "kept", notesOfUser, nil); err != nil {
				t.Fatal(err)
			}
			want := func(c *pgconn.PgConn, want, sql string) {
				t.Helper()
				if got := oneText(c, sql); got != want {
					t.Errorf("%s: %q, want %q", sql, got, want)
				}
			}
			random := tier.Rand(110)
			for i := range manyUsers * 2 {
				user := 1 + (i*17)%manyUsers
				token := userTokenOf(user)
				want(c, "", notesOfUser)
				want(c, "here", "SELECT name FROM places")
				want(c, "", "BEGIN")
				switch i % 5 {
				case 0:
					want(c, "", "SET LOCAL pgconsent.token = '"+token+"'")
				case 1:
					want(c, "", "set local PGCONSENT.token to '"+token+"'")
				case 2:
					want(c, "", "SELECT set_config('pgconsent.token', '"+token+"', true)")
				case 3, 4:
					if a := harness.AskText(c, "SELECT pg_catalog.set_config('pgconsent.token', $1, true)", token); a.Code != "" ||
						a.Results[0].Rows[0] != "" || a.Results[0].Columns[0] != "set_config" {
						t.Fatalf("set_config: %v", a)
					}
				}
				want(c, noteIDsOf(user), notesOfUser)
				want(c, strconv.Itoa(100+user), "SELECT id FROM chats")
				if r := c.ExecPrepared(t.Context(), "kept", nil, nil, nil).Read(); r.Err != nil || len(r.Rows) != 3 ||
					string(r.Rows[0][0]) != strconv.Itoa(10*user+1) {
					t.Errorf("user %d by a prepared statement: %v, %v", user, r.Rows, r.Err)
				}
				want(c, "", fmt.Sprintf("SELECT body FROM notes WHERE user_id <> %d OR body NOT LIKE '%% %d'", user, user))
				want(c, "", []string{"COMMIT", "ROLLBACK"}[random.IntN(2)])
				want(c, noteIDsOf(user), "BEGIN; SET LOCAL pgconsent.token = '"+token+"'; "+notesOfUser+"; COMMIT")

				want(trustedAgent, noteIDsOf(user), fmt.Sprintf("BEGIN; SET LOCAL pgconsent.\"user\" = %d; %s; COMMIT", user, notesOfUser))
				want(trustedAgent, "", notesOfUser)
				want(restAgent, "", "BEGIN")
				claims := fmt.Sprintf(`{"sub": "%d", "role": "authenticated", "team": "blue"}`, user)
				if a := harness.AskText(restAgent, "SELECT set_config('request.jwt.claims', $1, true)", claims); a.Code != "" {
					t.Fatalf("%v", a)
				}
				want(restAgent, noteIDsOf(user), notesOfUser)
				want(restAgent, "", "COMMIT")
				want(restAgent, "", notesOfUser)
			}
			// SET without LOCAL names the user for the session, until the next SET.
			want(c, "", "SET pgconsent.token = '"+userTokenOf(7)+"'")
			want(c, noteIDsOf(7), notesOfUser)
			want(c, noteIDsOf(8), "BEGIN; SET LOCAL pgconsent.token = '"+userTokenOf(8)+"'; "+notesOfUser+"; COMMIT")
			want(c, noteIDsOf(7), notesOfUser)
			want(c, "", "SET pgconsent.token = '"+userTokenOf(9)+"'")
			want(c, noteIDsOf(9), notesOfUser)
			want(c, "", "SET pgconsent.token = ''")
			want(c, "", notesOfUser)
			want(c, "9", "SET pgconsent.token = '"+userTokenOf(9)+"'; INSERT INTO notes (user_id, body) VALUES (9, 'new') RETURNING user_id")
			want(c, "42501", "INSERT INTO notes (user_id, body) VALUES (8, 'for another')")
			want(c, "", "DISCARD ALL")
			want(c, "", notesOfUser)
			want(m.agent(t, "one"), noteIDsOf(1), notesOfUser) // an agent that acts for nobody is not affected
		})
	}
}

// 50 users at once share a pool of four connections: each request sees the rows of its own user.
func TestManyRepresentedUsersInAPool(t *testing.T) {
	t.Parallel()
	m := startManyUsers(t, harness.Auto, "")
	pool := make(chan *pgx.Conn, 4)
	for range cap(pool) {
		c, err := pgx.Connect(t.Context(), m.proxy.DSN("backend", "many"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close(context.Background()) }()
		pool <- c
	}
	var workers sync.WaitGroup
	for user := 1; user <= manyUsers; user++ {
		workers.Go(func() {
			for range tier.Count(3, 10, 50) {
				c := <-pool
				err := pgx.BeginFunc(t.Context(), c, func(tx pgx.Tx) error {
					if _, err := tx.Exec(t.Context(), "SELECT set_config('pgconsent.token', $1, true)", userTokenOf(user)); err != nil {
						return err
					}
					rows, err := tx.Query(t.Context(), "SELECT user_id FROM notes WHERE id > $1", 0)
					if err != nil {
						return err
					}
					visibleIDs, err := pgx.CollectRows(rows, pgx.RowTo[int])
					if len(visibleIDs) != 3 || visibleIDs[0] != user || visibleIDs[1] != user || visibleIDs[2] != user {
						t.Errorf("user %d sees the rows of %v", user, visibleIDs)
					}
					return err
				})
				if err != nil {
					t.Errorf("user %d: %v", user, err)
				}
				var n int
				if err := c.QueryRow(t.Context(), "SELECT count(*) FROM notes").Scan(&n); err != nil || n != 0 {
					t.Errorf("outside of a transaction %d rows show: %v", n, err)
				}
				pool <- c
			}
		})
	}
	workers.Wait()
}

// Ten sessions share two connections to the server: each session keeps its own user, whichever connection it gets.
func TestRepresentedUsersOnSharedConnections(t *testing.T) {
	t.Parallel()
	m := startManyUsers(t, harness.Auto, "", func(d *harness.Database) { d.Pool = &proxy.PoolSettings{Size: 2, Wait: tier.Patience} })
	var workers sync.WaitGroup
	for i := range 10 {
		c := m.agent(t, "backend")
		workers.Go(func() {
			random := tier.Rand(uint64(200 + i))
			user := 0
			for range tier.Count(20, 60, 300) {
				switch random.IntN(4) {
				case 0:
					user = 1 + random.IntN(manyUsers)
					oneText(c, "SET pgconsent.token = '"+userTokenOf(user)+"'")
				case 1:
					user = 0
					oneText(c, []string{"RESET pgconsent.token", "RESET ALL", "DISCARD ALL"}[random.IntN(3)])
				case 2:
					otherUser := 1 + random.IntN(manyUsers)
					if got := oneText(c,
						"BEGIN; SET LOCAL pgconsent.token = '"+userTokenOf(otherUser)+"'; "+notesOfUser+"; COMMIT"); got != noteIDsOf(otherUser) {
						t.Errorf("in a transaction for user %d: %q", otherUser, got)
					}
				}
				want := ""
				if user > 0 {
					want = noteIDsOf(user)
				}
				if got := oneText(c, notesOfUser); got != want {
					t.Errorf("session %d for user %d: %q", i, user, got)
				}
			}
		})
	}
	workers.Wait()
}

// The user whom a session represents is set and undone by transactions and savepoints like a setting of PostgreSQL.
func TestRepresentedUserFollowsTransactions(t *testing.T) {
	t.Parallel()
	m := startManyUsers(t, harness.Auto, "")
	random := tier.Rand(110)
	for range tier.Count(6, 40, 400) {
		agent, plainConn := m.agent(t, "backend"), harness.ConnectSuperuser(t, m.db)
		var script []string
		for range 25 {
			user := 1 + random.IntN(manyUsers)
			ownText, otherText := "", ""
			switch n := random.IntN(17); n {
			case 0, 1:
				ownText = "BEGIN"
			case 2:
				ownText = "COMMIT"
			case 3:
				ownText = "ROLLBACK"
			case 4, 5:
				ownText = "SAVEPOINT " + string(rune('a'+random.IntN(2)))
			case 6, 7:
				ownText = "ROLLBACK TO " + string(rune('a'+random.IntN(2)))
			case 8:
				ownText = "RELEASE " + string(rune('a'+random.IntN(2)))
			case 9:
				ownText, otherText = fmt.Sprintf("SET pgconsent.token = '%s'", userTokenOf(user)), fmt.Sprintf("SET app.u = '%d'", user)
			case 10, 11:
				ownText, otherText = fmt.Sprintf("SET LOCAL pgconsent.token = '%s'", userTokenOf(user)), fmt.Sprintf("SET LOCAL app.u = '%d'", user)
			case 12:
				ownText, otherText = fmt.Sprintf("SELECT set_config('pgconsent.token', '%s', false)", userTokenOf(user)),
					fmt.Sprintf("SELECT left(set_config('app.u', '%d', false), 0)", user)
			case 13:
				ownText, otherText = "RESET pgconsent.token", "RESET app.u"
			case 14:
				ownText, otherText = "SET LOCAL pgconsent.token TO DEFAULT", "SET LOCAL app.u TO DEFAULT"
			case 15:
				ownText = "RESET ALL"
			case 16:
				ownText = "SELECT 1/0"
			}
			if otherText == "" {
				otherText = ownText
			}
			script = append(script, ownText)
			if got, want := oneText(agent, ownText), oneText(plainConn, otherText); got != want {
				t.Fatalf("%q: %s, want %s", script, got, want)
			}
			got, want := oneText(agent, "SELECT DISTINCT user_id FROM notes"), oneText(plainConn, "SELECT nullif(current_setting('app.u', true), '')")
			if want == `\N` {
				want = ""
			}
			if got != want {
				t.Fatalf("%q: acts for %q, want %q", script, got, want)
			}
		}
	}
}

// Statements with a wrong user or token are refused with an error that names the cause. No row changes, and no hidden
// row is shown.
func TestRepresentedUserRefusals(t *testing.T) {
	t.Parallel()
	m := startManyUsers(t, harness.Auto, "")
	token := userTokenOf(1)
	for _, q := range []struct{ agent, code, sql string }{
		{"backend", "28000", "SET pgconsent.token = 'forged-thing'"},
		{"backend", "28000", "SELECT set_config('pgconsent.token', 'forged-thing', true)"},
		{"backend", "28000", "SET pgconsent.token = 'secret-token-of-x'"}, // the token's user is no integer
		{"backend", "28000", "SET pgconsent.token = 'secret-token-of-'"},
		{"backend", "42501", "SET pgconsent.\"user\" = '1'"},
		{"backend", "", "SET request.jwt.claims = '{\"sub\": \"1\"}'; " + notesOfUser}, // the user is not taken from this setting
		{"backend", "42501", "SET pgconsent.acting = '1'"},
		{"backend", "42501", "SELECT set_config('pgconsent.acting', '1', true)"},
		{"backend", "42501", "RESET pgconsent.acting"},
		{"backend", "42501", "SHOW pgconsent.acting"},
		{"backend", "42501", "SHOW pgconsent.token"},
		{"backend", "42501", "SHOW pgconsent.seal"},
		{"backend", "42501", "SELECT current_setting('pgconsent.acting', true)"},
		{"backend", "42883", "SELECT pgconsent_signed.set_config('a', 'b', true)"},
		{"backend", "", "SELECT setting FROM pg_settings WHERE name LIKE 'pgconsent%'"},
		{"backend", "42501", `SET "pgconsent"."\0074oken" = '` + token + "'"},
		{"backend", "0A000", "SELECT length(set_config('pgconsent.token', '" + token + "', true))"},
		{"backend", "42501", "SELECT set_config('pgconsent.token', '" + token + "', true) FROM notes"},
		{"backend", "0A000", "SELECT set_config('pgconsent.token', '" + token + "', true) WHERE true"},
		{"backend", "0A000", "SELECT set_config('pgconsent.token', '" + token + "', true), set_config('pgconsent.token', '" + userTokenOf(2) + "', true)"},
		{"backend", "0A000", "EXPLAIN (VERBOSE) SELECT set_config('pgconsent.token', '" + token + "', true)"},
		{"backend", "0A000", "PREPARE p AS SELECT set_config('pgconsent.token', '" + token + "', true)"},
		{"backend", "0A000", "BEGIN; DECLARE c CURSOR FOR SELECT set_config('pgconsent.token', '" + token + "', true)"},
		{"backend", "0A000", "BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT id FROM notes; COMMIT"},
		{"backend", "0A000", "SET pgconsent.token = '" + token + "'; SELECT id FROM notes; SET pgconsent.token = '" + userTokenOf(2) + "'; SELECT id FROM notes"},
		{"backend", "0A000", "BEGIN; SET LOCAL pgconsent.token = '" + token + "'; COMMIT; SELECT id FROM notes"},
		{"trusted", "22023", "SET pgconsent.\"user\" = 'x'"},
		{"trusted", "22023", "SET pgconsent.\"user\" = '01'"},
		{"trusted", "42501", "SET pgconsent.token = '" + token + "'"},
		{"rest", "22023", "SET request.jwt.claims = 'x'"},
		{"rest", "22023", `SET request.jwt.claims = '{"sub": ["1"]}'`},
		{"rest", "22023", `SET request.jwt.claims = '{"team": "blue"}'`},
		{"rest", "", `SET request.jwt.claims = '{}'`},
		{"one", "42501", "SET pgconsent.token = '" + token + "'"},
		{"one", "42501", "SET pgconsent.\"user\" = '2'"},
	} {
		c := m.agent(t, q.agent)
		got := harness.Ask(c, q.sql)
		if got.Code != q.code {
			t.Errorf("%s: %s: %v, want %q", q.agent, q.sql, got, q.code)
		}
		if strings.Contains(got.String(), "secret") || strings.Contains(got.String(), "forged") {
			t.Errorf("%s: the error tells of the token: %v", q.sql, got)
		}
		oneText(c, "ROLLBACK")
		if got := oneText(c, notesOfUser); q.agent != "one" && got != "" {
			t.Errorf("%s: then %q shows", q.sql, got)
		}
	}
	// A cursor returns the rows of the user for whom it was opened, also after another user is set.
	c := m.agent(t, "backend")
	for _, q := range []struct{ sql, want string }{
		{"BEGIN", ""}, {"SET LOCAL pgconsent.token = '" + token + "'", ""}, {"DECLARE c CURSOR FOR " + notesOfUser, ""}, {"FETCH 1 FROM c", "11"},
		{"SET LOCAL pgconsent.token = '" + userTokenOf(2) + "'", "0A000"}, {"ROLLBACK", ""},
		{"BEGIN", ""}, {"SET LOCAL pgconsent.token = '" + token + "'", ""}, {"DECLARE c CURSOR FOR " + notesOfUser, ""},
		{"RESET ALL", "0A000"}, {"ROLLBACK", ""},
		{"BEGIN", ""}, {"SET LOCAL pgconsent.token = '" + token + "'", ""}, {"DECLARE c CURSOR FOR " + notesOfUser, ""}, {"CLOSE c", ""},
		{"SET LOCAL pgconsent.token = '" + userTokenOf(2) + "'", ""}, {notesOfUser, noteIDsOf(2)}, {"COMMIT", ""}, {notesOfUser, ""},
		// currval and lastval do not return numbers that another user's statement has drawn from a sequence.
		{"BEGIN", ""}, {"SET LOCAL pgconsent.token = '" + token + "'", ""}, {"INSERT INTO notes (user_id) VALUES (1)", ""},
		{"SET LOCAL pgconsent.token = '" + userTokenOf(2) + "'", ""}, {"SELECT lastval()", "55000"}, {"ROLLBACK", ""},
		{"SELECT currval('notes_id_seq')", "55000"},
		// Advisory locks belong to the user who took them: another user's unlock returns false.
		{"SET pgconsent.token = '" + token + "'", ""}, {"SELECT pg_try_advisory_lock(7)", "t"}, {"SET pgconsent.token = '" + userTokenOf(2) + "'", ""},
		{"SELECT pg_advisory_unlock(7)", "f"}, {"SET pgconsent.token = '" + token + "'", ""}, {"SELECT pg_advisory_unlock(7)", "t"},
	} {
		if got := oneText(c, q.sql); got != q.want {
			t.Errorf("%s: %q, want %q", q.sql, got, q.want)
		}
	}
	for sql, args := range map[string][][]byte{
		"SELECT set_config($1, $2, true)":                    {[]byte("pgconsent.token"), []byte(token)},
		"SELECT set_config('pgconsent.token', $1, $2)":       {[]byte(token), []byte("t")},
		"SELECT set_config('pgconsent.token', $1, true)":     {nil},
		"SELECT set_config('pgconsent.token', $1, true), $1": {[]byte(token)},
	} {
		if a := harness.AskExtended(c, sql, args...); a.Code == "" {
			t.Errorf("%s: %v", sql, a)
		}
	}
	oneText(c, "RESET ALL")
	// A statement that was prepared by the protocol and sets a user is refused when SQL's EXECUTE runs it.
	if _, err := c.Prepare(t.Context(), "who", "SELECT set_config('pgconsent.token', $1, false)", nil); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"EXECUTE who('" + userTokenOf(3) + "')", "EXECUTE who('x')"} {
		if got := oneText(c, sql); len(got) != 5 {
			t.Errorf("%s: %q", sql, got)
		}
	}
	if got := oneText(c, notesOfUser); got != "" {
		t.Errorf("then %q shows", got)
	}
	if r := c.ExecPrepared(t.Context(), "who", [][]byte{[]byte(userTokenOf(3))}, nil, nil).Read(); r.Err != nil || string(r.Rows[0][0]) != "" {
		t.Errorf("%v", r)
	}
	if got := oneText(c, notesOfUser); got != noteIDsOf(3) {
		t.Errorf("user 3: %q", got)
	}
}

// In a pipeline, each message runs for the user that earlier messages of the same pipeline have set.
func TestRepresentedUsersInPipelines(t *testing.T) {
	t.Parallel()
	m := startManyUsers(t, harness.Auto, "")
	config, err := pgx.ParseConfig(m.proxy.DSN("backend", "many"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	for user := 1; user <= 20; user++ {
		b := &pgx.Batch{}
		b.Queue("SELECT count(*) FROM notes")
		b.Queue("SELECT set_config('pgconsent.token', $1, true)", userTokenOf(user))
		b.Queue("SELECT min(user_id) FROM notes")
		r := c.SendBatch(t.Context(), b)
		var n, shownUser int
		var setValue string
		if err := errors.Join(r.QueryRow().Scan(&n), r.QueryRow().Scan(&setValue), r.QueryRow().Scan(&shownUser),
			r.Close()); err != nil || n != 0 || shownUser != user {
			t.Errorf("user %d: %d, %d, %v", user, n, shownUser, err)
		}
		if err := c.QueryRow(t.Context(), "SELECT count(*) FROM notes").Scan(&n); err != nil || n != 0 {
			t.Errorf("behind the pipeline: %d, %v", n, err)
		}
	}
}

// An expired token shows no rows, even in the transaction that has set it.
func TestRepresentedUserOfAnExpiredToken(t *testing.T) {
	t.Parallel()
	m := startManyUsers(t, harness.Auto, "")
	c := m.agent(t, "backend")
	m.tokenExpiry.Store(time.Now().Add(-time.Minute).Unix())
	for _, q := range []struct{ sql, want string }{
		{"SET pgconsent.token = '" + userTokenOf(1) + "'", ""}, {notesOfUser, "28000"}, {"SELECT 1", "1"}, {"RESET pgconsent.token", ""}, {notesOfUser, ""},
	} {
		if got := oneText(c, q.sql); got != q.want {
			t.Errorf("%s: %q, want %q", q.sql, got, q.want)
		}
	}
	m.tokenExpiry.Store(time.Now().Add(2 * time.Second).Unix())
	oneText(c, "BEGIN; SET LOCAL pgconsent.token = '"+userTokenOf(2)+"'")
	for deadline := time.Now().Add(tier.Patience); ; time.Sleep(100 * time.Millisecond) {
		if got := oneText(c, notesOfUser); got == "28000" {
			break
		} else if got != noteIDsOf(2) || time.Now().After(deadline) {
			t.Fatalf("%q", got)
		}
	}
	if got := oneText(c, "ROLLBACK"); got != "" {
		t.Error(got)
	}
}

// A startup option of the connection can set the user's token, and RESET returns to that user.
func TestRepresentedUserFromTheStart(t *testing.T) {
	t.Parallel()
	m := startManyUsers(t, harness.Auto, "")
	dsn := m.proxy.DSN("backend", "many") + "&options=-c%20pgconsent.token%3D"
	c := harness.Connect(t, dsn+userTokenOf(4))
	for _, q := range []struct{ sql, want string }{
		{notesOfUser, noteIDsOf(4)}, {"SET pgconsent.token = '" + userTokenOf(5) + "'", ""}, {notesOfUser, noteIDsOf(5)},
		{"RESET pgconsent.token", ""}, {notesOfUser, noteIDsOf(4)}, {"SET pgconsent.token = ''", ""}, {notesOfUser, ""},
		{"RESET ALL", ""}, {notesOfUser, noteIDsOf(4)}, {"SET pgconsent.token = ''", ""}, {"DISCARD ALL", ""}, {notesOfUser, noteIDsOf(4)},
		{"BEGIN", ""}, {"SET LOCAL pgconsent.token = '" + userTokenOf(6) + "'", ""}, {"RESET ALL", ""}, {notesOfUser, noteIDsOf(4)},
		{"ROLLBACK", ""}, {notesOfUser, noteIDsOf(4)},
	} {
		if got := oneText(c, q.sql); got != q.want {
			t.Errorf("%s: %q, want %q", q.sql, got, q.want)
		}
	}
	_, err := pgconn.Connect(t.Context(), dsn+"forged-thing")
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "28000" || strings.Contains(pg.Message+pg.Hint, "forged") {
		t.Errorf("a wrong token: %v", err)
	}
}

// After the key of the seals is rotated, an open session still sees its user's rows.
func TestRepresentedUserWithANewKey(t *testing.T) {
	tier.All(t)
	t.Parallel()
	m := startManyUsers(t, harness.Auto, "")
	c := m.agent(t, "backend")
	oneText(c, "SET pgconsent.token = '"+userTokenOf(3)+"'")
	harness.Exec(t, m.db, "SELECT pgconsent.make_key(); DELETE FROM pgconsent.keys WHERE kid < (SELECT max(kid) FROM pgconsent.keys)")
	for deadline := time.Now().Add(tier.Patience + time.Minute); ; time.Sleep(500 * time.Millisecond) {
		switch got := oneText(c, notesOfUser); {
		case got == noteIDsOf(3):
			return
		case got != "" && len(got) != 5 || time.Now().After(deadline):
			t.Fatalf("%q", got)
		}
	}
}

// Audit records name the agent and a reference to the represented user, and hold no token. Row limits are counted per
// user.
func TestRepresentedUserIsRecordedAndBounded(t *testing.T) {
	t.Parallel()
	m := startManyUsers(t, harness.Auto, "limits: { per: user, rows: 9 }\n")
	c := m.agent(t, "backend")
	for user := 1; user <= 5; user++ {
		for range 3 {
			oneText(c, "BEGIN")
			oneText(c, "SET LOCAL pgconsent.token = '"+userTokenOf(user)+"'")
			if got := oneText(c, notesOfUser); got != noteIDsOf(user) {
				t.Errorf("user %d: %q", user, got)
			}
			oneText(c, "COMMIT")
		}
		oneText(c, "BEGIN")
		oneText(c, "SET LOCAL pgconsent.token = '"+userTokenOf(user)+"'")
		if got := oneText(c, notesOfUser); got != "53400" {
			t.Errorf("user %d has used up its rows: %q", user, got)
		}
		oneText(c, "ROLLBACK")
	}
	recordsByUser := map[string]int{}
	if _, err := audit.Walk(m.auditFolder, func(r audit.Record) error {
		var d audit.Decision
		if err := json.Unmarshal(r.Line, &d); err != nil || len(d.Tables) == 0 {
			return err
		}
		if d.Agent != "backend" || !strings.HasPrefix(d.OnBehalfOf, "ref:") || d.Attributes["user"] != d.OnBehalfOf {
			t.Errorf("a record says that %s asked on behalf of %q, with %v", d.Agent, d.OnBehalfOf, d.Attributes)
		}
		recordsByUser[d.OnBehalfOf]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(recordsByUser) != 5 {
		t.Errorf("records name %d users", len(recordsByUser))
	}
	err := filepath.WalkDir(m.auditFolder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "secret") {
			t.Errorf("%s has a token", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The database accepts a represented user only with a valid signature of the proxy for this session. Forged values show
// no rows.
func TestForgedUsersShowNothing(t *testing.T) {
	t.Parallel()
	m := startManyUsers(t, harness.Both, "")
	controlConn, err := pgx.Connect(t.Context(), m.db.DSN("pgconsent_control", "role-password"))
	if err != nil {
		t.Fatal(err)
	}
	defer controlConn.Close(t.Context())
	keyring, err := seal.LoadKeyring(t.Context(), controlConn)
	if err != nil {
		t.Fatal(err)
	}
	key := keyring.NewestKey()
	otherKey := seal.Key{ID: key.ID, Secret: []byte(strings.Repeat("x", 32))}
	unknownKey := seal.Key{ID: key.ID + 1, Secret: key.Secret}
	c := harness.Connect(t, m.db.DSN("pgconsent_agent", "role-password"))
	baseClaims := seal.Claims{PID: c.PID(), Expires: time.Now().Add(time.Minute), Profile: "p", RepresentingSession: "s1"}
	user := seal.RepresentedUser{Session: "s1", Expires: time.Now().Add(time.Hour), Attributes: map[string]string{"user": "3"}}
	sealWith := func(change func(c *seal.Claims, a *seal.RepresentedUser)) (string, string) {
		s, a := baseClaims, user
		change(&s, &a)
		return key.Seal(s), key.SealRepresentedUser(a)
	}
	visibleIDs := func(seal, signedUser string) string {
		t.Helper()
		if a := harness.AskText(c, "SELECT pg_catalog.set_config('pgconsent.seal', $1, false), pg_catalog.set_config('pgconsent.acting', $2, false)",
			seal, signedUser); a.Code != "" {
			t.Fatal(a)
		}
		return oneText(c, "SELECT id FROM public.notes ORDER BY id")
	}
	goodSeal, signedUser := sealWith(func(*seal.Claims, *seal.RepresentedUser) {})
	if got := visibleIDs(goodSeal, signedUser); got != noteIDsOf(3) {
		t.Fatalf("the right values show %q", got)
	}
	unlimitedSeal, unlimitedUser := sealWith(func(_ *seal.Claims, a *seal.RepresentedUser) { a.Expires = time.Time{} })
	if got := visibleIDs(unlimitedSeal, unlimitedUser); got != noteIDsOf(3) {
		t.Fatalf("without an end they show %q", got)
	}
	_, otherSessionUser := sealWith(func(_ *seal.Claims, a *seal.RepresentedUser) { a.Session = "s2" })
	_, expiredUser := sealWith(func(_ *seal.Claims, a *seal.RepresentedUser) { a.Expires = time.Now().Add(-time.Second) })
	changedSeal := func(change func(c *seal.Claims)) string {
		s, _ := sealWith(func(c *seal.Claims, _ *seal.RepresentedUser) { change(c) })
		return s
	}
	for name, v := range map[string][2]string{
		"no user":              {goodSeal, ""},
		"another session's":    {goodSeal, otherSessionUser},
		"an expired one":       {goodSeal, expiredUser},
		"altered":              {goodSeal, strings.Replace(signedUser, "user=3", "user=4", 1)},
		"without a code":       {goodSeal, strings.Split(signedUser, "#")[0]},
		"an empty code":        {goodSeal, strings.Split(signedUser, "#")[0] + "#"},
		"of another key":       {goodSeal, otherKey.SealRepresentedUser(user)},
		"of an unknown key":    {goodSeal, unknownKey.SealRepresentedUser(user)},
		"a seal as the user":   {goodSeal, goodSeal},
		"nonsense":             {goodSeal, "v1|||||#"},
		"a long one":           {goodSeal, signedUser + strings.Repeat("x", 1<<16)},
		"a seal that acts not": {changedSeal(func(c *seal.Claims) { c.RepresentingSession = "" }), signedUser},
		"another seal":         {changedSeal(func(c *seal.Claims) { c.RepresentingSession = "s2" }), signedUser},
		"an old seal":          {changedSeal(func(c *seal.Claims) { c.Expires = time.Now().Add(-time.Second) }), signedUser},
		"of another process":   {changedSeal(func(c *seal.Claims) { c.PID++ }), signedUser},
		"the user as a seal":   {signedUser, signedUser},
		"no seal":              {"", signedUser},
	} {
		if got := visibleIDs(v[0], v[1]); got != "" {
			t.Errorf("%s: %q shows", name, got)
		}
	}
	// The signed user does not replace an attribute that the credential itself has.
	if got := visibleIDs(changedSeal(func(c *seal.Claims) { c.Attributes = map[string]string{"user": "1"} }),
		signedUser); got != noteIDsOf(1) {
		t.Errorf("the credential's own attribute: %q", got)
	}
}
