package air

import "github.com/pgconsent/pgconsent/internal/sql/sqlstate"

// Caller is a caller of HTTP or MCP.
type Caller struct {
	Role     string // subject, system or agent; other roles are refused
	Subject  string // set for role subject
	Agent    string // set for role agent
	Database string
}

// Key returns the session that a caller means. A user has their own sessions, an application (role system) those of all
// users, and an agent those that it has recorded. The error (42501) is the same whether the user exists or not.
func (c Caller) Key(user, channel string) (Key, error) {
	k := Key{Database: c.Database, User: user, Channel: channel}
	switch {
	case c.Role == "system":
	case c.Role == "subject" && c.Subject != "" && c.Subject == user:
		k.Self = true
	case c.Role == "agent" && c.Agent != "":
		k.By = c.Agent
	default:
		return Key{}, sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonConsent,
			"interactions of this user are not yours to record or to read").
			WithHint("A user's token has that user's own sessions, a token of the role system those of all users, " +
				"an agent's those that it recorded.")
	}
	return k, k.check()
}
