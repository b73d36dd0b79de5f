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
	out chan []byte

	renewal sync.Mutex // held while a new session begins

	mu         sync.Mutex
	session    string // "": none yet
	version    string // the version of the protocol that both sides have agreed on
	initialize []byte // the client's "initialize" message, which begins another session when the first has ended
}

const (
	maxConcurrentBridgeCalls = 16
	maxAnswerBytes           = 16 << 20
)

// Run passes messages until in or ctx ends, and then ends the session on the server. Each line is a message, in both
// directions.
func (b Bridge) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	w := &bridgeSession{Bridge: b, out: make(chan []byte, maxConcurrentBridgeCalls)}
	written := make(chan error, 1)
	go func() {
		var failed error
		for line := range w.out {
			if failed == nil {
				_, failed = out.Write(append(line, '\n'))
			}
		}
		written <- failed
	}()
	lines := make(chan []byte)
	ended := make(chan error, 1)
	go func() { ended <- readLines(ctx, in, lines) }()

	var calls sync.WaitGroup
	room := make(chan struct{}, maxConcurrentBridgeCalls)
	var err error
loop:
	for {
		select {
		case <-ctx.Done():
			break loop
		case err = <-ended:
			break loop
		case line := <-lines:
			m, ok := w.check(line)
			if !ok {
				continue
			}
			// Initialization and notifications are sent in order, calls side by side.
			if m.Method == "initialize" || m.ID == nil {
				w.send(ctx, m, line)
				continue
			}
			room <- struct{}{}
			calls.Go(func() {
				w.send(ctx, m, line)
				<-room
			})
		}
	}
	calls.Wait()
	w.endSession()
	close(w.out)
	return errors.Join(err, <-written)
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
		if whole := bytes.TrimSpace(line); len(whole) > 0 {
			select {
			case lines <- bytes.Clone(whole):
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

// check answers messages whose id the server could not tell, and parses the others.
func (w *bridgeSession) check(line []byte) (envelope, bool) {
	if len(line) > maxMessageBytes {
		w.sendError(idOf(line), invalidRequest, refusal(fmt.Sprintf("the message is longer than %d bytes", maxMessageBytes),
			"Send less at once."))
		return envelope{}, false
	}
	if err := strictjson.Check(line, strictjson.MaxDepth); err != nil {
		w.sendError(idOf(line), parseError, refusal("the message is not JSON that is taken: "+err.Error(), "One message a line."))
		return envelope{}, false
	}
	m, why := parseEnvelope(line)
	if why != nil {
		w.sendError(m.ID, invalidRequest, why)
		return m, false
	}
	return m, true
}

// sendError answers a message of the client with an error.
func (w *bridgeSession) sendError(id json.RawMessage, code int, e *sqlstate.Error) {
	w.out <- errorMessage(id, code, e)
}

// send passes a message to the server and its answer back.
func (w *bridgeSession) send(ctx context.Context, m envelope, line []byte) {
	used := w.current()
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
		w.renew(ctx, m, used)
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
		w.out <- withID(compact.Bytes(), m.ID)
	}
}

// withID adds the id of the request to an error answer that has none.
func withID(answer []byte, id json.RawMessage) []byte {
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

func (w *bridgeSession) postMessage(ctx context.Context, m envelope, line []byte) (status int, answer []byte,
	err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(line))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+w.Token)
	w.mu.Lock()
	if m.Method != "initialize" && w.session != "" {
		r.Header.Set(sessionHeader, w.session)
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
		var begun struct {
			Result struct {
				Version string `json:"protocolVersion"`
			} `json:"result"`
		}
		if err := json.Unmarshal(answer, &begun); err != nil {
			return 0, nil, err
		}
		w.mu.Lock()
		w.session, w.version, w.initialize = id, begun.Result.Version, line
		w.mu.Unlock()
	}
	return resp.StatusCode, answer, nil
}

// renew begins a new session after the server's has ended. Its settings are lost, which the caller must know: therefore
// the call is not made but answered with an error.
func (w *bridgeSession) renew(ctx context.Context, m envelope, ended string) {
	w.renewal.Lock()
	defer w.renewal.Unlock()
	w.mu.Lock()
	begin := w.initialize
	w.mu.Unlock()
	begun := ended != w.current() // Another call has renewed the session already.
	if !begun && begin != nil {
		status, _, err := w.postMessage(ctx, envelope{Method: "initialize"}, begin)
		if begun = err == nil && status == http.StatusOK; begun {
			_, _, err = w.postMessage(ctx, envelope{Method: "notifications/initialized"},
				[]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
			begun = err == nil
		}
	}
	if m.ID == nil {
		return
	}
	hint := "A new one has begun: make the call again. What was set in the old one, as a context, must be set again."
	if !begun {
		hint = "Begin again with \"initialize\"."
	}
	w.sendError(m.ID, sessionNotFound, refusal("the session had ended", hint))
}

// current returns the id of the session on the server.
func (w *bridgeSession) current() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

// endSession ends the session on the server, if the server can be reached.
func (w *bridgeSession) endSession() {
	session := w.current()
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
