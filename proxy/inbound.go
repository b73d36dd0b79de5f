package proxy

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// inbound takes the client's messages to the server, in batches that end where the client asks for an answer: with a
// Query, a Sync or a Flush. How the network cuts what the client sends has no part in it. It returns when the session
// is over.
func (s *session) inbound() error {
	in := newInput(s.client)
	in.budget = &s.server.large
	defer func() { in.release(); _ = in.hold(0) }()
	var g grouped
	s.again.take()
	for {
		for {
			typ, body, ok, err := in.next()
			if err != nil {
				return s.last(err) // what came before it counts
			}
			if !ok {
				break
			}
			if len(s.batch.items) == 0 {
				s.again.begins(s.ledger)
				s.ledger.stage(true)
				s.batch.read = in.read
			}
			s.again.sees(typ, body)
			done, err := s.message(typ, body)
			if err != nil {
				return err
			}
			if typ == 'Q' || typ == 'S' || typ == 'H' {
				s.together()
			}
			if done {
				return s.last(nil)
			}
			g.sees(typ)
			if e := s.copies; e != nil {
				s.copies, g = nil, grouped{}
				if err := s.flush(); err != nil {
					return err
				}
				s.fill++ // it reads, too
				if err := s.copyIn(in, e); err != nil {
					return err
				}
			}
			if len(s.batch.out) >= maxBatch && !g.executes() {
				if err := s.flush(); err != nil {
					return err
				}
			}
		}
		if g.open {
			if err := in.hold(len(s.batch.out)); err != nil {
				return err
			}
		} else {
			if err := s.flush(); err != nil {
				return err
			}
			s.fill++
			_ = in.hold(0) // never fails
		}
		s.again.leave()
		err := in.fill()
		s.again.take()
		if err == io.EOF {
			return s.last(nil)
		}
		if err != nil {
			return err
		}
	}
}

// grouped is what is known of the messages since the client last asked for an answer.
type grouped struct {
	open  bool // there are some: the client sends more before it waits
	bound int  // Binds behind which there is no Execute yet
}

func (g *grouped) sees(typ byte) {
	switch typ {
	case 'P', 'D', 'C':
		g.open = true
	case 'B':
		g.open = true
		g.bound++
	case 'E':
		g.open, g.bound = true, 0
	default:
		*g = grouped{}
	}
}

// executes tells whether what was bound last is about to be executed: a batch does not end in between because it is
// large.
func (g *grouped) executes() bool { return g.bound == 1 }

// last sends what the client has sent before it left, or before it broke the protocol, and waits for the answers, as
// PostgreSQL does, which reads one message after the other. Then the session ends with err.
func (s *session) last(err error) error {
	if err := s.flush(); err != nil {
		return err
	}
	s.ledger.quiet()
	s.ledger.groups()
	return err
}

// message adds one message of the client to the batch. It tells whether it was the last one.
func (s *session) message(typ byte, body []byte) (last bool, err error) {
	s.keeping()
	switch typ {
	case 'Q', 'P', 'B', 'D', 'E':
		if s.ended && (s.sealEnds() || s.unsealing) {
			kind := describeStatement // a form that leaves statements and portals as they are
			if typ == 'Q' {
				kind, s.ended, s.unsealing = query, false, false
			}
			s.refuseMessage(kind, endAlone(), nil, nil)
			return false, nil
		}
		s.ended = false
	}
	switch typ {
	case 'Q':
		err = s.query(body)
		s.ledger.queries()
	case 'P':
		s.parse(body)
	case 'B':
		err = s.bind(body)
	case 'D':
		err = s.describe(body)
	case 'E':
		err = s.execute(body)
	case 'C':
		s.closeNamed(body)
	case 'H':
		if len(body) != 0 {
			s.invalid(describeStatement)
			break
		}
		start := len(s.batch.out)
		s.batch.out = appendMessage(s.batch.out, 'H')
		s.batch.add(start, nil)
	case 'S':
		start := len(s.batch.out)
		s.batch.out = appendSync(s.batch.out)
		s.batch.add(start, &entry{kind: syncs})
		s.group++
		s.executes, s.ended, s.unsealing = 0, false, false
	case 'F':
		s.refuseMessage(query, sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonProtocol,
			"function calls of the fast path are not for agents").
			WithHint("Call the function in a SELECT."), nil, nil)
	case 'X':
		return true, nil
	case 'd', 'c', 'f':
		// Outside COPY FROM STDIN the server ignores these.
	default:
		return false, sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "invalid frontend message type %d", typ)
	}
	return false, err
}

