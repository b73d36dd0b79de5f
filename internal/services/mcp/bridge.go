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

// Bridge is a server on stdio that passes every message to one over HTTP. It decides nothing: enforcement and records
// are the HTTP server's. If the session there has ended, as after a restart, it begins another one, and the answer to
// the call that noticed says so.
type Bridge struct {
	URL   string
	Token string
	HTTP  *http.Client
	Log   *slog.Logger
}

// bridgeSession is a running bridge.
type bridgeSession struct {
	Bridge
	output chan []byte

	renewalMu sync.Mutex // held while a new session begins

	mu                sync.Mutex
	sessionID         string // "": none yet
	version           string // the version of the protocol that both sides have agreed on
	initializeMessage []byte // the client's "initialize" message, which begins another session when the first has ended
}

const (
	maxConcurrentBridgeCalls = 16
	maxAnswerBytes           = 16 << 20
)

// Run passes messages until in or ctx ends, and then ends the session on the server. Each line is a message, in both
// directions.
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
			// Initialization and notifications are sent in order, calls side by side.
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

// maxLineBytes is how much of a line is kept. A longer one is no valid message; only its id is looked for.
const maxLineBytes = 64 * maxMessageBytes

// readLines sends the lines of in to lines. A line that is too long is cut.
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

// parseLine answers messages whose id the server could not tell, and parses the others.
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

// sendError answers a message of the client with an error.
func (w *bridgeSession) sendError(id json.RawMessage, code int, e *sqlstate.Error) {
	w.output <- errorMessage(id, code, e)
}

// forwardMessage passes a message to the server and its answer back.
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

// answerWithID adds the id of the request to an error answer that has none.
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

// renewSession begins a new session after the server's has ended. Its settings are lost, which the caller must know:
// therefore the call is not made but answered with an error.
func (w *bridgeSession) renewSession(ctx context.Context, m jsonRPCMessage, endedSession string) {
	w.renewalMu.Lock()
	defer w.renewalMu.Unlock()
	w.mu.Lock()
	initialize := w.initializeMessage
	w.mu.Unlock()
	isRenewed := endedSession != w.currentSession() // Another call has renewed the session already.
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

// currentSession returns the id of the session on the server.
func (w *bridgeSession) currentSession() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sessionID
}

// endSession ends the session on the server, if the server can be reached.
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
