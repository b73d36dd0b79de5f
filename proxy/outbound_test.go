package proxy

import (
	"testing"

	pgx3 "github.com/jackc/pgx/v5/pgproto3"
)

// TestAnswersOutOfTurn: what the server says without having been asked, or cannot mean, ends the session, except the
// messages that it may send at any time.
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
	ready := encode(&pgx3.ReadyForQuery{TxStatus: 'I'})
	refused := newRefusal(noStatement("x"))
	for name, c := range map[string]struct {
		sent   []*entry
		answer []byte
		ends   bool
	}{
		"row unasked":             {nil, row, true},
		"completion unasked":      {nil, encode(&pgx3.CommandComplete{CommandTag: []byte("SELECT 1")}), true},
		"error unasked":           {nil, failure, true},
		"ready unasked":           {nil, ready, true},
		"authentication":          {nil, encode(&pgx3.AuthenticationOk{}), true},
		"fatal error unasked":     {nil, encode(&pgx3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P01", Message: "bye"}), false},
		"parameter status":        {nil, encode(&pgx3.ParameterStatus{Name: "TimeZone", Value: "UTC"}), false},
		"notification":            {nil, encode(&pgx3.NotificationResponse{PID: 1, Channel: "c"}), false},
		"row of a query":          {[]*entry{{kind: query}}, row, false},
		"row of a refused query":  {[]*entry{{kind: query, refusal: refused}}, row, true},
		"ready of a refused one":  {[]*entry{{kind: query, refusal: refused}}, ready, true},
		"success of a refused":    {[]*entry{{kind: parse, refusal: refused}}, encode(&pgx3.ParseComplete{}), true},
		"row of a Bind":           {[]*entry{{kind: bind}}, row, true},
		"ready in place of a row": {[]*entry{{kind: execute}}, ready, true},
		"copy in":                 {[]*entry{{kind: query}}, encode(&pgx3.CopyInResponse{ColumnFormatCodes: []uint16{0}}), true},
		"unknown status":          {[]*entry{{kind: syncs}}, encode(&pgx3.ReadyForQuery{TxStatus: 'x'}), true},
		"impossible length":       {[]*entry{{kind: query}}, []byte{'D', 0, 0, 0, 3}, true},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := New(Config{Router: &proxied{}})
			if err != nil {
				t.Fatal(err)
			}
			s := &session{conn: newConn(server, nil), ledger: newLedger()}
			s.ledger.push(c.sent)
			buf := make([]byte, bufferSize)
			o := answers{session: s, buf: &buf, w: copy(buf, c.answer)}
			if err := o.scan(); (err != nil) != c.ends {
				t.Errorf("got %v", err)
			}
			if c.ends && (len(o.out) > 0 || o.from != o.r) {
				t.Error("a part of it would be passed on")
			}
		})
	}
}
