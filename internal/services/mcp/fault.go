package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// callError is the error of a call of a tool. A model reads its text, and a program its members.
type callError struct {
	SQLSTATE string `json:"sqlstate"`
	Name     string `json:"name,omitempty"` // name of an error of consent, such as ConsentNotFoundError
	Message  string `json:"message"`
	Detail   string `json:"detail,omitempty"`
	Hint     string `json:"hint,omitempty"`
	Position int32  `json:"position,omitempty"` // position of the error in the statement, in characters, from 1

	cause error // for the log only
}

// newCallError converts an error to a callError. Errors of PostgreSQL have been filtered by the proxy. Of all other
// errors, only a *sqlstate.Error has a text that the caller may see.
func newCallError(err error) callError {
	var serverError *pgconn.PgError
	if errors.As(err, &serverError) {
		return callError{SQLSTATE: serverError.Code, Message: serverError.Message, Detail: serverError.Detail,
			Hint: serverError.Hint, Position: serverError.Position}
	}
	var ownError *sqlstate.Error
	if !errors.As(err, &ownError) && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return callError{SQLSTATE: "57014", Message: "the call was ended before it was done",
			Hint: "It took too long or was cancelled. Ask for less: a condition, a LIMIT, an aggregate."}
	}
	e := sqlstate.AsError(err)
	f := callError{SQLSTATE: string(e.Code), Message: e.Message, Detail: e.Detail, Hint: e.Hint,
		Position: int32(e.Position), cause: e.Cause}
	var namedError consent.Named
	if errors.As(err, &namedError) {
		f.Name = namedError.Name()
	}
	return f
}

// jsonText returns the error and its hint as the text for a model.
func (f callError) jsonText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ERROR %s: ", f.SQLSTATE)
	if f.Name != "" {
		fmt.Fprintf(&b, "%s: ", f.Name)
	}
	b.WriteString(f.Message)
	if f.Position > 0 {
		fmt.Fprintf(&b, "\nPOSITION: character %d of the statement", f.Position)
	}
	if f.Detail != "" {
		fmt.Fprintf(&b, "\nDETAIL: %s", f.Detail)
	}
	if f.Hint != "" {
		fmt.Fprintf(&b, "\nHINT: %s", f.Hint)
	}
	return b.String()
}

// toolResult returns the error as the result of a call of a tool.
func (f callError) toolResult() *sdk.CallToolResult {
	errorJSON, err := json.Marshal(map[string]callError{"error": f})
	if err != nil {
		errorJSON = []byte(`{"error":{"sqlstate":"XX000","message":"internal error in pgconsent"}}`)
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: f.jsonText()}},
		StructuredContent: json.RawMessage(errorJSON)}
}

// isRefusal reports whether the caller has caused the error, and not a failure of pgconsent or PostgreSQL.
func (f callError) isRefusal() bool {
	switch f.SQLSTATE[:2] {
	case "XX", "08", "57", "58", "53":
		return false
	}
	return f.SQLSTATE != string(sqlstate.ConsentTampered) && f.SQLSTATE != string(sqlstate.ConsentClock)
}
