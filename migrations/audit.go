package migrations

// AuditGrants are the rights of the control role on the audit's records, where they are kept in the database: append,
// read, and remove those whose time is over.
func AuditGrants(controlRole string) []Grant {
	control := []string{quoteIdent(controlRole)}
	return []Grant{
		{
			Rights: Rights("EXECUTE"), Kind: "FUNCTION", To: control,
			On: []string{
				"pgconsent.audit_append(pg_catalog.text, pg_catalog.int8, pg_catalog.text[])",
				"pgconsent.audit_retire(pg_catalog.text, pg_catalog.int8, pg_catalog.int4)",
			},
			Why: "Where the audit is kept in the database, the proxy appends records, and removes those whose time is over.",
		},
		{
			Rights: Rights("SELECT"), On: []string{"pgconsent.audit_record"}, To: control,
			Why: "The proxy goes on after the last record, and records are verified.",
		},
	}
}
