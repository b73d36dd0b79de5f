package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/jackc/pgx/v5"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Tool is a tool that the server offers. [NewTool] makes one.
type Tool struct {
	Name, Title string
	Description string          // for the model: what the tool does, when to use it, what it returns
	Roles       []identity.Role // roles that are offered the tool; no other may call it

	ReadOnly       bool // the tool changes nothing
	IsDestructive  bool // changes that the tool makes cannot be undone by another call
	IsIdempotent   bool // a repeated call makes no further change
	ReadsOrWrites  bool // the call decides whether data are changed; the audit records of its statements tell
	RunsStatements bool // the tool runs statements as the agent; the audit records the statements instead of the call
	SkipsAudit     bool // the audit does not record calls of the tool

	adaptToDatabase func(*Tool, *Database) // adapts the tool to a database; nil: the tool is the same for all

	// IsOfferedFor reports whether a database has what the tool needs; nil: every database has it.
	IsOfferedFor func(*Database) bool

	input, output  *jsonschema.Schema
	argumentSchema *jsonschema.Resolved
	run            func(context.Context, *Call, json.RawMessage) (any, error)
}

// Call is a call of a tool that is in progress.
type Call struct {
	Caller   identity.Caller
	Database *Database

	server         *Server
	session        *mcpSession
	auditSubjects  []string
	aboutEverybody bool
	hasConnected   bool

	noticesLock sync.Mutex
	notices     []string
}

// AddAuditSubjects adds ids of the persons that the call is about to the call's audit record.
func (c *Call) AddAuditSubjects(subjects ...string) {
	c.auditSubjects = append(c.auditSubjects, subjects...)
}

// SetAboutEverybody notes in the audit record that the call is about all persons of the database.
func (c *Call) SetAboutEverybody() { c.aboutEverybody = true }

// Connect opens a session of the caller's agent through the proxy, and applies the attributes of [Call.SetAttribute].
// The caller of Connect closes the connection. Errors of Connect may be shown to the client.
func (c *Call) Connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := c.server.Connect(ctx, c.Caller, c.addNotice)
	if err != nil {
		return nil, err
	}
	c.hasConnected = true
	conn.PgConn().Frontend().SetMaxBodyLen(maxRowBytes)
	for _, s := range c.session.setStatements() {
		if _, err := conn.Exec(ctx, s); err != nil {
			closeConnection(conn)
			return nil, err
		}
	}
	return conn, nil
}

// SetAttribute stores a statement that each later connection of this MCP session runs first. It must be a SET of an
// attribute that the policy lets agents claim. An empty statement removes the stored one.
func (c *Call) SetAttribute(setting, statement string) { c.session.rememberSetting(setting, statement) }

// nonEmptyArguments are arguments that may be left out but must not be "". Left out, some of them mean everybody or
// everything, which a caller with an empty string may not intend.
var nonEmptyArguments = []string{"user_id", "grantee", "scope", "store", "grantor", "id", "subject", "context", "source", "told_from"}

// NewTool makes a tool with the arguments In and the answer Out, which are structs. The tags of their fields give names
// and descriptions. A field without omitempty is required.
func NewTool[In, Out any](t Tool, run func(ctx context.Context, c *Call, in In) (Out, error)) Tool {
	in, err := jsonschema.For[In](nil)
	if err != nil {
		// In and Out are types of this package, so that an error is a programming mistake.
		panic(fmt.Sprintf("mcp: tool %s: %v", t.Name, err))
	}
	out, err := jsonschema.For[Out](nil)
	if err != nil {
		panic(fmt.Sprintf("mcp: tool %s: %v", t.Name, err))
	}
	minLength := 1
	for name, p := range in.Properties {
		if slices.Contains(nonEmptyArguments, name) {
			p.MinLength = &minLength
		}
	}
	t.input, t.output = in, answerSchema(out)
	t.resolveSchemas()
	t.run = func(ctx context.Context, c *Call, arguments json.RawMessage) (any, error) {
		var in In
		d := json.NewDecoder(bytes.NewReader(arguments))
		d.UseNumber()
		if err := d.Decode(&in); err != nil {
			return nil, t.invalidArguments(err)
		}
		return run(ctx, c, in)
	}
	return t
}

// RestrictMember returns the tool with an argument that accepts only the given values.
func (t Tool) RestrictMember(member string, values ...string) Tool {
	s := t.input.CloneSchemas()
	memberSchema := s.Properties[member]
	memberSchema.Enum = nil
	for _, v := range values {
		memberSchema.Enum = append(memberSchema.Enum, v)
	}
	t.input = s
	t.resolveSchemas()
	return t
}

