package sqlstate

import "errors"

// LoginFailed is the error of a connection of pgconsent to the database server, as role, that could not be had: 53300
// where the server has no room for it, which is over as soon as somebody leaves, else 08006. The message says nothing
// of the cause, which is for the log.
func LoginFailed(role string, cause error) *Error {
	var server interface{ SQLState() string }
	if errors.As(cause, &server) && Code(server.SQLState()) == TooManyConnections {
		return New(TooManyConnections, ReasonUpstream, "the database server has no connection to spare for %s", role).
			WithHint("Try again in a moment. max_connections of the server says how many there are; sessions and " +
				"max_sessions under limits bound how many agents take.").
			WithCause(cause)
	}
	return New(ConnectionFailure, ReasonUpstream, "pgconsent cannot log in to the server as %s", role).WithCause(cause)
}
