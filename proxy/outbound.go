package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// maxAnswer is the longest message that PostgreSQL sends.
const maxAnswer = 1 << 30

// outbound relays the server's answers: it looks at headers, and passes rows on as they arrive, one write for each read.
// Only messages that say something about the session are read whole; errors and notices are rewritten. What it returns
// is the reason for the session's end, nil if the client has been told.
func (s *session) outbound() *sqlstate.Error {
	o := answers{session: s, source: newSource(s.upstream), to: newSink(s.client)}
	defer o.release()
	defer func() {
		if o.repeating {
			o.again.leave()
		}
	}()
	for {
		if err := o.fill(); err != nil {
			if o.farewell {
				return nil
			}
			if err == io.EOF {
				err = nil
			}
			return lost(err)
		}
		err := o.scan()
		for _, e := range o.finished {
			if e.ticket != nil {
				e.ticket.Returned(e.rows)
			}
		}
		writeErr := o.flush()
		o.settle()
		if writeErr != nil {
			return nil // the client is gone
		}
		if err != nil {
			return err
		}
		switch {
		case o.late && o.rest == 0:
			s.stop(sealExpired())
			return nil
		case o.drained:
			return errShutdown()
		}
	}
}

// answers is the state of outbound.
type answers struct {
	*session
	source
	to   sink // the client
	buf  *[]byte
	r, w int // what is to be scanned is buf[r:w]

	head     *entry // what the answers belong to; nil: look
	rest     int    // bytes of the message in progress still to come
	columns  int    // of a RowDescription in progress still to come
	swallow  bool   // which are not passed on
	farewell bool   // the server has told the client why it ends the session
	drained  bool
	late     bool          // what the server does next begins after the seal has expired
	sealCode sqlstate.Code // of the server's error to a seal

	described map[string][]byte // the columns of prepared statements, by their texts, where keys of rows are recorded

	muted     *entry     // a limit has ended its result: the client gets nothing more before ReadyForQuery
	undone    bool       // the server was given what fails in its place
	end       []byte     // of the result in progress: the error, not sent yet
	cancelled chan error // of the cancel request; nil: none is on its way

	passed    bool   // what is to be passed on has more than the answers in it
	repeating bool   // the answer in progress is taken back
	told      []byte // the error that it would be

	from     int    // bytes of buf from here to r are to be passed on as they are
	out      []byte // what goes before them
	partial  bool   // the client has a message in part
	finished []*entry
	added    []time.Duration // the request's part of what is finished with this chunk
	read     time.Time
}

// fill reads the next chunk behind what is left of the last one.
func (o *answers) fill() error {
	if o.r == o.w {
		o.release()
		buf, n, err := o.take()
		if err != nil {
			return err
		}
		o.buf, o.r, o.w = buf, 0, n
	} else {
		b := *o.buf
		o.w = copy(b, b[o.r:o.w])
		o.r = 0
		n, err := o.peer.Read(b[o.w:]) // scan leaves room
		if n == 0 {
			if err == nil {
				err = io.ErrNoProgress
			}
			return err
		}
		o.w += n
	}
	o.from = 0
	o.read = time.Now()
	return nil
}

func (o *answers) release() {
	if o.buf != nil {
		putBuffer(o.buf)
		o.buf = nil
	}
	o.r, o.w, o.from = 0, 0, 0
}

// cut moves what is to be passed on before r into out, and goes on after n more bytes.
func (o *answers) cut(n int) {
	o.out = append(o.out, (*o.buf)[o.from:o.r]...)
	o.r += n
	o.from = o.r
}

// flush writes what is to be passed on, with one write.
func (o *answers) flush() error {
	b := (*o.buf)[o.from:o.r]
	o.from = o.r
	if len(o.out) > 0 {
		o.out = append(o.out, b...)
		b = o.out
	}
	var err error
	if len(b) > 0 {
		o.again.written.Add(1)
		err = o.to.write(b)
	}
	o.passed = false
	if cap(o.out) > keptBuffer {
		o.out = nil
	}
	o.out = o.out[:0]
	if partial := err != nil || o.rest > 0 && !o.swallow; partial != o.partial {
		o.partial = partial
		o.setBroken(partial)
	}
	return err
}

