package doctor

import (
	"context"

	"github.com/pgconsent/pgconsent/builtin"
)

// checkBuiltin finds what was put into pg_catalog in the place of what our functions call.
func checkBuiltin(ctx context.Context, x *exam) ([]Finding, error) {
	names, err := builtin.Planted(ctx, x.conn)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return []Finding{{"planted", Unsafe, "this is not PostgreSQL's own, and would be taken for it by rules, seals and triggers: " + list(names),
		"As superuser: DROP what was added; take what was altered (a function's language, say) from another database of the same version. Then run pgconsent migrate, and ask who has done it."}}, nil
}
