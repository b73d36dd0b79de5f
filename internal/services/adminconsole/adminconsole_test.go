package adminconsole

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// process is a Service with fixed content. It records the commands that are run.
type process struct {
	mu          sync.Mutex
	actions     []string
	reloadError error
	paused      map[string]bool
	pools       bool
}

var fixedTime = time.Date(2026, 3, 1, 12, 30, 15, 250_000_000, time.UTC)

func (p *process) do(action string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.actions = append(p.actions, action)
}

func (p *process) Sessions() []Session {
	return []Session{
		{ID: "0a1b", Kind: "agent", User: "chat", Database: "app", Client: "127.0.0.1:5", State: "idle", StartedAt: fixedTime,
			LastStatementAt:  fixedTime.Add(time.Second),
			CountsStatements: true, Statements: 3, Refused: 1},
		{ID: "0c2d", Kind: "owner", User: `o"w\ner`, Database: "app", Client: "[::1]:7", State: "relayed", StartedAt: fixedTime},
	}
}

func (p *process) Statistics() ([]Statistic, error) {
	return []Statistic{{"pgconsent_rows_total", "", 1.5}, {"pgconsent_sessions_open", `kind="agent"`, 1}}, nil
}

func (p *process) Policies() []Policy {
	return []Policy{{Database: "app", IsServed: true, Policy: "aa", Catalog: "bb", SignedPath: true, Tables: 4, VerifiedAt: fixedTime}}
}

func (p *process) Suspended() []SuspendedObject {
	return []SuspendedObject{{"app", "relation", "public.notes", "changed", "Run pgconsent migrate."}}
}

func (p *process) Databases() []string { return []string{"app", "b-2"} }

func (p *process) Reload() error { p.do("reload"); return p.reloadError }

func (p *process) Pause(database string) (int, bool) {
	p.do("pause " + database)
	wasPaused := p.paused[database]
	p.paused[database] = true
	return map[string]int{"app": 2}[database], !wasPaused
}

func (p *process) Resume(database string) bool {
	p.do("resume " + database)
	wasPaused := p.paused[database]
	p.paused[database] = false
	return wasPaused
}

func (p *process) Kill(id string) (string, error) {
	p.do("kill " + id)
	if id != "0a1b" {
		return "", sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonNone, "there is no session %q", id).WithHint("SHOW SESSIONS lists them.")
	}
	return "app", nil
}

func (p *process) Pools() []Pool {
	if !p.pools {
		return nil
	}
	return []Pool{{Database: "app", Agent: "chat", Size: 4, Used: 3, Idle: 1, Waiting: 2, TakenCount: 20, TimeoutCount: 5, WaitTime: 1500 * time.Millisecond}}
}

// testConsole is a console that listens at an address, and asks for no password.
type testConsole struct {
	*process
	dsn     string
	notices []string

	mu         sync.Mutex
	records    []audit.Call
	auditError error // error with which the audit answers
	dismissed  bool
}

func serve(t *testing.T, edit func(*Config)) *testConsole {
	t.Helper()
	s := &testConsole{process: &process{paused: map[string]bool{}}}
	c := Config{Service: s.process, Version: "pgconsent 1", Log: slog.New(slog.DiscardHandler),
		IsOperator: func(string) bool { s.mu.Lock(); defer s.mu.Unlock(); return !s.dismissed },
		Record: func(c audit.Call) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.records = append(s.records, c)
			return s.auditError
		}}
	if edit != nil {
		edit(&c)
	}
	console := New(c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				startup := pgproto3.NewBackend(nc, nc)
				if _, err := startup.ReceiveStartupMessage(); err != nil {
					return
				}
				if err := console.Serve(context.Background(), nc, "ops"); err != nil {
					e := sqlstate.AsError(err)
					b, _ := (&pgproto3.ErrorResponse{Severity: "FATAL", Code: string(e.Code), Message: e.Message}).Encode(nil)
					_, _ = nc.Write(b)
				}
			}()
		}
	}()
	s.dsn = "postgres://ops@" + l.Addr().String() + "/pgconsent?sslmode=disable"
	return s
}

