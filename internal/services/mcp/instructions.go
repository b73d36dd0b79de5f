package mcp

import "github.com/pgconsent/pgconsent/internal/services/identity"

// roleInstructions returns the instructions that a model gets when a session begins, for the role of the caller.
func roleInstructions(r identity.Role) string {
	switch r {
	case identity.Agent:
		return "Rows of a PostgreSQL database, as far as the people in them consent. Rows without consent " +
			"do not exist here, and are not counted. " +
			"list_tables lists the tables to read; query runs one SQL statement. A refused statement is " +
			"answered with an SQLSTATE, what was refused, and a hint what to do instead: follow it. " +
			"Do not try to find out what is hidden, and do not conclude from a missing row that there never was one."
	case identity.Subject:
		return "Your own consents: who may use which of your data, and until when. consent_status shows their state. " +
			"Changes take effect at once, for everybody. " +
			"Ask before you grant or withdraw anything: these are the user's decisions."
	case identity.Admin:
		return "The consents that people have given. You can read them, and change nothing."
	case identity.System:
		return "For the application: interactions of its users, and the state of their consents."
	default:
		return "This token has no tools here."
	}
}
