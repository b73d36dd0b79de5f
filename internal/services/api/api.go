package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/internal/services/strictjson"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Config has the settings of the HTTP API. Service and Verifier are required, and so is Service.Record.
type Config struct {
	Service  *operations.Service
	Verifier identity.Verifier
	Log      *slog.Logger // nil: nothing is logged

	// MakeReport makes the report to a data subject. ReadDecisions returns the newest audit records of decisions whose
	// numbers are smaller than before (0: all). If a function is nil, the operations that need it return an error.
	MakeReport    func(ctx context.Context, c identity.Caller, subject string, data bool) (*dsar.Report, error)
	ReadDecisions func(ctx context.Context, database string, before uint64, most int) (DecisionRecords, error)

	CallsPerSecond float64       // how many calls each caller may make per second; 0: 50
	BurstCalls     int           // how many calls a caller may make at once; 0: 200
	Timeout        time.Duration // how long a call may take; 0: 30 s
}

// The limits of a request.
const (
	maxBodyBytes       = 64 << 10
	maxQueryBytes      = 8 << 10
	maxConcurrentCalls = 64 // how many calls are handled at the same time
	bodyTimeout        = 10 * time.Second
)

// Server is the HTTP API. It is an [http.Handler] for /v1/ and /openapi.json.
type Server struct {
	Config
	mux           *http.ServeMux
	api           huma.API
	document      []byte
	callerLimits  *rateLimiter // limits the calls of each caller
	addressLimits *rateLimiter // limits the calls without a valid token from each address
	callSlots     chan struct{}
}

// New makes the HTTP API with all its operations.
func New(c Config) (*Server, error) {
	if c.Service == nil || c.Verifier == nil || c.Service.Record == nil {
		return nil, errors.New("api: Config.Service, Service.Record and Config.Verifier are required")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.CallsPerSecond == 0 {
		c.CallsPerSecond = 50
	}
	if c.BurstCalls == 0 {
		c.BurstCalls = 200
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	s := &Server{Config: c, mux: http.NewServeMux(), callerLimits: newRateLimiter(c.CallsPerSecond, c.BurstCalls),
		addressLimits: newRateLimiter(10, 50),
		callSlots:     make(chan struct{}, maxConcurrentCalls)}
	s.api = humago.New(s.mux, documentConfig())
	for _, resource := range addOperations {
		resource(s)
	}
	s.addPatterns()
	var err error
	if s.document, err = json.MarshalIndent(s.api.OpenAPI(), "", "  "); err != nil {
		return nil, fmt.Errorf("api: the document: %w", err)
	}
	return s, nil
}

// addOperations lists the functions that add the operations to the API. Each file of operations has one.
var addOperations = []func(*Server){addConsentOperations, addPrivacyOperations, addGeneralizeOperations,
	addContextOperations,
	addReportOperations, addInteractionOperations}

// documentConfig returns /openapi.json without the operations, which are added later.
func documentConfig() huma.Config {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "pgconsent", Version: "1",
				Description: "Consents of data subjects, and how their data were used. Every call needs a " +
					"bearer token, whose role decides what is allowed. Errors are problem JSON with a stable code.",
				License: &huma.License{Name: "Apache 2.0", Identifier: "Apache-2.0"},
			},
			Servers: []*huma.Server{{URL: "/", Description: "Where this document is."}},
			Components: &huma.Components{
				Schemas: schemas,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"bearer": {Type: "http", Scheme: "bearer",
						Description: "A token of pgconsent token add, or a JWT where the configuration takes them."},
				},
			},
		},
		Formats:                      huma.DefaultFormats,
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}
}

// Call is a call of an operation that is being handled.
type Call struct {
	Caller         identity.Caller
	operation      string
	mayWrite       bool
	skipsAudit     bool // the audit does not record the call
	aboutEverybody bool // the call is about all data subjects of the database
	auditSubjects  []string
	body           []byte
	answer         *bufferedAnswer
}

// AddAuditSubjects adds ids of the persons that the call is about to the call's audit record.
func (c *Call) AddAuditSubjects(ids ...string) { c.auditSubjects = append(c.auditSubjects, ids...) }

