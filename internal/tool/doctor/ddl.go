package doctor

import "context"

// checkDDL warns if the event triggers are missing or disabled, so that the proxy notices DDL only by polling.
func checkDDL(ctx context.Context, x *examination) ([]Finding, error) {
	var n int
	err := x.conn.QueryRow(ctx, `SELECT pg_catalog.count(*) FROM pg_catalog.pg_event_trigger AS t
		WHERE t.evtfoid OPERATOR(pg_catalog.=) pg_catalog.to_regprocedure('pgconsent.catalog_changed()') AND t.evtenabled IN ('O', 'A')`).Scan(&n)
	if err != nil || n >= 2 {
		return nil, err
	}
	return []Finding{{"ddl", SeverityHardening,
		"no event trigger tells of the owner's DDL: it is noticed within two seconds, not before the next statement",
		"Run pgconsent migrate as a superuser that owns what migrate made, or do nothing: " +
			"docs/explanation/security.md says what it means."}}, nil
}
