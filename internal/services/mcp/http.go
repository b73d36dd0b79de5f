package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/services/strictjson"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// maxMessageBytes is the size of the largest accepted message of a client, in bytes. Its longest part is a statement.
const maxMessageBytes = 256 << 10

// Error codes of JSON-RPC, followed by three codes that pgconsent defines.
const (
	parseError     = -32700
	invalidRequest = -32600
	methodNotFound = -32601
	invalidParams  = -32602
	internalError  = -32603

	sessionNotFound     = -32001 // the client has to send "initialize" again
	unauthenticatedCode = -32002
	tooManyCalls        = -32003
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	// From this version of the protocol on there are no sessions; the SDK distinguishes by it, too.
	sessionlessVersion = "2026-07-28"
)

// supportedMethods are the methods that the server supports. It ignores all other notifications.
var supportedMethods = map[string]bool{
	"initialize": true, "ping": true, "tools/list": true, "tools/call": true, "server/discover": true,
	"notifications/initialized": true, "notifications/cancelled": true,
}

// jsonRPCMessage has the members that are common to all messages of JSON-RPC.
type jsonRPCMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// ServeHTTP answers one message of a client. It offers no stream, since the server sends no messages on its own.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	bearer, caller, ok := s.authenticate(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", "Bearer")
		writeError(w, http.StatusUnauthorized, nil, unauthenticatedCode, sqlstate.AsError(identity.NewRefusal(nil)))
		return
	}
	if err := s.crossOrigin.Check(r); err != nil {
		writeError(w, http.StatusForbidden, nil, invalidRequest,
			newRefusal("requests of other sites are refused", "This address is not for pages in a browser."))
		return
	}
	if !s.openSessions.callerLimitsOf(caller).messageLimiter.Allow() {
		w.Header().Set("Retry-After", "1")
		writeError(w, http.StatusTooManyRequests, nil, tooManyCalls,
			sqlstate.New(sqlstate.LimitExceeded, sqlstate.ReasonLimit, "too many messages of this token").
				WithHint("At most %d a second. Wait a moment, then send it again.", messagesPerSecond))
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, bearer, caller)
	case http.MethodDelete:
		session := s.openSessions.find(r.Header.Get(sessionHeader), caller)
		if session == nil {
			writeUnknownSession(w, nil)
			return
		}
		s.openSessions.remove(session)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "POST, DELETE")
		writeError(w, http.StatusMethodNotAllowed, nil, invalidRequest,
			newRefusal("this address takes POST and DELETE",
				"The server sends no messages of its own: there is no stream to GET."))
	}
}

// authenticate verifies the bearer token of a request; ok is false if it is not valid.
func (s *Server) authenticate(r *http.Request) (bearer string, caller identity.Caller, ok bool) {
	bearer, ok = identity.Bearer(r.Header)
	if !ok {
		return "", identity.Caller{}, false
	}
	caller, err := s.Verifier.Verify(r.Context(), bearer)
	return bearer, caller, err == nil
}