// settle reports what is finished, now that the client has it, or is gone.
func (o *answers) settle() {
	if len(o.added) > 0 {
		here := time.Since(o.read)
		for _, requested := range o.added {
			o.server.metrics.Added(requested + here)
		}
		o.added = o.added[:0]
	}
	var rows, bytes int64
	for _, e := range o.finished {
		if !e.own {
			rows, bytes = rows+e.rows, bytes+e.bytes
		}
		e.record()
	}
	if bytes > 0 {
		o.server.metrics.Rows(rows, bytes)
	}
	clear(o.finished)
	o.finished = o.finished[:0]
}

var errOutOfTurn = errors.New("an answer of the server belongs to no message")

// desync is the end of a session in which the two sides no longer agree on what is answered.
func desync(cause error) *sqlstate.Error {
	return sqlstate.New(sqlstate.InternalError, sqlstate.ReasonInternal, "internal error in pgconsent").
		WithHint("The operator of pgconsent finds the cause in its log.").WithCause(cause)
}

// scan goes through the chunk. It returns the reason to end the session.
func (o *answers) scan() *sqlstate.Error {
	b := *o.buf
	for o.r < o.w && (!o.late || o.rest > 0) {
		if o.columns > 0 && !o.swallow {
			if more, err := o.column(); more || err != nil {
				return err
			}
			continue
		}
		if o.rest > 0 {
			n := min(o.rest, o.w-o.r)
			o.rest -= n
			if o.swallow {
				o.cut(n)
			} else {
				o.r += n
			}
			continue
		}
		o.swallow = false
		have := o.w - o.r
		if have < 5 {
			return nil
		}
		typ := b[o.r]
		size := int64(binary.BigEndian.Uint32(b[o.r+1:]))
		if size < 4 || size > maxAnswer {
			return desync(errors.New("invalid length of a server's message"))
		}
		whole := int(size) + 1
		special := false
		switch typ {
		case 'E', 'N', 'S', 'Z', 'A':
			special = true
		case 'C':
			e := o.current()
			special = e != nil && e.steps != nil
		}
		switch {
		case special:
			n := min(whole, len(b))
			if have < n {
				return nil // more is to come, and it fits
			}
			if err := o.special(typ, b[o.r+5:o.r+n], whole-n); err != nil {
				return err
			}
		default:
			switch {
			case typ != 'T':
			case whole < described:
				return desync(errDescription)
			case have < described:
				return nil // more is to come, and it fits
			}
			wanted := o.wanted(typ)
			of, body := o.head, []byte(nil)
			if wanted && whole <= len(b) {
				if have < whole {
					return nil // more is to come, and it fits
				}
				body = b[o.r+5 : o.r+whole]
			}
			if err := o.result(typ, int(size)-4); err != nil {
				return err
			}
			if wanted && !o.swallow {
				o.look(of, typ, body)
			}
			n := min(whole, have)
			if o.columns = 0; typ == 'T' && !o.swallow {
				n = described
				if o.columns = int(binary.BigEndian.Uint16(b[o.r+5:])); o.columns == 0 && whole > n {
					return desync(errDescription)
				}
			}
			o.rest = whole - n
			if o.swallow {
				o.cut(n)
				o.out, o.end = append(o.out, o.end...), nil
			} else {
				o.r += n
			}
		}
	}
	return nil
}

// current is the entry that the answers belong to now.
func (o *answers) current() *entry {
	if o.head == nil {
		o.head = o.ledger.head()
	}
	return o.head
}

// done ends the current entry with success.
func (o *answers) done() {
	o.finished = append(o.finished, o.head)
	o.ledger.settle()
	o.head = nil
}

