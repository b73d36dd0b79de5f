package pgcatalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// CatalogWrites returns how many rows of the catalogs that [Fingerprint] reads were written since the server's
// statistics were reset. It counts what the server's processes have reported; an idle process reports within ten
// seconds (PGSTAT_IDLE_INTERVAL of pgstat.c). Reading this number costs much less than a fingerprint, and it changes
// whenever the fingerprint may change. It does not count writes of a superuser with track_counts off.
func CatalogWrites(ctx context.Context, conn *pgx.Conn) (int64, error) {
	var n int64
	if err := conn.QueryRow(ctx, catalogWritesQuery).Scan(&n); err != nil {
		return 0, fmt.Errorf("read how many rows of the catalogs were written: %w", err)
	}
	return n, nil
}

const catalogWritesQuery = `
SELECT COALESCE(pg_catalog.sum(pg_catalog.pg_stat_get_tuples_inserted(c.oid) OPERATOR(pg_catalog.+)
  pg_catalog.pg_stat_get_tuples_updated(c.oid) OPERATOR(pg_catalog.+) pg_catalog.pg_stat_get_tuples_deleted(c.oid)), 0)::pg_catalog.int8
FROM pg_catalog.unnest(ARRAY['pg_catalog.pg_namespace', 'pg_catalog.pg_class', 'pg_catalog.pg_index', 'pg_catalog.pg_attribute',
  'pg_catalog.pg_proc', 'pg_catalog.pg_type', 'pg_catalog.pg_enum', 'pg_catalog.pg_operator', 'pg_catalog.pg_cast',
  'pg_catalog.pg_constraint', 'pg_catalog.pg_rewrite', 'pg_catalog.pg_policy', 'pg_catalog.pg_inherits', 'pg_catalog.pg_extension',
  'pg_catalog.pg_depend', 'pg_catalog.pg_trigger', 'pg_catalog.pg_ts_config', 'pg_catalog.pg_collation', 'pg_catalog.pg_amproc',
  'pg_catalog.pg_amop', 'pg_catalog.pg_opclass', 'pg_catalog.pg_statistic_ext', 'pg_catalog.pg_language',
  'pg_catalog.pg_authid']::pg_catalog.regclass[]) AS c (oid)`