// refuseMessage adds the refused form of a message.
func (s *session) refuseMessage(kind message, err *sqlstate.Error, v *verdict.Verdict, t verdict.Ticket) {
	e := &entry{kind: kind, refusal: newRefusal(err), verdict: v, ticket: t}
	if t == nil && err.Reason != sqlstate.ReasonNone {
		s.server.metrics.Statement("deny", string(err.Reason), "")
	}
	start := len(s.batch.out)
	s.batch.out = e.refusal.append(s.batch.out, kind, "")
	s.batch.add(start, e)
}

// invalid refuses a message whose body does not hold what its type says.
func (s *session) invalid(kind message) { s.refuseMessage(kind, invalidMessage(), nil, nil) }

// behindAnExecute is the refusal of a Query in a pipeline. One with settings of care in front has several statements,
// which end the block that the server has made of what stands behind the Execute, as one statement does not; and
// whether it has goes by how large tables are.
func behindAnExecute() *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonProtocol,
		"a Query behind an Execute without a Sync is not for agents").
		WithHint("Send a Sync first.")
}

// majorOf is the major of a server's version, 0 where it is not known.
func majorOf(version string) (major int) {
	_, _ = fmt.Sscanf(version, "%d", &major)
	return major
}

// unusable tells whether a verdict cannot be sent: the text would end early.
func unusable(v *verdict.Verdict) bool { return v.Allowed() && strings.IndexByte(v.Text, 0) >= 0 }

func (s *session) query(body []byte) error {
	text, ok := decodeQuery(body)
	if !ok {
		s.invalid(query)
		return nil
	}
	v := s.decider.Decide(s.ctx, text, verdict.Simple)
	if unusable(v) {
		s.invalid(query)
		return nil
	}
	if v.Allowed() && beginsAgain(v.Effects) && s.sealDue() {
		renewed, err := s.renew()
		if err != nil {
			return err
		}
		if !renewed && s.sealEnds() {
			s.refuseMessage(query, endAlone(), v, nil)
			return nil
		}
	}
	if !v.Allowed() {
		s.refuseMessage(query, v.Refusal, v, s.decider.Record(v))
		return nil
	}
	if s.nests && s.executes > 0 {
		s.executes = 0
		s.refuseMessage(query, behindAnExecute(), v, nil)
		return nil
	}
	s.keeper(v)
	u, refused, err := s.prepareUses(v, noGroup)
	if err != nil {
		return err
	}
	if refused != nil {
		s.refuseMessage(query, refused, v, u.ticket)
		return nil
	}
	e := &entry{kind: query, verdict: v, runs: u.runs, ticket: s.decider.Record(v, u.runs...), prepared: u.prepared,
		declared: u.declared, unseals: u.unseals, keepers: s.ledger.keepersNow(), running: u.fetched, alone: s.executes == 0}
	fails, err := s.failsOutside(v)
	if err != nil {
		return err
	}
	again, err := s.asksForeign(e, v, u.runs...)
	if err != nil {
		return err
	}
	start := len(s.batch.out)
	text = v.Text
	if !fails {
		text, refused = e.withCare()
	}
	if refused == nil {
		refused = again
	}
	if refused != nil {
		e.refusal = s.denied(refused)
		s.batch.out = e.refusal.append(s.batch.out, query, "")
		s.batch.add(start, e)
		s.executes = 0
		return nil
	}
	s.sees(e, true)
	s.cursors(e, u)
	s.batch.out = appendQuery(s.batch.out, text)
	s.batch.add(start, e)
	s.executes = 0
	if copies(v) {
		s.copies = e
	}
	return nil
}

