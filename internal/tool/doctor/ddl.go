package doctor

import (
	"context"

	"github.com/pgconsent/pgconsent/migrations"
)

// checkDDL warns if the event triggers are missing or disabled, so that the proxy notices DDL only by polling.
func checkDDL(ctx context.Context, x *examination) ([]Finding, error) {
	var tracksDDL bool
	if err := x.conn.QueryRow(ctx, "SELECT "+migrations.TracksDDL).Scan(&tracksDDL); err != nil || tracksDDL {
		return nil, err
	}
	return []Finding{{"ddl", SeverityHardening,
		"no event trigger tells of the owner's DDL: it is noticed within two seconds, not before the next statement",
		"Run pgconsent migrate as a superuser that owns what migrate made, or do nothing: " +
			"docs/explanation/security.md says what it means."}}, nil
}
