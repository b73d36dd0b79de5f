package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Server is the MCP server. It is an [http.Handler] for one path.
type Server struct {
	Config

	tools        []Tool // sorted by name
	openSessions *sessionTable
	sdkHandler   *sdk.StreamableHTTPHandler
	crossOrigin  *http.CrossOriginProtection
}

// NewServer makes a server. [Server.Run] has to run as long as the server is used.
func NewServer(c Config) (*Server, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{Config: c, openSessions: newSessions(), crossOrigin: http.NewCrossOriginProtection()}
	for _, toolSet := range toolSets {
		s.tools = append(s.tools, toolSet()...)
	}
	slices.SortFunc(s.tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	s.sdkHandler = sdk.NewStreamableHTTPHandler(
		func(r *http.Request) *sdk.Server {
			if session, ok := sessionOf(r.Context()); ok {
				return session.sdkServer
			}
			return nil
		},
		&sdk.StreamableHTTPOptions{JSONResponse: true, MaxRequestBodyBytes: maxMessageBytes,
			Logger: slog.New(slog.DiscardHandler)},
	)
	return s, nil
}

// Run ends sessions that are idle for too long or whose token is no longer valid. When ctx is canceled, Run ends all
// sessions and returns.
func (s *Server) Run(ctx context.Context) {
	tick := time.NewTicker(s.TokenCheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			for _, session := range s.openSessions.list() {
				s.openSessions.remove(session)
			}
			return
		case <-tick.C:
		}
		for _, session := range s.openSessions.list() {
			if !s.isValid(ctx, session) || time.Since(session.lastUsed()) > s.IdleTimeout {
				s.openSessions.remove(session)
			}
		}
		s.openSessions.dropUnusedCallers()
	}
}

// isValid reports whether the session's token is still valid and still identifies the same caller.
func (s *Server) isValid(ctx context.Context, session *mcpSession) bool {
	now, err := s.Verifier.Verify(ctx, session.bearer)
	return err == nil && ownerOf(now) == ownerOf(session.caller) && now.Subject == session.caller.Subject && now.Agent == session.caller.Agent
}

type sessionKey struct{}

func withSession(ctx context.Context, session *mcpSession) context.Context {
	return context.WithValue(ctx, sessionKey{}, session)
}

func sessionOf(ctx context.Context) (*mcpSession, bool) {
	session, ok := ctx.Value(sessionKey{}).(*mcpSession)
	return session, ok
}

// newSession makes a server of the SDK, which serves a single session.
func (s *Server) newSession(session *mcpSession) *sdk.Server {
	out := sdk.NewServer(&sdk.Implementation{Name: "pgconsent", Title: "pgconsent: rows by consent",
		Version: s.Version}, &sdk.ServerOptions{
		Instructions: roleInstructions(session.caller.Role),
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		GetSessionID: func() string { return session.id },
		Logger:       slog.New(slog.DiscardHandler),
	})
	out.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			switch method {
			case "tools/list":
				return s.listTools(session), nil
			case "tools/call":
				call, ok := req.(*sdk.CallToolRequest)
				if !ok {
					return nil, errors.New("mcp: tools/call without its parameters")
				}
				return s.callTool(ctx, session, call.Params)
			}
			out, err := next(ctx, method, req)
			if discovered, ok := out.(*sdk.DiscoverResult); ok {
				discovered.CacheScope = "private" // The answer depends on the token, as the list of tools does.
			}
			return out, err
		}
	})
	return out
}

// listTools returns the tools that a caller is offered, sorted by name. The tools that the policy declares come last.
func (s *Server) listTools(session *mcpSession) *sdk.ListToolsResult {
	out := &sdk.ListToolsResult{Tools: []*sdk.Tool{}}
	out.CacheScope = "private" // The list depends on the token, so that caches must not share it between callers.
	for _, t := range s.offeredTools(session.caller) {
		out.Tools = append(out.Tools, t.describe())
	}
	return out
}

func (s *Server) offeredTools(caller identity.Caller) []Tool {
	service := s.Databases[caller.Database]
	if service == nil {
		return nil
	}
	var out []Tool
	for _, t := range s.tools {
		if t.isOfferedTo(caller.Role, service) {
			out = append(out, t.forDatabase(service))
		}
	}
	if caller.Role == identity.Agent {
		out = append(out, memoryTools(service)...)
		out = append(out, publishedTools(service)...)
	}
	return out
}

