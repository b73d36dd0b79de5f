package migrations

import "fmt"

// SweepGrants are the rights of the control role on what the sweeper keeps. What it may delete is said by the functions
// that a plan makes.
func SweepGrants(controlRole string) []Statement {
	control := quoteIdent(controlRole)
	return []Statement{
		{
			SQL: fmt.Sprintf("GRANT SELECT, UPDATE ON pgconsent.sweep_state TO %s", control),
			Why: "The sweeper remembers how far it came.",
		},
		{
			SQL: fmt.Sprintf("GRANT SELECT, DELETE ON pgconsent.sweep_erased, pgconsent.sweep_note TO %s", control),
			Why: "The sweeper takes off what it has done.",
		},
		{
			SQL: fmt.Sprintf("GRANT SELECT, DELETE, UPDATE (attempts, next_at, sent_at, error) ON pgconsent.outbox TO %s", control),
			Why: "Messages are sent, and sent again, by this role.",
		},
	}
}
