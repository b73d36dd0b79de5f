package proxy

import (
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// constantDecider answers every text with the same verdict, so that a benchmark measures only the proxy.
type constantDecider struct {
	fakeDecider
	verdict *verdict.Verdict
}

func (d *constantDecider) Decide(context.Context, string, verdict.Protocol) *verdict.Verdict {
	return d.verdict
}

func (d *constantDecider) Record(*verdict.Verdict, ...*verdict.Verdict) verdict.Ticket {
	return constantTicket{}
}

type constantTicket struct{}

func (constantTicket) Release() *sqlstate.Error         { return nil }
func (constantTicket) ResultBound() verdict.ResultBound { return verdict.ResultBound{} }
func (constantTicket) RowsReturned(int64)               {}
func (constantTicket) RecordOutcome(verdict.Outcome)    {}

// discardConn accepts and discards everything that is written to it.
type discardConn struct{ net.Conn }

func (discardConn) Write(b []byte) (int, error)      { return len(b), nil }
func (discardConn) SetDeadline(time.Time) error      { return nil }
func (discardConn) SetReadDeadline(time.Time) error  { return nil }
func (discardConn) SetWriteDeadline(time.Time) error { return nil }

// benchmarkStatement measures one exchange, the client's messages and the server's answers, without a network
// connection.
func benchmarkStatement(b *testing.B, messages []pgx3.FrontendMessage, backend []pgx3.BackendMessage) {
	measureExchange(b, newExchange(b), messages, backend)
}

// exchange is a session without a network connection.
type exchange struct {
	requests *requests
	answers  *answers
}

func newExchange(b *testing.B) *exchange {
	server, err := New(Config{Router: &testProxy{}})
	if err != nil {
		b.Fatal(err)
	}
	c := newConn(server, discardConn{})
	v := &verdict.Verdict{Original: "SELECT 1", Text: "SELECT 1", Rewritten: verdict.Rewritten{Effects: []verdict.Effect{{ReadsRows: true, ReturnsRows: true}}}}
	s := &session{conn: c, decider: &constantDecider{verdict: v}, ledger: newLedger()}
	r := newRequests(s)
	r.seal.RenewAfter, r.seal.Expires = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	r.batch.server = newSink(discardConn{})
	r.retry.turn = make(chan struct{}, 1)
	return &exchange{r, benchmarkAnswers(s)}
}

func measureExchange(b *testing.B, x *exchange, messages []pgx3.FrontendMessage, backend []pgx3.BackendMessage) {
	clientBytes, serverBytes := encoded(b, messages), encoded(b, backend)
	b.ReportAllocs()
	for b.Loop() {
		x.run(b, clientBytes, serverBytes)
	}
}

// encoded returns the bytes of messages.
func encoded[M interface {
	Encode([]byte) ([]byte, error)
}](b *testing.B, messages []M) (out []byte) {
	for _, m := range messages {
		var err error
		if out, err = m.Encode(out); err != nil {
			b.Fatal(err)
		}
	}
	return out
}

// run handles messages of the client, and then the server's answers to them.
func (x *exchange) run(b *testing.B, clientBytes, serverBytes []byte) {
	in := input{source: source{peer: &endlessReader{clientBytes}}, maxText: defaultMaxText}
	for {
		if err := in.fill(); err == io.EOF {
			break
		} else if err != nil {
			b.Fatal(err)
		}
		for {
			typ, body, ok, err := in.next()
			if err != nil {
				b.Fatal(err)
			}
			if !ok {
				break
			}
			if _, err := x.requests.handle(typ, body); err != nil {
				b.Fatal(err)
			}
		}
	}
	in.release()
	if err := x.requests.flush(); err != nil {
		b.Fatal(err)
	}
	benchmarkRelay(b, x.answers, serverBytes)
}

// endlessReader returns b once and then io.EOF, and is reset for each iteration.
type endlessReader struct{ b []byte }

func (r *endlessReader) Read(p []byte) (int, error) {
	n := copy(p, r.b)
	if r.b = r.b[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// benchmarkAnswers returns a relay of server answers that reads what benchmarkRelay puts in.
func benchmarkAnswers(s *session) *answers {
	return &answers{session: s, relay: relay{source: source{peer: &endlessReader{}}, clientSink: newSink(discardConn{})}}
}

func benchmarkRelay(b *testing.B, a *answers, serverBytes []byte) {
	a.peer = &endlessReader{serverBytes}
	if err := a.fill(); err != nil {
		b.Fatal(err)
	}
	if err := a.scan(); err != nil {
		b.Fatal(err)
	}
	if err := a.flush(); err != nil {
		b.Fatal(err)
	}
	a.outcomes.record(a.server.metrics)
}

var oneRow = []pgx3.BackendMessage{
	&pgx3.DataRow{Values: [][]byte{[]byte("1")}}, &pgx3.CommandComplete{CommandTag: []byte("SELECT 1")}}

var oneColumn = []pgx3.BackendMessage{&pgx3.RowDescription{Fields: []pgx3.FieldDescription{{Name: []byte("a")}}}}

func BenchmarkQuery(b *testing.B) {
	benchmarkStatement(b, []pgx3.FrontendMessage{q("SELECT 1")},
		slices.Concat(oneColumn, oneRow, []pgx3.BackendMessage{&pgx3.ReadyForQuery{TxStatus: 'I'}}))
}

// BenchmarkExtendedUnnamed measures the messages of a driver that describes the statement.
func BenchmarkExtendedUnnamed(b *testing.B) {
	benchmarkStatement(b, []pgx3.FrontendMessage{pa("", "SELECT 1"), de('S', ""), bi("", ""), ex("", 0), sy},
		slices.Concat([]pgx3.BackendMessage{&pgx3.ParseComplete{}, &pgx3.ParameterDescription{}}, oneColumn,
			[]pgx3.BackendMessage{&pgx3.BindComplete{}}, oneRow, []pgx3.BackendMessage{&pgx3.ReadyForQuery{TxStatus: 'I'}}))
}

// BenchmarkExtendedNamed measures the messages of a driver that describes the portal and closes it.
func BenchmarkExtendedNamed(b *testing.B) {
	benchmarkStatement(b, []pgx3.FrontendMessage{pa("s", "SELECT 1"), bi("p", "s"), de('P', "p"), ex("p", 0), cl('P', "p"), sy},
		slices.Concat([]pgx3.BackendMessage{&pgx3.ParseComplete{}, &pgx3.BindComplete{}}, oneColumn, oneRow,
			[]pgx3.BackendMessage{&pgx3.CloseComplete{}, &pgx3.ReadyForQuery{TxStatus: 'I'}}))
}

// BenchmarkPrepared measures an execution of a statement that the client has prepared before.
func BenchmarkPrepared(b *testing.B) {
	x := newExchange(b)
	ready := &pgx3.ReadyForQuery{TxStatus: 'I'}
	x.run(b, encoded(b, []pgx3.FrontendMessage{pa("s", "SELECT 1"), sy}), encoded(b, []pgx3.BackendMessage{&pgx3.ParseComplete{}, ready}))
	measureExchange(b, x, []pgx3.FrontendMessage{bi("", "s"), ex("", 0), sy},
		slices.Concat([]pgx3.BackendMessage{&pgx3.BindComplete{}}, oneRow, []pgx3.BackendMessage{ready}))
}
