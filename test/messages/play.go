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

// patience limits the wait for an answer.
var patience = tier.Patience

// serverMessage is a message that the server or the proxy has sent.
type serverMessage struct {
	messageType    byte
	raw            string // bytes of the message
	comparableText string // part of the message that must be the same from PostgreSQL and from the proxy; "": none
	waitsEnded     int    // number of waits that ended with this message
}

// transcript has all messages that were received on a connection.
type transcript struct {
	answers                 []serverMessage
	answersBeforeWithdrawal int    // number of messages before the withdrawal; -1: there was none
	failure                 string // what went wrong, such as a missing answer; "": nothing
}

func (t transcript) String() string {
	var b strings.Builder
	for i, a := range t.answers {
		if i == t.answersBeforeWithdrawal {
			b.WriteString("-- the consent is withdrawn\n")
		}
		fmt.Fprintf(&b, "%.300s", a.comparableText)
		if a.messageType == 'E' {
			fmt.Fprintf(&b, "  %.400q", a.raw)
		}
		b.WriteByte('\n')
	}
	if t.failure != "" {
		fmt.Fprintf(&b, "WRONG: %s\n", t.failure)
	}
	return b.String()
}

// waitEndAnswers is the number of successive CloseComplete messages by which the player recognizes the end of a wait.
const waitEndAnswers = 5

// waitEndMessages are the messages that end a wait. They end a COPY and a group of messages, and then ask for more
// CloseComplete messages than any other group does.
var waitEndMessages = func() (b []byte) {
	list := sequence{{Kind: copyFailMessage, Text: "end"}, {Kind: syncMessage}}
	for range waitEndAnswers {
		list = append(list, message{Kind: closeMessage, Object: "S", Name: "nothing of that name"})
	}
	for _, m := range append(list, message{Kind: syncMessage}) {
		b, _ = m.append(b, false)
	}
	return b
}()

// noAnswerFailure is the failure in the transcript if an answer is missing.
const noAnswerFailure = "an answer does not come"

// player plays a sequence on one connection.
type player struct {
	conn       *pgconn.HijackedConn
	isPostgres bool

	mu         sync.Mutex
	changed    *sync.Cond
	answers    []serverMessage
	waitsEnded int // number of waits that have ended
	ended      bool
	timedOut   bool
}

func (p *player) read() {
	closeCount := 0
	for {
		m, err := p.conn.Frontend.Receive()
		p.mu.Lock()
		if err != nil {
			p.ended = true
			p.changed.Broadcast()
			p.mu.Unlock()
			return
		}
		a := p.addAnswer(m)
		switch {
		case a.messageType == 'Z' && closeCount == waitEndAnswers:
			p.waitsEnded++
			closeCount = 0
		case a.messageType == 'Z':
			closeCount = 0
		case a.messageType == '3':
			closeCount++
		default:
			closeCount = -1
		}
		a.waitsEnded = p.waitsEnded
		p.answers = append(p.answers, a)
		p.changed.Broadcast()
		p.mu.Unlock()
	}
}

// waitUntil waits until holds returns true or the connection ends. It returns false if neither happens in time.
func (p *player) waitUntil(holds func() bool) bool {
	timer := time.AfterFunc(patience, func() {
		p.mu.Lock()
		p.timedOut = true
		p.changed.Broadcast()
		p.mu.Unlock()
	})
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !holds() && !p.ended && !p.timedOut {
		p.changed.Wait()
	}
	return holds() || p.ended
}