func (s *session) parse(body []byte) {
	name, text, types, ok := decodeParse(body)
	if !ok {
		s.invalid(describeStatement)
		return
	}
	if len(name) > maxName {
		s.refuseMessage(describeStatement, longName(), nil, nil)
		return
	}
	v := s.decider.Decide(s.ctx, text, verdict.Extended)
	if declared := parameterTypes(types); v.Allowed() && len(declared) > 0 {
		v = s.decider.Declare(s.ctx, v, declared)
	}
	if unusable(v) {
		s.invalid(describeStatement)
		return
	}
	e := &entry{kind: parse, verdict: v, name: name, upstream: verdict.UpstreamName(name)}
	st := newStatement(v, s.group)
	st.weight += len(name)
	if len(v.Forms) > 0 {
		st.types = slices.Clone(types)
		st.weight += len(types)
	}
	switch {
	case !v.Allowed():
		e.refusal, e.ticket = newRefusal(v.Refusal), s.decider.Record(v)
	case !s.ledger.mayPrepare(st):
		e.refusal = s.denied(tooManyStatements())
	default:
		e.statement = st
		s.ledger.prepare(name, st)
		s.sees(e, false)
		if v.HardenBeforeParse {
			s.care()
		}
		start := len(s.batch.out)
		s.batch.out = appendParse(s.batch.out, e.upstream, v.Text, types)
		s.batch.add(start, e)
		return
	}
	start := len(s.batch.out)
	s.batch.out = e.refusal.append(s.batch.out, parse, e.upstream)
	s.batch.add(start, e)
}

// recheck asks for a verdict again, in case policy or catalog have changed since. A refusal comes with its record.
func (s *session) recheck(v *verdict.Verdict) (now *verdict.Verdict, refused *sqlstate.Error, t verdict.Ticket) {
	now = s.decider.Recheck(s.ctx, v)
	switch {
	case !now.Allowed():
		return now, now.Refusal, s.decider.Record(now)
	case now.Text != v.Text:
		return now, planChanged(), nil
	default:
		return now, nil, nil
	}
}

func (s *session) bind(body []byte) error {
	portalName, name, rest, ok := decodeBind(body)
	if !ok {
		s.invalid(bind)
		return nil
	}
	if len(portalName) > maxName {
		s.refuseMessage(bind, longName(), nil, nil)
		return nil
	}
	st, err := s.ledger.statement(name, s.group, s.flush)
	if err != nil {
		return err
	}
	if st == nil {
		s.refuseMessage(bind, noStatement(name), nil, nil)
		return nil
	}
	v, refused, t := s.recheck(st.verdict)
	if refused != nil {
		s.refuseMessage(bind, refused, v, t)
		return nil
	}
	if !s.ledger.mayBind() {
		s.refuseMessage(bind, tooManyPortals(), nil, nil)
		return nil
	}
	st.verdict = v
	upstream := verdict.UpstreamName(name)
	if fits, ok := fit(v, rest); !ok {
		s.invalid(bind)
		return nil
	} else if !fits {
		if v = s.decider.ByRowSecurity(s.ctx, v, parameterTypes(st.types)); !v.Allowed() {
			s.refuseMessage(bind, v.Refusal, v, s.decider.Record(v))
			return nil
		}
		upstream = plainName
		s.prepareOwn(plainName, v.Text, st.types)
	}
	e := &entry{kind: bind}
	if refused, err := s.asksForeign(e, v); err != nil {
		return err
	} else if refused != nil {
		s.refuseMessage(bind, refused, v, nil)
		return nil
	}
	p := &portal{verdict: v, group: s.group, fill: s.fill}
	if v.RecordsKeys {
		p.formats = resultFormats(rest)
	}
	s.ledger.bind(portalName, p)
	if v.HasHardenedPlan() {
		s.care()
	}
	start := len(s.batch.out)
	e.verdict, e.portal, e.name, e.upstream, e.source = v, p, portalName, verdict.UpstreamName(portalName), name
	s.batch.out = appendBind(s.batch.out, e.upstream, upstream, rest)
	s.sees(e, false)
	s.batch.add(start, e)
	return nil
}

