package instance

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Answer is everything that a client receives in answer to one message, as text: for each statement the columns, the
// rows and the tag, and then the error and the notices.
type Answer struct {
	Results []Result
	Err     string
	Code    string // SQLSTATE; "client": the driver has failed, for example because the connection broke
	Message string
	Notices []string
}

// Result is the answer to one statement.
type Result struct {
	Columns []string
	Types   []uint32
	Rows    []string // values separated by tabs; NULL is \N; a value above 1 MB is written as its size and hash
	Tag     string
}

var (
	noticesMu sync.Mutex
	notices   = map[*pgconn.PgConn][]string{}
)

// Connect opens a connection that stores its notices. The connection is closed when the test ends.
func Connect(t testing.TB, dsn string) *pgconn.PgConn {
	t.Helper()
	c, err := Dial(dsn)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { Close(c) })
	return c
}

// Dial is Connect without the closing at the end of the test. Dial tries again if the proxy answers that it cannot
// connect now, as it does when a probe of the database takes too long on a busy machine.
func Dial(dsn string) (*pgconn.PgConn, error) {
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
		noticesMu.Lock()
		defer noticesMu.Unlock()
		notices[c] = append(notices[c], fmt.Sprintf("%s %s %s %s", n.Severity, n.Code, n.Message, n.Detail))
	}
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Second / 2) {
		ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
		c, err := pgconn.ConnectConfig(ctx, cfg)
		cancel()
		var refused *pgconn.PgError
		if err == nil || !errors.As(err, &refused) || refused.Code != string(sqlstate.CannotConnectNow) || time.Now().After(end) {
			return c, err
		}
	}
}

// Close ends a connection.
func Close(c *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = c.Close(ctx)
	takeNotices(c)
}

func takeNotices(c *pgconn.PgConn) []string {
	noticesMu.Lock()
	defer noticesMu.Unlock()
	n := notices[c]
	delete(notices, c)
	return n
}

// answerTimeout is how long an answer may take.
const answerTimeout = tier.Patience

// Ask sends a message in the simple protocol, and returns the answer.
func Ask(c *pgconn.PgConn, sql string) Answer {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	var a Answer
	reader := c.Exec(ctx, sql)
	for reader.NextResult() {
		a.Results = append(a.Results, readResult(reader.ResultReader()))
	}
	a.setError(reader.Close())
	a.Notices = takeNotices(c)
	return a
}

// AskExtended sends a statement with parameters in the extended protocol. An argument that is nil stands for NULL.
func AskExtended(c *pgconn.PgConn, sql string, args ...[]byte) Answer {
	return sendWithParams(c, sql, args, nil)
}

// AskText is AskExtended for parameters whose type the client declares as text.
func AskText(c *pgconn.PgConn, sql string, args ...string) Answer {
	values, types := make([][]byte, len(args)), make([]uint32, len(args))
	for i, a := range args {
		values[i], types[i] = []byte(a), pgtype.TextOID
	}
	return sendWithParams(c, sql, values, types)
}

// AskDeclared is AskExtended for parameters whose types the client declares. The type 0 means that the client does not
// declare it.
func AskDeclared(c *pgconn.PgConn, sql string, types []uint32, args ...[]byte) Answer {
	return sendWithParams(c, sql, args, types)
}

// AskPrepared prepares a statement, and executes it once for each list of arguments until an execution fails.
func AskPrepared(c *pgconn.PgConn, sql string, types []uint32, executions ...[][]byte) Answer {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	var a Answer
	const name = "asked"
	_, err := c.Prepare(ctx, name, sql, types)
	for i := 0; err == nil && i < len(executions); i++ {
		reader := c.ExecPrepared(ctx, name, executions[i], nil, nil)
		r := readResult(reader)
		if _, err = reader.Close(); err == nil {
			a.Results = append(a.Results, r)
		}
	}
	a.setError(err)
	a.Notices = takeNotices(c)
	if !c.IsClosed() {
		_ = c.Deallocate(ctx, name)
	}
	return a
}

func sendWithParams(c *pgconn.PgConn, sql string, args [][]byte, types []uint32) Answer {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	var a Answer
	reader := c.ExecParams(ctx, sql, args, types, nil, nil)
	r := readResult(reader)
	_, err := reader.Close()
	if err == nil || len(r.Columns) > 0 {
		a.Results = append(a.Results, r)
	}
	a.setError(err)
	a.Notices = takeNotices(c)
	return a
}

// AskBinary sends a statement in the extended protocol, and requests the result in binary format.
func AskBinary(c *pgconn.PgConn, sql string) Answer {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	var a Answer
	reader := c.ExecParams(ctx, sql, nil, nil, nil, []int16{pgx.BinaryFormatCode})
	r := readResult(reader)
	_, err := reader.Close()
	if err == nil || len(r.Columns) > 0 {
		a.Results = append(a.Results, r)
	}
	a.setError(err)
	a.Notices = takeNotices(c)
	return a
}

// firstNormalOID replaces the OIDs of types that were created in a database, such as the row type of a view. Such OIDs
// differ between two databases with the same schema (see PostgreSQL's access/transam.h).
const firstNormalOID = 16384

// maxKeptValue is the size of the largest value that an answer contains unchanged. Some statements return gigabytes.
const maxKeptValue = 1 << 20