func (s *testConsole) connect(t *testing.T, mode pgx.QueryExecMode) *pgx.Conn {
	t.Helper()
	c, err := pgx.ParseConfig(s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	c.DefaultQueryExecMode = mode
	c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		s.notices = append(s.notices, n.Severity+" "+n.Message)
	}
	conn, err := pgx.ConnectConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// Every table can be read in every query mode of pgx, in text and binary format.
func TestTables(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe} {
		s := serve(t, nil)
		conn := s.connect(t, mode)
		for sql, want := range map[string]string{
			"SHOW SESSIONS": fmt.Sprint([]any{"0a1b", "agent", "chat", "app", "127.0.0.1:5", "idle", fixedTime, fixedTime.Add(time.Second),
				int64(3), int64(1)},
				[]any{"0c2d", "owner", `o"w\ner`, "app", "[::1]:7", "relayed", fixedTime, nil, nil, nil}),
			"show Pools;":                "",
			"SHOW STATS":                 fmt.Sprint([]any{"pgconsent_rows_total", nil, 1.5}, []any{"pgconsent_sessions_open", `kind="agent"`, 1.0}),
			"SHOW POLICY":                fmt.Sprint([]any{"app", true, "aa", "bb", false, true, int64(4), int64(0), fixedTime, nil, nil}),
			"/* a */SHOW SUSPENDED -- b": fmt.Sprint([]any{"app", "relation", "public.notes", "changed", "Run pgconsent migrate."}),
			"SHOW VERSION":               fmt.Sprint([]any{"pgconsent 1"}),
		} {
			// At the second time, the statement is prepared already.
			for range 2 {
				rows, err := conn.Query(t.Context(), sql)
				if err != nil {
					t.Fatalf("%s: %s: %v", mode, sql, err)
				}
				var got []any
				for rows.Next() {
					values, err := rows.Values()
					if err != nil {
						t.Fatalf("%s: %s: %v", mode, sql, err)
					}
					for i, v := range values {
						if v, ok := v.(time.Time); ok {
							values[i] = v.UTC()
						}
					}
					got = append(got, values)
				}
				tag := rows.CommandTag().String()
				if text := fmt.Sprint(got...); rows.Err() != nil || text != want || tag != fmt.Sprintf("SHOW %d", len(got)) {
					t.Errorf("%s: %s: %v\n got %s, %s\nwant %s", mode, sql, rows.Err(), text, tag, want)
				}
			}
		}
		if err := conn.Ping(t.Context()); err != nil {
			t.Errorf("%s: a comment alone: %v", mode, err)
		}
		if len(s.actions) > 0 || len(s.records) != 1 || s.records[0].Operation != "console.login" {
			t.Errorf("reading acts: %v, or is recorded: %+v", s.actions, s.records)
		}
	}
}

func TestPools(t *testing.T) {
	s := serve(t, func(c *Config) { c.Service.(*process).pools = true })
	rows, err := s.connect(t, pgx.QueryExecModeCacheStatement).Query(t.Context(), "SHOW POOLS")
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowToMap)
	want := map[string]any{"database": "app", "agent": "chat", "size": int64(4), "used": int64(3), "idle": int64(1), "waiting": int64(2),
		"taken": int64(20), "timed_out": int64(5), "waited_seconds": 1.5}
	if err != nil || len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want) {
		t.Errorf("%v %v", got, err)
	}
}