// post handles a message that a client has sent with POST.
func (s *Server) post(w http.ResponseWriter, r *http.Request, bearer string, caller identity.Caller) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessageBytes))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			writeError(w, http.StatusRequestEntityTooLarge, nil, invalidRequest,
				newRefusal(fmt.Sprintf("the message is longer than %d bytes", maxMessageBytes), "Send less at once."))
		}
		return // The client has disconnected.
	}
	if err := strictjson.Check(body, strictjson.MaxDepth); err != nil {
		writeError(w, http.StatusBadRequest, messageID(body), parseError,
			newRefusal("the message is not JSON that is taken: "+err.Error(),
				fmt.Sprintf("UTF-8, no name twice, at most %d levels deep.", strictjson.MaxDepth)))
		return
	}
	m, reason := parseEnvelope(body)
	if reason != nil {
		writeError(w, http.StatusBadRequest, m.ID, invalidRequest, reason)
		return
	}
	if m.ID != nil && !supportedMethods[m.Method] {
		writeError(w, http.StatusOK, m.ID, methodNotFound,
			newRefusal(fmt.Sprintf("there is no method %q", truncateText(m.Method)),
				"This server has tools: tools/list, tools/call."))
		return
	}
	if m.ID == nil && (!supportedMethods[m.Method] || !strings.HasPrefix(m.Method, "notifications/")) {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if (m.Method == "initialize" || m.Method == "tools/call") && (len(m.Params) == 0 || m.Params[0] != '{') {
		writeError(w, http.StatusBadRequest, m.ID, invalidParams,
			newRefusal(fmt.Sprintf("%q has parameters, in an object", m.Method), "docs/reference/mcp.md has a whole session."))
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.Header = r.Header.Clone()
	r.Header.Set("Accept", "application/json, text/event-stream") // as the SDK demands
	id := r.Header.Get(sessionHeader)
	if m.Method == "initialize" || id == "" && (m.Method == "server/discover" ||
		r.Header.Get(versionHeader) >= sessionlessVersion) {
		if id != "" {
			writeError(w, http.StatusBadRequest, m.ID, invalidRequest,
				newRefusal("the session has begun already", "Send \"initialize\" once, without "+sessionHeader+"."))
			return
		}
		s.initialize(w, r, m, bearer, caller)
		return
	}
	if id == "" {
		writeError(w, http.StatusBadRequest, m.ID, sessionNotFound,
			newRefusal(fmt.Sprintf("%q needs a session", m.Method),
				"Begin with \"initialize\", and send the "+sessionHeader+" of its answer with every later message."))
		return
	}
	session := s.openSessions.find(id, caller)
	if session == nil {
		writeUnknownSession(w, m.ID)
		return
	}
	session.setLastUsed()
	switch m.Method {
	case "notifications/initialized":
		session.setReady()
	case "tools/list", "tools/call":
		if !session.isReady() {
			writeError(w, http.StatusBadRequest, m.ID, invalidRequest,
				newRefusal(fmt.Sprintf("%q comes after \"notifications/initialized\"", m.Method),
					"Send that notification when \"initialize\" was answered."))
			return
		}
	}
	s.passToSession(w, r, m, session)
	session.setLastUsed()
}

// initialize begins a session and answers the message with which the client begins it.
func (s *Server) initialize(w http.ResponseWriter, r *http.Request, m jsonRPCMessage, bearer string,
	caller identity.Caller) {
	session := s.openSessions.begin(caller, bearer)
	session.sdkServer = s.newSession(session)
	if m.Method == "initialize" {
		s.openSessions.add(session)
	}
	s.passToSession(w, r, m, session)
	for sdkSession := range session.sdkServer.Sessions() {
		if m.Method == "initialize" && sdkSession.InitializeParams() != nil {
			return
		}
	}
	s.openSessions.remove(session)
}

func (s *Server) passToSession(w http.ResponseWriter, r *http.Request, m jsonRPCMessage, session *mcpSession) {
	t := &plainErrorWriter{ResponseWriter: w, message: m}
	s.sdkHandler.ServeHTTP(t, r.WithContext(withSession(r.Context(), session)))
	t.writeWithheld()
}

// parseEnvelope parses a message of JSON-RPC, and refuses one that parsers could read differently.
func parseEnvelope(body []byte) (m jsonRPCMessage, refused *sqlstate.Error) {
	if trimmedBody := bytes.TrimLeft(body, " \t\r\n"); trimmedBody[0] != '{' {
		return m, newRefusal("a message is an object", "Send one message in a request.")
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return jsonRPCMessage{}, newRefusal("the message is not one of JSON-RPC",
			"It has jsonrpc, method, params, and an id if it wants an answer.")
	}
	var names map[string]json.RawMessage
	_ = json.Unmarshal(body, &names) // cannot fail, since the body was parsed above
	for name := range names {
		for _, member := range []string{"jsonrpc", "id", "method", "params"} {
			// Some parsers would accept this name for the member, and others would not.
			if name != member && strings.EqualFold(name, member) {
				return jsonRPCMessage{}, newRefusal(fmt.Sprintf("%q is written in another case", member),
					"Names of members are in lower case.")
			}
		}
	}
	if m.ID != nil && !isID(m.ID) {
		return jsonRPCMessage{}, newRefusal("an id is a text or a whole number", "Leave it out of notifications.")
	}
	if m.Version != "2.0" || m.Method == "" {
		return m, newRefusal("the message is not a request of JSON-RPC 2.0", "It has \"jsonrpc\": \"2.0\" and a method.")
	}
	return m, nil
}

// newRefusal returns the error for a message that is not accepted.
func newRefusal(message, hint string) *sqlstate.Error {
	return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "%s", message).WithHint("%s", hint)
}

// writeUnknownSession answers a request for a session that does not exist, or that belongs to another caller.
func writeUnknownSession(w http.ResponseWriter, id json.RawMessage) {
	writeError(w, http.StatusNotFound, id, sessionNotFound,
		newRefusal("there is no such session", "It has ended: begin again with \"initialize\"."))
}

// writeError sends an error of JSON-RPC.
func writeError(w http.ResponseWriter, status int, id json.RawMessage, code int, e *sqlstate.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(errorMessage(id, code, e), '\n'))
}

func errorMessage(id json.RawMessage, code int, e *sqlstate.Error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	f := newCallError(e)
	text, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id,
		"error": map[string]any{"code": code, "message": f.Message, "data": f},
	})
	if err != nil {
		return []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error in pgconsent"}}`)
	}
	return text
}