func readResult(rr *pgconn.ResultReader) Result {
	var r Result
	for _, f := range rr.FieldDescriptions() {
		r.Columns = append(r.Columns, f.Name)
		r.Types = append(r.Types, min(f.DataTypeOID, firstNormalOID))
	}
	for rr.NextRow() {
		var b strings.Builder
		for i, v := range rr.Values() {
			if i > 0 {
				b.WriteByte('\t')
			}
			switch {
			case v == nil:
				b.WriteString(`\N`)
			case len(v) > maxKeptValue:
				fmt.Fprintf(&b, "%d bytes, sha256 %x", len(v), sha256.Sum256(v))
			default:
				b.Write(v)
			}
		}
		r.Rows = append(r.Rows, b.String())
	}
	tag, _ := rr.Close()
	r.Tag = tag.String()
	return r
}

func (a *Answer) setError(err error) {
	if err == nil {
		return
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		a.Code, a.Message = pg.Code, pg.Message
		a.Err = fmt.Sprintf("%s %s: %s|%s|%s|%d|%s|%s|%s|%s|%s|%s", pg.Severity, pg.Code, pg.Message, pg.Detail, pg.Hint, pg.Position,
			pg.Where, pg.SchemaName, pg.TableName, pg.ColumnName, pg.DataTypeName, pg.ConstraintName)
		return
	}
	a.Code, a.Message, a.Err = "client", err.Error(), err.Error()
}

// Refused reports whether the answer is a refusal by pgconsent.
func (a Answer) Refused() bool {
	switch a.Code {
	case "42501", "0A000":
		return true
	}
	return false
}

// PlanNotShown reports whether the answer is the text that agents get instead of the plan of a statement that reads
// tables.
func (a Answer) PlanNotShown() bool {
	return slices.ContainsFunc(a.Results, func(r Result) bool {
		return slices.ContainsFunc(r.Rows, func(row string) bool { return strings.Contains(row, "plan not shown to agents") })
	})
}

// String returns the answer as text, with the rows in their order.
func (a Answer) String() string { return a.format(false) }

// SortedString returns the answer as text, with the rows of each result sorted. It is for statements without a defined
// order.
func (a Answer) SortedString() string { return a.format(true) }

func (a Answer) format(sorted bool) string {
	var b strings.Builder
	for _, r := range a.Results {
		fmt.Fprintf(&b, "[%s] %v %s\n", strings.Join(r.Columns, ","), r.Types, r.Tag)
		rows := r.Rows
		if sorted {
			rows = slices.Sorted(slices.Values(rows))
		}
		for _, row := range rows {
			b.WriteString(row)
			b.WriteByte('\n')
		}
	}
	if a.Err != "" {
		fmt.Fprintf(&b, "ERROR %s\n", a.Err)
	}
	for _, n := range a.Notices {
		fmt.Fprintf(&b, "NOTICE %s\n", n)
	}
	return b.String()
}

// WithoutNotices returns the answer without its notices. Of the notices of a foreign server, the proxy passes on only
// some.
func (a Answer) WithoutNotices() Answer {
	a.Notices = nil
	return a
}

// Truncate shortens a long text for the message of a failed test.
func Truncate(s string) string {
	if len(s) > 1500 {
		return s[:1500] + fmt.Sprintf("… (%d bytes)", len(s))
	}
	return s
}

var blanks = regexp.MustCompile(`\s+`)

// OneLine returns a statement as one line, for messages.
func OneLine(sql string) string {
	s := strings.TrimSpace(blanks.ReplaceAllString(sql, " "))
	if len(s) > 160 {
		s = s[:160] + "…"
	}
	return s
}

// answerOf returns the answer to a COPY from its tag, its data and its error.
func answerOf(c *pgconn.PgConn, tag pgconn.CommandTag, data string, err error) Answer {
	var a Answer
	if err == nil {
		rows := slices.Collect(strings.Lines(data))
		if strings.HasPrefix(data, binarySignature) {
			rows = binaryRows(data)
		}
		a.Results = []Result{{Rows: rows, Tag: tag.String()}}
	}
	a.setError(err)
	a.Notices = takeNotices(c)
	return a
}

// binarySignature is the beginning of the data of a COPY in binary format.
const binarySignature = "PGCOPY\n\xff\r\n\x00"

// binaryRows splits the data of a COPY in binary format into its header and its tuples. The format is described under
// "Binary Format" in PostgreSQL's documentation of COPY.
func binaryRows(data string) []string {
	const header = len(binarySignature) + 8 // flags, and length of the header extension, which is empty
	rows := []string{fmt.Sprintf("%q", data[:header])}
	for rest := data[header:]; len(rest) > 0; {
		size := 2
		for range max(0, int(int16(binary.BigEndian.Uint16([]byte(rest))))) {
			length := int32(binary.BigEndian.Uint32([]byte(rest[size:])))
			size += 4 + int(max(0, length))
		}
		rows = append(rows, fmt.Sprintf("%q", rest[:size]))
		rest = rest[size:]
	}
	return rows
}

// AskCopy is [Ask] for a statement that may be a COPY. The answer to COPY TO STDOUT contains the data. AskCopy sends no
// data to COPY FROM STDIN.
func AskCopy(c *pgconn.PgConn, sql string) Answer {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	if strings.HasPrefix(sql, "COPY ") && strings.Contains(sql, "FROM STDIN") {
		tag, err := c.CopyFrom(ctx, strings.NewReader(""), sql)
		return answerOf(c, tag, "", err)
	}
	if !strings.HasPrefix(sql, "COPY ") || !strings.Contains(sql, "TO STDOUT") {
		return Ask(c, sql)
	}
	var data strings.Builder
	tag, err := c.CopyTo(ctx, &data, sql)
	return answerOf(c, tag, data.String(), err)
}
