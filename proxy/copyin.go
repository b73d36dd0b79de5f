package proxy

import (
	"encoding/binary"
	"io"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// While a COPY FROM STDIN runs, the client's rows go to the server as they arrive, in pieces of what has arrived. The
// inbound goroutine waits for the server at each turn (until it asks for rows, and for a Query until it has answered), so
// that each message is taken as the server takes it: CopyData and the end of the rows belong to the COPY while it runs
// and are ignored when it does not, Flush and Sync the other way round.

// maxCopyData is the longest CopyData, as in PostgreSQL.
const maxCopyData = 1<<30 - 2

// copies tells whether an execution asks the client for rows.
func copies(v *verdict.Verdict) bool {
	for _, e := range v.Effects {
		if e.Kind == verdict.CopiesIn {
			return true
		}
	}
	return false
}

// copyIn takes the rows of each COPY of e, which is sent, to the server.
func (s *session) copyIn(in *input, e *entry) error {
	for s.ledger.awaitCopy(e) {
		if err := s.relayRows(in, e); err != nil {
			return err
		}
		if e.kind == execute {
			break // the server keeps the answer back until Sync
		}
	}
	return nil
}

// relayRows takes the rows of one COPY to the server, to their end or until the server has given up.
func (s *session) relayRows(in *input, e *entry) error {
	syncs, begun := 0, false
	for {
		for {
			if in.pass == 0 && !s.ledger.copying(e) {
				// Those behind rows came when the server had failed, or it would have failed at them: they are to be answered.
				for range syncs {
					if _, err := s.message('S', nil); err != nil {
						return err
					}
				}
				return nil
			}
			rows, n, err := in.rows()
			if err != nil {
				return err
			}
			if len(rows) > 0 {
				begun = true
				s.ledger.copied(e, n, len(rows))
				if _, err := s.upstream.Write(rows); err != nil {
					return s.awaitEnd(err)
				}
				continue
			}
			if in.pass > 0 {
				break
			}
			typ, body, ok, err := in.next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			switch typ {
			case 'c':
				return s.endRows(e, appendMessage(nil, 'c'))
			case 'f':
				if _, rest, ok := cString(body); !ok || len(rest) > 0 {
					body = zero
				}
				return s.endRows(e, appendMessage(nil, 'f', body))
			case 'H':
			case 'S':
				if begun && e.kind == execute {
					syncs++
				}
			case 'X':
				return errGone
			default:
				return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol,
					"unexpected message type 0x%02X during COPY from stdin", typ)
			}
		}
		if err := in.fill(); err != nil {
			if err == io.EOF {
				return errGone // the server must not take what there is for all
			}
			return err
		}
	}
}

// endRows tells the server that the rows are at their end, unless it has given up.
func (s *session) endRows(e *entry, message []byte) error {
	if !s.ledger.copied(e, 0, 0) {
		return nil
	}
	s.ledger.stopCopy(e)
	if _, err := s.upstream.Write(message); err != nil {
		return s.awaitEnd(err)
	}
	return nil
}

// rows takes the CopyData that has arrived, headers and all, and counts the messages that begin in it. A message that has
// arrived in part is taken as far as it has.
func (in *input) rows() (raw []byte, n int, err error) {
	b := in.bytes()
	if in.waste > 0 { // of a message that came when no COPY ran
		skipped := min(in.waste, in.w-in.r)
		in.waste -= skipped
		in.r += skipped
	}
	start := in.r
	for in.waste == 0 {
		if in.pass > 0 {
			taken := min(in.pass, in.w-in.r)
			in.pass -= taken
			in.r += taken
			if in.pass > 0 {
				break
			}
		}
		if in.w-in.r < 5 || b[in.r] != 'd' {
			break
		}
		size := int64(binary.BigEndian.Uint32(b[in.r+1:]))
		if size < 4 || size-4 > maxCopyData {
			return nil, 0, sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "invalid message length")
		}
		in.r += 5
		in.pass = int(size) - 4
		n++
	}
	return b[start:in.r], n, nil
}

// awaitCopy waits until the server asks for the rows of a COPY of e, or e is over. It tells which.
func (l *ledger) awaitCopy(e *entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && !e.copying && !e.over {
		l.change.Wait()
	}
	return !l.closed && e.copying
}

// copying tells whether the server still takes rows.
func (l *ledger) copying(e *entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return e.copying && !l.closed
}

// copied counts rows on their way to the server. It tells whether the server still takes them.
func (l *ledger) copied(e *entry, rows, bytes int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.copying {
		e.rows += int64(rows)
		e.bytes += int64(bytes)
	}
	return e.copying
}

// stopCopy ends the rows; the server may ask for those of another COPY.
func (l *ledger) stopCopy(e *entry) {
	l.mu.Lock()
	e.copying = false
	l.mu.Unlock()
}

// startCopy notes that the server asks for rows, and tells whether e may.
func (l *ledger) startCopy(e *entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !e.copiesIn() {
		return false
	}
	e.copying = true
	l.change.Broadcast()
	return true
}

// copiesIn tells whether the statement of e that runs is the client's COPY FROM STDIN.
func (e *entry) copiesIn() bool {
	return e != nil && !e.own && e.verdict != nil && e.completed < len(e.verdict.Effects) &&
		e.verdict.Effects[e.completed].Kind == verdict.CopiesIn
}