type callKey struct{}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.URL.Path == "/openapi.json" {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			newProblem(http.StatusMethodNotAllowed, unknownMethodError()).write(w)
			return
		}
		h.Set("Content-Type", "application/vnd.oai.openapi+json;version=3.1")
		_, _ = w.Write(s.document)
		return
	}
	select {
	case s.callSlots <- struct{}{}:
		defer func() { <-s.callSlots }()
	default:
		answerBusy(w, "too many calls are being answered")
		return
	}
	now := time.Now()
	caller, err := s.verifyCaller(r)
	if err != nil {
		// The body is not read: a caller without a valid token must not make the server read much.
		h.Set("Connection", "close")
		if !s.addressLimits.allowCall(clientAddress(r), now) {
			answerTooMany(w)
			return
		}
		s.Log.Info("a call was refused", "remote", clientAddress(r), "cause", logCause(err))
		problemOf(err).write(w)
		return
	}
	if !s.callerLimits.allowCall(string(caller.Role)+"|"+caller.Name+"|"+caller.Database, now) {
		answerTooMany(w)
		return
	}
	call := &Call{Caller: caller, operation: "unknown"}
	ctx, cancel := context.WithTimeout(identity.NewContext(r.Context(), caller), s.Timeout)
	defer cancel()
	answer := &bufferedAnswer{header: http.Header{}}
	call.answer = answer
	s.runCall(answer, r.WithContext(context.WithValue(ctx, callKey{}, call)), w)
	if err := s.recordCall(ctx, call, answer); err != nil {
		problemOf(err).write(w)
		return
	}
	answer.writeTo(w)
}

// verifyCaller returns the caller of the request's bearer token.
func (s *Server) verifyCaller(r *http.Request) (identity.Caller, error) {
	token, ok := identity.Bearer(r.Header)
	if !ok || len(token) > 16<<10 {
		return identity.Caller{}, identity.NewRefusal(errors.New("no bearer token, or several"))
	}
	return s.Verifier.Verify(r.Context(), token)
}

// runCall runs the operation of the request and writes its answer into a. A panic is answered with an internal error.
// The log gets only the type of the panic's value, which may quote data.
func (s *Server) runCall(a *bufferedAnswer, r *http.Request, w http.ResponseWriter) {
	defer func() {
		if v := recover(); v != nil {
			s.Log.Error("panic in a call", "kind", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
			a.reset()
			problemOf(errors.New("panic")).write(a)
		}
	}()
	if p := readRequest(w, r); p != nil {
		p.write(a)
		return
	}
	if s.serveSource(a, r) {
		return
	}
	handler, pattern := s.mux.Handler(r)
	if pattern == "" || !HasCanonicalPath(r) {
		s.answerUnknown(a, r)
		return
	}
	handler.ServeHTTP(a, r)
}

// HasCanonicalPath reports whether the path of a request is in canonical form. The HTTP multiplexer would redirect a
// path with // or .. before the token of the request is verified.
func HasCanonicalPath(r *http.Request) bool {
	requestedPath := r.URL.Path
	canonical := path.Clean("/" + requestedPath)
	return requestedPath == canonical || requestedPath == canonical+"/" && canonical != "/" || requestedPath == "*"
}

// answerUnknown answers a request that matches no operation.
func (s *Server) answerUnknown(a *bufferedAnswer, r *http.Request) {
	var otherMethods []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
		if !HasCanonicalPath(r) {
			break
		}
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := s.mux.Handler(probe); pattern != "" {
			otherMethods = append(otherMethods, method)
		}
	}
	if len(otherMethods) > 0 {
		a.Header().Set("Allow", strings.Join(otherMethods, ", "))
		newProblem(http.StatusMethodNotAllowed, unknownMethodError()).write(a)
		return
	}
	newProblem(http.StatusNotFound, sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonSyntax, "there is no such resource").
		WithHint("GET /openapi.json lists the resources.")).write(a)
}

func unknownMethodError() *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonSyntax, "this resource does not support the method").
		WithHint("The header Allow lists the methods that it supports.")
}