func (s *Server) findTool(c identity.Caller, name string) (Tool, bool) {
	offeredTools := s.offeredTools(c)
	i := slices.IndexFunc(offeredTools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return offeredTools[i], true
}

// callTool runs a tool. An error of the tool is a result, so that the model can read it. Only for an unknown tool it
// returns an error of the protocol.
func (s *Server) callTool(ctx context.Context, session *mcpSession, p *sdk.CallToolParamsRaw) (*sdk.CallToolResult,
	error) {
	c := &Call{Caller: session.caller, Database: s.Databases[session.caller.Database], server: s, session: session}
	t, ok := s.findTool(session.caller, p.Name)
	if !ok {
		f := newCallError(sqlstate.New(sqlstate.UndefinedFunction, sqlstate.ReasonFunction, "there is no tool %q for you", truncateText(p.Name)).
			WithHint("tools/list has those that a token of the role %s may call.", session.caller.Role))
		if recordError := s.recordCall(ctx, c, Tool{Name: "unknown", ReadOnly: true}, &f); recordError != nil {
			f = *recordError
		}
		data, err := json.Marshal(f)
		if err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: invalidParams, Message: f.Message, Data: data}
	}
	out, err := s.runTool(ctx, c, t, p.Arguments)
	var f *callError
	if err != nil {
		callErr := newCallError(err)
		if f = &callErr; callErr.cause != nil {
			s.Log.Error("mcp", "tool", t.Name, "database", session.caller.Database, "error", callErr.cause)
		}
	}
	if !t.SkipsAudit && !c.hasConnected {
		if recordError := s.recordCall(ctx, c, t, f); recordError != nil {
			f = recordError
		}
	}
	if f == nil && !s.isValid(ctx, session) { // The token may have been revoked during the call.
		callErr := newCallError(identity.NewRefusal(nil))
		f = &callErr
	}
	if f != nil {
		out := f.toolResult()
		out.Content = append(out.Content, c.noticeContent()...)
		return out, nil
	}
	text, err := json.Marshal(out)
	if err != nil {
		callErr := newCallError(err)
		return callErr.toolResult(), nil
	}
	content := append([]sdk.Content{&sdk.TextContent{Text: string(text)}}, c.noticeContent()...)
	return &sdk.CallToolResult{Content: content, StructuredContent: json.RawMessage(text)}, nil
}

func (s *Server) runTool(ctx context.Context, c *Call, t Tool, arguments json.RawMessage) (any, error) {
	arguments, err := t.checkArguments(arguments)
	if err != nil {
		return nil, err
	}
	select {
	case c.session.callSlots <- struct{}{}:
		defer func() { <-c.session.callSlots }()
	default:
		return nil, sqlstate.New(sqlstate.TooManyConnections, sqlstate.ReasonLimit,
			"%d calls of this token are under way", maxConcurrentCalls).WithHint("Wait for an answer, then call again.")
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	defer context.AfterFunc(c.session.ctx, cancel)()
	return t.run(ctx, c, arguments)
}

// recordCall writes the audit record of a call, and returns an error for the caller if the record cannot be written.
func (s *Server) recordCall(ctx context.Context, c *Call, t Tool, f *callError) *callError {
	call := audit.Call{
		Interface: "mcp", CallerName: c.Caller.Name, Role: string(c.Caller.Role), Agent: c.Caller.Agent,
		Database: c.Caller.Database, Operation: "tool " + t.Name,
		MayChangeData: !t.ReadOnly && !t.ReadsOrWrites, Subjects: c.auditSubjects, AboutEverybody: c.aboutEverybody,
		Outcome: audit.OutcomeDone,
	}
	if c.Caller.Role == identity.Subject {
		call.CallerName = c.Caller.Subject
	}
	if f != nil {
		call.Code, call.Outcome = f.SQLSTATE, audit.OutcomeFailed
		if f.isRefusal() {
			call.Outcome = audit.OutcomeRefused
		}
	}
	// The record is written even if the client has disconnected.
	if err := s.Record(context.WithoutCancel(ctx), call); err != nil {
		recordError := newCallError(err)
		return &recordError
	}
	return nil
}
