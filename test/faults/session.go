package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/test/tier"
)

// session is the session of an agent. All rows that it inserts contain its mark, which no other session uses.
type session struct {
	*round
	conn              *pgconn.PgConn
	random            *rand.Rand
	mark              string
	user              int
	actsForUser       bool // the agent acts for several users, so that the session must set its user
	setsUserOnce      bool // the session sets its user once, and not in each transaction
	canceled          bool // the session has sent a cancel request, which may arrive late
	transactionNumber int  // number of the last transaction in which the session inserted rows
	committedRows     int  // how many rows of the session are certainly committed
	steps             int  // how many steps have been answered
}

// answer has the rows, the command tags and the error of a statement.
type answer struct {
	rows []string // each row as one text, with blanks between its values
	tags []string
	err  error
}

// errConnectionEnded is the error after the end of the connection, when no further answer can come.
var errConnectionEnded = errors.New("the connection has ended")

// runSession runs a session to its end, and returns how many of its steps were answered. The session connects through
// the relay that causes faults, unless bypassRelay is set.
func (r *round) runSession(m *mode, a agent, mark string, bypassRelay bool, random *rand.Rand) (answered int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	conn, err := pgconn.Connect(ctx, m.dsn(a, bypassRelay))
	if err != nil {
		return 0, err
	}
	s := &session{round: r, conn: conn, random: random, mark: mark, user: a.user, actsForUser: a.user == 0}
	if s.actsForUser {
		s.user = 10 + random.IntN(20)
	}
	defer func() {
		if random.IntN(4) == 0 {
			_ = conn.Conn().Close()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if s.actsForUser && random.IntN(2) == 0 {
		s.setsUserOnce = true
		if err := s.execute(fmt.Sprintf("SET pgconsent.\"user\" = %d", s.user)); err != nil {
			return 0, err
		}
	}
	for range 3 + random.IntN(12) {
		if err := s.step(); err != nil {
			return s.steps, err
		}
		s.steps++
	}
	return s.steps, nil
}

// step performs one random step.
func (s *session) step() error {
	switch s.random.IntN(13) {
	case 0:
		return s.checkRowsOf(s.runStatement("SELECT '"+s.mark+"' AS m"), s.mark)
	case 1:
		return s.checkRowsOf(s.queryParams("SELECT $1::text || '/' || $2", s.mark, "x"), s.mark+"/x")
	case 2:
		return s.executePrepared()
	case 3, 4:
		return s.write()
	case 5:
		return s.writeAtOnce()
	case 6:
		return s.copyRows()
	case 7:
		return s.readOwnRows()
	case 8:
		return s.readAll()
	case 9:
		return s.checkSetting()
	case 10:
		return s.readLargeResult()
	case 11:
		return s.fetchFromCursor()
	default:
		return s.cancelStatement()
	}
}

// maybeInTransaction runs f in a transaction: always if the session must set its user in each transaction, and
// otherwise at random.
func (s *session) maybeInTransaction(f func() error) error {
	if s.actsForUser && !s.setsUserOnce || s.random.IntN(3) == 0 {
		if err := s.begin(); err != nil {
			return err
		}
		if err := f(); err != nil {
			return err
		}
		return s.commit()
	}
	return f()
}

// begin begins a transaction, and sets the user in it if the session must.
func (s *session) begin() error {
	if err := s.execute("BEGIN"); err != nil || !s.actsForUser || s.setsUserOnce {
		return err
	}
	return s.execute(fmt.Sprintf("SET LOCAL pgconsent.\"user\" = %d", s.user))
}

func (s *session) commit() error {
	a := s.runStatement("COMMIT")
	if a.err == nil && (len(a.tags) != 1 || a.tags[0] != "COMMIT") {
		s.t.Errorf("%s: COMMIT was answered %q", s.mark, a.tags)
	}
	return a.err
}

func (s *session) executePrepared() error {
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	name := fmt.Sprint("kept ", s.random.IntN(3))
	if _, err := s.conn.Prepare(ctx, name, "SELECT '"+s.mark+"' || $1::text || '"+name+"'", nil); err != nil {
		return s.sessionError("a Parse", err)
	}
	for range 1 + s.random.IntN(3) {
		var a answer
		r := s.conn.ExecPrepared(ctx, name, [][]byte{[]byte(s.mark)}, nil, nil).Read()
		a.add(r)
		a.err = s.sessionError("an Execute", r.Err)
		if err := s.checkRowsOf(a, s.mark+s.mark+name); err != nil {
			return err
		}
	}
	return s.sessionError("a Close", s.conn.Deallocate(ctx, name))
}

// insert inserts a row with the number of the current transaction.
func (s *session) insert() error {
	if s.random.IntN(2) == 0 {
		return s.execute(fmt.Sprintf("INSERT INTO marks VALUES (%d, '%s', %d)", s.user, s.mark, s.transactionNumber))
	}
	return s.queryParams("INSERT INTO marks VALUES ($1::int, $2, $3::int)", fmt.Sprint(s.user), s.mark, fmt.Sprint(s.transactionNumber)).err
}

// write inserts rows in a transaction, and then commits the transaction or rolls it back.
func (s *session) write() error {
	if err := s.begin(); err != nil {
		return err
	}
	s.transactionNumber++
	rows := 1 + s.random.IntN(3)
	for range rows {
		if err := s.insert(); err != nil {
			s.recordOutcome(rows, rolledBack) // the session has not sent COMMIT
			return err
		}
	}
	if s.random.IntN(4) == 0 {
		s.recordOutcome(rows, rolledBack)
		return s.execute("ROLLBACK")
	}
	return s.recordCommit(rows, s.commit())
}

// writeAtOnce inserts and commits rows in a single message.
func (s *session) writeAtOnce() error {
	if s.actsForUser && !s.setsUserOnce {
		return s.write()
	}
	s.transactionNumber++
	text := fmt.Sprintf("INSERT INTO marks VALUES (%d, '%s', %d)", s.user, s.mark, s.transactionNumber)
	rows := 1
	switch s.random.IntN(3) {
	case 0:
		rows, text = 2, text+"; "+text
	case 1:
		rows, text = 2, "BEGIN; "+text+"; "+text+"; COMMIT"
	}
	return s.recordCommit(rows, s.execute(text))
}

func (s *session) copyRows() error {
	if err := s.begin(); err != nil {
		return err
	}
	s.transactionNumber++
	rows := 1 + s.random.IntN(200)
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	line := fmt.Sprintf("%d\t%s\t%d\n", s.user, s.mark, s.transactionNumber)
	if _, err := s.conn.CopyFrom(ctx, bytes.NewReader(bytes.Repeat([]byte(line), rows)), "COPY marks FROM STDIN"); err != nil {
		s.recordOutcome(rows, rolledBack)
		return s.sessionError("COPY", err)
	}
	return s.recordCommit(rows, s.commit())
}

// recordCommit records the outcome of a transaction after COMMIT was sent.
func (s *session) recordCommit(rows int, err error) error {
	switch {
	case err == nil:
		s.committedRows += rows
		s.recordOutcome(rows, acknowledged)
	default:
		s.recordOutcome(rows, uncertain)
	}
	return err
}

// readOwnRows counts the rows that the session has inserted, and checks the number.
func (s *session) readOwnRows() error {
	return s.maybeInTransaction(func() error {
		return s.checkRowsOf(s.queryParams("SELECT count(*) FROM marks WHERE mark = $1", s.mark), fmt.Sprint(s.committedRows))
	})
}

// readAll reads all rows that the session may see, and checks that they belong to its user.
func (s *session) readAll() error {
	if s.actsForUser && !s.setsUserOnce {
		if err := s.checkRowsOf(s.runStatement("SELECT count(*) FROM marks"), "0"); err != nil {
			return err
		}
	}
	return s.maybeInTransaction(func() error {
		a := s.runStatement("SELECT DISTINCT owner FROM marks")
		if a.err == nil && len(a.rows) == 0 {
			return nil
		}
		return s.checkRowsOf(a, fmt.Sprint(s.user))
	})
}

// checkSetting sets a setting, and checks that it keeps the value.
func (s *session) checkSetting() error {
	if err := s.execute("SET application_name = '" + s.mark + "'"); err != nil {
		return err
	}
	for range 1 + s.random.IntN(3) {
		if err := s.checkRowsOf(s.runStatement("SHOW application_name"), s.mark); err != nil {
			return err
		}
	}
	return nil
}

// readLargeResult reads a result of up to some hundred kilobytes.
func (s *session) readLargeResult() error {
	n := 1 + s.random.IntN(4000)
	want := make([]string, n)
	for i := range want {
		want[i] = s.mark
	}
	return s.checkRowsOf(s.runStatement(fmt.Sprintf("SELECT '%s' FROM generate_series(1, %d)", s.mark, n)), want...)
}

func (s *session) fetchFromCursor() error {
	if err := s.begin(); err != nil {
		return err
	}
	if err := s.execute("DECLARE c CURSOR FOR SELECT '" + s.mark + "' || n FROM generate_series(1, 9) AS n"); err != nil {
		return err
	}
	for n := range 4 {
		if err := s.checkRowsOf(s.runStatement("FETCH 1 FROM c"), fmt.Sprint(s.mark, n+1)); err != nil {
			return err
		}
	}
	return s.commit()
}

// cancelStatement sends a statement, and then a cancel request for it. The request must not cancel a statement of
// another session.
func (s *session) cancelStatement() error {
	s.canceled = true
	after := time.Duration(s.random.IntN(3)) * time.Millisecond
	var sending sync.WaitGroup
	sending.Go(func() {
		time.Sleep(after)
		ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
		defer cancel()
		_ = s.conn.CancelRequest(ctx)
	})
	a := s.runStatement("SELECT '" + s.mark + "' FROM generate_series(1, 100000) HAVING count(*) > 0")
	sending.Wait()
	if isCanceled(a.err) && !s.conn.IsClosed() {
		return nil
	}
	return s.checkRowsOf(a, s.mark)
}

func isCanceled(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "57014"
}

// execute executes a text, and ignores its rows.
func (s *session) execute(text string) error { return s.runStatement(text).err }

// runStatement sends a text as a Query message, and returns the answer.
func (s *session) runStatement(text string) (a answer) {
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	results, err := s.conn.Exec(ctx, text).ReadAll()
	for _, r := range results {
		a.add(r)
	}
	a.err = s.sessionError(text, err)
	return a
}

// queryParams sends a statement with parameters in the extended protocol, and returns the answer.
func (s *session) queryParams(text string, args ...string) (a answer) {
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	values := make([][]byte, len(args))
	for i, arg := range args {
		values[i] = []byte(arg)
	}
	r := s.conn.ExecParams(ctx, text, values, nil, nil, nil).Read()
	a.add(r)
	a.err = s.sessionError(text, r.Err)
	return a
}

func (a *answer) add(r *pgconn.Result) {
	for _, row := range r.Rows {
		a.rows = append(a.rows, string(bytes.Join(row, []byte(" "))))
	}
	a.tags = append(a.tags, r.CommandTag.String())
}

// checkRowsOf compares the rows of an answer with the wanted rows. An answer that ends early must have the first of the
// wanted rows.
func (s *session) checkRowsOf(a answer, want ...string) error {
	if a.err != nil {
		want = want[:min(len(a.rows), len(want))]
	}
	if !slices.Equal(a.rows, want) {
		s.t.Errorf("%s, of user %d, was told %.200q, want %.200q", s.mark, s.user, a.rows, want)
	}
	return a.err
}

// sessionError returns an error that ends the session, with the message. It fails the test if no fault can have caused
// err.
func (s *session) sessionError(message string, err error) error {
	if err == nil {
		return nil
	}
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		s.t.Errorf("%s: %s is not answered: %v", s.mark, message, err)
	case !errors.As(err, &pg), isCanceled(err) && s.canceled:
	case pg.Code == "XX000", pg.Severity != "FATAL" && !s.isExplained(pg.Code):
		s.t.Errorf("%s: %s: %v; %s", s.mark, message, err, pg.Hint)
	}
	return fmt.Errorf("%w: %w", errConnectionEnded, err)
}
