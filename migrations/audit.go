package migrations

import "fmt"

// AuditGrants are the rights of the control role on the audit's records, where they are kept in the database: append,
// read, and take away what is over.
func AuditGrants(controlRole string) []Statement {
	control := quoteIdent(controlRole)
	return []Statement{
		{
			SQL: fmt.Sprintf(
				"GRANT EXECUTE ON FUNCTION pgconsent.audit_append(pg_catalog.text, pg_catalog.int8, "+
					"pg_catalog.text[]), pgconsent.audit_retire(pg_catalog.text, pg_catalog.int8, pg_catalog.int4) TO %s", control),
			Why: "Where the audit is kept in the database, the proxy appends records, and removes those whose time is over.",
		},
		{
			SQL: fmt.Sprintf("GRANT SELECT ON pgconsent.audit_record TO %s", control),
			Why: "The proxy goes on after the last record, and records are verified.",
		},
	}
}
