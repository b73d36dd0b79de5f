package doctor

import (
	"context"
	"fmt"
)

// maxComparedBytes is the size of the largest materialized table that a running proxy compares: some ten thousand rows.
// The proxy repeats the check every few seconds and has only a few seconds for it. It finds missing or disabled
// triggers whatever the size is.
const maxComparedBytes = 1 << 20

// checkMaterialized compares the stored results of consent blocks with those that PostgreSQL computes now.
func checkMaterialized(ctx context.Context, x *examination) ([]Finding, error) {
	if x.Plan == nil {
		return nil, nil
	}
	var out []Finding
	for _, f := range x.Plan.Fills() {
		var isInstalled, exists, mayRead bool
		var size int64
		err := x.conn.QueryRow(ctx, `SELECT COALESCE(bool_or(k.ready), false), count(*) > 0,
			COALESCE(pg_catalog.pg_relation_size(pg_catalog.to_regclass('pgconsent.materialized_' || $1::pg_catalog.text)), 0),
			pg_catalog.has_column_privilege('pgconsent.materialized_change', 'name', 'SELECT')
			FROM pgconsent.materialized AS k WHERE k.name = $1`, f.Name).Scan(&isInstalled, &exists, &size, &mayRead)
		switch {
		case err != nil:
			return out, err
		case !exists:
			continue // The table is not installed; another check reports that.
		case !isInstalled:
			out = append(out, Finding{"materialized", SeverityWarning,
				fmt.Sprintf("the materialized rule of %s is not complete: statements work it out for each row",
					f.Relation), "Run pgconsent migrate, which fills it in."})
			continue
		}
		// PostgreSQL applies a transaction's recorded changes and deletes them before it commits. A change that is visible
		// here was never applied.
		var unsettledChanges int64
		if mayRead { // The right to read the table is missing if an older pgconsent migrate did not grant it.
			if err := x.conn.QueryRow(ctx, `SELECT count(*) FROM pgconsent.materialized_change AS c WHERE c.name = $1`,
				f.Name).Scan(&unsettledChanges); err != nil {
				return out, err
			}
		}
		if unsettledChanges > 0 {
			out = append(out, Finding{"materialized", SeverityUnsafe,
				fmt.Sprintf("the materialized rule of %s may be wrong: it depends on %d changes that were never applied",
					f.Relation, unsettledChanges), "Run pgconsent migrate, which fills it in anew."})
			continue
		}
		if x.forRunningProxy && size > maxComparedBytes {
			continue
		}
		var n int64
		if err := x.conn.QueryRow(ctx, f.CountWrong).Scan(&n); err != nil {
			return out, err
		}
		if n > 0 {
			out = append(out, Finding{"materialized", SeverityUnsafe,
				fmt.Sprintf("the materialized rule of %s is wrong for %d rows: somebody has changed it by hand, or has "+
					"switched triggers off", f.Relation, n),
				fmt.Sprintf("Run SELECT pgconsent.materialized_invalidate('%s') as the role that migrates, and then "+
					"pgconsent migrate, which fills it in anew.", f.Name)})
		}
	}
	return out, nil
}
