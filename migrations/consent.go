package migrations

// ConsentGrants returns the control role's rights on the consent registry. The role may read the tables, and append
// records only through functions.
func ConsentGrants(controlRole string) []Grant {
	control := []string{quoteIdent(controlRole)}
	return []Grant{
		{
			Rights: WholeObjectRights("EXECUTE"), Kind: "FUNCTION", Roles: control,
			Objects: []string{
				"pgconsent.consent_now()", "pgconsent.consent_epoch()", "pgconsent.consent_open()",
				"pgconsent.consent_name(pg_catalog.uuid, pg_catalog.text, pg_catalog.bytea)",
				"pgconsent.consent_append(pgconsent.consent_record, pg_catalog.text)",
				"pgconsent.consent_rewrap(pg_catalog.uuid[], pg_catalog.bytea[], pg_catalog.bytea[])",
				"pgconsent.consent_recode(pg_catalog.int4, pg_catalog.int8[], pg_catalog.bytea[])",
			},
			Why: "Changes of consent are recorded as this role, and in no other way.",
		},
		{
			Rights: WholeObjectRights("SELECT"), Roles: control,
			Objects: []string{
				"pgconsent.consent_registry", "pgconsent.subject", "pgconsent.consent_record", "pgconsent.consent_code",
				"pgconsent.consent_current", "pgconsent.consent_guardian", "pgconsent.change",
			},
			Why: "Who has consented to what is told, and verified, by this role.",
		},
	}
}
