package sqlstate

import "errors"

// LoginFailedError returns the error for a failed connection of pgconsent, as role, to the database server. The code is
// 53300 if the server has no room for a further connection, which ends as soon as another client leaves, and otherwise
// 08006. The message says nothing of the cause, which is for the log.
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
