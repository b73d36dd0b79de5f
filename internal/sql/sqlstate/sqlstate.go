// Package sqlstate is the one error type of pgconsent and every SQLSTATE it sends.
//
// An error is made where the fact is known, with what to do about it in the hint, and rendered once per face: as an
// ErrorResponse by proxy, as problem JSON or a tool error by the HTTP and MCP faces. A message names constructs, tables
// and rules; it never holds a row value, a parameter or a secret (DESIGN invariants I9 and I10).
package sqlstate

import (
	"errors"
	"fmt"
)

// Code is a five-character SQLSTATE of [0-9A-Z].
type Code string

// The SQLSTATEs of pgconsent's own errors. An error of the server that reaches the client keeps the SQLSTATE of the
// server.
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

	// Consent: class PC, where the number is the status that HTTP gives.
	ConsentNotFound   Code = "PC404"
	ConsentConflict   Code = "PC409"
	ConsentExpired    Code = "PC410"
	ConsentValidation Code = "PC422"
	ConsentTampered   Code = "PC500"
	ConsentClock      Code = "PC503"
)

// Reason is the bounded class of a refusal: the label of metrics and the word in the audit.
type Reason string

// Every reason there is.
const (
	ReasonNone        Reason = ""            // not a refusal
	ReasonSyntax      Reason = "syntax"      // the parser does not know the text
	ReasonBounds      Reason = "bounds"      // too long, too deep, NUL, not UTF-8
	ReasonStatement   Reason = "statement"   // a statement kind agents may not send
	ReasonConstruct   Reason = "construct"   // a node, clause or option that is not allowed
	ReasonRelation    Reason = "relation"    // a relation without policy, or one that may not be read
	ReasonColumn      Reason = "column"      // a system column, or a column out of reach
	ReasonFunction    Reason = "function"    // a function, operator or type off the allowlist
	ReasonSetting     Reason = "setting"     // a setting off the allowlist, or a pinned one
	ReasonTransaction Reason = "transaction" // an isolation level or transaction option
	ReasonProof       Reason = "proof"       // the spliced text did not parse to the intended tree
	ReasonContract    Reason = "contract"    // a contract of the policy does not allow the statement in this session
	ReasonStale       Reason = "stale"       // policy or catalog changed under a prepared statement
	ReasonLimit       Reason = "limit"       // a rate or a size of the policy is used up
	ReasonAudit       Reason = "audit"       // the record could not be written
	ReasonProtocol    Reason = "protocol"    // a message agents may not send
	ReasonIdentity    Reason = "identity"    // no or wrong credential, no seal
	ReasonUpstream    Reason = "upstream"    // the server failed
	ReasonConsent     Reason = "consent"     // a change of consent that cannot be made
	ReasonInternal    Reason = "internal"    // anything else
)

// Error is what a client is told. The zero value is not usable; make one with [New].
type Error struct {
	Code     Code
	Message  string
	Detail   string
	Hint     string
	Position int    // 1-based, in characters of the client's text; 0: none
	Reason   Reason // never sent to a client
	Cause    error  // for the log only, never sent to a client
}

// New makes an error; the message is for people who have not read the code.
func New(code Code, reason Reason, format string, args ...any) *Error {
	return &Error{Code: code, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns e with what to do about it.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithDetail returns e with a detail.
func (e *Error) WithDetail(format string, args ...any) *Error {
	e.Detail = fmt.Sprintf(format, args...)
	return e
}

// WithCause returns e with the cause that only the log sees.
func (e *Error) WithCause(err error) *Error {
	e.Cause = err
	return e
}

// At returns e with a position, 1-based in characters of the client's text.
func (e *Error) At(position int) *Error {
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

// From returns the *Error in err's chain, or an internal error with a fixed text whose cause is err. It returns nil for
// nil.
func From(err error) *Error {
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