// playOn plays a sequence on the i-th database, and returns the transcript.
func (st *databaseTrio) playOn(i int, s sequence) (out transcript) {
	out.answersBeforeWithdrawal = -1
	conn, err := st.dial(i)
	if err != nil {
		out.failure = "no login: " + err.Error()
		return out
	}
	defer conn.Conn.Close()
	p := &player{conn: conn, isPostgres: i == visibleOnly}
	p.changed = sync.NewCond(&p.mu)
	done := make(chan struct{})
	go func() { defer close(done); p.read() }()
	out.failure = p.send(s, func() {
		p.mu.Lock()
		out.answersBeforeWithdrawal = len(p.answers)
		p.mu.Unlock()
		st.queryAsOwner(i, withdrawalSQL)
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

func (p *player) send(s sequence, withdraw func()) (failure string) {
	var b []byte
	waits := 0
	write := func() {
		_ = p.conn.Conn.SetWriteDeadline(time.Now().Add(patience))
		_, _ = p.conn.Conn.Write(b) // If this fails, the reading goroutine notices that the connection is closed.
		b = b[:0]
	}
	awaitAnswers := func() string {
		b = append(b, waitEndMessages...)
		write()
		waits++
		if !p.waitUntil(func() bool { return p.waitsEnded >= waits }) {
			return noAnswerFailure
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.ended && p.waitsEnded < waits {
			return "the connection ends"
		}
		return ""
	}
	isBound := false // the current group has bound the unnamed portal
	for _, m := range append(s[:len(s):len(s)], message{Kind: waitStep}) {
		switch m.Kind {
		case bindMessage:
			isBound = isBound || m.Portal == ""
		case syncMessage, queryMessage, functionCallMessage, waitStep, cancelStep, longQueryStep, withdrawStep:
			isBound = false
		case executeMessage:
			// If a Query has failed before, PostgreSQL may crash here, because it runs a portal whose memory it has freed.
			if m.Portal == "" && !isBound {
				m.Portal = "gone"
			}
		}
		switch m.Kind {
		case pauseStep:
			write()
			time.Sleep(time.Millisecond)
			continue
		case waitStep, cancelStep, longQueryStep, withdrawStep:
			if failure := awaitAnswers(); failure != "" {
				return failure
			}
		}
		switch m.Kind {
		case waitStep:
		case withdrawStep:
			withdraw()
		case cancelStep:
			if err := p.sendCancel(); err != nil {
				return "a cancel request: " + err.Error()
			}
		case longQueryStep:
			b, _ = message{Kind: queryMessage, Text: longQuery}.append(b, p.isPostgres)
			write()
			if failure := p.cancelRunning(); failure != "" {
				return failure
			}
		case terminateMessage:
			b, _ = m.append(b, p.isPostgres)
			write()
			if !p.waitUntil(func() bool { return false }) {
				return "the connection does not end"
			}
			return ""
		default:
			var err error
			if b, err = m.append(b, p.isPostgres); err != nil {
				return err.Error()
			}
		}
	}
	return ""
}

// cancelRunning sends cancel requests until the running Query has been answered.
func (p *player) cancelRunning() string {
	p.mu.Lock()
	before := len(p.answers)
	p.mu.Unlock()
	ready := func() bool {
		return bytes.IndexByte(messageTypes(p.answers[before:]), 'Z') >= 0
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		time.Sleep(30 * time.Millisecond)
		p.mu.Lock()
		isOver := ready() || p.ended
		p.mu.Unlock()
		if isOver {
			return ""
		}
		if err := p.sendCancel(); err != nil {
			return "a cancel request: " + err.Error()
		}
	}
	return "a cancelled Query goes on"
}

func messageTypes(list []serverMessage) (out []byte) {
	for _, a := range list {
		out = append(out, a.messageType)
	}
	return out
}

// sendCancel sends a cancel request, and returns after the server or the proxy has received it.
func (p *player) sendCancel() error {
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
	time.Sleep(10 * time.Millisecond) // the server needs time to handle the signal
	return nil
}

// addAnswer converts a received message into a serverMessage, with the text that is to be compared.
func (p *player) addAnswer(m pgproto3.BackendMessage) serverMessage {
	a := serverMessage{}
	switch m := m.(type) {
	case *pgproto3.ReadyForQuery:
		a.comparableText = "Z " + string(m.TxStatus)
	case *pgproto3.ErrorResponse:
		a.comparableText = fmt.Sprintf("E %s %s", m.Severity, m.Code)
		if p.isPostgres && strings.Contains(m.Message, `"refused"`) || !p.isPostgres && m.Code == "42501" ||
			m.Code == "0A000" || m.Code == "55000" || p.isPostgres && m.Code == "XX000" {
			a.comparableText = "E refused"
		}
	case *pgproto3.NoticeResponse:
		if m.Code == "25001" || m.Code == "25P01" {
			a.comparableText = "N " + m.Code
		}
	case *pgproto3.RowDescription:
		a.comparableText = "T"
		for i := range m.Fields { // each database has its own views, with their own OIDs
			f := &m.Fields[i]
			f.TableOID = 0
			a.comparableText += fmt.Sprintf(" %s:%d:%d", f.Name, f.DataTypeOID, f.Format)
		}
	case *pgproto3.DataRow:
		a.comparableText = fmt.Sprintf("D %q", m.Values)
	case *pgproto3.CommandComplete:
		a.comparableText = "C " + string(m.CommandTag)
	case *pgproto3.ParameterDescription:
		a.comparableText = fmt.Sprint("t ", m.ParameterOIDs)
	case *pgproto3.CopyOutResponse:
		a.comparableText = fmt.Sprint("H ", m.OverallFormat, m.ColumnFormatCodes)
	case *pgproto3.CopyInResponse:
		a.comparableText = fmt.Sprint("G ", m.OverallFormat, m.ColumnFormatCodes)
	case *pgproto3.CopyData:
		a.comparableText = fmt.Sprintf("d %q", m.Data)
	case *pgproto3.ParameterStatus:
		a.comparableText = "S " + m.Name + "=" + m.Value
	}
	raw, err := m.(interface {
		Encode([]byte) ([]byte, error)
	}).Encode(nil)
	if err != nil {
		raw = []byte("?" + err.Error())
	}
	a.messageType, a.raw = raw[0], string(raw)
	if _, notice := m.(*pgproto3.NoticeResponse); a.comparableText == "" && !notice {
		a.comparableText = string(a.messageType)
	}
	return a
}
