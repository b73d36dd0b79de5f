package doctor

import (
	"context"

	"github.com/pgconsent/pgconsent/internal/sql/builtin"
)

// checkBuiltin finds objects that somebody has added to pg_catalog and that pgconsent's functions would call.
func checkBuiltin(ctx context.Context, x *examination) ([]Finding, error) {
	names, err := builtin.ReadPlantedObjects(ctx, x.conn)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return []Finding{{"planted", SeverityUnsafe,
		"this is not PostgreSQL's own, and would be taken for it by rules, seals and triggers: " + nameList(names),
		"As superuser: DROP what was added; take what was altered (a function's language, say) from another " +
			"database of the same version. Then run pgconsent migrate, and ask who has done it."}}, nil
}

// checkLeakproof finds functions that PostgreSQL runs on rows before it evaluates row policies, because somebody has
// marked them LEAKPROOF.
func checkLeakproof(ctx context.Context, x *examination) ([]Finding, error) {
	extensions, err := x.knownExtensions(ctx)
	if err != nil {
		return nil, err
	}
	names, err := builtin.ReadLeakproofFunctions(ctx, x.conn, x.listedFunctions(), extensions)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return []Finding{{"leakproof", SeverityUnsafe,
		"somebody has marked functions LEAKPROOF that agents' statements may run, so that these see hidden rows " +
			"before row security does, and their errors and notices tell of them: " + nameList(names),
		"As superuser: ALTER FUNCTION … NOT LEAKPROOF. With enforcement: auto an index serves without it."}}, nil
}