// result takes a message that belongs to the result of what was sent, by its header alone.
func (o *answers) result(typ byte, length int) *sqlstate.Error {
	e := o.current()
	if e == nil || e.refusal != nil {
		return desync(errOutOfTurn)
	}
	o.swallow = e.own || o.muted != nil
	running := e.kind == query || e.kind == execute
	if e.leading > 0 && e.steps == nil && typ == 'C' {
		e.leading--
		o.swallow = true
		return nil
	}
	if e.steps != nil {
		switch typ {
		case '1', '2', '3', 'n': // what a Query has no answers for
			o.swallow = true
			return nil
		}
	}
	ok := true
	switch typ {
	case 'D', 'd': // DataRow, CopyData
		ok = running
		if ok && o.muted == nil {
			if by, yes := e.exceeds(length); yes {
				o.mute(e, by)
			} else {
				e.show(length)
			}
		}
	case 'H', 'c': // CopyOutResponse, CopyDone
		ok = running
	case 'G': // CopyInResponse
		// The client of a result that was ended does not wait for it, and the server waits for rows.
		ok = running && o.muted == nil && o.ledger.startCopy(e)
	case 'C': // CommandComplete
		ok = running
		if ok {
			return o.completed(e)
		}
	case 'I': // EmptyQueryResponse
		ok = running
		if e.kind == execute {
			o.done()
		} else if e.steps != nil {
			return o.send(e.steps.step(len(e.steps.parts)))
		}
	case 's': // PortalSuspended
		ok = e.kind == execute
		if ok {
			return o.executed(e)
		}
	case 'T', 'n': // RowDescription, NoData
		switch {
		case typ == 'T' && e.kind == query:
		case e.kind == describePortal, e.kind == describeStatement && e.described:
			o.done()
		default:
			ok = false
		}
	case 't': // ParameterDescription
		ok = e.kind == describeStatement && !e.described
		e.described = true
	case '1':
		ok = e.kind == parse
		if ok {
			o.done()
		}
	case '2':
		ok = e.kind == bind
		if ok {
			o.done()
		}
	case '3':
		ok = e.kind == closeStatement || e.kind == closePortal
		if ok {
			o.done()
		}
	default:
		// CopyBoth among them: no agent may start it.
		ok = false
	}
	if !ok {
		return desync(errOutOfTurn)
	}
	return nil
}

// completed applies the effect of a statement.
func (o *answers) completed(e *entry) *sqlstate.Error {
	if e.verdict != nil && e.completed < len(e.verdict.Effects) {
		o.late = o.ledger.completed(e, e.completed)
	}
	e.completed++
	if e.kind == execute {
		return o.executed(e)
	}
	e.leads()
	return nil
}

// executed ends an Execute that the server has completed. Where a limit has ended its result, and nothing was sent
// behind it, the server is to fail in its place.
func (o *answers) executed(e *entry) *sqlstate.Error {
	if o.muted != nil && !e.synced {
		return o.undo(execute, false)
	}
	o.done()
	return nil
}

// special takes a message that is read whole. more is how many of its bytes did not fit into the buffer; they are thrown
// away.
func (o *answers) special(typ byte, body []byte, more int) *sqlstate.Error {
	n := 5 + len(body)
	var put []byte // in place of the message
	pass := false
	switch typ {
	case 'E':
		var err *sqlstate.Error
		if put, err = o.failed(body); err != nil {
			return err
		}
	case 'N':
		put = o.notice(body)
		o.passed = o.passed || len(put) > 0
	case 'C':
		e := o.current()
		if more > 0 {
			return desync(errors.New("CommandComplete is too long"))
		}
		var err *sqlstate.Error
		if put, err = o.stepped(e, bytes.Clone((*o.buf)[o.r:o.r+n])); err != nil {
			return err
		}
	case 'A':
		// Notifications tell what other sessions do.
	case 'S':
		name, _, ok := cString(body)
		pass = ok && more == 0 && isReported(name)
		o.passed = o.passed || pass
	case 'Z':
		if len(body) != 1 || more != 0 || bytes.IndexByte([]byte("ITE"), body[0]) < 0 {
			return desync(errors.New("invalid ReadyForQuery"))
		}
		e := o.current()
		var err *sqlstate.Error
		if pass, err = o.ready(body[0]); err != nil {
			return err
		}
		if pass && e.steps != nil && e.code == "" {
			o.cut(0)
			o.out = append(o.out, e.steps.last...)
		}
		if pass && o.noticer != nil {
			if text := o.noticer.Notice(); text != "" {
				o.cut(0)
				o.out = appendNotice(o.out, text)
			}
		}
	}
	if pass {
		o.r += n
		return nil
	}
	o.cut(n)
	o.out = append(o.out, put...)
	o.rest, o.swallow = more, true
	return nil
}

