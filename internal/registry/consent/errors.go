package consent

import (
	"fmt"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// The errors of consent. Each wraps a *sqlstate.Error, and has the name by which HTTP, MCP and the command line show
// it. Their texts name no person.

// Named is an error with a name that callers can test.
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

// NotFoundError is the error if there is no consent of this subject.
type NotFoundError struct{ baseError }

// Name implements Named.
func (*NotFoundError) Name() string { return "ConsentNotFoundError" }

// ValidationError is the error for a change that is not possible in the present state, or that makes no sense.
type ValidationError struct {
	baseError

	// NotRequested is true if the command decides about a partnership that nobody has requested.
	NotRequested bool
}

// Name implements Named.
func (*ValidationError) Name() string { return "ConsentValidationError" }

func (e *ValidationError) hint(format string, args ...any) *ValidationError {
	e.sqlError = e.sqlError.WithHint(format, args...)
	return e
}

// ExpiredError is the error if the consent, or the request for a partnership, has expired.
type ExpiredError struct{ baseError }

// Name implements Named.
func (*ExpiredError) Name() string { return "ConsentExpiredError" }

// ForbiddenError is the error if the party may not make the change.
type ForbiddenError struct{ baseError }

// Name implements Named.
func (*ForbiddenError) Name() string { return "ConsentForbiddenError" }

// ConflictError is the error if the key of a request was used before for another change.
type ConflictError struct{ baseError }

// Name implements Named.
func (*ConflictError) Name() string { return "ConsentConflictError" }

// ClockError is the error if the database's clock is behind the last record, so that nobody knows how long a consent
// would last.
type ClockError struct{ baseError }

// Name implements Named.
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

// NewNotFound returns the error of a store that finds no consent.
func NewNotFound() error { return newNotFoundError() }

// NewValidation returns the error for a request that no command can express.
func NewValidation(format string, args ...any) error { return newValidationError(format, args...) }

// NewExpired returns the error for a reader who finds an expired consent.
func NewExpired(format string, args ...any) error { return newExpiredError(format, args...) }

// NewConflict returns the error for a key that was used for another change.
func NewConflict() error {
	e := &ConflictError{newBaseError(sqlstate.ConsentConflict, "the request's key was used before, for another change", nil)}
	e.sqlError = e.sqlError.WithHint("Make a new key for each change; send the same key again only to repeat the same change.")
	return e
}

// NewClock returns the error of a store whose clock is behind its records.
func NewClock() error {
	e := &ClockError{newBaseError(sqlstate.ConsentClock,
		"the database's clock is behind the last consent record: nothing is granted", nil)}
	e.sqlError = e.sqlError.WithHint("Set the clock of the database server right. Withdrawals are recorded meanwhile.")
	return e
}
