package proxy

import (
	"fmt"
	"strings"
	"testing"

	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// TestAnswersOutOfTurn: a server message that answers no request, or is impossible in the current state, ends the
// session. Messages that the server may send at any time do not.
func TestAnswersOutOfTurn(t *testing.T) {
	encode := func(m pgx3.BackendMessage) []byte {
		b, err := m.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	row := encode(&pgx3.DataRow{Values: [][]byte{[]byte("a row")}})
	failure := encode(&pgx3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "22012", Message: "division by zero"})
	readyForQuery := encode(&pgx3.ReadyForQuery{TxStatus: 'I'})
	refused := func(e entry) entry {
		e.base().refusal = newRefusal(noStatementError("x"))
		return e
	}
	for name, c := range map[string]struct {
		sentEntries []entry
		serverBytes []byte
		endsSession bool
	}{
		"row unasked":        {nil, row, true},
		"completion unasked": {nil, encode(&pgx3.CommandComplete{CommandTag: []byte("SELECT 1")}), true},
		"error unasked":      {nil, failure, true},
		"ready unasked":      {nil, readyForQuery, true},
		"authentication":     {nil, encode(&pgx3.AuthenticationOk{}), true},
		"fatal error unasked": {nil,
			encode(&pgx3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P01", Message: "bye"}), false},
		"parameter status":        {nil, encode(&pgx3.ParameterStatus{Name: "TimeZone", Value: "UTC"}), false},
		"notification":            {nil, encode(&pgx3.NotificationResponse{PID: 1, Channel: "c"}), false},
		"row of a query":          {[]entry{&queryEntry{}}, row, false},
		"row of a refused query":  {[]entry{refused(&queryEntry{})}, row, true},
		"ready of a refused one":  {[]entry{refused(&queryEntry{})}, readyForQuery, true},
		"success of a refused":    {[]entry{refused(&parseEntry{})}, encode(&pgx3.ParseComplete{}), true},
		"row of a Bind":           {[]entry{&bindEntry{}}, row, true},
		"ready in place of a row": {[]entry{&executeEntry{}}, readyForQuery, true},
		"copy in":                 {[]entry{&queryEntry{}}, encode(&pgx3.CopyInResponse{ColumnFormatCodes: []uint16{0}}), true},
		"unknown status":          {[]entry{&syncEntry{}}, encode(&pgx3.ReadyForQuery{TxStatus: 'x'}), true},
		"impossible length":       {[]entry{&queryEntry{}}, []byte{'D', 0, 0, 0, 3}, true},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := New(Config{Router: &testProxy{}})
			if err != nil {
				t.Fatal(err)
			}
			s := &session{conn: newConn(server, nil), ledger: newLedger()}
			s.ledger.push(c.sentEntries)
			buf := make([]byte, bufferSize)
			o := newAnswers(s, &buf, c.serverBytes)
			if err := o.scan(); (err != nil) != c.endsSession {
				t.Errorf("got %v", err)
			}
			if c.endsSession && (len(o.inserted) > 0 || o.passStart != o.unreadStart) {
				t.Error("a part of it would be passed on")
			}
		})
	}
}

// TestEachMessageHasItsAnswers: each client message is answered by the server messages that the protocol has for it.
// Any other server message ends the session before a byte of it is relayed, because the proxy cannot know which request
// it answers.
func TestEachMessageHasItsAnswers(t *testing.T) {
	copying := &verdict.Verdict{Rewritten: verdict.Rewritten{Effects: []verdict.Effect{{Kind: verdict.EffectCopyIn}}}}
	asynchronousTypes := "ENSAZ" // these types have other rules
	passedMessages := 0
	kinds := map[string]struct {
		make        func() entry
		answerTypes string
	}{
		"Query":                   {func() entry { return &queryEntry{} }, "TDCIHdc"},
		"Execute":                 {func() entry { return &executeEntry{} }, "DCIsHdc"},
		"Parse":                   {func() entry { return &parseEntry{} }, "1"},
		"Bind":                    {func() entry { return &bindEntry{} }, "2"},
		"Describe of a portal":    {func() entry { return &describeEntry{object: 'P'} }, "Tn"},
		"Describe of a statement": {func() entry { return &describeEntry{object: 'S'} }, "t"},
		"Close of a statement":    {func() entry { return &closeEntry{object: 'S'} }, "3"},
		"Close of a portal":       {func() entry { return &closeEntry{object: 'P'} }, "3"},
		"Sync":                    {func() entry { return &syncEntry{} }, ""},
	}
	states := map[string]func(entry){
		"":                   func(entry) {},
		"of COPY FROM STDIN": func(e entry) { e.base().verdict = copying },
		"behind a COPY": func(e entry) {
			e.base().verdict = copying
			if x := e.asExecution(); x != nil {
				x.completedStatements = 1
			}
		},
		"refused": func(e entry) { e.base().refusal = newRefusal(noStatementError("x")) },
		"described in part": func(e entry) {
			if d, ok := e.(*describeEntry); ok {
				d.parameters = true
			}
		},
		"ours": func(e entry) { e.base().fromProxy = true },
	}
	for kind, k := range kinds {
		for name, prepare := range states {
			for typ := range 256 {
				if strings.IndexByte(asynchronousTypes, byte(typ)) >= 0 {
					continue
				}
				isAllowed := strings.IndexByte(k.answerTypes, byte(typ)) >= 0
				switch name {
				case "of COPY FROM STDIN":
					isAllowed = isAllowed || typ == 'G' && k.make().asExecution() != nil
				case "refused":
					isAllowed = false
				case "described in part":
					if kind == "Describe of a statement" {
						isAllowed = typ == 'T' || typ == 'n'
					}
				}
				server, err := New(Config{Router: &testProxy{}})
				if err != nil {
					t.Fatal(err)
				}
				s := &session{conn: newConn(server, nil), ledger: newLedger()}
				entryUnderTest := k.make()
				prepare(entryUnderTest)
				entryUnderTest.base().answered = make(chan struct{})
				s.ledger.push([]entry{entryUnderTest})
				buf := make([]byte, bufferSize)
				message := []byte{byte(typ), 0, 0, 0, 4}
				if typ == 'T' {
					message = []byte{'T', 0, 0, 0, 6, 0, 0} // a RowDescription without columns
				}
				o := newAnswers(s, &buf, message)
				failure := o.scan()
				if (failure == nil) != isAllowed {
					t.Errorf("%s %s, type %q: %v", kind, name, byte(typ), failure)
				}
				if failure != nil && (len(o.inserted) > 0 || o.passStart != o.unreadStart) {
					t.Errorf("%s %s, type %q: a part of it would be passed on", kind, name, byte(typ))
				}
				if failure == nil {
					passedMessages++
				}
			}
		}
	}
	if passedMessages < 60 {
		t.Errorf("%d answers", passedMessages)
	}
}

func fromProxyEntry(e entry) entry {
	e.base().fromProxy = true
	return e
}

func newAnswers(s *session, buf *[]byte, answer []byte) *answers {
	return &answers{session: s, relay: relay{buf: buf, unreadEnd: copy(*buf, answer)}}
}

// TestMessagesThatAnswerNoRequest: PostgreSQL may send settings and notices at any time. The client gets the settings
// that PostgreSQL reports by default, and notices about its own commands. It gets no notice that answers a message of
// the proxy, and no message type that a newer server or an extension adds.
func TestMessagesThatAnswerNoRequest(t *testing.T) {
	encode := func(m pgx3.BackendMessage) []byte {
		b, err := m.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	notice := func(code, message, context string) []byte {
		return encode(&pgx3.NoticeResponse{Severity: "NOTICE", SeverityUnlocalized: "NOTICE", Code: code, Message: message, Where: context})
	}
	const relayed, dropped = true, false
	type aside struct {
		message []byte
		mayPass bool
	}
	asides := map[string]aside{
		"a notification":                {encode(&pgx3.NotificationResponse{PID: 7, Channel: "c", Payload: "hidden"}), dropped},
		"a notice of a function":        {notice("00000", "hidden", "PL/pgSQL function f() line 1 at RAISE"), dropped},
		"a notice of any code":          {notice("01000", "hidden", ""), dropped},
		"a notice that names ours":      {notice("42622", "identifier pgconsent_x will be truncated", ""), dropped},
		"a notice from inside":          {notice("25P01", "hidden", "SQL statement"), dropped},
		"a notice about transactions":   {notice("25P01", "there is no transaction in progress", ""), relayed},
		"a notice about identifiers":    {notice("42622", "identifier will be truncated", ""), relayed},
		"a setting of an extension":     {encode(&pgx3.ParameterStatus{Name: "vendor.tenant", Value: "hidden"}), dropped},
		"a setting of ours":             {encode(&pgx3.ParameterStatus{Name: settingSeal, Value: "hidden"}), dropped},
		"a setting named like a listed": {encode(&pgx3.ParameterStatus{Name: "timezone_abbreviations", Value: "hidden"}), dropped},
	}
	for _, name := range reportedSettings {
		asides["the setting "+name] = aside{encode(&pgx3.ParameterStatus{Name: name, Value: "x"}), relayed}
	}
	state := func(sentEntries ...entry) func(*answers) {
		return func(o *answers) { o.ledger.push(sentEntries) }
	}
	for in, c := range map[string]struct {
		make  func(*answers)
		isOwn bool // the notice answers a message that the proxy has sent
	}{
		"between messages": {func(*answers) {}, false},
		"during a query":   {state(&queryEntry{}), false},
		"during a Sync":    {state(&syncEntry{}), false},
		"during a seal":    {state(fromProxyEntry(&executeEntry{})), true},
		"behind a limit": {func(o *answers) {
			e := &queryEntry{}
			o.ledger.push([]entry{e})
			o.endedResult.execution = &e.execution
		}, true},
	} {
		for description, a := range asides {
			t.Run(fmt.Sprintf("%s %s", description, in), func(t *testing.T) {
				server, err := New(Config{Router: &testProxy{}})
				if err != nil {
					t.Fatal(err)
				}
				buf := make([]byte, bufferSize)
				o := newAnswers(&session{conn: newConn(server, nil), ledger: newLedger()}, &buf, a.message)
				c.make(o)
				if err := o.scan(); err != nil {
					t.Fatal(err)
				}
				isRelayed := len(o.inserted)+o.unreadStart-o.passStart > 0
				if want := a.mayPass && !(c.isOwn && a.message[0] == 'N'); isRelayed != want {
					t.Errorf("it reaches the client: %t", isRelayed)
				}
			})
		}
	}
}