func (s *session) describe(body []byte) error {
	object, name, ok := decodeNamed(body)
	if !ok {
		s.invalid(describeStatement)
		return nil
	}
	var v *verdict.Verdict
	kind, missing := describeStatement, noStatement
	if object == 'S' {
		st, err := s.ledger.statement(name, s.group, s.flush)
		if err != nil {
			return err
		}
		if st != nil {
			v = st.verdict
		}
	} else {
		kind, missing = describePortal, noPortal
		p, err := s.portal(name)
		if err != nil {
			return err
		}
		if p != nil {
			v = p.verdict
		}
	}
	if v == nil {
		s.refuseMessage(kind, missing(name), nil, nil)
		return nil
	}
	v, refused, t := s.recheck(v)
	if refused != nil {
		s.refuseMessage(kind, refused, v, t)
		return nil
	}
	if v.HardenBeforeParse && object == 'S' { // which may be parsed again
		s.care()
	}
	start := len(s.batch.out)
	e := &entry{kind: kind, verdict: v, name: name, upstream: verdict.UpstreamName(name)}
	s.batch.out = appendDescribe(s.batch.out, object, e.upstream)
	s.sees(e, false)
	s.batch.add(start, e)
	return nil
}

func (s *session) execute(body []byte) error {
	name, rows, ok := decodeExecute(body)
	if !ok {
		s.invalid(execute)
		return nil
	}
	p, err := s.portal(name)
	if err != nil {
		return err
	}
	if p == nil || !s.ledger.usable(p) {
		refused := noPortal(name)
		if p != nil {
			refused = notRunnable(name)
		}
		s.refuseMessage(execute, refused, nil, nil)
		return nil
	}
	v, refused, t := s.recheck(p.verdict)
	if refused != nil {
		s.refuseMessage(execute, refused, v, t)
		return nil
	}
	if p.parts = p.parts || rows != 0; p.parts {
		part := *v
		part.PartialResult, v = true, &part
	}
	s.keeper(v)
	u, refused, err := s.prepareUses(v, s.group)
	if err != nil {
		return err
	}
	if refused != nil {
		s.refuseMessage(execute, refused, v, u.ticket)
		return nil
	}
	asks := &entry{kind: execute}
	if refused, err = s.asksForeign(asks, nil, u.runs...); err != nil { // its own Bind has asked
		return err
	} else if refused != nil {
		s.refuseMessage(execute, refused, v, nil)
		return nil
	}
	if which, any := careOf(v, u.runs); any && (which[0] && v.Effects[0].HardenedPlan != verdict.HardenedAtBind) {
		s.care()
	}
	start := len(s.batch.out)
	s.batch.out = appendExecute(s.batch.out, verdict.UpstreamName(name), rows)
	e := &entry{
		kind: execute, verdict: v, runs: u.runs, ticket: s.decider.Record(v,
			u.runs...), name: name, upstream: verdict.UpstreamName(name),
		prepared: u.prepared, declared: u.declared, unseals: u.unseals, keepers: s.ledger.keepersNow(),
		running: u.fetched, alone: s.executes == 0, formats: p.formats, foreign: asks.foreign,
	}
	if len(v.Effects) == 0 || v.Effects[0].Kind != verdict.Fetches {
		e.running = []*portal{p}
	}
	s.sees(e, true)
	s.cursors(e, u)
	s.resumed(e, p)
	if rows == 0 && p.run == nil && p.fill == s.fill {
		p.run = e
	}
	s.batch.add(start, e)
	if copies(v) {
		s.copies = e
		// The answer must come, whatever it is.
		start = len(s.batch.out)
		s.batch.out = appendMessage(s.batch.out, 'H')
		s.batch.add(start, nil)
	}
	s.executes++
	s.unsealing = u.unseals
	s.ended = u.unseals || len(v.Effects) > 0 && v.Effects[len(v.Effects)-1].Kind == verdict.EndsTx
	return nil
}

func (s *session) closeNamed(body []byte) {
	object, name, ok := decodeNamed(body)
	if !ok {
		s.invalid(describeStatement)
		return
	}
	kind := closeStatement
	if object == 'P' {
		kind = closePortal
	}
	start := len(s.batch.out)
	s.batch.out = appendClose(s.batch.out, object, verdict.UpstreamName(name))
	s.batch.add(start, &entry{kind: kind, name: name, upstream: verdict.UpstreamName(name)})
}

// input frames the client's bytes. Its buffer comes from a pool when bytes have arrived and goes back when all of them
// are used, and grows only as far as bytes have arrived, whatever a length field says.
type input struct {
	source
	buf   *[]byte
	big   []byte // in place of buf while a message does not fit
	r, w  int
	waste int // bytes of a message still to be thrown away
	pass  int // bytes of a CopyData still to be passed on
	read  time.Time

	budget  *atomic.Int64 // bytes of all clients' large buffers; nil: not counted
	counted int           // of them
	held    int           // of what waits for the rest of its group; counted as well
}

