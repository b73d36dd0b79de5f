package proxy

import (
	"encoding/binary"
	"io"
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// While a COPY FROM STDIN runs, the proxy sends the client's rows to the server as they arrive. The goroutine that
// handles the client's messages first waits until the server asks for rows. For a Query it also waits until the server
// has answered. So the proxy interprets each message as the server does: CopyData, CopyDone and CopyFail belong to a
// running COPY and are ignored otherwise. Flush and Sync are ignored while a COPY runs.

// maxCopyData is the length of the longest CopyData message, as in PostgreSQL.
const maxCopyData = 1<<30 - 2

// hasCopyIn reports whether the statements of v include a COPY FROM STDIN.
func hasCopyIn(v *verdict.Verdict) bool {
	return slices.ContainsFunc(v.Effects, func(e verdict.Effect) bool { return e.Kind == verdict.EffectCopyIn })
}

// startCopy sends the batch, which ends with a COPY FROM STDIN, and relays the client's rows to the server.
func (r *requests) startCopy(in *input) error {
	e := r.copyEntry
	r.copyEntry = nil
	if err := r.flush(); err != nil {
		return err
	}
	r.snapshots.inputPart++ // Rows are read from the client, so a new part of its input begins.
	_, isExecute := e.(*executeEntry)
	for r.ledger.waitForCopy(e) {
		rows := copyRelay{requests: r, input: in, execution: e.asExecution(), extended: isExecute}
		if err := rows.relay(); err != nil {
			return err
		}
		if isExecute {
			break // The server may not send CommandComplete before a Sync.
		}
	}
	return nil
}

// copyRelay relays the rows of one COPY to the server.
type copyRelay struct {
	*requests
	input     *input
	execution *execution
	extended  bool // the COPY runs by an Execute, and not by a Query

	hasRelayedRows bool // at least one row has been relayed
	syncCount      int  // how many Syncs the client sent during the COPY, after a row
}

// relay relays the rows to the server, until the client ends them or the server has ended the COPY.
func (c *copyRelay) relay() error {
	for {
		finished, err := c.relayArrived()
		if finished || err != nil {
			return err
		}
		if err := c.input.fill(); err == io.EOF {
			return errPeerGone // No CopyDone was sent, so the COPY must not succeed.
		} else if err != nil {
			return err
		}
	}
}

// relayArrived relays the rows that have arrived from the client, and handles other messages. finished says that the
// COPY is over.
func (c *copyRelay) relayArrived() (finished bool, err error) {
	for {
		if c.input.bytesToRelay == 0 && !c.ledger.isCopying(c.execution) {
			return true, c.answerSyncs()
		}
		rows, n, err := c.input.rows()
		if err != nil {
			return false, err
		}
		if len(rows) > 0 {
			c.hasRelayedRows = true
			c.ledger.countCopied(c.execution, n, len(rows))
			if _, err := c.upstream.Write(rows); err != nil {
				return false, c.awaitEnd(err)
			}
			continue
		}
		if c.input.bytesToRelay > 0 {
			return false, nil
		}
		typ, body, ok, err := c.input.next()
		if !ok || err != nil {
			return false, err
		}
		if finished, err := c.message(typ, body); finished || err != nil {
			return finished, err
		}
	}
}

// message handles a message other than CopyData during a COPY. finished says that the message ends the rows.
func (c *copyRelay) message(typ byte, body []byte) (finished bool, err error) {
	switch typ {
	case 'c':
		return true, c.endRows(appendMessage(nil, 'c'))
	case 'f':
		if _, rest, ok := readCString(body); !ok || len(rest) > 0 {
			body = zeroByte
		}
		return true, c.endRows(appendMessage(nil, 'f', body))
	case 'H':
	case 'S':
		if c.hasRelayedRows && c.extended {
			c.syncCount++
		}
	case 'X':
		return false, errPeerGone
	default:
		return false, sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol,
			"unexpected message type 0x%02X during COPY from stdin", typ)
	}
	return false, nil
}

// answerSyncs adds the Syncs that the client has sent during the COPY to the batch, so that the server answers each of
// them.
func (c *copyRelay) answerSyncs() error {
	for range c.syncCount {
		if _, err := c.handle('S', nil); err != nil {
			return err
		}
	}
	return nil
}

// endRows sends the server CopyDone or CopyFail, unless the server has ended the COPY already.
func (c *copyRelay) endRows(message []byte) error {
	if !c.ledger.endCopy(c.execution) {
		return nil
	}
	if _, err := c.upstream.Write(message); err != nil {
		return c.awaitEnd(err)
	}
	return nil
}

// rows returns the bytes of the CopyData messages that have arrived, with their headers, and how many messages begin in
// them. Of a message that has arrived in part, it returns that part.
func (in *input) rows() (raw []byte, n int, err error) {
	b := in.bytes()
	in.dropArrived() // Drop the rest of a message that came before the COPY.
	start := in.unreadStart
	for in.bytesToDrop == 0 {
		if in.bytesToRelay > 0 {
			taken := min(in.bytesToRelay, in.unreadEnd-in.unreadStart)
			in.bytesToRelay -= taken
			in.unreadStart += taken
			if in.bytesToRelay > 0 {
				break
			}
		}
		if in.unreadEnd-in.unreadStart < 5 || b[in.unreadStart] != 'd' {
			break
		}
		size := int64(binary.BigEndian.Uint32(b[in.unreadStart+1:]))
		if size < 4 || size-4 > maxCopyData {
			return nil, 0, invalidLengthError()
		}
		in.unreadStart += 5
		in.bytesToRelay = int(size) - 4
		n++
	}
	return b[start:in.unreadStart], n, nil
}

// waitForCopy waits until the server asks for the rows of a COPY of e, or has answered e. It returns true if the server
// asks.
func (l *ledger) waitForCopy(e entry) (copying bool) {
	x := e.asExecution()
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && !x.copying && !x.isAnswered {
		l.changed.Wait()
	}
	return !l.closed && x.copying
}

// isCopying reports whether the server still reads rows for x.
func (l *ledger) isCopying(x *execution) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return x.copying && !l.closed
}

// countCopied adds rows and bytes that are relayed to the server to the counts of x, while the COPY runs.
func (l *ledger) countCopied(x *execution, rows, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x.copying {
		x.rows += int64(rows)
		x.bytes += int64(bytes)
	}
}

// endCopy notes that the client has no more rows for this COPY, and reports whether the server was still reading them.
// The server may next ask for the rows of another COPY in the same text.
func (l *ledger) endCopy(x *execution) (copying bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	copying, x.copying = x.copying, false
	return copying
}

// noteCopyRequested notes that the server asks for rows for x. It returns false if the current statement of x is no
// COPY FROM STDIN.
func (l *ledger) noteCopyRequested(x *execution) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !x.copiesIn() {
		return false
	}
	x.copying = true
	l.changed.Broadcast()
	return true
}
