package air

import "github.com/pgconsent/pgconsent/internal/sql/sqlstate"

// Caller is the holder of the token in a request over HTTP or MCP.
type Caller struct {
	Role     string // subject, system or agent; SessionKey refuses other roles
	Subject  string // the user, for the role subject
	Agent    string // the agent's name, for the role agent
	Database string
}

// SessionKey returns the key of the session that the caller means, or an error if the caller may not record it. Users
// have their own sessions, and applications (role system) the sessions of all users. An agent has those that it has
// recorded itself. The error (42501) is the same whether the user exists or not.
func (c Caller) SessionKey(user, channel string) (SessionKey, error) {
	k := SessionKey{Database: c.Database, User: user, Channel: channel}
	switch {
	case c.Role == "system":
	case c.Role == "subject" && c.Subject != "" && c.Subject == user:
		k.RecordedByUser = true
	case c.Role == "agent" && c.Agent != "":
		k.RecordedBy = c.Agent
	default:
		return SessionKey{}, sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonConsent,
			"interactions of this user are not yours to record or to read").
			WithHint("A user's token has that user's own sessions, a token of the role system those of all users, " +
				"an agent's those that it recorded.")
	}
	return k, k.check()
}
