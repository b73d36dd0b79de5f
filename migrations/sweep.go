package migrations

// SweepGrants returns the rights of the control role on the tables of the sweeper. The functions that a plan makes
// decide which rows it may delete.
func SweepGrants(controlRole string) []Grant {
	control := []string{quoteIdent(controlRole)}
	return []Grant{
		{
			Rights: WholeObjectRights("SELECT", "UPDATE"), Objects: []string{"pgconsent.sweep_state"}, Roles: control,
			Why: "The sweeper remembers how far it came.",
		},
		{
			Rights: WholeObjectRights("SELECT", "DELETE"), Objects: []string{"pgconsent.sweep_erased", "pgconsent.sweep_note"},
			Roles: control,
			Why:   "The sweeper takes off what it has done.",
		},
		{
			Rights: append(WholeObjectRights("SELECT", "DELETE"),
				Right{"UPDATE", []string{"attempts", "next_at", "sent_at", "error"}}),
			Objects: []string{"pgconsent.outbox"}, Roles: control,
			Why: "Messages are sent, and sent again, by this role.",
		},
	}
}
