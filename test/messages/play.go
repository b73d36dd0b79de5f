package messages

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/test/tier"
)

// patience is how long an answer may take on the slowest machine.
var patience = tier.Patience

// answer is one message of the server.
type answer struct {
	typ  byte
	raw  string // its bytes
	text string // what of it PostgreSQL and the proxy must have in common; "": nothing
	ends int    // how many waits were over with it
}

// transcript is what came on a connection.
type transcript struct {
	answers []answer
	changed int    // how many there were when the consent was withdrawn; -1: it was not
	wrong   string // what must never be: an answer that does not come, a connection that ends
}

func (t transcript) String() string {
	var b strings.Builder
	for i, a := range t.answers {
		if i == t.changed {
			b.WriteString("-- the consent is withdrawn\n")
		}
		fmt.Fprintf(&b, "%.300s", a.text)
		if a.typ == 'E' {
			fmt.Fprintf(&b, "  %.400q", a.raw)
		}
		b.WriteByte('\n')
	}
	if t.wrong != "" {
		fmt.Fprintf(&b, "WRONG: %s\n", t.wrong)
	}
	return b.String()
}

// mark is what closes a wait: a COPY is given up, a group is ended, and an answer comes that no other messages have.
const marks = 5

var mark = func() (b []byte) {
	list := sequence{{Kind: copyFail, Text: "end"}, {Kind: syncs}}
	for range marks {
		list = append(list, message{Kind: closing, Object: "S", Name: "nothing of that name"})
	}
	for _, m := range append(list, message{Kind: syncs}) {
		b, _ = m.append(b, false)
	}
	return b
}()

// unanswered is wrong wherever it is seen.
const unanswered = "an answer does not come"

// player plays a sequence on a connection.
type player struct {
	conn  *pgconn.HijackedConn
	plain bool

	mu      sync.Mutex
	change  *sync.Cond
	answers []answer
	waits   int // that are over
	ended   bool
	late    bool
}

func (p *player) read() {
	closes := 0
	for {
		m, err := p.conn.Frontend.Receive()
		p.mu.Lock()
		if err != nil {
			p.ended = true
			p.change.Broadcast()
			p.mu.Unlock()
			return
		}
		a := p.note(m)
		switch {
		case a.typ == 'Z' && closes == marks:
			p.waits++
			closes = 0
		case a.typ == 'Z':
			closes = 0
		case a.typ == '3':
			closes++
		default:
			closes = -1
		}
		a.ends = p.waits
		p.answers = append(p.answers, a)
		p.change.Broadcast()
		p.mu.Unlock()
	}
}

// until waits for what is told of the answers, or the end of the connection. It is false where neither comes.
func (p *player) until(done func() bool) bool {
	timer := time.AfterFunc(patience, func() {
		p.mu.Lock()
		p.late = true
		p.change.Broadcast()
		p.mu.Unlock()
	})
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !done() && !p.ended && !p.late {
		p.change.Wait()
	}
	return done() || p.ended
}

// play sends a sequence. change withdraws the consent.
func (st *stage) play(i int, s sequence) (out transcript) {
	out.changed = -1
	conn, err := st.dial(i)
	if err != nil {
		out.wrong = "no login: " + err.Error()
		return out
	}
	defer conn.Conn.Close()
	p := &player{conn: conn, plain: i == alone}
	p.change = sync.NewCond(&p.mu)
	done := make(chan struct{})
	go func() { defer close(done); p.read() }()
	out.wrong = p.send(s, func() {
		p.mu.Lock()
		out.changed = len(p.answers)
		p.mu.Unlock()
		st.ask(i, withdrawal)
	})
	conn.Conn.Close()
	<-done
	out.answers = p.answers
	for k := range out.answers {
		a := &out.answers[k]
		a.raw = strings.ReplaceAll(a.raw, st.dbs[i].Name, "DATABASE")
	}
	return out
}