// Each command acts once, sends its notices, and is recorded with its outcome.
func TestActions(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement} {
		s := serve(t, nil)
		conn := s.connect(t, mode)
		for _, c := range []struct {
			sql, tag, code string
			wantAction     string
			notice         string
			database       string
			operation      string
		}{
			{"PAUSE app", "PAUSE", "", "pause app", "NOTICE 2 sessions have", "app", "database.pause"},
			{"pause \"b-2\"", "PAUSE", "", "pause b-2", "", "b-2", "database.pause"},
			{"PAUSE b-2", "PAUSE", "", "pause b-2", "NOTICE it was paused already", "b-2", "database.pause"},
			{"RESUME", "RESUME", "", "resume app,resume b-2", "", "", "database.resume"},
			{"RESUME app", "RESUME", "", "resume app", "NOTICE it was not paused", "app", "database.resume"},
			{"PAUSE apps", "", "3D000", "", "", "apps", "database.pause"},
			{"KILL 0a1b", "KILL", "", "kill 0a1b", "", "app", "session.kill"},
			{"KILL '0a1c'", "", "42704", "kill 0a1c", "", "", "session.kill"},
			{"RELOAD", "RELOAD", "", "reload", "", "", "configuration.reload"},
			{"SET extra_float_digits = 3", "SET", "", "", "", "", ""},
		} {
			s.actions, s.notices, s.records = nil, nil, nil
			tag, err := conn.Exec(t.Context(), c.sql)
			var pgErr *pgconn.PgError
			_ = errors.As(err, &pgErr)
			if c.code == "" && err != nil || c.code != "" && (pgErr == nil || pgErr.Code != c.code || pgErr.Hint == "") || tag.String() != c.tag {
				t.Errorf("%s: %q %v", c.sql, tag, err)
			}
			if got := strings.Join(s.actions, ","); got != c.wantAction || (len(s.notices) > 0) != (c.notice != "") ||
				c.notice != "" && !strings.HasPrefix(s.notices[0], c.notice) {
				t.Errorf("%s did %q and said %q", c.sql, got, s.notices)
			}
			if c.operation == "" {
				if len(s.records) > 0 {
					t.Errorf("%s is recorded: %+v", c.sql, s.records)
				}
				continue
			}
			want := audit.Call{Interface: "admin", CallerName: "ops", Role: "operator", Database: c.database, Operation: c.operation, MayChangeData: true,
				Outcome: audit.OutcomeDone}
			if c.code != "" {
				want.Outcome, want.Code = audit.OutcomeFailed, c.code
			}
			if len(s.records) != 1 || fmt.Sprint(s.records[0]) != fmt.Sprint(want) {
				t.Errorf("%s is recorded as %+v, want %+v", c.sql, s.records, want)
			}
		}
		// For an error in one of the operator's files, the operator gets the full message.
		s.reloadError = errors.New("pgconsent.yaml:3:1: unknown key")
		if _, err := conn.Exec(t.Context(), "RELOAD"); err == nil || !strings.Contains(err.Error(), "pgconsent.yaml:3:1: unknown key (SQLSTATE F0000)") {
			t.Errorf("RELOAD: %v", err)
		}
		// A command whose audit record cannot be written takes effect nevertheless, and the operator gets a warning.
		s.actions, s.notices, s.auditError = nil, nil, errors.New("the disk is full")
		if _, err := conn.Exec(t.Context(), "KILL 0a1b"); err != nil || len(s.actions) != 1 || len(s.notices) != 1 ||
			!strings.HasPrefix(s.notices[0], "WARNING the command took effect") {
			t.Errorf("%v %q %q", err, s.actions, s.notices)
		}
	}
}

// For a text that is not a command, the console runs nothing. The error has the position, and says what to write.
func TestRefusals(t *testing.T) {
	s := serve(t, nil)
	conn := s.connect(t, pgx.QueryExecModeSimpleProtocol)
	for sql, want := range map[string]string{
		"SELECT 1":          "0A000 the admin console runs no SQL @1",
		"  begin":           "0A000 the admin console has no transactions @3",
		"SHOW":              "42601 SHOW is followed by one of @1",
		"SHOW TABLES":       "42601 SHOW is followed by one of @6",
		"SHOW SESSIONS now": "42601 SHOW is followed by one of @6",
		"KILL":              "42601 KILL is written: KILL session @1",
		"KILL ''":           "42601 KILL is written: KILL session @6",
		"KILL 1 2":          "42601 KILL is written: KILL session @8",
		"KILL $1":           "42601 KILL is written: KILL session @6",
		"RELOAD now":        "42601 RELOAD is written: RELOAD @8",
		"PAUSE a/b":         "42601 PAUSE is written: PAUSE [database] @9",
		"ü KILL 1":          "42601 this is no command of the admin console @1",
		"RELOAD; 'KILL' 1":  "42601 this is no command of the admin console @9",
		"KILL \"0a1b":       "42601 unterminated quotes @6",
		"/* KILL 0a1b":      "42601 unterminated /* comment @1",
		"\"RELOAD\"":        "42601 this is no command of the admin console @1",
		"KILL \xff":         "22021 the text is not UTF-8 @0",
	} {
		_, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
		var e *pgconn.PgError
		if !errors.As(err, &e) || !strings.HasPrefix(fmt.Sprintf("%s %s", e.Code, e.Message), want[:strings.LastIndex(want, " @")]) ||
			!strings.HasSuffix(want, fmt.Sprintf("@%d", e.Position)) {
			t.Errorf("%q: %+v, want %s", sql, err, want)
		}
	}
	if len(s.actions) > 0 {
		t.Errorf("a refused text did %q", s.actions)
	}
	// Several commands in a text run one after the other, until the first error.
	results, err := conn.PgConn().Exec(t.Context(), "PAUSE app; SHOW VERSION;; KILL nobody; RELOAD").ReadAll()
	if err == nil || len(results) != 2 || string(results[1].Rows[0][0]) != "pgconsent 1" || !slices.Equal(s.actions, []string{"pause app", "kill nobody"}) {
		t.Errorf("%v, %d results, did %q", err, len(results), s.actions)
	}
}