// ready takes a ReadyForQuery and tells whether it is the client's.
func (o *answers) ready(status byte) (pass bool, err *sqlstate.Error) {
	e := o.current()
	if e == nil || e.kind != query && e.kind != syncs || e.refusal != nil && e.code == "" {
		return false, desync(errOutOfTurn)
	}
	if o.muted != nil {
		if err := o.settleCancel(); err != nil {
			return false, err
		}
	}
	if between, err := o.between(e, status); between || err != nil {
		return false, err
	}
	if o.muted != nil {
		if status == 'T' { // an error would have failed the transaction
			return false, o.undo(e.kind, e.kind == syncs)
		}
		o.unmute()
	}
	o.head = nil
	o.drained, o.late = o.ledger.ready(status)
	if e.own {
		e.code, o.sealCode = o.sealCode, ""
		close(e.done)
		return false, nil
	}
	o.finished = append(o.finished, e)
	if o.repeating {
		o.repeating = false
		if status == 'I' || status == 'E' && (o.again.begun || o.again.opening != nil) {
			o.outgoing.Go(o.repeat)
			return false, nil
		}
		o.cut(0)
		o.out = append(o.out, o.told...)
		o.ledger.stage(false)
		o.again.leave()
	}
	o.added = append(o.added, e.requested)
	return true, nil
}

// failed takes an ErrorResponse and returns what the client gets.
func (o *answers) failed(body []byte) ([]byte, *sqlstate.Error) {
	f := parseFields(body)
	e := o.current()
	if e != nil {
		e.asQuery(&f)
	}
	if e == nil {
		// Not an answer: the server ends the session.
		if !f.fatal() {
			return nil, desync(errOutOfTurn)
		}
		o.farewell = true
		b, _ := f.sanitised(nil)
		return b, nil
	}
	o.farewell = o.farewell || f.fatal()
	if e.own && !e.forNext {
		o.sealCode = f.code()
		o.head = nil
		o.ledger.fail(o.sealCode)
		if f.fatal() {
			b, _ := f.sanitised(nil)
			return b, nil
		}
		return nil, nil
	}
	if f.message == outOfTime && f.code() == sqlstate.SerializationFailure {
		o.ledger.moved()
	}
	var put []byte
	var code sqlstate.Code
	if e.refusal != nil && e.refusal.matches(f.message) {
		put, code = encodeError(nil, "ERROR", e.refusal.err), e.refusal.err.Code
	} else {
		put, code = f.sanitised(e)
	}
	if o.repeats(e, &f) {
		o.retract()
		o.repeating, o.told, put = true, put, nil
	}
	if o.muted != nil && !f.fatal() { // the client has had its error
		put, code = nil, o.muted.limited
		if err := o.settleCancel(); err != nil {
			return nil, err
		}
	}
	if e.steps != nil && !f.fatal() {
		if err := o.send(e.steps.failed()); err != nil {
			return nil, err
		}
	}
	o.head = nil
	o.finished = append(o.finished, o.ledger.fail(code)...)
	return put, nil
}

// notice takes a NoticeResponse and returns what the client gets.
func (o *answers) notice(body []byte) []byte {
	e := o.current()
	if e != nil && (e.own || e.leading > 0) || o.muted != nil {
		return nil
	}
	f := parseFields(body)
	if e != nil && e.steps != nil && e.steps.block && !e.steps.begun && f.code() == "25001" {
		e.steps.inside = true
		return nil
	}
	return f.notice()
}
