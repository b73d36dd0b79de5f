package air

import "github.com/pgconsent/pgconsent/internal/sql/sqlstate"

// Caller is who comes by a face.
type Caller struct {
	Role     string // subject, system, agent; others have no business here
	Subject  string // of role subject
	Agent    string // of role agent
	Database string
}

// Key is the session that a caller means. A user has their own sessions and no others, an application (role system)
// those of all users, and an agent those that it recorded itself: of what it was not told by its own calls it learns
// nothing. The error (42501) is the same whether there is such a user or not.
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
