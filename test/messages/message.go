package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

// kind is what a message is, or what else happens in its place.
type kind string

const (
	query     kind = "Query"
	parse     kind = "Parse"
	bind      kind = "Bind"
	describe  kind = "Describe"
	execute   kind = "Execute"
	closing   kind = "Close"
	flush     kind = "Flush"
	syncs     kind = "Sync"
	copyData  kind = "CopyData"
	copyDone  kind = "CopyDone"
	copyFail  kind = "CopyFail"
	call      kind = "FunctionCall"
	terminate kind = "Terminate"

	pause    kind = "pause"    // what stands before is sent, and a moment passes
	wait     kind = "wait"     // a COPY is given up, a Sync is sent, and all is answered
	cancel   kind = "cancel"   // as wait; then a cancel request, which comes too late for anything
	long     kind = "long"     // as wait; then a Query that runs until it is cancelled
	withdraw kind = "withdraw" // as wait; then the owner withdraws a consent
)

// message is one message of a client.
type message struct {
	Kind    kind     `json:"kind"`
	Text    string   `json:"text,omitempty"`
	Plain   string   `json:"plain,omitempty"`  // what PostgreSQL is sent in place of Text, which the policy refuses
	Object  string   `json:"object,omitempty"` // S or P
	Name    string   `json:"name,omitempty"`   // of the statement, or of what Describe and Close name
	Portal  string   `json:"portal,omitempty"`
	Types   []uint32 `json:"types,omitempty"`
	Formats []int16  `json:"formats,omitempty"`
	Results []int16  `json:"results,omitempty"`
	Values  [][]byte `json:"values,omitempty"`
	Rows    uint32   `json:"rows,omitempty"`
	Data    []byte   `json:"data,omitempty"`
}

// longText runs until it is cancelled.
const longText = "SELECT count(*) FROM generate_series(1, 30000) a, generate_series(1, 30000) b, generate_series(1, 30000) c"

// append adds the bytes of a message. plain tells that it goes to PostgreSQL itself.
func (m message) append(dst []byte, plain bool) ([]byte, error) {
	text := m.Text
	if plain && m.Plain != "" {
		text = m.Plain
	}
	var f pgproto3.FrontendMessage
	switch m.Kind {
	case query:
		f = &pgproto3.Query{String: text}
	case parse:
		f = &pgproto3.Parse{Name: m.Name, Query: text, ParameterOIDs: m.Types}
	case bind:
		f = &pgproto3.Bind{DestinationPortal: m.Portal, PreparedStatement: m.Name, ParameterFormatCodes: m.Formats,
			ResultFormatCodes: m.Results, Parameters: m.Values}
	case describe:
		f = &pgproto3.Describe{ObjectType: m.Object[0], Name: m.Name}
	case execute:
		f = &pgproto3.Execute{Portal: m.Portal, MaxRows: m.Rows}
	case closing:
		f = &pgproto3.Close{ObjectType: m.Object[0], Name: m.Name}
	case flush:
		f = &pgproto3.Flush{}
	case syncs:
		f = &pgproto3.Sync{}
	case copyData:
		f = &pgproto3.CopyData{Data: m.Data}
	case copyDone:
		f = &pgproto3.CopyDone{}
	case copyFail:
		f = &pgproto3.CopyFail{Message: m.Text}
	case call: // what the proxy refuses drops the statement without a name, as a Query does
		if f = (&pgproto3.FunctionCall{Function: 1598}); plain {
			f = &pgproto3.Query{String: refused}
		}
	case terminate:
		f = &pgproto3.Terminate{}
	default:
		return nil, fmt.Errorf("%s is no message", m.Kind)
	}
	return f.Encode(dst)
}

// sequence is what is sent on one connection.
type sequence []message

// String is a line of JSON for each message.
func (s sequence) String() string {
	var b strings.Builder
	for _, m := range s {
		line, _ := json.Marshal(m) // never fails: there are but strings and numbers
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

func readSequence(text []byte) (s sequence, err error) {
	for line := range bytes.Lines(text) {
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		s = append(s, m)
	}
	return s, nil
}
