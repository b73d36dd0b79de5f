package messages

import (
	"math/rand/v2"
	"strings"
)

// maker makes sequences that make sense often enough, and fail otherwise.
type maker struct {
	*rand.Rand
	out     sequence
	params  map[string][]string // of statements, as far as they are known
	changes bool                // the sequence may withdraw a consent
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func newSequence(seed uint64, n int) sequence {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 23)), params: map[string][]string{}}
	m.changes = m.IntN(3) == 0
	for end := 4 + m.IntN(n); len(m.out) < end; {
		m.next()
	}
	if m.IntN(25) == 0 {
		at := m.IntN(len(m.out) + 1)
		m.out = append(m.out[:at:at], append(sequence{{Kind: terminate}}, m.out[at:]...)...)
	}
	return m.out
}

func (m *maker) add(more ...message) { m.out = append(m.out, more...) }

func (m *maker) word() word {
	lists := [][]word{reads, reads, reads, writes, writes, transactions, transactions, transactions, settings,
		cursors, cursors, prepared, copies, copiesIn, forbidden, forbidden}
	return pick(m.Rand, pick(m.Rand, lists...)...)
}

func (m *maker) statement() string {
	return pick(m.Rand, "", "", "", "a", "b", strings.Repeat("l", 61))
}
func (m *maker) portal() string { return pick(m.Rand, "", "", "", "p", "q", "k") }

func (m *maker) rowLimit() uint32 { return pick[uint32](m.Rand, 0, 0, 0, 1, 2, 5) }

// next adds what belongs together.
func (m *maker) next() {
	switch n := m.IntN(60); {
	case n < 12:
		w := m.word()
		m.add(message{Kind: query, Text: w.text, Plain: w.plain})
		if strings.Contains(w.text, "FROM STDIN") {
			m.data()
		}
	case n < 15:
		w := pick(m.Rand, several...)
		m.add(message{Kind: query, Text: w.text, Plain: w.plain})
		for range strings.Count(w.text, "FROM STDIN") {
			m.data()
		}
	case n < 30:
		m.whole()
	case n < 31:
		m.parse(m.statement(), m.word())
	case n < 32: // what EXECUTE may run
		m.parse(pick(m.Rand, "x", "y"), pick(m.Rand, reads...))
	case n < 35:
		m.bind(m.portal(), m.statement())
	case n < 38:
		m.add(message{Kind: execute, Portal: m.portal(), Rows: m.rowLimit()})
	case n < 40:
		m.add(message{Kind: describe, Object: "S", Name: m.statement()})
	case n < 42:
		m.add(message{Kind: describe, Object: "P", Name: m.portal()})
	case n < 43:
		m.add(message{Kind: closing, Object: "S", Name: m.statement()})
	case n < 44:
		m.add(message{Kind: closing, Object: "P", Name: m.portal()})
	case n < 45:
		m.add(message{Kind: flush})
	case n < 50:
		m.add(message{Kind: syncs})
		if m.IntN(6) == 0 {
			m.add(message{Kind: syncs})
		}
	case n < 51:
		m.data()
	case n < 52:
		m.add(message{Kind: call})
	case n < 55:
		m.add(message{Kind: pause})
	case n < 57:
		m.add(message{Kind: wait})
	case n < 58:
		switch m.IntN(6) {
		case 0:
			m.add(message{Kind: long})
		case 1:
			m.add(message{Kind: cancel})
		default:
			m.suspended()
		}
	default:
		if m.changes {
			m.changes = false
			portal := m.suspended()
			m.add(message{Kind: withdraw})
			if m.IntN(2) == 0 { // as an agent reads on
				m.add(message{Kind: execute, Portal: portal, Rows: m.rowLimit()}, message{Kind: query, Text: "FETCH ALL FROM k"})
			}
			for range 1 + m.IntN(3) {
				m.add(message{Kind: execute, Portal: m.portal(), Rows: m.rowLimit()})
				m.add(pick(m.Rand, message{Kind: syncs}, message{Kind: query, Text: "FETCH 2 FROM k"},
					message{Kind: query, Text: "SELECT note FROM deed ORDER BY id"}))
			}
		}
	}
}

