package privacy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Error is an error with a name, which HTTP and MCP show. It wraps a *sqlstate.Error. Its text does not reveal anything
// that is hidden from the caller.
type Error struct {
	name string
	err  *sqlstate.Error
}

func (e *Error) Error() string { return e.err.Message }

// Unwrap returns the *sqlstate.Error.
func (e *Error) Unwrap() error { return e.err }

// Name returns the name of the error. Names stay the same in all versions.
func (e *Error) Name() string { return e.name }

// These are the names of errors.
const (
	NameNotFound   = "PrivacyNotFoundError"
	NameForbidden  = "PrivacyForbiddenError"
	NameValidation = "PrivacyValidationError"
	NameConflict   = "PrivacyConflictError"
	NameBusy       = "PrivacyBusyError"    // another transaction has locked the row; nothing was changed
	NameBlocked    = "PrivacyBlockedError" // a belief may reveal whom its source is about
	NameRefused    = "PrivacyRefusedError" // the policy or the proxy refuses for another reason; see the SQLSTATE
)

var codesByName = map[string]sqlstate.Code{
	NameNotFound: sqlstate.ConsentNotFound, NameForbidden: sqlstate.InsufficientPrivilege,
	NameValidation: sqlstate.ConsentValidation, NameBlocked: sqlstate.ConsentValidation,
	NameConflict: sqlstate.ConsentConflict,
}

// newError returns an error with a name, a hint and a text.
func newError(name, hint, format string, args ...any) *Error {
	return &Error{name, sqlstate.New(codesByName[name], sqlstate.ReasonConsent, "%s", fmt.Sprintf(format, args...)).
		WithHint("%s", hint)}
}

// newNotFoundError returns the error for an object that does not exist, or that the caller may not see.
func newNotFoundError(kind string) *Error {
	return newError(NameNotFound, "Ids match whole: upper and lower case differ. What you may not see is not there.",
		"there is no such %s for you", kind)
}

const lockNotAvailable = "55P03"

// translateDatabaseError turns an error that the proxy or PostgreSQL has returned into an [Error] with the same text.
// Every client gets this text.
func translateDatabaseError(err error) error {
	var pg *pgconn.PgError
	if err == nil || !errors.As(err, &pg) {
		return err
	}
	name := NameRefused
	switch {
	case pg.Code == lockNotAvailable:
		return &Error{NameBusy, sqlstate.New(lockNotAvailable, sqlstate.ReasonConsent,
			"another transaction has changed the row and holds it: nothing was changed").
			WithHint("Try again. The policy's transaction_timeout under limits says how long an agent's " +
				"transaction lasts at most; pgconsent agent disable ends its sessions.")}
	case pg.Code == "22P02": // An id that the column's type does not allow is the id of no row.
		return newNotFoundError("row")
	case pg.Code == string(sqlstate.InsufficientPrivilege):
		name = NameForbidden
	case pg.Code == "23505":
		name = NameConflict
	case strings.HasPrefix(pg.Code, "22"):
		name = NameValidation
	}
	return &Error{name, sqlstate.New(sqlstate.Code(pg.Code), sqlstate.ReasonConsent, "%s", pg.Message).WithHint("%s", pg.Hint)}
}