// In the extended protocol, messages after an error are skipped until Sync, a portal can return its rows in parts, and
// names of statements and portals are separate.
func TestExtendedProtocol(t *testing.T) {
	s := serve(t, nil)
	conn := s.connect(t, pgx.QueryExecModeExec)
	hijacked, err := conn.PgConn().Hijack()
	if err != nil {
		t.Fatal(err)
	}
	defer hijacked.Conn.Close()
	_ = hijacked.Conn.SetDeadline(time.Now().Add(time.Minute))
	play := func(messages ...pgproto3.FrontendMessage) (out []string) {
		t.Helper()
		for _, m := range append(messages, &pgproto3.Sync{}) {
			hijacked.Frontend.Send(m)
		}
		if err := hijacked.Frontend.Flush(); err != nil {
			t.Fatal(err)
		}
		for {
			m, err := hijacked.Frontend.Receive()
			if err != nil {
				t.Fatalf("%v after %q", err, out)
			}
			switch m := m.(type) {
			case *pgproto3.ReadyForQuery:
				return out
			case *pgproto3.ErrorResponse:
				out = append(out, "error "+m.Code)
			case *pgproto3.CommandComplete:
				out = append(out, string(m.CommandTag))
			default:
				out = append(out, strings.TrimPrefix(fmt.Sprintf("%T", m), "*pgproto3."))
			}
		}
	}
	parse := func(name, text string) pgproto3.FrontendMessage { return &pgproto3.Parse{Name: name, Query: text} }
	bind := func(portal, name string) pgproto3.FrontendMessage {
		return &pgproto3.Bind{DestinationPortal: portal, PreparedStatement: name}
	}
	execute := func(portal string, rows uint32) pgproto3.FrontendMessage {
		return &pgproto3.Execute{Portal: portal, MaxRows: rows}
	}
	for _, c := range []struct {
		description string
		messages    []pgproto3.FrontendMessage
		want        string
	}{
		{"rows in parts", []pgproto3.FrontendMessage{parse("", "SHOW SESSIONS"), bind("", ""), execute("", 1), execute("", 1), execute("", 0)},
			"ParseComplete BindComplete DataRow PortalSuspended DataRow SHOW 1 SHOW 0"},
		{"an error skips", []pgproto3.FrontendMessage{parse("", "nonsense"), parse("k", "KILL 0a1b"), bind("", "k"), execute("", 0)}, "error 42601"},
		{"what was skipped is not there", []pgproto3.FrontendMessage{bind("", "k")}, "error 26000"},
		{"a command runs once in a portal", []pgproto3.FrontendMessage{parse("k", "KILL 0a1b"), bind("p", "k"), execute("p", 0), execute("p", 0)},
			"ParseComplete BindComplete KILL KILL"},
		{"portals end with the Sync", []pgproto3.FrontendMessage{execute("p", 0)}, "error 34000"},
		{"a name that is taken", []pgproto3.FrontendMessage{parse("k", "RELOAD")}, "error 42P05"},
		{"describe", []pgproto3.FrontendMessage{&pgproto3.Describe{ObjectType: 'S', Name: "k"}, &pgproto3.Close{ObjectType: 'S', Name: "k"},
			&pgproto3.Describe{ObjectType: 'S', Name: "k"}}, "ParameterDescription NoData CloseComplete error 26000"},
		{"nothing", []pgproto3.FrontendMessage{parse("", " -- "), bind("", ""), &pgproto3.Describe{ObjectType: 'P'}, execute("", 0)},
			"ParseComplete BindComplete NoData EmptyQueryResponse"},
		{"two commands", []pgproto3.FrontendMessage{parse("", "RELOAD; RELOAD")}, "error 42601"},
		{"a parameter", []pgproto3.FrontendMessage{parse("", "KILL 0a1b"), &pgproto3.Bind{Parameters: [][]byte{[]byte("0a1b")}}}, "ParseComplete error 08P01"},
		{"formats", []pgproto3.FrontendMessage{parse("", "SHOW VERSION"), &pgproto3.Bind{ResultFormatCodes: []int16{1, 1}}}, "ParseComplete error 08P01"},
		{"another format", []pgproto3.FrontendMessage{parse("", "SHOW VERSION"), &pgproto3.Bind{ResultFormatCodes: []int16{2}}}, "ParseComplete error 22023"},
	} {
		if got := strings.Join(play(c.messages...), " "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.description, got, c.want)
		}
	}
	if !slices.Equal(s.actions, []string{"kill 0a1b"}) {
		t.Errorf("it did %q", s.actions)
	}
}

