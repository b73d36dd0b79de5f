package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/services/strictjson"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Bridge is an MCP server on stdio that passes every message to pgconsent's MCP server over HTTP, which enforces and
// records. If the HTTP session has ended, as after a restart, the bridge begins a new one, and answers the call that
// met the ended session with an error.
type Bridge struct {
	URL   string
	Token string
	HTTP  *http.Client
	Log   *slog.Logger
}

// bridgeSession is a bridge that is running.
type bridgeSession struct {
	Bridge
	output chan []byte

	renewalMu sync.Mutex // held while a new session begins

	mu                sync.Mutex
	sessionID         string // id of the session on the server; "": none has begun
	version           string // version of the protocol on which client and server have agreed
	initializeMessage []byte // the client's "initialize" message, which is sent again to begin a new session
}

const (
	maxConcurrentBridgeCalls = 16
	maxAnswerBytes           = 16 << 20
)

// Run passes messages between the client and the server until in ends or ctx is canceled, and then ends the session on
// the server. In both directions, each line is one message.
func (b Bridge) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	w := &bridgeSession{Bridge: b, output: make(chan []byte, maxConcurrentBridgeCalls)}
	writeResult := make(chan error, 1)
	go func() {
		var failure error
		for line := range w.output {
			if failure == nil {
				_, failure = out.Write(append(line, '\n'))
			}
		}
		writeResult <- failure
	}()
	lines := make(chan []byte)
	readError := make(chan error, 1)
	go func() { readError <- readLines(ctx, in, lines) }()

	var calls sync.WaitGroup
	room := make(chan struct{}, maxConcurrentBridgeCalls)
	var err error
loop:
	for {
		select {
		case <-ctx.Done():
			break loop
		case err = <-readError:
			break loop
		case line := <-lines:
			m, ok := w.parseLine(line)
			if !ok {
				continue
			}
			// "initialize" and notifications are sent in order, calls concurrently.
			if m.Method == "initialize" || m.ID == nil {
				w.forwardMessage(ctx, m, line)
				continue
			}
			room <- struct{}{}
			calls.Go(func() {
				w.forwardMessage(ctx, m, line)
				<-room
			})
		}
	}
	calls.Wait()
	w.endSession()
	close(w.output)
	return errors.Join(err, <-writeResult)
}

// maxLineBytes is how much of a line is stored. A longer line is not a valid message; only its id is used, for the
// error.
const maxLineBytes = 64 * maxMessageBytes

// readLines reads in and sends each line to lines. It cuts a line that is too long.
func readLines(ctx context.Context, in io.Reader, lines chan<- []byte) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line) <= maxLineBytes {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if trimmedLine := bytes.TrimSpace(line); len(trimmedLine) > 0 {
			select {
			case lines <- bytes.Clone(trimmedLine):
			case <-ctx.Done():
				return nil
			}
		}
		line = line[:0]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading messages: %w", err)
		}
	}
}

// parseLine parses a line of the client. It answers lines that it cannot parse with an error, since the server could
// not tell the id of the message.
func (w *bridgeSession) parseLine(line []byte) (jsonRPCMessage, bool) {
	if len(line) > maxMessageBytes {
		w.sendError(messageID(line), invalidRequest, newRefusal(fmt.Sprintf("the message is longer than %d bytes",
			maxMessageBytes),
			"Send less at once."))
		return jsonRPCMessage{}, false
	}
	if err := strictjson.Check(line, strictjson.MaxDepth); err != nil {
		w.sendError(messageID(line), parseError, newRefusal("the message is not JSON that is taken: "+err.Error(),
			"One message a line."))
		return jsonRPCMessage{}, false
	}
	m, reason := parseEnvelope(line)
	if reason != nil {
		w.sendError(m.ID, invalidRequest, reason)
		return m, false
	}
	return m, true
}

// sendError sends an error to the client in answer to a message.
func (w *bridgeSession) sendError(id json.RawMessage, code int, e *sqlstate.Error) {
	w.output <- errorMessage(id, code, e)
}

