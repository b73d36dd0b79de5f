package messages

import (
	"math/rand/v2"
	"strings"
)

// sequenceMaker makes random sequences, in which many messages succeed and some fail.
type sequenceMaker struct {
	*rand.Rand
	sequence         sequence
	paramKinds       map[string][]string // types of the parameters of each prepared statement, by its name
	withdrawsConsent bool                // the sequence may withdraw a consent
}

func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

func newSequence(seed uint64, n int) sequence {
	m := &sequenceMaker{Rand: rand.New(rand.NewPCG(seed, 23)), paramKinds: map[string][]string{}}
	m.withdrawsConsent = m.IntN(3) == 0
	for length := 4 + m.IntN(n); len(m.sequence) < length; {
		m.addNext()
	}
	if m.IntN(25) == 0 {
		position := m.IntN(len(m.sequence) + 1)
		m.sequence = append(m.sequence[:position:position], append(sequence{{Kind: terminateMessage}}, m.sequence[position:]...)...)
	}
	return m.sequence
}

func (m *sequenceMaker) add(messages ...message) {
	m.sequence = append(m.sequence, messages...)
}

func (m *sequenceMaker) pickText() statementText {
	textLists := [][]statementText{readTexts, readTexts, readTexts, writeTexts, writeTexts, transactionTexts, transactionTexts, transactionTexts, settingTexts,
		cursorTexts, cursorTexts, prepareTexts, copyToTexts, copyFromTexts, forbiddenTexts, forbiddenTexts}
	return pick(m.Rand, pick(m.Rand, textLists...)...)
}

func (m *sequenceMaker) statementName() string {
	return pick(m.Rand, "", "", "", "a", "b", strings.Repeat("l", 61))
}
func (m *sequenceMaker) portalName() string { return pick(m.Rand, "", "", "", "p", "q", "k") }

func (m *sequenceMaker) rowLimit() uint32 { return pick[uint32](m.Rand, 0, 0, 0, 1, 2, 5) }

// addNext adds one message, or a few that belong together.
func (m *sequenceMaker) addNext() {
	switch n := m.IntN(60); {
	case n < 12:
		w := m.pickText()
		m.add(message{Kind: queryMessage, Text: w.text, Plain: w.postgresText})
		if strings.Contains(w.text, "FROM STDIN") {
			m.addCopyData()
		}
	case n < 15:
		w := pick(m.Rand, multiStatementTexts...)
		m.add(message{Kind: queryMessage, Text: w.text, Plain: w.postgresText})
		for range strings.Count(w.text, "FROM STDIN") {
			m.addCopyData()
		}
	case n < 30:
		m.addWholeExtended()
	case n < 31:
		m.addParse(m.statementName(), m.pickText())
	case n < 32: // statements that an EXECUTE may run
		m.addParse(pick(m.Rand, "x", "y"), pick(m.Rand, readTexts...))
	case n < 35:
		m.addBind(m.portalName(), m.statementName())
	case n < 38:
		m.add(message{Kind: executeMessage, Portal: m.portalName(), Rows: m.rowLimit()})
	case n < 40:
		m.add(message{Kind: describeMessage, Object: "S", Name: m.statementName()})
	case n < 42:
		m.add(message{Kind: describeMessage, Object: "P", Name: m.portalName()})
	case n < 43:
		m.add(message{Kind: closeMessage, Object: "S", Name: m.statementName()})
	case n < 44:
		m.add(message{Kind: closeMessage, Object: "P", Name: m.portalName()})
	case n < 45:
		m.add(message{Kind: flushMessage})
	case n < 50:
		m.add(message{Kind: syncMessage})
		if m.IntN(6) == 0 {
			m.add(message{Kind: syncMessage})
		}
	case n < 51:
		m.addCopyData()
	case n < 52:
		m.add(message{Kind: functionCallMessage})
	case n < 55:
		m.add(message{Kind: pauseStep})
	case n < 57:
		m.add(message{Kind: waitStep})
	case n < 58:
		switch m.IntN(6) {
		case 0:
			m.add(message{Kind: longQueryStep})
		case 1:
			m.add(message{Kind: cancelStep})
		default:
			m.addSuspendedPortal()
		}
	default:
		if m.withdrawsConsent {
			m.withdrawsConsent = false
			portal := m.addSuspendedPortal()
			m.add(message{Kind: withdrawStep})
			if m.IntN(2) == 0 { // sometimes the agent continues to read from the open portal or cursor
				m.add(message{Kind: executeMessage, Portal: portal, Rows: m.rowLimit()}, message{Kind: queryMessage, Text: "FETCH ALL FROM k"})
			}
			for range 1 + m.IntN(3) {
				m.add(message{Kind: executeMessage, Portal: m.portalName(), Rows: m.rowLimit()})
				m.add(pick(m.Rand, message{Kind: syncMessage}, message{Kind: queryMessage, Text: "FETCH 2 FROM k"},
					message{Kind: queryMessage, Text: "SELECT note FROM deed ORDER BY id"}))
			}
		}
	}
}