// A user who is no longer an operator can run no further command. The error says why.
func TestRemovedOperator(t *testing.T) {
	s := serve(t, nil)
	conn := s.connect(t, pgx.QueryExecModeCacheStatement)
	if _, err := conn.Exec(t.Context(), "KILL 0a1b"); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.dismissed = true
	s.mu.Unlock()
	_, err := conn.Exec(t.Context(), "KILL 0a1b")
	var e *pgconn.PgError
	if !errors.As(err, &e) || e.Code != "28000" || e.Severity != "FATAL" || len(s.actions) != 1 {
		t.Errorf("%v, and it did %q", err, s.actions)
	}
	if _, err := conn.Exec(t.Context(), "SHOW VERSION"); err == nil {
		t.Error("the session goes on")
	}
}

// FuzzSession sends arbitrary bytes to a session. The session must answer or end, and must do nothing that is not a
// command.
func FuzzSession(f *testing.F) {
	query, _ := (&pgproto3.Query{String: "SHOW SESSIONS; RELOAD"}).Encode(nil)
	parse, _ := (&pgproto3.Parse{Name: "a", Query: "SHOW STATS"}).Encode(nil)
	bind, _ := (&pgproto3.Bind{PreparedStatement: "a", ResultFormatCodes: []int16{1}}).Encode(parse)
	execute, _ := (&pgproto3.Execute{MaxRows: 1}).Encode(bind)
	sync, _ := (&pgproto3.Sync{}).Encode(execute)
	for _, seed := range [][]byte{query, sync, {'Q', 0, 0, 0, 4}, {'B', 0xff, 0xff, 0xff, 0xff}, {'p', 0, 0, 0, 5, 0},
		{'E', 0, 0, 0, 9, 0, 0xff, 0xff, 0xff, 0xff}} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, clientBytes []byte) {
		p := &process{paused: map[string]bool{}}
		clientConn, serverConn := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			b := make([]byte, 4096)
			for {
				if _, err := serverConn.Read(b); err != nil {
					return
				}
			}
		}()
		go func() { _, _ = serverConn.Write(clientBytes); serverConn.Close() }()
		_ = New(Config{Service: p, Log: slog.New(slog.DiscardHandler)}).Serve(context.Background(), clientConn, "ops")
		clientConn.Close()
		<-done
		for _, action := range p.actions {
			verb, _, _ := strings.Cut(action, " ")
			if !strings.Contains(strings.ToLower(string(clientBytes)), verb) {
				t.Errorf("%q was done by %q", action, clientBytes)
			}
		}
	})
}
