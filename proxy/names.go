package proxy

import "github.com/pgconsent/pgconsent/internal/enforce/verdict"

// The bounds of what a session may keep prepared.
const (
	maxStatements     = 10_000
	maxStatementBytes = 64 << 20
	maxPortals        = 10_000
	maxName           = 1 << 10 // bytes; PostgreSQL compares 63 of them
)

// statement is a prepared statement, from its Parse or PREPARE on.
type statement struct {
	verdict *verdict.Verdict // of the inbound goroutine alone
	weight  int              // what it counts against maxStatementBytes
	group   uint64           // of its Parse, or of the Execute of its PREPARE
	types   []byte           // of its parameters, as its Parse declared them, where its text counts on their values
}

// noGroup is the group of what a Query does: its failure makes the server skip nothing, so it cannot be counted on before
// it is answered.
const noGroup = ^uint64(0)

func newStatement(v *verdict.Verdict, group uint64) *statement {
	return &statement{verdict: v, weight: 256 + len(v.Original) + len(v.Text), group: group}
}

// portal is a bound portal, from its Bind or DECLARE on.
type portal struct {
	verdict *verdict.Verdict
	group   uint64  // of its Bind, or of the Execute of its DECLARE
	formats []int16 // of its results, where keys of rows are recorded
	hold    bool    // it outlives its transaction
	binary  bool    // a Query fetches from it in binary
	over    bool    // its transaction has ended
	broken  bool    // an error met it while it ran
	dropped bool    // a Query behind its Bind has taken it away

	// Of the inbound goroutine alone.
	fill  uint64 // of the client's input that opened it
	run   *entry // runs it to its end in the same input
	since *since // from when it sees; nil where it needs not be known
	parts bool   // its result is asked for in parts
}

// names are what the names of a session stand for, guarded by the ledger's lock.
//
// What is committed is certain: the server holds that statement under that name, or none. What is pending may still
// fail or be skipped. Within its own group it can be counted on all the same, since whatever makes it fail makes the
// server skip the rest of the group; from another group one has to wait for the answer.
type names struct {
	statements map[string]*statement
	portals    map[string]*portal
	parsing    map[string]*statement // the last Parse in flight
	binding    map[string]*portal    // the last Bind in flight
	kept       int                   // bytes of text in statements and parsing
}

func (n *names) init() {
	n.statements, n.portals = map[string]*statement{}, map[string]*portal{}
	n.parsing, n.binding = map[string]*statement{}, map[string]*portal{}
}

// mayPrepare tells whether one more statement of this weight fits.
func (l *ledger) mayPrepare(s *statement) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.statements)+len(l.parsing) < maxStatements && l.kept+s.weight <= maxStatementBytes
}

// mayBind tells whether one more portal fits.
func (l *ledger) mayBind() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.portals)+len(l.binding) < maxPortals
}

// prepare notes a Parse that is about to be sent.
func (l *ledger) prepare(name string, s *statement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept += s.weight
	l.parsing[name] = s
}

// bind notes a Bind that is about to be sent.
func (l *ledger) bind(name string, p *portal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.binding[name] = p
}

// queries notes that a Query is about to be sent: the portal without a name goes with it. One that fails in a
// transaction leaves its own in the place, which PostgreSQL may not be asked to run: its statements are gone from
// memory, and the server with them.
func (l *ledger) queries() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, portals := range []map[string]*portal{l.portals, l.binding} {
		if p := portals[""]; p != nil {
			p.dropped = true
			delete(portals, "")
		}
	}
}

// statement finds what name stands for, for a message of this group. It is nil if there is none. Where that is still
// open, flush is called and the answer awaited.
func (l *ledger) statement(name string, group uint64, flush func() error) (*statement, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		s := l.parsing[name]
		if s == nil {
			return l.statements[name], nil
		}
		if s.group == group {
			return s, nil
		}
		if err := l.await(flush); err != nil {
			return nil, err
		}
		flush = nil
	}
}

// portal is as statement, for portals.
func (l *ledger) portal(name string, group uint64, flush func() error) (*portal, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		p := l.binding[name]
		if p == nil {
			return l.portals[name], nil
		}
		if p.group == group {
			return p, nil
		}
		if err := l.await(flush); err != nil {
			return nil, err
		}
		flush = nil
	}
}

