package migrations

// SweepGrants returns the control role's rights on the sweeper's own tables. It deletes rows of other tables only
// through functions that a plan makes.
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