// maxLarge bounds the memory of all large messages that are being read. A buffer is large from largeBuffer on, so small
// statements are not held up by it.
const (
	maxLarge    = 512 << 20
	largeBuffer = 4 << 20
)

// newInput frames what conn sends.
func newInput(conn io.Reader) *input { return &input{source: newSource(conn)} }

// count counts the buffer as one of this size, if there is room for it.
func (in *input) count(size int) error {
	if in.budget == nil || size < largeBuffer && in.counted == 0 {
		return nil
	}
	more := int64(size - in.counted)
	if in.budget.Add(more) > maxLarge && more > 0 {
		in.budget.Add(-more)
		return manyLarge()
	}
	in.counted = size
	return nil
}

// hold counts what the client has sent and waits here for the rest, where it is large, as large buffers are counted.
func (in *input) hold(size int) error {
	if size < maxBatch {
		size = 0
	}
	if in.budget == nil || size == in.held {
		return nil
	}
	more := int64(size - in.held)
	if in.budget.Add(more) > maxLarge && more > 0 {
		in.budget.Add(-more)
		return manyLarge()
	}
	in.held = size
	return nil
}

func manyLarge() *sqlstate.Error {
	return sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds, "too many large messages are being received").
		WithHint("Try again in a moment, or send smaller parameters.")
}

func (in *input) bytes() []byte {
	if in.big != nil {
		return in.big
	}
	if in.buf == nil {
		return nil
	}
	return *in.buf
}

// next returns the next whole message; its body is valid until the next call. ok is false when more bytes are needed.
func (in *input) next() (typ byte, body []byte, ok bool, err error) {
	b := in.bytes()[in.r:in.w]
	if in.waste > 0 {
		n := min(in.waste, len(b))
		in.waste -= n
		in.r += n
		b = b[n:]
	}
	if len(b) < 5 {
		return 0, nil, false, nil
	}
	typ = b[0]
	size := int64(binary.BigEndian.Uint32(b[1:5]))
	limit, waste := bound(typ)
	switch {
	case limit < 0:
		return 0, nil, false, sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol,
			"invalid frontend message type %d", typ)
	case size < 4 || size > 1<<31-1:
		return 0, nil, false, sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "invalid message length")
	case size-4 > int64(limit):
		if typ == 'Q' || typ == 'P' || typ == 'B' {
			return 0, nil, false, sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds,
				"message of %d bytes is too long", size).
				WithHint("A statement may have 1 MiB of text and 64 MiB of parameters.")
		}
		return 0, nil, false, sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "invalid message length")
	case waste:
		in.r += 5
		in.waste = int(size) - 4
		n := min(in.waste, in.w-in.r)
		in.waste -= n
		in.r += n
		return typ, nil, true, nil
	}
	if int64(len(b)) < size+1 {
		return 0, nil, false, nil
	}
	in.r += int(size) + 1
	return typ, b[5 : size+1], true, nil
}

// fill reads more of what the client sends.
func (in *input) fill() error {
	if in.r == in.w {
		in.release()
		in.r, in.w = 0, 0
		buf, n, err := in.take()
		if err != nil {
			return err
		}
		in.buf, in.w = buf, n
		in.read = time.Now()
		return nil
	}
	b := in.bytes()
	if in.r > 0 {
		in.w = copy(b, b[in.r:in.w])
		in.r = 0
	}
	if in.w == len(b) {
		if err := in.count(2 * len(b)); err != nil {
			return err
		}
		grown := make([]byte, 2*len(b))
		copy(grown, b)
		if in.buf != nil {
			putBuffer(in.buf)
			in.buf = nil
		}
		in.big, b = grown, grown
	}
	n, err := in.peer.Read(b[in.w:])
	if n > 0 {
		in.w += n
		in.read = time.Now()
		return nil
	}
	return err
}

// release gives the buffer back.
func (in *input) release() {
	if in.buf != nil {
		putBuffer(in.buf)
		in.buf = nil
	}
	in.big = nil
	_ = in.count(0) // never fails
}