// forDatabase returns the tool as adapted to a database.
func (t Tool) forDatabase(d *Database) Tool {
	if t.adaptToDatabase != nil {
		t.adaptToDatabase(&t, d)
	}
	return t
}

func (t *Tool) resolveSchemas() {
	strict, err := t.input.Resolve(nil)
	if err != nil {
		panic(fmt.Sprintf("mcp: tool %s: %v", t.Name, err))
	}
	t.argumentSchema = strict
}

// answerSchema returns the schema of what a call returns: either the tool's output, or an error.
func answerSchema(out *jsonschema.Schema) *jsonschema.Schema {
	s := out.CloneSchemas()
	s.Required = nil
	if s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{}
	}
	s.Properties["error"] = errorSchema()
	s.PropertyOrder = append(slices.Clone(s.PropertyOrder), "error")
	return s
}

var errorSchema = sync.OnceValue(func() *jsonschema.Schema {
	s, err := jsonschema.For[callError](nil)
	if err != nil {
		panic(err)
	}
	s.Description = "The error, in place of all other members."
	return s
})

// checkArguments checks the arguments of a call against the tool's schema.
func (t *Tool) checkArguments(arguments json.RawMessage) (json.RawMessage, error) {
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	var v any
	if err := json.Unmarshal(arguments, &v); err != nil {
		return nil, t.invalidArguments(err)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, t.invalidArguments(fmt.Errorf("arguments are an object"))
	}
	for _, name := range nonEmptyArguments {
		if p := t.input.Properties[name]; p != nil && p.MinLength != nil && object[name] == "" {
			return nil, t.invalidArguments(fmt.Errorf("%s is empty, which is not the same as left out", name))
		}
	}
	if err := t.argumentSchema.Validate(v); err != nil {
		return nil, t.invalidArguments(err)
	}
	return arguments, nil
}

// invalidArguments returns an error that lists the arguments of the tool. It replaces the validator's error, which
// names places in the schema and may quote the arguments.
func (t *Tool) invalidArguments(err error) error {
	var argumentNames []string
	for _, name := range t.argumentNames() {
		p := t.input.Properties[name]
		text := name + " (" + typeText(p)
		if !slices.Contains(t.input.Required, name) {
			text += ", optional"
		}
		argumentNames = append(argumentNames, text+")")
	}
	hint := "It takes no arguments."
	if len(argumentNames) > 0 {
		hint = "It takes " + strings.Join(argumentNames, ", ") + ", and nothing else."
	}
	reason := err.Error()
	if i := strings.LastIndex(reason, ": "); i >= 0 {
		reason = reason[i+2:]
	}
	return sqlstate.New(sqlstate.InvalidParameterValue, sqlstate.ReasonBounds,
		"the arguments are not those of %s: %s", t.Name, truncateText(reason)).WithHint("%s", hint)
}

// argumentNames returns the names of the tool's arguments.
func (t *Tool) argumentNames() []string {
	names := slices.Clone(t.input.PropertyOrder)
	if len(names) == 0 {
		for name := range t.input.Properties {
			names = append(names, name)
		}
		slices.Sort(names)
	}
	return names
}

// typeText describes the type of a schema's values in words.
func typeText(s *jsonschema.Schema) string {
	switch {
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, w := range s.Enum {
			words[i] = fmt.Sprint(w)
		}
		return strings.Join(words, " or ")
	case s.Type == "array" && s.Items != nil && s.Items.Type != "":
		return "array of " + s.Items.Type
	case s.Type != "":
		return s.Type
	}
	for _, typeName := range s.Types {
		if typeName != "null" {
			return typeName
		}
	}
	return "any"
}

// truncateText shortens a text that the caller may have sent, for an error message.
func truncateText(text string) string {
	const limit = 200
	if r := []rune(text); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return text
}

// describe returns the tool in the form of an answer to tools/list.
func (t *Tool) describe() *sdk.Tool {
	isOpenWorld := false
	a := &sdk.ToolAnnotations{Title: t.Title, ReadOnlyHint: t.ReadOnly, IdempotentHint: t.IsIdempotent ||
		t.ReadOnly, OpenWorldHint: &isOpenWorld}
	if !t.ReadOnly {
		destructive := t.IsDestructive
		a.DestructiveHint = &destructive
	}
	return &sdk.Tool{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.input,
		OutputSchema: t.output, Annotations: a}
}

func (t *Tool) isOfferedTo(role identity.Role, d *Database) bool {
	return slices.Contains(t.Roles, role) && (t.IsOfferedFor == nil || t.IsOfferedFor(d))
}
