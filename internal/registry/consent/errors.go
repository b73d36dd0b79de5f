package consent

import (
	"fmt"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Each error of this package wraps a *sqlstate.Error. HTTP, MCP and the command line show its name. Its text names no
// person.

// Named is an error with a name by which callers can recognise it.
type Named interface {
	error
	Name() string
}

type baseError struct{ sqlError *sqlstate.Error }

func (f baseError) Error() string { return f.sqlError.Message }

func (f baseError) Unwrap() error { return f.sqlError }

func newBaseError(code sqlstate.Code, format string, args []any) baseError {
	return baseError{sqlstate.New(code, sqlstate.ReasonConsent, "%s", fmt.Sprintf(format, args...))}
}

// NotFoundError is the error that the subject has no such consent.
type NotFoundError struct{ baseError }

// Name returns the error's name, for [Named].
func (*NotFoundError) Name() string { return "ConsentNotFoundError" }

// ValidationError is the error that a change makes no sense, or is not possible in the present state.
type ValidationError struct {
	baseError

	// NotRequested is true if the command decides about a partnership that nobody has requested.
	NotRequested bool
}

// Name returns the error's name, for [Named].
func (*ValidationError) Name() string { return "ConsentValidationError" }

func (e *ValidationError) hint(format string, args ...any) *ValidationError {
	e.sqlError = e.sqlError.WithHint(format, args...)
	return e
}

// ExpiredError is the error that the consent, or the request for a partnership, has expired.
type ExpiredError struct{ baseError }

// Name returns the error's name, for [Named].
func (*ExpiredError) Name() string { return "ConsentExpiredError" }

// ForbiddenError is the error that the caller may not make the change.
type ForbiddenError struct{ baseError }

// Name returns the error's name, for [Named].
func (*ForbiddenError) Name() string { return "ConsentForbiddenError" }

// ConflictError is the error that another change has already used the RequestKey.
type ConflictError struct{ baseError }

// Name returns the error's name, for [Named].
func (*ConflictError) Name() string { return "ConsentConflictError" }

// ClockError is the error that the database's clock is behind the last record, so that the length of a new consent
// would be uncertain.
type ClockError struct{ baseError }

// Name returns the error's name, for [Named].
func (*ClockError) Name() string { return "ConsentClockError" }

func newNotFoundError() *NotFoundError {
	e := &NotFoundError{newBaseError(sqlstate.ConsentNotFound, "there is no consent of this subject", nil)}
	e.sqlError = e.sqlError.WithHint("Ids must match completely; upper and lower case differ.")
	return e
}

func newValidationError(format string, args ...any) *ValidationError {
	return &ValidationError{baseError: newBaseError(sqlstate.ConsentValidation, format, args)}
}

func newExpiredError(format string, args ...any) *ExpiredError {
	e := &ExpiredError{newBaseError(sqlstate.ConsentExpired, format, args)}
	e.sqlError = e.sqlError.WithHint("The subject can consent again.")
	return e
}

func newForbiddenError(role Role, format string, args ...any) *ForbiddenError {
	e := &ForbiddenError{newBaseError(sqlstate.InsufficientPrivilege, format, args)}
	e.sqlError = e.sqlError.WithHint("This was asked by the role %q.", string(role))
	return e
}

// NewNotFound returns a [NotFoundError] for a store that finds no consent.
func NewNotFound() error { return newNotFoundError() }

// NewValidation returns a [ValidationError] for a request that cannot be turned into a command.
func NewValidation(format string, args ...any) error { return newValidationError(format, args...) }

// NewExpired returns an [ExpiredError] for a reader who finds an expired consent.
func NewExpired(format string, args ...any) error { return newExpiredError(format, args...) }

// NewConflict returns a [ConflictError].
func NewConflict() error {
	e := &ConflictError{newBaseError(sqlstate.ConsentConflict, "the request's key was used before, for another change", nil)}
	e.sqlError = e.sqlError.WithHint("Make a new key for each change; send the same key again only to repeat the same change.")
	return e
}

// NewClock returns a [ClockError].
func NewClock() error {
	e := &ClockError{newBaseError(sqlstate.ConsentClock,
		"the database's clock is behind the last consent record: nothing is granted", nil)}
	e.sqlError = e.sqlError.WithHint("Set the clock of the database server right. Withdrawals are recorded meanwhile.")
	return e
}