func (p *player) send(s sequence, change func()) (wrong string) {
	var b []byte
	waits := 0
	write := func() {
		_ = p.conn.Conn.SetWriteDeadline(time.Now().Add(patience))
		_, _ = p.conn.Conn.Write(b) // the reader says that the connection is over
		b = b[:0]
	}
	await := func() string {
		b = append(b, mark...)
		write()
		waits++
		if !p.until(func() bool { return p.waits >= waits }) {
			return unanswered
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.ended && p.waits < waits {
			return "the connection ends"
		}
		return ""
	}
	bound := false // the portal without a name, in this group
	for _, m := range append(s[:len(s):len(s)], message{Kind: wait}) {
		switch m.Kind {
		case bind:
			bound = bound || m.Portal == ""
		case syncs, query, call, wait, cancel, long, withdraw:
			bound = false
		case execute:
			// PostgreSQL may not survive it, where a Query has failed before: it runs what is no longer in its memory.
			if m.Portal == "" && !bound {
				m.Portal = "gone"
			}
		}
		switch m.Kind {
		case pause:
			write()
			time.Sleep(time.Millisecond)
			continue
		case wait, cancel, long, withdraw:
			if wrong := await(); wrong != "" {
				return wrong
			}
		}
		switch m.Kind {
		case wait:
		case withdraw:
			change()
		case cancel:
			if err := p.cancel(); err != nil {
				return "a cancel request: " + err.Error()
			}
		case long:
			b, _ = message{Kind: query, Text: longText}.append(b, p.plain)
			write()
			if wrong := p.cancelled(); wrong != "" {
				return wrong
			}
		case terminate:
			b, _ = m.append(b, p.plain)
			write()
			if !p.until(func() bool { return false }) {
				return "the connection does not end"
			}
			return ""
		default:
			var err error
			if b, err = m.append(b, p.plain); err != nil {
				return err.Error()
			}
		}
	}
	return ""
}

// cancelled cancels the Query that is running, until it is answered.
func (p *player) cancelled() string {
	p.mu.Lock()
	before := len(p.answers)
	p.mu.Unlock()
	ready := func() bool {
		return bytes.IndexByte(types(p.answers[before:]), 'Z') >= 0
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		time.Sleep(30 * time.Millisecond)
		p.mu.Lock()
		over := ready() || p.ended
		p.mu.Unlock()
		if over {
			return ""
		}
		if err := p.cancel(); err != nil {
			return "a cancel request: " + err.Error()
		}
	}
	return "a cancelled Query goes on"
}

func types(list []answer) (out []byte) {
	for _, a := range list {
		out = append(out, a.typ)
	}
	return out
}

// cancel asks for what is running to be cancelled, and returns when that has been passed on.
func (p *player) cancel() error {
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	addr := p.conn.Conn.RemoteAddr()
	c, err := (&net.Dialer{}).DialContext(ctx, addr.Network(), addr.String())
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	b, err := (&pgproto3.CancelRequest{ProcessID: p.conn.PID, SecretKey: p.conn.SecretKey}).Encode(nil)
	if err != nil {
		return err
	}
	if _, err := c.Write(b); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, c)
	time.Sleep(10 * time.Millisecond) // the signal
	return nil
}

// note writes an answer down.
func (p *player) note(m pgproto3.BackendMessage) answer {
	a := answer{}
	switch m := m.(type) {
	case *pgproto3.ReadyForQuery:
		a.text = "Z " + string(m.TxStatus)
	case *pgproto3.ErrorResponse:
		a.text = fmt.Sprintf("E %s %s", m.Severity, m.Code)
		if p.plain && strings.Contains(m.Message, `"refused"`) || !p.plain && m.Code == "42501" ||
			m.Code == "0A000" || m.Code == "55000" || p.plain && m.Code == "XX000" {
			a.text = "E refused"
		}
	case *pgproto3.NoticeResponse:
		if m.Code == "25001" || m.Code == "25P01" {
			a.text = "N " + m.Code
		}
	case *pgproto3.RowDescription:
		a.text = "T"
		for i := range m.Fields { // the views that stand for tables are made anew in each database
			f := &m.Fields[i]
			f.TableOID = 0
			a.text += fmt.Sprintf(" %s:%d:%d", f.Name, f.DataTypeOID, f.Format)
		}
	case *pgproto3.DataRow:
		a.text = fmt.Sprintf("D %q", m.Values)
	case *pgproto3.CommandComplete:
		a.text = "C " + string(m.CommandTag)
	case *pgproto3.ParameterDescription:
		a.text = fmt.Sprint("t ", m.ParameterOIDs)
	case *pgproto3.CopyOutResponse:
		a.text = fmt.Sprint("H ", m.OverallFormat, m.ColumnFormatCodes)
	case *pgproto3.CopyInResponse:
		a.text = fmt.Sprint("G ", m.OverallFormat, m.ColumnFormatCodes)
	case *pgproto3.CopyData:
		a.text = fmt.Sprintf("d %q", m.Data)
	case *pgproto3.ParameterStatus:
		a.text = "S " + m.Name + "=" + m.Value
	}
	raw, err := m.(interface {
		Encode([]byte) ([]byte, error)
	}).Encode(nil)
	if err != nil {
		raw = []byte("?" + err.Error())
	}
	a.typ, a.raw = raw[0], string(raw)
	if _, notice := m.(*pgproto3.NoticeResponse); a.text == "" && !notice {
		a.text = string(a.typ)
	}
	return a
}
