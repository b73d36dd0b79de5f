package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

// messageKind is the type of a message, or of another step of a sequence.
type messageKind string

const (
	queryMessage        messageKind = "Query"
	parseMessage        messageKind = "Parse"
	bindMessage         messageKind = "Bind"
	describeMessage     messageKind = "Describe"
	executeMessage      messageKind = "Execute"
	closeMessage        messageKind = "Close"
	flushMessage        messageKind = "Flush"
	syncMessage         messageKind = "Sync"
	copyDataMessage     messageKind = "CopyData"
	copyDoneMessage     messageKind = "CopyDone"
	copyFailMessage     messageKind = "CopyFail"
	functionCallMessage messageKind = "FunctionCall"
	terminateMessage    messageKind = "Terminate"

	pauseStep     messageKind = "pause"    // sends all messages so far, and lets some time pass
	waitStep      messageKind = "wait"     // ends a COPY, sends a Sync, and waits for all answers
	cancelStep    messageKind = "cancel"   // like waitStep, then a cancel request that is too late
	longQueryStep messageKind = "long"     // like waitStep, then a Query that runs until it is canceled
	withdrawStep  messageKind = "withdraw" // like waitStep, then the owner withdraws a consent
)

// message is a message that the client sends, or another step of a sequence.
type message struct {
	Kind    messageKind `json:"kind"`
	Text    string      `json:"text,omitempty"`
	Plain   string      `json:"plain,omitempty"`  // statement for PostgreSQL if the policy refuses Text
	Object  string      `json:"object,omitempty"` // S: a statement; P: a portal
	Name    string      `json:"name,omitempty"`   // name of the prepared statement, or of the object of Describe or Close
	Portal  string      `json:"portal,omitempty"`
	Types   []uint32    `json:"types,omitempty"`
	Formats []int16     `json:"formats,omitempty"`
	Results []int16     `json:"results,omitempty"`
	Values  [][]byte    `json:"values,omitempty"`
	Rows    uint32      `json:"rows,omitempty"`
	Data    []byte      `json:"data,omitempty"`
}

// longQuery is a statement that runs until it is canceled.
const longQuery = "SELECT count(*) FROM generate_series(1, 30000) a, generate_series(1, 30000) b, generate_series(1, 30000) c"

// append appends the bytes of a message to dst. plain says that the message is for the PostgreSQL database without a
// proxy.
func (m message) append(dst []byte, plain bool) ([]byte, error) {
	text := m.Text
	if plain && m.Plain != "" {
		text = m.Plain
	}
	var f pgproto3.FrontendMessage
	switch m.Kind {
	case queryMessage:
		f = &pgproto3.Query{String: text}
	case parseMessage:
		f = &pgproto3.Parse{Name: m.Name, Query: text, ParameterOIDs: m.Types}
	case bindMessage:
		f = &pgproto3.Bind{DestinationPortal: m.Portal, PreparedStatement: m.Name, ParameterFormatCodes: m.Formats,
			ResultFormatCodes: m.Results, Parameters: m.Values}
	case describeMessage:
		f = &pgproto3.Describe{ObjectType: m.Object[0], Name: m.Name}
	case executeMessage:
		f = &pgproto3.Execute{Portal: m.Portal, MaxRows: m.Rows}
	case closeMessage:
		f = &pgproto3.Close{ObjectType: m.Object[0], Name: m.Name}
	case flushMessage:
		f = &pgproto3.Flush{}
	case syncMessage:
		f = &pgproto3.Sync{}
	case copyDataMessage:
		f = &pgproto3.CopyData{Data: m.Data}
	case copyDoneMessage:
		f = &pgproto3.CopyDone{}
	case copyFailMessage:
		f = &pgproto3.CopyFail{Message: m.Text}
	case functionCallMessage: // The proxy refuses this message, and then drops the unnamed statement, as a Query does.
		if f = (&pgproto3.FunctionCall{Function: 1598}); plain {
			f = &pgproto3.Query{String: policyRefusedText}
		}
	case terminateMessage:
		f = &pgproto3.Terminate{}
	default:
		return nil, fmt.Errorf("%s is no message", m.Kind)
	}
	return f.Encode(dst)
}

// sequence is a list of messages that are sent on one connection.
type sequence []message

// String returns the sequence as lines of JSON, one for each message.
func (s sequence) String() string {
	var b strings.Builder
	for _, m := range s {
		line, _ := json.Marshal(m) // cannot fail, since all values are texts and numbers
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
