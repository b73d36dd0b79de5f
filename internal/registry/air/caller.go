package air

import "github.com/pgconsent/pgconsent/internal/sql/sqlstate"

// Caller is a caller of HTTP or MCP.
type Caller struct {
	Role     string // the role: subject, system or agent; other roles are refused
	Subject  string // the subject, for the role subject
	Agent    string // the agent, for the role agent
	Database string
}

// SessionKey returns the session that a caller may record. A user has their own sessions, an application (role system)
// the sessions of all users, and an agent those that it has itself recorded. The error (42501) is the same whether the
// user exists or not.
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
