package mcp

import "github.com/pgconsent/pgconsent/internal/face/identity"

// instructions are what a model is told when a session begins.
func instructions(r identity.Role) string {
	switch r {
	case identity.Agent:
		return "Rows of a PostgreSQL database, as far as the people in them consent: what they have not consented " +
			"to does not exist here, and is not counted. " +
			"list_tables shows what there is to read; query runs one SQL statement. A refused statement comes " +
			"back with an SQLSTATE, what was refused, and a hint what to do instead: follow it. " +
			"Do not try to find out what is hidden, and do not take what is absent for proof that it never was."
	case identity.Subject:
		return "Your own consents: who may use what of you, until when. consent_status shows how it stands. " +
			"Changes take effect at once, for everybody. " +
			"Ask before you grant or withdraw anything: these are the user's decisions."
	case identity.Admin:
		return "The consents that people have given: to be read, and not changed."
	case identity.System:
		return "For the application: what its users do, and how their consents stand."
	default:
		return "This token has no tools here."
	}
}