// portal finds what name stands for. A portal of an earlier group may go with that: where this is still open, it is
// awaited.
func (s *session) portal(name string) (*portal, error) {
	p, err := s.ledger.portal(name, s.group, s.flush)
	if p == nil || err != nil || p.group == s.group || !s.batch.ending() && !s.ledger.between() {
		return p, err
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	s.ledger.groups()
	return s.ledger.portal(name, s.group, s.flush)
}

// await waits for any answer, after flush if it is given; the caller holds the lock.
func (l *ledger) await(flush func() error) error {
	if flush != nil {
		l.mu.Unlock()
		err := flush()
		l.mu.Lock()
		return err
	}
	if l.closed {
		return errGone
	}
	l.change.Wait()
	return nil
}

// settled takes e's statements or portal off what is pending.
func (n *names) settled(e *entry) {
	for i, s := range e.prepared {
		if s != nil {
			e.prepared[i] = nil
			n.kept -= s.weight
			if name := e.verdict.Effects[i].Name; n.parsing[name] == s {
				delete(n.parsing, name)
			}
		}
	}
	for i, p := range e.declared {
		if p != nil {
			e.declared[i] = nil
			if name := e.verdict.Effects[i].Name; n.binding[name] == p {
				delete(n.binding, name)
			}
		}
	}
	if e.statement != nil && n.parsing[e.name] == e.statement {
		delete(n.parsing, e.name)
	}
	if e.portal != nil && n.binding[e.name] == e.portal {
		delete(n.binding, e.name)
	}
}

func (n *names) forget(name string) {
	if s := n.statements[name]; s != nil {
		n.kept -= s.weight
		delete(n.statements, name)
	}
}

// succeeded applies what the server has confirmed.
func (n *names) succeeded(e *entry) {
	n.settled(e)
	switch {
	case e.own:
	case e.statement != nil:
		n.forget(e.name)
		n.statements[e.name] = e.statement
	case e.portal != nil && e.portal.dropped:
	case e.portal != nil:
		n.portals[e.name] = e.portal
	case e.kind == closeStatement:
		n.forget(e.name)
	case e.kind == closePortal:
		delete(n.portals, e.name)
	}
}

// prepared applies PREPARE, the i-th statement of e.
func (n *names) prepared(e *entry, i int) {
	if i >= len(e.prepared) || e.prepared[i] == nil {
		return
	}
	name, s := e.verdict.Effects[i].Name, e.prepared[i]
	e.prepared[i] = nil
	if n.parsing[name] == s {
		delete(n.parsing, name)
	}
	n.forget(name)
	n.statements[name] = s
}

// declared applies DECLARE, the i-th statement of e.
func (n *names) declared(e *entry, i int) {
	if i >= len(e.declared) || e.declared[i] == nil {
		return
	}
	name, p := e.verdict.Effects[i].Name, e.declared[i]
	e.declared[i] = nil
	if n.binding[name] == p {
		delete(n.binding, name)
	}
	n.portals[name] = p
}

// portalClosed applies CLOSE of a name or, if it is empty, of all.
func (n *names) portalClosed(name string) {
	if name == "" {
		n.portalsGone(true)
		return
	}
	delete(n.portals, name)
}

// failed applies an error: a Parse without a name has dropped the statement without a name.
func (n *names) failed(e *entry) {
	n.dropped(e)
	if e.kind == parse && e.name == "" {
		n.forget("")
	}
}

// dropped applies that the server did not look at e.
func (n *names) dropped(e *entry) {
	n.settled(e)
	if e.statement != nil {
		n.kept -= e.statement.weight
	}
}

// queried applies a Query: it drops the statement and the portal without a name.
func (n *names) queried() {
	n.forget("")
	delete(n.portals, "")
}

// deallocated applies DEALLOCATE of a name or, if it is empty, of all. The statement without a name has none in SQL and
// stays.
func (n *names) deallocated(name string) {
	if name != "" {
		n.forget(name)
		return
	}
	for name := range n.statements {
		if name != "" {
			n.forget(name)
		}
	}
}

// portalsGone applies the end of a transaction. Cursors WITH HOLD outlive it, unless all go; those of a transaction
// that is rolled back do not, which the server says when they are used.
func (n *names) portalsGone(all bool) {
	for name, p := range n.portals {
		p.over = true
		if all || !p.hold {
			delete(n.portals, name)
		}
	}
}

// heldOpen tells whether a cursor WITH HOLD is there whose transaction has not ended.
func (l *ledger) heldOpen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, portals := range []map[string]*portal{l.portals, l.binding} {
		for _, p := range portals {
			if p.hold && !p.over {
				return true
			}
		}
	}
	return false
}