// readRequest reads the body of a request into the call. It refuses requests that are too large, or that two parsers
// could read differently.
func readRequest(w http.ResponseWriter, r *http.Request) *Problem {
	problems := func(status int, code sqlstate.Code, format string, args ...any) *Problem {
		return newProblem(status, sqlstate.New(code, sqlstate.ReasonSyntax, format, args...))
	}
	if len(r.URL.RawQuery) > maxQueryBytes {
		return problems(http.StatusRequestURITooLong, sqlstate.ProgramLimitExceeded, "the query is longer than %d bytes",
			maxQueryBytes)
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problems(http.StatusBadRequest, sqlstate.InvalidParameterValue, "the query cannot be read")
	}
	for name, values := range query {
		if len(values) != 1 {
			return problems(http.StatusBadRequest, sqlstate.InvalidParameterValue, "a parameter of the query is given twice")
		}
		if !utf8.ValidString(name) || !utf8.ValidString(values[0]) {
			return problems(http.StatusBadRequest, sqlstate.CharacterNotInRepertoire, "the query is not UTF-8")
		}
	}
	for _, values := range r.Header {
		for _, value := range values {
			if !utf8.ValidString(value) {
				return problems(http.StatusBadRequest, sqlstate.CharacterNotInRepertoire, "a header is not UTF-8")
			}
		}
	}
	if len(r.Header.Values("Idempotency-Key")) > 1 {
		return problems(http.StatusBadRequest, sqlstate.InvalidParameterValue, "the header Idempotency-Key is given twice")
	}
	tooLarge := func() *Problem {
		w.Header().Set("Connection", "close")
		return problems(http.StatusRequestEntityTooLarge, sqlstate.ProgramLimitExceeded, "the body is larger than %d bytes",
			maxBodyBytes)
	}
	if r.ContentLength > maxBodyBytes {
		return tooLarge()
	}
	control := http.NewResponseController(w)
	// If w does not support deadlines, the read timeout of the HTTP server applies.
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	_ = control.SetReadDeadline(time.Time{})
	if err != nil {
		var tooLargeError *http.MaxBytesError
		if errors.As(err, &tooLargeError) {
			return tooLarge()
		}
		w.Header().Set("Connection", "close")
		return problems(http.StatusBadRequest, sqlstate.ProtocolViolation, "the body did not arrive")
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if len(body) == 0 {
		return nil
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return problems(http.StatusBadRequest, sqlstate.ProtocolViolation, "a GET has no body")
	}
	if r.Header.Get("Content-Encoding") != "" {
		return problems(http.StatusUnsupportedMediaType, sqlstate.FeatureNotSupported,
			"the body is encoded: send it as it is")
	}
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := parameters["charset"]; err != nil || kind != "application/json" ||
		charset != "" && !strings.EqualFold(charset, "utf-8") {
		return problems(http.StatusUnsupportedMediaType, sqlstate.FeatureNotSupported, "the body is not application/json")
	}
	r.Header.Set("Content-Type", kind) // Package huma compares content types in lower case.
	if err := strictjson.Check(body, strictjson.MaxDepth); err != nil {
		code := sqlstate.InvalidParameterValue
		if !utf8.Valid(body) {
			code = sqlstate.CharacterNotInRepertoire
		}
		return problems(http.StatusBadRequest, code, "the body cannot be taken: %v", err)
	}
	if call, ok := r.Context().Value(callKey{}).(*Call); ok {
		call.body = body
	}
	return nil
}

// recordCall writes the audit record of the call, before any byte of the answer is sent.
func (s *Server) recordCall(ctx context.Context, call *Call, a *bufferedAnswer) error {
	if call.skipsAudit {
		return nil
	}
	callerName := call.Caller.Name
	if call.Caller.Role == identity.Subject {
		callerName = call.Caller.Subject
	}
	rec := audit.Call{
		Interface: "http", CallerName: callerName, Role: string(call.Caller.Role), Agent: call.Caller.Agent,
		Database: call.Caller.Database, Operation: call.operation,
		MayChangeData: call.mayWrite, Subjects: call.auditSubjects, AboutEverybody: call.aboutEverybody,
		Outcome: audit.OutcomeDone,
	}
	switch {
	case a.status >= 500:
		rec.Outcome = audit.OutcomeFailed
	case a.status >= 400:
		rec.Outcome = audit.OutcomeRefused
	}
	if a.status >= 400 {
		var p Problem
		_ = json.Unmarshal(a.body.Bytes(), &p)
		rec.Code = p.Code
	}
	return s.Service.Record(context.WithoutCancel(ctx), rec)
}

// answerBusy answers a call for which the server has no capacity now.
func answerBusy(w http.ResponseWriter, hint string) {
	w.Header().Set("Retry-After", "1")
	newProblem(http.StatusServiceUnavailable,
		sqlstate.New(sqlstate.TooManyConnections, sqlstate.ReasonLimit, "%s",
			hint).WithHint("Try again in a moment.")).write(w)
}

// answerTooMany answers a caller that has exceeded its rate limit.
func answerTooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	newProblem(http.StatusTooManyRequests, sqlstate.New(sqlstate.LimitExceeded, sqlstate.ReasonLimit,
		"too many calls").WithHint("Wait a second, and call less often.")).write(w)
}

// clientAddress returns the address from which a call comes, without the port.
func clientAddress(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// logCause returns the cause of an error, which is for the log, or "" if the error has none.
func logCause(err error) string {
	if e := sqlstate.AsError(err); e.Cause != nil {
		return e.Cause.Error()
	}
	return ""
}

// bufferedAnswer holds an answer until the audit record of the call has been written.
type bufferedAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *bufferedAnswer) Header() http.Header { return a.header }

func (a *bufferedAnswer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *bufferedAnswer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// reset discards the buffered answer.
func (a *bufferedAnswer) reset() { a.header, a.status = http.Header{}, 0; a.body.Reset() }

// writeTo sends the buffered answer.
func (a *bufferedAnswer) writeTo(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes())
}
