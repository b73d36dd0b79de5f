package migrations

// AuditGrants returns the control role's rights on an audit that is stored in the database. The role may append
// records, read them, and remove expired ones.
func AuditGrants(controlRole string) []Grant {
	control := []string{quoteIdent(controlRole)}
	return []Grant{
		{
			Rights: WholeObjectRights("EXECUTE"), Kind: "FUNCTION", Roles: control,
			Objects: []string{
				"pgconsent.audit_append(pg_catalog.text, pg_catalog.int8, pg_catalog.text[])",
				"pgconsent.audit_retire(pg_catalog.text, pg_catalog.int8, pg_catalog.int4)",
			},
			Why: "Where the audit is kept in the database, the proxy appends records, and removes those whose time is over.",
		},
		{
			Rights: WholeObjectRights("SELECT"), Objects: []string{"pgconsent.audit_record"}, Roles: control,
			Why: "The proxy goes on after the last record, and records are verified.",
		},
	}
}
