package sqlstate

import "errors"

// LoginFailedError returns the error that a client gets if pgconsent cannot connect to the database server as role. The
// code is 53300 if the server has no free connection slot, which may change soon, and otherwise 08006. The message does
// not tell the cause, which is only logged.
func LoginFailedError(role string, cause error) *Error {
	var serverError interface{ SQLState() string }
	if errors.As(cause, &serverError) && Code(serverError.SQLState()) == TooManyConnections {
		return New(TooManyConnections, ReasonUpstream, "the database server has no connection to spare for %s", role).
			WithHint("Try again in a moment. max_connections of the server says how many there are; sessions and " +
				"max_sessions under limits bound how many agents take.").
			WithCause(cause)
	}
	return New(ConnectionFailure, ReasonUpstream, "pgconsent cannot log in to the server as %s", role).WithCause(cause)
}