// forwardMessage sends a message to the server, and the server's answer to the client.
func (w *bridgeSession) forwardMessage(ctx context.Context, m jsonRPCMessage, line []byte) {
	usedSession := w.currentSession()
	status, answer, err := w.postMessage(ctx, m, line)
	switch {
	case err != nil:
		w.Log.Error("mcp", "error", err)
		if m.ID != nil {
			w.sendError(m.ID, internalError, sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream,
				"pgconsent was not reached at %s", w.URL).
				WithHint("Does pgconsent serve run there? It is not known whether the call was made; make it again."))
		}
	case status == http.StatusNotFound && m.Method != "initialize":
		w.renewSession(ctx, m, usedSession)
	case m.ID == nil:
		if status >= 300 {
			w.Log.Warn("mcp: a notification was refused", "status", status)
		}
	default:
		var compact bytes.Buffer
		if json.Compact(&compact, answer) != nil || compact.Len() == 0 {
			w.sendError(m.ID, internalError, sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream,
				"%s answered with status %d, which is no answer of MCP", w.URL, status).
				WithHint("--url is the address of http.listen, without a path."))
			return
		}
		w.output <- answerWithID(compact.Bytes(), m.ID)
	}
}

// answerWithID sets the id of an answer to that of the request, if the answer's id is null.
func answerWithID(answer []byte, id json.RawMessage) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(answer, &m) != nil || string(m["id"]) != "null" {
		return answer
	}
	m["id"] = id
	if text, err := json.Marshal(m); err == nil {
		return text
	}
	return answer
}

func (w *bridgeSession) postMessage(ctx context.Context, m jsonRPCMessage, line []byte) (status int, answer []byte,
	err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(line))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+w.Token)
	w.mu.Lock()
	if m.Method != "initialize" && w.sessionID != "" {
		r.Header.Set(sessionHeader, w.sessionID)
		r.Header.Set(versionHeader, w.version)
	}
	w.mu.Unlock()
	resp, err := w.HTTP.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		return 0, nil, err
	}
	if id := resp.Header.Get(sessionHeader); m.Method == "initialize" && id != "" {
		var initialized struct {
			Result struct {
				Version string `json:"protocolVersion"`
			} `json:"result"`
		}
		if err := json.Unmarshal(answer, &initialized); err != nil {
			return 0, nil, err
		}
		w.mu.Lock()
		w.sessionID, w.version, w.initializeMessage = id, initialized.Result.Version, line
		w.mu.Unlock()
	}
	return resp.StatusCode, answer, nil
}

// renewSession begins a new session after the server has ended the old one. The settings of the old session are lost.
// So that the caller learns this, its call is answered with an error and not made.
func (w *bridgeSession) renewSession(ctx context.Context, m jsonRPCMessage, endedSession string) {
	w.renewalMu.Lock()
	defer w.renewalMu.Unlock()
	w.mu.Lock()
	initialize := w.initializeMessage
	w.mu.Unlock()
	isRenewed := endedSession != w.currentSession() // true if another call has renewed the session already
	if !isRenewed && initialize != nil {
		status, _, err := w.postMessage(ctx, jsonRPCMessage{Method: "initialize"}, initialize)
		if isRenewed = err == nil && status == http.StatusOK; isRenewed {
			_, _, err = w.postMessage(ctx, jsonRPCMessage{Method: "notifications/initialized"},
				[]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
			isRenewed = err == nil
		}
	}
	if m.ID == nil {
		return
	}
	hint := "A new one has begun: make the call again. What was set in the old one, as a context, must be set again."
	if !isRenewed {
		hint = "Begin again with \"initialize\"."
	}
	w.sendError(m.ID, sessionNotFound, newRefusal("the session had ended", hint))
}

// currentSession returns the id of the session on the server, and "" if none has begun.
func (w *bridgeSession) currentSession() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sessionID
}

// endSession ends the session on the server, if there is one and the server can be reached.
func (w *bridgeSession) endSession() {
	session := w.currentSession()
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, w.URL, nil)
	if err != nil {
		return
	}
	r.Header.Set("Authorization", "Bearer "+w.Token)
	r.Header.Set(sessionHeader, session)
	if resp, err := w.HTTP.Do(r); err == nil {
		resp.Body.Close()
	}
}
