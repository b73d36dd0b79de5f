package migrations

// SweepGrants are the rights of the control role on the tables of the sweeper. What it may delete is said by the
// functions that a plan makes.
func SweepGrants(controlRole string) []Grant {
	control := []string{quoteIdent(controlRole)}
	return []Grant{
		{
			Rights: Rights("SELECT", "UPDATE"), On: []string{"pgconsent.sweep_state"}, To: control,
			Why: "The sweeper remembers how far it came.",
		},
		{
			Rights: Rights("SELECT", "DELETE"), On: []string{"pgconsent.sweep_erased", "pgconsent.sweep_note"}, To: control,
			Why: "The sweeper takes off what it has done.",
		},
		{
			Rights: append(Rights("SELECT", "DELETE"), Right{"UPDATE", []string{"attempts", "next_at", "sent_at", "error"}}),
			On:     []string{"pgconsent.outbox"}, To: control,
			Why: "Messages are sent, and sent again, by this role.",
		},
	}
}
