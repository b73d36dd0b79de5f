// Package sqlstate has the one error type of pgconsent, and every SQLSTATE that it sends.
//
// An error is made where its cause is known, with a hint that says what to do. Each protocol sends it in its own form:
// proxy as an ErrorResponse, HTTP as problem JSON, and MCP as a tool error. A message names constructs, tables and
// rules. It never contains a row value, a parameter or a secret (invariants I9 and I10 in
// docs/explanation/invariants.md).
package sqlstate

import (
	"errors"
	"fmt"
)

// Code is a five-character SQLSTATE of [0-9A-Z].
type Code string

// The SQLSTATEs of pgconsent's own errors. Errors of the server reach the client with the server's SQLSTATE.
const (
	SuccessfulCompletion         Code = "00000"
	FeatureNotSupported          Code = "0A000"
	ProtocolViolation            Code = "08P01"
	ConnectionFailure            Code = "08006"
	ConnectionRejected           Code = "08004"
	CharacterNotInRepertoire     Code = "22021"
	InvalidAuthorization         Code = "28000"
	InvalidPassword              Code = "28P01"
	InvalidCatalogName           Code = "3D000"
	UndefinedSchema              Code = "3F000"
	SerializationFailure         Code = "40001"
	SyntaxError                  Code = "42601"
	InsufficientPrivilege        Code = "42501"
	UndefinedTable               Code = "42P01"
	UndefinedColumn              Code = "42703"
	InvalidColumnReference       Code = "42P10"
	UndefinedFunction            Code = "42883"
	UndefinedObject              Code = "42704"
	DuplicateObject              Code = "42710"
	DuplicateTable               Code = "42P07"
	DuplicateSchema              Code = "42P06"
	InvalidParameterValue        Code = "22023"
	StatementTooComplex          Code = "54001"
	ProgramLimitExceeded         Code = "54000"
	LimitExceeded                Code = "53400"
	TooManyConnections           Code = "53300"
	QueryCanceled                Code = "57014"
	AdminShutdown                Code = "57P01"
	ObjectNotInPrerequisiteState Code = "55000"
	CannotConnectNow             Code = "57P03"
	IOError                      Code = "58030"
	InternalError                Code = "XX000"
	ActiveTransaction            Code = "25001"
	InFailedSQLTransaction       Code = "25P02"
	TransactionTimeout           Code = "25P04"
	ConfigFileError              Code = "F0000"

	// SQLSTATEs of class PC are about consent. Their numbers are the status codes that HTTP returns.
	ConsentNotFound   Code = "PC404"
	ConsentConflict   Code = "PC409"
	ConsentExpired    Code = "PC410"
	ConsentValidation Code = "PC422"
	ConsentTampered   Code = "PC500"
	ConsentClock      Code = "PC503"
)

// Reason is the class of a refusal, one of a fixed set. It is a label of metrics and a member of audit records.
type Reason string

// All reasons for a refusal.
const (
	ReasonNone   Reason = ""       // there was no refusal
	ReasonSyntax Reason = "syntax" // the parser does not accept the syntax of the statement
	// the statement is too long or too deeply nested, contains NUL, or is not UTF-8
	ReasonBounds      Reason = "bounds"
	ReasonStatement   Reason = "statement"   // agents may not send a statement of this kind
	ReasonConstruct   Reason = "construct"   // agents may not use a node, clause or option
	ReasonRelation    Reason = "relation"    // the policy does not list a relation, or agents may not read it
	ReasonColumn      Reason = "column"      // agents may not use a system column, or a column is hidden
	ReasonFunction    Reason = "function"    // a function, operator or type is not on the list of what agents may use
	ReasonSetting     Reason = "setting"     // a setting is not on the list of what agents may set, or is fixed
	ReasonTransaction Reason = "transaction" // agents may not use an isolation level or transaction option
	ReasonProof       Reason = "proof"       // the rewritten text did not parse into the intended tree
	ReasonContract    Reason = "contract"    // a contract of the policy does not allow the statement in this session
	ReasonStale       Reason = "stale"       // the policy or the catalog has changed since a statement was prepared
	ReasonLimit       Reason = "limit"       // the statement exceeds a rate or a size that the policy permits
	ReasonAudit       Reason = "audit"       // the audit record could not be written
	ReasonProtocol    Reason = "protocol"    // agents may not send a protocol message
	// a credential is missing or wrong, or the session has no signed identity (seal)
	ReasonIdentity Reason = "identity"
	ReasonUpstream Reason = "upstream" // the server failed or cannot be reached
	ReasonConsent  Reason = "consent"  // a change of consent cannot be made
	ReasonInternal Reason = "internal" // anything else
)

// Error is an error in the form in which clients get it. The zero value is not usable; make errors with [New].
type Error struct {
	Code     Code
	Message  string
	Detail   string
	Hint     string
	Position int    // the position, counted from 1, in characters of the client's text; 0: none
	Reason   Reason // the class of the refusal, which is never sent to a client
	Cause    error  // the cause, which is for the log and never sent to a client
}

// New returns an error. The message must be clear to people who do not know the code.
func New(code Code, reason Reason, format string, args ...any) *Error {
	return &Error{Code: code, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns the error with a hint that says what to do.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithDetail returns the error with a detail.
func (e *Error) WithDetail(format string, args ...any) *Error {
	e.Detail = fmt.Sprintf(format, args...)
	return e
}

// WithCause returns the error with its cause, which only the log shows.
func (e *Error) WithCause(err error) *Error {
	e.Cause = err
	return e
}

// WithPosition returns the error with a position, counted from 1, in characters of the client's text.
func (e *Error) WithPosition(position int) *Error {
	e.Position = position
	return e
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s (SQLSTATE %s): %v", e.Message, e.Code, e.Cause)
	}
	return fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code)
}

func (e *Error) Unwrap() error { return e.Cause }

// AsError returns the *Error that err is or wraps, or else an internal error with a fixed text whose cause is err. It
// returns nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return New(InternalError, ReasonInternal, "internal error in pgconsent").
		WithHint("The operator of pgconsent finds the cause in its log.").WithCause(err)
}