func (m *sequenceMaker) addParse(name string, w statementText) {
	p := message{Kind: parseMessage, Name: name, Text: w.text, Plain: w.postgresText}
	if m.IntN(3) == 0 {
		for _, kind := range w.paramKinds {
			p.Types = append(p.Types, map[string]uint32{"int": 23, "text": 25}[kind])
		}
		if m.IntN(8) == 0 {
			p.Types = append(p.Types, pick[uint32](m.Rand, 0, 25, 600))
		}
	}
	m.paramKinds[name] = w.paramKinds
	m.add(p)
}

func (m *sequenceMaker) addBind(portal, name string) {
	b := message{Kind: bindMessage, Portal: portal, Name: name}
	binary := m.IntN(4) == 0
	for _, kind := range m.paramKinds[name] {
		b.Values = append(b.Values, paramValue(kind, m.IntN(100), binary))
	}
	if binary && len(b.Values) > 0 {
		b.Formats = []int16{1}
	}
	b.Results = pick(m.Rand, nil, nil, nil, []int16{0}, []int16{1})
	switch m.IntN(24) { // sometimes the Bind is wrong
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

// addWholeExtended adds the messages from Parse to Execute by which a client runs a statement. Some of them may be left
// out.
func (m *sequenceMaker) addWholeExtended() {
	w := m.pickText()
	if m.IntN(20) == 0 {
		w = statementText{text: pick(m.Rand, multiStatementTexts...).text}
	}
	name, portal := m.statementName(), m.portalName()
	isLeftOut := func() bool { return m.IntN(15) == 0 }
	if !isLeftOut() {
		m.addParse(name, w)
	}
	if m.IntN(4) == 0 {
		m.add(message{Kind: describeMessage, Object: "S", Name: name})
	}
	if !isLeftOut() {
		m.addBind(portal, name)
	}
	if m.IntN(3) == 0 {
		m.add(message{Kind: describeMessage, Object: "P", Name: portal})
	}
	if !isLeftOut() {
		m.add(message{Kind: executeMessage, Portal: portal, Rows: m.rowLimit()})
	}
	if strings.Contains(w.text, "FROM STDIN") {
		m.addCopyData()
	}
	if m.IntN(2) == 0 {
		m.add(message{Kind: syncMessage})
	}
}

// addSuspendedPortal adds messages after which a portal or a cursor is open in a transaction, and returns its name.
func (m *sequenceMaker) addSuspendedPortal() string {
	m.add(message{Kind: syncMessage}, message{Kind: queryMessage, Text: pick(m.Rand, "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", "ROLLBACK; BEGIN")})
	if m.IntN(3) == 0 {
		m.add(message{Kind: queryMessage, Text: pick(m.Rand, "DECLARE k CURSOR FOR SELECT name FROM person ORDER BY id",
			"DECLARE k CURSOR WITH HOLD FOR SELECT note FROM deed ORDER BY id")})
		m.add(message{Kind: queryMessage, Text: "FETCH 1 FROM k"})
		return "k"
	}
	portal := pick(m.Rand, "p", "q", "k", m.portalName())
	m.addParse("", pick(m.Rand, append([]statementText{{text: "SELECT note FROM deed ORDER BY id"},
		{text: "SELECT id, name FROM person ORDER BY id"}}, pick(m.Rand, readTexts...))...))
	m.addBind(portal, "")
	m.add(message{Kind: executeMessage, Portal: portal, Rows: 1}, pick(m.Rand, message{Kind: syncMessage}, message{Kind: flushMessage}, message{Kind: pauseStep}))
	if m.IntN(2) == 0 {
		m.add(message{Kind: executeMessage, Portal: portal, Rows: m.rowLimit()})
	}
	return portal
}

// addCopyData adds messages with rows for a COPY. They may come at a time when the server does not expect them.
func (m *sequenceMaker) addCopyData() {
	for range m.IntN(4) {
		m.add(message{Kind: copyDataMessage, Data: []byte(pick(m.Rand, copyDataPieces...))})
		switch m.IntN(14) {
		case 0:
			m.add(message{Kind: flushMessage})
		case 1:
			m.add(message{Kind: pauseStep})
		}
	}
	switch m.IntN(10) {
	case 0:
		m.add(message{Kind: copyFailMessage, Text: "no more"})
	default:
		m.add(message{Kind: copyDoneMessage})
	}
}