func (m *maker) parse(name string, w word) {
	p := message{Kind: parse, Name: name, Text: w.text, Plain: w.plain}
	if m.IntN(3) == 0 {
		for _, kind := range w.params {
			p.Types = append(p.Types, map[string]uint32{"int": 23, "text": 25}[kind])
		}
		if m.IntN(8) == 0 {
			p.Types = append(p.Types, pick[uint32](m.Rand, 0, 25, 600))
		}
	}
	m.params[name] = w.params
	m.add(p)
}

func (m *maker) bind(portal, name string) {
	b := message{Kind: bind, Portal: portal, Name: name}
	binary := m.IntN(4) == 0
	for _, kind := range m.params[name] {
		b.Values = append(b.Values, value(kind, m.IntN(100), binary))
	}
	if binary && len(b.Values) > 0 {
		b.Formats = []int16{1}
	}
	b.Results = pick(m.Rand, nil, nil, nil, []int16{0}, []int16{1})
	switch m.IntN(24) { // something is wrong
	case 0:
		b.Values = append(b.Values, []byte("one more"))
	case 1:
		b.Values = b.Values[:len(b.Values)/2]
	case 2:
		b.Formats = []int16{0, 1, 0}
	case 3:
		b.Formats = []int16{7}
	case 4:
		b.Results = []int16{0, 1, 0, 1}
	case 5:
		b.Results = []int16{9}
	case 6:
		for i := range b.Values {
			b.Values[i] = pick(m.Rand, []byte("x"), []byte{}, nil, []byte("\xff\xfe"), []byte("99999999999"))
		}
	}
	m.add(b)
}

// whole is a statement from Parse to Execute, with one thing or another left out.
func (m *maker) whole() {
	w := m.word()
	if m.IntN(20) == 0 {
		w = word{text: pick(m.Rand, several...).text}
	}
	name, portal := m.statement(), m.portal()
	seldom := func() bool { return m.IntN(15) == 0 }
	if !seldom() {
		m.parse(name, w)
	}
	if m.IntN(4) == 0 {
		m.add(message{Kind: describe, Object: "S", Name: name})
	}
	if !seldom() {
		m.bind(portal, name)
	}
	if m.IntN(3) == 0 {
		m.add(message{Kind: describe, Object: "P", Name: portal})
	}
	if !seldom() {
		m.add(message{Kind: execute, Portal: portal, Rows: m.rowLimit()})
	}
	if strings.Contains(w.text, "FROM STDIN") {
		m.data()
	}
	if m.IntN(2) == 0 {
		m.add(message{Kind: syncs})
	}
}

// suspended leaves a portal or a cursor open in a transaction, and tells which.
func (m *maker) suspended() string {
	m.add(message{Kind: syncs}, message{Kind: query, Text: pick(m.Rand, "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", "ROLLBACK; BEGIN")})
	if m.IntN(3) == 0 {
		m.add(message{Kind: query, Text: pick(m.Rand, "DECLARE k CURSOR FOR SELECT name FROM person ORDER BY id",
			"DECLARE k CURSOR WITH HOLD FOR SELECT note FROM deed ORDER BY id")})
		m.add(message{Kind: query, Text: "FETCH 1 FROM k"})
		return "k"
	}
	portal := pick(m.Rand, "p", "q", "k", m.portal())
	m.parse("", pick(m.Rand, append([]word{{text: "SELECT note FROM deed ORDER BY id"},
		{text: "SELECT id, name FROM person ORDER BY id"}}, pick(m.Rand, reads...))...))
	m.bind(portal, "")
	m.add(message{Kind: execute, Portal: portal, Rows: 1}, pick(m.Rand, message{Kind: syncs}, message{Kind: flush}, message{Kind: pause}))
	if m.IntN(2) == 0 {
		m.add(message{Kind: execute, Portal: portal, Rows: m.rowLimit()})
	}
	return portal
}

// data are the rows of a COPY, in its turn or out of it.
func (m *maker) data() {
	for range m.IntN(4) {
		m.add(message{Kind: copyData, Data: []byte(pick(m.Rand, rowsIn...))})
		switch m.IntN(14) {
		case 0:
			m.add(message{Kind: flush})
		case 1:
			m.add(message{Kind: pause})
		}
	}
	switch m.IntN(10) {
	case 0:
		m.add(message{Kind: copyFail, Text: "no more"})
	default:
		m.add(message{Kind: copyDone})
	}
}
