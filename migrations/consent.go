package migrations

import "fmt"

// ConsentGrants are the rights of the control role on the consent registry: it reads, and appends through functions.
func ConsentGrants(controlRole string) []Statement {
	control := quoteIdent(controlRole)
	return []Statement{
		{
			SQL: fmt.Sprintf(
				"GRANT EXECUTE ON FUNCTION pgconsent.consent_now(), pgconsent.consent_epoch(), pgconsent.consent_open(), "+
					"pgconsent.consent_name(pg_catalog.uuid, pg_catalog.text, pg_catalog.bytea), "+
					"pgconsent.consent_append(pgconsent.consent_record, pg_catalog.text), "+
					"pgconsent.consent_rewrap(pg_catalog.uuid[], pg_catalog.bytea[], pg_catalog.bytea[]), "+
					"pgconsent.consent_recode(pg_catalog.int4, pg_catalog.int8[], pg_catalog.bytea[]) TO %s", control),
			Why: "Changes of consent are recorded as this role, and in no other way.",
		},
		{
			SQL: fmt.Sprintf(
				"GRANT SELECT ON pgconsent.consent_registry, pgconsent.subject, pgconsent.consent_record, "+
					"pgconsent.consent_code, pgconsent.consent_current, pgconsent.consent_guardian, pgconsent.change TO %s", control),
			Why: "Who has consented to what is told, and verified, by this role.",
		},
	}
}
